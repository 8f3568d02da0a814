"""Policies in the reference implementation, in the order of docs/policies.md."""
