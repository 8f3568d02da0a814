"""Policies about tool calls: documents, checks, decisions."""
