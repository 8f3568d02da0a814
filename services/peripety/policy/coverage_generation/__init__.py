"""Scenarios for what is not covered; minimal suites."""
