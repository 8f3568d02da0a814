"""Verification of scenarios on the engine: results, masked rules and coverage."""
