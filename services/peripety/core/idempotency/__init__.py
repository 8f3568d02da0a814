"""Responses stored per request id, so that a repeated request is answered from the record."""
