"""Peripety: free text becomes a checked, executable scenario, and its turns stream."""

__version__ = "0.1.0"
