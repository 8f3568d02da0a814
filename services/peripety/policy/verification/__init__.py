"""Scenarios run against a policy; coverage."""
