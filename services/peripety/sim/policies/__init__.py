"""Policies: rules that decide about the tool calls of an agent (docs/policies.md says what they mean)."""
