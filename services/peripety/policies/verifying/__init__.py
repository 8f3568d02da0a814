"""Scenarios on the engine: which pass, what hides a rule from them, and what they reach."""
