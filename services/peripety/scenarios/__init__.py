"""Scenarios: from a free text to a validated, balanced specification in storage."""
