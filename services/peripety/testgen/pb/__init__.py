"""Test-generation types to and from proto."""
