"""What can be done in an authored scenario: every action gives something and takes something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.authoring.rules import Condition, Flow, all_of, effects_of, summary, variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.authoring.plot import Plot

__all__ = ["actions"]

_MOST_EFFORT = 3
_GOOD_SHAPE = 6
_DELAY = 3


def actions(plot: Plot) -> list[dict[str, Any]]:
    """All actions of a plot; one more where the text names somebody to listen to."""
    always = [_work(plot), _protect(plot), _contain(plot), _trade(plot), _stake(plot), _prepare(plot)]
    return [*always, *_listen(plot)]


def _work(plot: Plot) -> dict[str, Any]:
    stock, goal, amount = plot.stock, plot.goal, variable("params.amount")
    cost = {"*": [amount, stock.unit]}
    bonus = {"if": [plot.ward.at_least(_GOOD_SHAPE).logic, 1, 0]}
    flows = (
        Flow(stock, -1, "cost", f"{stock.unit}\u2026{_MOST_EFFORT * stock.unit}"),
        Flow(goal, +1, "gain", f"{goal.unit}\u2026{(_MOST_EFFORT + 1) * goal.unit}"),
    )
    affordable = Condition({">": [variable(stock.path), cost]}, "")
    return {
        **_action(plot, "work", (goal.term,), flows, affordable),
        "params": {"amount": {"type": "integer", "minimum": 1, "maximum": _MOST_EFFORT}},
        "derives": {"cost": cost, "gain": {"*": [{"+": [amount, bonus]}, goal.unit]}},
    }


def _protect(plot: Plot) -> dict[str, Any]:
    flows = (Flow(plot.ward, +3), Flow(plot.stock, -1))
    return _action(plot, "protect", (plot.ward.term,), flows, plot.stock.above(1))


def _contain(plot: Plot) -> dict[str, Any]:
    flows = (Flow(plot.threat, -3), Flow(plot.stock, -1), Flow(plot.wear, +1))
    return _action(plot, "contain", (plot.threat.term,), flows, plot.threat.at_least(3), plot.stock.above(1))


def _trade(plot: Plot) -> dict[str, Any]:
    flows = (Flow(plot.stock, +5), Flow(plot.ward, -2), Flow(plot.threat, +1))
    return _action(plot, "trade", (plot.ward.term, plot.stock.term), flows, plot.ward.above(2))


def _stake(plot: Plot) -> dict[str, Any]:
    flows = (Flow(plot.goal, +3), Flow(plot.ward, -3), Flow(plot.wear, +1))
    return _action(plot, "stake", (plot.ward.term, plot.goal.term), flows, plot.ward.above(4))


def _prepare(plot: Plot) -> dict[str, Any]:
    now = (Flow(plot.stock, -2), Flow(plot.plan, +1))
    later = (Flow(plot.ward, +4), Flow(plot.plan, -1))
    action = _action(plot, "prepare", (plot.threat.term,), now, plot.stock.above(2), plot.plan.below(1))
    action["description"] += f"; \u29d7{_DELAY} {summary(later)}"
    told = {"op": "addlog", "message": plot.say("ready", plot.threat.term)}
    schedule = {"op": "schedule", "id": action["id"], "after": _DELAY, "effects": [*effects_of(later), told]}
    action["effects"].append(schedule)
    return action


def _listen(plot: Plot) -> list[dict[str, Any]]:
    if plot.reserve is None:
        return []
    flows = (Flow(plot.reserve, -1), Flow(plot.stock, +2))
    action = _action(plot, "listen", (plot.confidant,), flows, plot.reserve.at_least(1))
    action["effects"].append({"op": "addlog", "message": plot.say("heard", plot.confidant)})
    return [action]


def _action(
    plot: Plot, use: str, terms: tuple[str, ...], flows: Sequence[Flow], *conditions: Condition
) -> dict[str, Any]:
    return {
        "id": plot.id(use, terms[0]),
        "name": plot.say(use, *terms),
        "description": summary(flows),
        "params": {},
        "preconditions": all_of(*conditions).logic,
        "effects": effects_of(flows),
    }
