"""Enforcement: the point between an agent and its tools where a policy decides each call."""
