"""Idempotent requests: responses are stored per request id, and response streams are numbered."""
