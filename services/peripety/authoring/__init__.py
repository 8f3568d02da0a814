"""Scenarios from words, without a model: blueprints, and the rules and numbers that follow from them."""

from peripety.authoring.specifying import specification
from peripety.authoring.texts import author

__all__ = ["author", "specification"]
