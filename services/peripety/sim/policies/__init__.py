"""Policies: rules that decide about the tool calls of agents; docs/policies.md specifies them."""
