"""A judge without a model: it never says that a scenario is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.authoring.reading.languages import MARK

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["judgement"]


def judgement(failed: Iterable[str]) -> dict[str, Any]:
    """Who is to blame for scenarios that failed: the rules, as nobody can tell here what else was meant.

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
