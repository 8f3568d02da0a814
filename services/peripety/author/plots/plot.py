"""Plots: dramatic patterns as data, named by what the player has to do, and their rules in a specification.

A plot has rules, in `data/ID.json`, and texts for each language, in `data/LANGUAGE/ID.json`. Neither contains
a setting: every concrete noun of a scenario is from the text of the user. With `extends`, a file has the keys
of another plot, except for those that it names itself.

The rules use short forms. An effect is `{gauge: change}`; a condition is a text such as
`supply>=2 & decided=0`. `turn` is the number of the turn, `truth` the dealt truth, and `decided` counts the
decisive action. `eased` is 1 after the right decision, and `seen` counts the clues that were looked for.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence


PLAIN = "plain"
"""The plot for texts that are not understood."""

DEFAULT_LANGUAGE = "en"
_COMMON = "common.json"


@dataclass(frozen=True, slots=True)
class PlotGauge:
    """Quantity of a plot.

    Attributes:
        start: its value at the start.
        top: its maximum; the minimum is 0.
        each_turn: its change in every turn.
        is_low_good: True if less of it is better.
        is_store: True if an amount of the text may be its start.
        is_clock: True if it counts the time that is left.
        is_paced: True if it has to grow until the game is won, so a game of fewer turns needs less of it.
    """

    start: int
    top: int
    each_turn: int = 0
    is_low_good: bool = False
    is_store: bool = False
    is_clock: bool = False
    is_paced: bool = False


@dataclass(frozen=True, slots=True)
class Plot:
    """Rules of a plot.

    Attributes:
        id: its id.
        gauges: its quantities by id.
        truths: the truths of which one is dealt.
        actions: its actions in short form, in order.
        events: its random events in short form.
        losses: its loss conditions in short form.
        win: its win condition.
        solution: the actions that a player who knows the truth takes, by id, some with a short condition such
            as `rest if strength<=3`; `$settle` is the right decision.
        main: the id of the action that may have the words of the goal as its name; may be empty.
    """

    id: str
    gauges: Mapping[str, PlotGauge]
    truths: Sequence[str]
    actions: Sequence[Mapping[str, Any]]
    events: Sequence[Mapping[str, Any]]
    losses: Sequence[Mapping[str, str]]
    win: str
    solution: Sequence[str]
    main: str = ""


@cache
def load_plot(plot_id: str) -> Plot:
    """Return the rules of a plot."""
    table = _read(f"{plot_id}.json")
    gauges = {
        name: PlotGauge(
            one["start"],
            one["max"],
            one.get("each_turn", 0),
            one.get("good") == "low",
            one.get("store", False),
            one.get("clock", False),
            one.get("paced", False),
        )
        for name, one in table.pop("gauges").items()
    }
    return Plot(id=plot_id, gauges=gauges, **table)


@cache
def load_element_rules() -> Mapping[str, Any]:
    """Return the rules of elements by id, and under `parts` the gauges of plots that their actions help."""
    return _read("elements.json")


@cache
def load_texts(plot_id: str, language: str = DEFAULT_LANGUAGE) -> Mapping[str, Any]:
    """Return the texts of a plot, with the texts that all plots of the language share under `common`."""
    return {**_read(f"{language}/{plot_id}.json"), "common": _read(f"{language}/{_COMMON}")}


@cache
def list_plots(language: str = DEFAULT_LANGUAGE) -> tuple[str, ...]:
    """Return the ids of the plots that have texts in a language."""
    names = (entry.name for entry in _data().joinpath(language).iterdir())
    return tuple(sorted(name.removesuffix(".json") for name in names if name != _COMMON))


@cache
def list_languages() -> tuple[str, ...]:
    """Return the languages that have texts."""
    return tuple(sorted(entry.name for entry in _data().iterdir() if entry.is_dir()))


VARIANTS = ("held", "choice", "trace", "crowd", "few", "carried")
"""Conditions of a text under which a plot has other lines, in the order in which they are applied."""


def apply_variants(texts: Mapping[str, Any], names: Collection[str]) -> Mapping[str, Any]:
    """Return the texts of a plot with the lines of some of its variants, which are listed under `applied`.

    Args:
        texts: the texts of the plot.
        names: the conditions that hold; those without a variant change nothing.
    """
    merged = dict(texts)
    variants = merged.pop("variants", {})
    applied = [one for one in VARIANTS if one in names and one in variants]
    for name in applied:
        merged = _merge(merged, variants[name])
    return {**merged, "applied": applied}


def _data() -> Any:
    return resources.files(__package__).joinpath("data")


def _read(name: str) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(_data().joinpath(name).read_text(encoding="utf-8"))
    if "extends" not in table:
        return table
    return _merge(_read(f"{name.rpartition('/')[0]}/{table.pop('extends')}.json".lstrip("/")), table)


def _merge(base: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table with the values of another one; tables inside are merged, and lists by place."""
    return {**base, **{key: _merge_value(base.get(key), value) for key, value in changed.items()}}


