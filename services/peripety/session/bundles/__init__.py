"""Exported sessions, verified by replay."""
