"""Structured answers: extraction from model text, validation against a schema, and incremental display."""