def _merge_value(old: Any, new: Any) -> Any:
    if isinstance(new, dict) and isinstance(old, dict):
        return _merge(old, new)
    if isinstance(new, dict) and isinstance(old, list):
        return [new.get(str(place), item) for place, item in enumerate(old)]
    return new


# --- rules as a specification writes them ---

USUAL_TURNS = 14
"""The number of turns that a plot is tuned for."""

SETTLE = "$settle"
"""The right decision, in a solution."""

_CLAUSE = re.compile(r"(\w+)(>=|<=|=)(\w+)")
_OPERATORS = {">=": ">=", "<=": "<=", "=": "==="}
_FLAGS = {
    "turn": "turn",
    "seen": "state.seen",
    "decided": "state.hidden.decided",
    "eased": "state.hidden.eased",
}
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


def find_top(gauge: PlotGauge, name: str, scale: PlotNumbers) -> int:
    """Return the maximum of a gauge."""
    return _size_of(gauge, name, scale, gauge.top)


def _size_of(gauge: PlotGauge, name: str, scale: PlotNumbers, steps: int) -> int:
    """Return the start or the maximum of a gauge: a clock has all turns, and stores last as long."""
    if gauge.is_clock:
        steps = scale.turns
    elif gauge.is_store:
        steps = store_steps(steps, scale.turns)
    return scale.to_amount(name, steps)


def store_steps(steps: int, turns: int) -> int:
    """Return the steps of a store for a number of turns: it lasts as long as for the usual one."""
    return steps + turns - USUAL_TURNS


def pace_plot(plot: Plot, turns: int) -> Plot:
    """Return a plot whose win takes the same share of a number of turns as of the usual one."""
    paced = {name: _decision_gain(plot, name) for name, gauge in plot.gauges.items() if gauge.is_paced}
    if not any(gauge.is_clock for gauge in plot.gauges.values()):
        # Without a clock, an opponent ends the game, however many turns there are.
        turns = min(turns, USUAL_TURNS)

    def pace(name: str, steps: int) -> int:
        # The right decision gives the same in a game of any length, so only the rest is in proportion.
        return paced[name] + round((steps - paced[name]) * turns / USUAL_TURNS)

    def pace_clause(clause: re.Match[str]) -> str:
        name, operator, steps = clause.groups()
        return f"{name}{operator}{pace(name, int(steps))}" if name in paced else clause[0]

    tops = {name: replace(plot.gauges[name], top=pace(name, plot.gauges[name].top)) for name in paced}
    return replace(plot, gauges={**plot.gauges, **tops}, win=_CLAUSE.sub(pace_clause, plot.win))


def _decision_gain(plot: Plot, gauge: str) -> int:
    """Return the most that a right decision adds to a gauge."""
    return max(int(action.get("right", {}).get(gauge, 0)) for action in plot.actions)


def build_plot_state(plot: Plot, scale: PlotNumbers) -> dict[str, Any]:
    """Return the initial state."""
    started = {name: _size_of(gauge, name, scale, gauge.start) for name, gauge in plot.gauges.items()}
    return {**started, "seen": 0, "hidden": {"truth": plot.truths[0], "decided": 0, "eased": 0}}


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


def find_limit(text: str, gauge: str, scale: PlotNumbers) -> int | None:
    """Return the value that a short condition wants a gauge to reach; None if it wants none.

    Args:
        text: the condition.
        gauge: the id of the gauge.
        scale: the numbers of the scenario.
    """
    values = [
        int(value) for name, operator, value in _CLAUSE.findall(text) if name == gauge and operator == ">="
    ]
    return scale.to_amount(gauge, min(values)) if values else None


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


def build_solutions(plot: Plot, scale: PlotNumbers) -> list[dict[str, Any]]:
    """Return one solution for each truth."""
    decisions = {action["decides"]: action["id"] for action in plot.actions if "decides" in action}
    return [
        {
            "id": truth,
            "when": {"===": [{"var": _TRUTH}, truth]},
            "steps": [_build_step(step, decisions[truth], scale) for step in plot.solution],
        }
        for truth in plot.truths
    ]


def _build_step(step: str, decision: str, scale: PlotNumbers) -> dict[str, Any]:
    action, _, condition = step.partition(" if ")
    when = {"when": build_condition(condition, scale)} if condition else {}
    return {"action": decision if action == SETTLE else action, **when, "otherwise": "skip"}


def build_plot_endings(rules: Iterable[Mapping[str, str]], scale: PlotNumbers) -> list[dict[str, Any]]:
    """Return endings without texts."""
    return [{"id": rule["id"], "when": build_condition(rule["when"], scale)} for rule in rules]
