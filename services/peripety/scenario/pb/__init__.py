"""Scenario types to and from proto."""
