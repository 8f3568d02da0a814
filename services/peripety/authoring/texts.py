"""Writes a scenario from a text without any model: the words are the user's, the design is made here.

The same text, seed and variation give the same document, byte for byte.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from peripety.authoring.choices import Choices
from peripety.authoring.composing.composer import compose
from peripety.authoring.reading.languages import MARK
from peripety.authoring.specifying import specification

__all__ = ["author"]

_SEEDS = 2**53


def author(text: str, seed: int | None = None, variation: int = 0) -> dict[str, Any]:
    """A ScenarioSpec 1.0 about `text`.

    Args:
        text: anything in any language, or nothing.
        seed: seed of the scenario and of the choices made here; without one the text decides.
        variation: 0 for the first answer; another number changes numbers and roles, for a second try.
    """
    digest = hashlib.sha256(text.encode("utf-8", "replace"))
    if seed is None:
        seed = int.from_bytes(digest.digest()[:6], "big")
    choices = Choices(digest.hexdigest(), seed, variation)
    blueprint = compose(text, choices.number)
    return specification(
        replace(blueprint, title=f"{blueprint.title} {MARK}".strip()),
        seed % _SEEDS,
        spec_id=f"offline_{choices.name}",
    )
