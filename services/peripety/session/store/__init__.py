"""Stored sessions and turns, one transaction per turn."""
