"""Plots: dramatic patterns as data, named by what the player has to do.

A plot has rules, in `data/ID.json`, and texts for each language, in `data/LANGUAGE/ID.json`. Neither contains
a setting: every concrete noun of a scenario is from the text of the user.

The rules use short forms. An effect is `{gauge: change}`; a condition is a text such as
`supply>=2 & decided=0`. `truth` is the dealt truth, `decided` counts the decisive action, `eased` is 1 after
the right decision, and `seen` counts the clues that the player looked for.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


PLAIN = "plain"
"""The plot for texts that are not understood."""

DEFAULT_LANGUAGE = "en"
_COMMON = "common.json"


@dataclass(frozen=True, slots=True)
class Gauge:
    """Quantity of a plot.

    Attributes:
        start: its value at the start.
        top: its maximum; the minimum is 0.
        each_turn: its change in every turn.
        is_low_good: True if less of it is better.
        is_store: True if an amount of the text may be its start.
        is_clock: True if it counts the time that is left.
    """

    start: int
    top: int
    each_turn: int = 0
    is_low_good: bool = False
    is_store: bool = False
    is_clock: bool = False


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
        solution: the ids of actions that a player who knows the truth takes; `$settle` is the right decision.
    """

    id: str
    gauges: Mapping[str, Gauge]
    truths: Sequence[str]
    actions: Sequence[Mapping[str, Any]]
    events: Sequence[Mapping[str, Any]]
    losses: Sequence[Mapping[str, str]]
    win: str
    solution: Sequence[str]


@cache
def load_plot(plot_id: str) -> Plot:
    """Return the rules of a plot."""
    table = _read(f"{plot_id}.json")
    gauges = {
        name: Gauge(
            one["start"],
            one["max"],
            one.get("each_turn", 0),
            one.get("good") == "low",
            one.get("store", False),
            one.get("clock", False),
        )
        for name, one in table.pop("gauges").items()
    }
    return Plot(id=plot_id, gauges=gauges, **table)


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


def _data() -> Any:
    return resources.files(__package__).joinpath("data")


def _read(name: str) -> dict[str, Any]:
    table: dict[str, Any] = json.loads(_data().joinpath(name).read_text(encoding="utf-8"))
    return table
