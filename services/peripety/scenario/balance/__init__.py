"""Fewest changes of numbers that reach a difficulty band."""
