"""Neutral types of requests, messages and responses."""
