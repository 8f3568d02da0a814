"""Stored conversations: fork, rewind, history window."""
