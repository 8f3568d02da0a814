"""Test candidates for scenarios, policies and commands."""
