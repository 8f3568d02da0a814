"""Dry-runs compiled to Python source."""
