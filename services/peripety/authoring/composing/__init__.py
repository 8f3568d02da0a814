"""Text to blueprint, in the words of the text."""
