"""Detailed statistics of a dry-run: turns of endings, use of actions, draws of events, moves of numbers."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from peripety.sim._pure.paths import lookup, parse_path

if TYPE_CHECKING:
    from peripety.sim._pure.state import State
    from peripety.sim._pure.turn import Choice

__all__ = ["Detail"]

_FURTHEST_MOVE = 4096.0
_PARTS_OF_SCALE = 2.0**20


class Detail:
    """Counters of the runs so far.

    Args:
        start: the initial state of the runs.
        watch: paths of numbers to follow, each with the scale of its moves.
    """

    def __init__(self, start: State, watch: list[tuple[str, float]]) -> None:
        rules = start.rules
        self._first = {"state": start.tree_value}
        self._turns: dict[str, Counter[int]] = {"lost": Counter(), "won": Counter()}
        self._actions = {action["id"]: {"legal": 0, "taken": 0} for action in rules.actions}
        self._events = {event["id"]: 0 for event in rules.events}
        self._watched = {text: (parse_path(text), scale) for text, scale in watch}
        self._moves = dict.fromkeys(self._watched, 0)

    def chose_among(self, choices: list[Choice]) -> None:
        """Count the legal choices of a turn."""
        for action, _ in choices:
            self._actions[action["id"]]["legal"] += 1

    def took(self, action_id: str) -> None:
        """Count an accepted action."""
        self._actions[action_id]["taken"] += 1

    def drew(self, event_id: str | None) -> None:
        """Count the event of a finished turn, if any."""
        if event_id is not None:
            self._events[event_id] += 1

    def ended(self, outcome: str, turns: int, state: State) -> None:
        """Count the end of a run."""
        if outcome in self._turns:
            self._turns[outcome][turns] += 1
        last = {"state": state.tree_value}
        for text, (path, scale) in self._watched.items():
            self._moves[text] += _move(lookup(self._first, path), lookup(last, path), scale)

    def report(self) -> dict[str, Any]:
        """Return the JSON of a `RunDetail`."""
        return {
            "lost_turns": sorted(self._turns["lost"].items()),
            "won_turns": sorted(self._turns["won"].items()),
            "actions": self._actions,
            "events": self._events,
            "moves": self._moves,
        }


def _move(first: Any, last: Any, scale: float) -> int:
    """Return the move of a number in units of its scale.

    It is an integer, so that sums do not depend on order.
    """
    if not (isinstance(first, float) and isinstance(last, float)):
        return 0
    scales = min(max((last - first) / scale, -_FURTHEST_MOVE), _FURTHEST_MOVE)
    return math.floor(scales * _PARTS_OF_SCALE)
