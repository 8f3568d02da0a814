"""How an answer arrives: when each chunk leaves, what breaks on the way, how the whole ends."""
