"""Rounds, reflections and refinement: what a run does next, within which limits, and how it is done."""
