"""Faults: kinds and injection."""
