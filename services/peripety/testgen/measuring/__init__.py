"""Measurement of tests: execution, duplicates, contradictions and mutation score."""
