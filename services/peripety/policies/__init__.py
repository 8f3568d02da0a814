"""Policies: rules for tool calls, authored from a written policy and verified by test scenarios."""
