"""Offline scenario author: writes a specification from a text without a model.

Terms are from the text; the design is a fixed template. The same text, seed and variation give the same
document, byte for byte.
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
    """Return a ScenarioSpec 1.0 about the text.

    Args:
        text: text in any language; may be empty.
        seed: seed of the scenario and of its choices; derived from the text if None.
        variation: 0 for the first attempt; another number changes numbers and roles for a retry.
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
