"""Scenarios from models that cannot write one: an outline, then sections, and the engine does the rest."""
