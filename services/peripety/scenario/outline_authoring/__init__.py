"""Scenarios from small models, section by section."""
