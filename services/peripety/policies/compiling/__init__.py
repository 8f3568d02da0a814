"""Authoring of policies by a model: write, filter, verify, judge and repair rules and test scenarios."""
