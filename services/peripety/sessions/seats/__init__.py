"""Sessions with several players: whose turn it is, what they hand in, and how long the others wait."""
