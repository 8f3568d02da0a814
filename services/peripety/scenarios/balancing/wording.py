"""Description of a moved number: its rule, and the change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.scenarios.phrases import quantity

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["sentence"]

_RULES = {"random_events": "event", "actions": "action"}


def sentence(spec: dict[str, Any], segments: Sequence[str | int], before: float, after: float) -> str:
    """Describe a change, such as `event 'a': weight 0.2 → 0.25 (+25 %)`.

    Args:
        spec: the specification, before or after the change.
        segments: the path of the number.
        before: the number before; not 0.
        after: the number after.
    """
    change = 100 * (after / before - 1)
    return f"{_subject(spec, segments)} {before:.15g} → {after:.15g} ({round(change, 1):+g} %)"


def _subject(spec: dict[str, Any], segments: Sequence[str | int]) -> str:
    section = segments[0]
    if section == "state":
        return f"initial {quantity(sim.format_path(tuple(segments)))}"
    if section == "negativity_budget":
        return f"decay of {quantity(str(segments[-1]))}"
    rule = spec[str(section)][segments[1]]
    name = f"{_RULES[str(section)]} '{rule['id']}':"
    if segments[2] == "weight":
        return f"{name} weight"
    effect: Any = rule
    for segment in segments[2:-1]:
        effect = effect[segment]
    return f"{name} {effect['op']} {quantity(effect['path'])} by"
