"""What may happen in an authored scenario; most of it waits for what the player did or failed to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.authoring.rules import Condition, Flow, effects_of

if TYPE_CHECKING:
    from peripety.authoring.plot import Plot

__all__ = ["events"]

_ALERT = 5
_LASTING = "2h"


def events(plot: Plot) -> list[dict[str, Any]]:
    """All events of a plot."""
    stock, ward, threat, wear = plot.stock, plot.ward, plot.threat, plot.wear
    strain = _event(plot, "strain", ward.term, 0.2, threat.at_least(_ALERT), Flow(ward, -2))
    burst = _event(plot, "burst", plot.surprise, 0.25, wear.at_least(2), Flow(ward, -4), Flow(wear, -2))
    return [
        _event(plot, "rise", threat.term, 0.3, None, Flow(threat, +2)),
        {**strain, "duration": _LASTING},
        _event(plot, "short", stock.term, 0.12, stock.above(3), Flow(stock, -2)),
        {**burst, "effects": [*burst["effects"], {"op": "addlog", "message": burst["name"]}]},
        _event(plot, "relief", plot.comfort, 0.08, plot.goal.at_least(4), Flow(stock, +2)),
    ]


def _event(
    plot: Plot, use: str, term: str, weight: float, when: Condition | None, *flows: Flow
) -> dict[str, Any]:
    return {
        "id": plot.id(use, term),
        "name": plot.say(use, term),
        "weight": weight,
        "when": when.logic if when else {},
        "effects": effects_of(flows),
    }
