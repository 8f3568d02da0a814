"""Judge without a model: every failed scenario is attributed to the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.authoring.reading.languages import MARK

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["judgement"]


def judgement(failed: Iterable[str]) -> dict[str, Any]:
    """Attribute failed scenarios to the rules; the intent behind a scenario is unknown without a model.

    Args:
        failed: the descriptions of the scenarios.
    """
    attributions = [
        {
            "description": description,
            "blame": "rule",
            "reasoning": f"Who wrote the scenario is believed {MARK}.",
        }
        for description in failed
    ]
    return {"satisfied": not attributions, "attributions": attributions, "probes": []}
