"""Stored answers and single-flight."""
