"""Prompts and the parser of streamed tests."""
