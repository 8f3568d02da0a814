"""Policies in the reference core: docs/policies.md, part for part."""
