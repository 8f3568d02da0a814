"""Subjects of tests: a compiled scenario, a policy, or a command."""
