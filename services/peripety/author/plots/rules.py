"""Rules of a plot as a specification writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peripety.author.plots.plot import Gauge, Plot

SETTLE = "$settle"
"""The right decision, in a solution."""

_CLAUSE = re.compile(r"(\w+)(>=|<=|=)(\w+)")
_OPERATORS = {">=": ">=", "<=": "<=", "=": "==="}
_FLAGS = {"decided": "state.decided", "seen": "state.seen", "eased": "state.hidden.eased"}
_TRUTH = "state.hidden.truth"
_MIN_WEIGHT, _MAX_WEIGHT = 0.05, 0.3


@dataclass(frozen=True, slots=True)
class PlotNumbers:
    """Numbers of one scenario of a plot.

    Attributes:
        turns: the number of turns.
        factors: for each gauge with units of its own, the number of units for one step.
        pressure: factor of the weights of the events that harm.
    """

    turns: int
    factors: Mapping[str, int | float]
    pressure: float = 1.0

    def to_amount(self, gauge: str, steps: float) -> int:
        """Return a number of steps in the units of the gauge; a step is at least one unit."""
        amount = round(steps * self.factors.get(gauge, 1))
        return amount if amount or not steps else (1 if steps > 0 else -1)


def gauge_path(name: str) -> str:
    """Return the path of a gauge or flag."""
    return _FLAGS.get(name, f"state.{name}")


def find_top(gauge: Gauge, name: str, scale: PlotNumbers) -> int:
    """Return the maximum of a gauge."""
    return scale.to_amount(name, scale.turns if gauge.is_clock else gauge.top)


def build_plot_state(plot: Plot, scale: PlotNumbers) -> dict[str, Any]:
    """Return the initial state."""
    started = {
        name: scale.to_amount(name, scale.turns if gauge.is_clock else gauge.start)
        for name, gauge in plot.gauges.items()
    }
    return {**started, "seen": 0, "decided": 0, "hidden": {"truth": plot.truths[0], "eased": 0}}


def build_bounds(plot: Plot, scale: PlotNumbers) -> dict[str, Any]:
    """Return the bounds of the gauges."""
    return {
        gauge_path(name): {"min": 0, "max": find_top(gauge, name, scale)}
        for name, gauge in plot.gauges.items()
    }


def build_decay(plot: Plot, scale: PlotNumbers) -> dict[str, int]:
    """Return what each gauge loses in every turn; a negative number is a gain."""
    return {
        gauge_path(name): -scale.to_amount(name, gauge.each_turn)
        for name, gauge in plot.gauges.items()
        if gauge.each_turn
    }


def build_condition(text: str, scale: PlotNumbers) -> dict[str, Any]:
    """Return the JSONLogic of a short condition."""
    clauses = []
    for name, operator, value in _CLAUSE.findall(text):
        path = _TRUTH if name == "truth" else gauge_path(name)
        side: Any = int(value) if value.isdecimal() else value
        if isinstance(side, int) and name in scale.factors:
            side = scale.to_amount(name, side)
        clauses.append({_OPERATORS[operator]: [{"var": path}, side]})
    if not clauses:
        return {}
    return clauses[0] if len(clauses) == 1 else {"and": clauses}


def build_plot_actions(plot: Plot, scale: PlotNumbers) -> list[dict[str, Any]]:
    """Return the actions without texts."""
    return [_build_action(action, scale) for action in plot.actions]


def _build_action(action: Mapping[str, Any], scale: PlotNumbers) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": action["id"],
        "params": {},
        "preconditions": build_condition(action.get("when", ""), scale),
    }
    if action.get("once"):
        rule["once"] = True
    if "decides" not in action:
        clue = [{"op": "reveal", "clue": action["clue"]}] if "clue" in action else []
        return {**rule, "effects": [*_build_effects(action["does"], scale), *clue]}
    is_right = {"===": [{"var": _TRUTH}, action["decides"]]}
    right, wrong = action["right"], action["wrong"]
    derives = {"eased": {"if": [is_right, 1, 0]}}
    effects = [
        {"op": "inc", "path": gauge_path("decided"), "value": 1},
        {"op": "inc", "path": gauge_path("eased"), "value": "eased"},
    ]
    for name in dict.fromkeys((*right, *wrong)):
        amounts = [scale.to_amount(name, side.get(name, 0)) for side in (right, wrong)]
        derives[f"to_{name}"] = {"if": [is_right, *amounts]}
        effects.append({"op": "inc", "path": gauge_path(name), "value": f"to_{name}"})
    return {**rule, "derives": derives, "effects": effects}


def _build_effects(changes: Mapping[str, int], scale: PlotNumbers) -> list[dict[str, Any]]:
    return [
        {
            "op": "inc" if change > 0 else "dec",
            "path": gauge_path(name),
            "value": abs(scale.to_amount(name, change)),
        }
        for name, change in changes.items()
    ]


def build_plot_events(plot: Plot, scale: PlotNumbers) -> list[dict[str, Any]]:
    """Return the random events without texts."""
    return [
        {
            "id": event["id"],
            "weight": _weight(plot, event, scale),
            "when": build_condition(event.get("when", ""), scale),
            **({"once": True} if event.get("once") else {}),
            "effects": _build_effects(event["does"], scale),
        }
        for event in plot.events
    ]


def _weight(plot: Plot, event: Mapping[str, Any], scale: PlotNumbers) -> float:
    weight: float = event["weight"]
    if is_harm(plot, event["does"]):
        weight *= scale.pressure
    return round(min(max(weight, _MIN_WEIGHT), _MAX_WEIGHT), 3)


def is_harm(plot: Plot, changes: Mapping[str, int]) -> bool:
    """Return True if changes make a gauge worse."""
    return any(
        name in plot.gauges and (change > 0) == plot.gauges[name].is_low_good
        for name, change in changes.items()
    )


def build_solutions(plot: Plot) -> list[dict[str, Any]]:
    """Return one solution for each truth."""
    decisions = {action["decides"]: action["id"] for action in plot.actions if "decides" in action}
    return [
        {
            "id": truth,
            "when": {"===": [{"var": _TRUTH}, truth]},
            "steps": [
                {"action": decisions[truth] if step == SETTLE else step, "otherwise": "skip"}
                for step in plot.solution
            ],
        }
        for truth in plot.truths
    ]


def build_plot_endings(rules: Iterable[Mapping[str, str]], scale: PlotNumbers) -> list[dict[str, Any]]:
    """Return endings without texts."""
    return [{"id": rule["id"], "when": build_condition(rule["when"], scale)} for rule in rules]
