"""Scenarios: generation, validation, dry-run, balance, certificates."""
