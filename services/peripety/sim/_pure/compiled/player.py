"""Execution of generated code, with fallback to the interpreter."""

from __future__ import annotations

import copy
from functools import partial, reduce
from math import fmod
from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure.canonical import canonical
from peripety.sim._pure.compiled.code import LIMIT, LONGEST_TEXT, NotLoweredError
from peripety.sim._pure.compiled.draft import MAX_TURNS, Draft
from peripety.sim._pure.compiled.draws import POLICY_KEY, Draws
from peripety.sim._pure.compiled.limits import check_limits
from peripety.sim._pure.compiled.slots import Layout
from peripety.sim._pure.compiled.template import write_run
from peripety.sim._pure.convert import as_number, as_text
from peripety.sim._pure.endings import Ending
from peripety.sim._pure.operators import substring
from peripety.sim._pure.paths import MISSING, lookup
from peripety.sim._pure.rng import draw

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.sim._pure.state import Rules

__all__ = ["NAMES", "Player", "Players"]

# Array capacities to try: larger ones abandon fewer runs, smaller ones lower the worst-case cost of a turn.
_CAPACITIES = (256, 64, 16)
# Personas that look ahead need copies of states, which only the interpreter has.
_LOWERED_PERSONAS = frozenset({"idle", "random"})
# Runs after which the share of abandoned runs decides whether generated code pays off.
_TRIAL_RUNS = 16


class Deopt(Exception):  # noqa: N818 - not an error: the interpreter plays the run again
    """The run needs something that generated code cannot do."""


# Exceptions of generated code where, in the interpreter, a rule fails or might fail.
_LEAVING = (Deopt, CoreError, ArithmeticError, ValueError, IndexError)


def _held(number: float) -> float:
    """Return a number if it is within the limit."""
    if -LIMIT <= number <= LIMIT:
        return number
    raise Deopt


def _brief(text: str) -> str:
    """Return a text if it is within the limit."""
    if len(text.encode("utf-8")) > LONGEST_TEXT:
        raise Deopt
    return text


def _sum_of(numbers: Iterable[float]) -> float:
    """Add from left to right; the built-in sum rounds differently in newer versions of Python."""
    total = 0.0
    for number in numbers:
        total += number
    return total


# Names available to generated source, besides its constants.
NAMES = {
    "Deopt": Deopt,
    "POLICY_KEY": POLICY_KEY,
    "as_number": as_number,
    "as_text": as_text,
    "brief": _brief,
    "draw": draw,
    "fmod": fmod,
    "held": _held,
    "reduce": reduce,
    "substring": substring,
    "sum_of": _sum_of,
}


class Players:
    """Players of a scenario by persona, each compiled on first use."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._players: dict[str, Player | None] = {}

    def under(self, persona: str) -> Player | None:
        """Return the player of a persona; None if the interpreter is preferable."""
        if persona not in _LOWERED_PERSONAS:
            return None
        if persona not in self._players:
            self._players[persona] = _lowered(self._rules, persona)
        player = self._players[persona]
        return player if player and player.is_worthwhile else None


class Player:
    """Compiled runs of a scenario under one persona.

    Attributes:
        source: the generated source.
        left: number of runs that were abandoned.
    """

    def __init__(self, rules: Rules, layout: Layout, draft: Draft, persona: str) -> None:
        self._rules = rules
        self._slots = list(layout.slots.values())
        self._conditions = {"lost": rules.losses, "won": rules.wins}
        self.source, width = write_run(rules, layout, draft, persona)
        self._draws = Draws(width)
        namespace = {**NAMES, **draft.names}
        exec(compile(self.source, "<scenario>", "exec"), namespace)  # noqa: S102 - the source contains no text of a document
        self._play: Any = namespace["play"]
        self._runs = self.left = 0

    @property
    def is_worthwhile(self) -> bool:
        """True while most runs complete in generated code."""
        return self._runs < _TRIAL_RUNS or 2 * self.left < self._runs

    def play(self, seed: int, horizon: int) -> Ending | None:
        """Play a whole run; return None if the interpreter must play it."""
        if not 1 <= horizon <= MAX_TURNS:
            return None
        self._runs += 1
        try:
            outcome, number, turns, values = self._play(seed, horizon, self._draws.of(seed))
        except _LEAVING:
            self.left += 1
            return None
        condition = None if number is None else self._conditions[outcome][number]["id"]
        return Ending(outcome, condition, turns, partial(self._tree, values))

    def _tree(self, values: tuple[Any, ...]) -> bytes:
        """Return the final state tree, canonical."""
        root = {"state": copy.deepcopy(self._rules.initial)}
        for slot, value in zip(self._slots, values, strict=True):
            if value is not None or slot.initial is not MISSING:
                lookup(root, slot.path[:-1])[slot.path[-1]] = value
        return canonical(root["state"])


def _lowered(rules: Rules, persona: str) -> Player | None:
    """Compile a scenario with the largest array capacity whose worst-case turn is within the limits."""
    for capacity in _CAPACITIES:
        try:
            layout = Layout(rules)
            check_limits(rules, layout, capacity)
            attempt = Draft(capacity)
            write_run(rules, layout, attempt, persona)
            return Player(rules, layout, Draft(capacity, attempt.bounds()), persona)
        except (NotLoweredError, CoreError, SyntaxError, RecursionError, MemoryError):
            continue  # the last three: nesting beyond Python's compiler
    return None
