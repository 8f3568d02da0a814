"""Policies: rules for tool calls from a written policy, verified."""
