"""Offline authoring: scenarios, policies and tests written from text without a model.

A text is analysed into a blueprint. Rules and numbers are then derived from the blueprint.
"""

from peripety.authoring.specifying import specification
from peripety.authoring.texts import author

__all__ = ["author", "specification"]
