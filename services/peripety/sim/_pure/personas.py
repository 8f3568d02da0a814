"""Personas: strategies that choose actions in a dry-run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING

from peripety.sim._core import CoreError
from peripety.sim._pure.distances import distance_of
from peripety.sim._pure.effects import Record
from peripety.sim._pure.events import happen_alone
from peripety.sim._pure.execution import root
from peripety.sim._pure.rng import choose, draw, stream_key
from peripety.sim._pure.state import State
from peripety.sim._pure.turn import Choice, PolicyDraws, act, as_opened, legal_choices, step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.sim._pure.state import Rules

__all__ = ["Persona", "persona_of"]

Persona = Callable[[State, list[Choice], PolicyDraws], Choice | None]
"""Chooses one of the legal choices of a turn, or none."""

_ROLLOUTS = 4
_ROLLOUT_TURNS = 8
_ROLLOUT_KEY = stream_key("rollout")
_WORTH_OF_ENDS = {"lost": -2.0, "errored": -2.0, "won": 2.0}


def persona_of(name: str, rules: Rules, horizon: int) -> Persona | None:
    """Return the persona of a name; None for `idle`, which ignores the choices."""
    if name == "idle":
        return None
    if name == "random":
        return _choose_any
    outlook = _Outlook(rules, horizon)
    weigh: Callable[[State], float] = {
        "greedy": outlook.value,
        "saboteur": lambda state: -outlook.value(state),
        "cautious": outlook.worst_case,
        "planner": outlook.prospect,
    }[name]

    def choose_best(state: State, choices: list[Choice], _draws: PolicyDraws) -> Choice | None:
        best, _ = max(_candidates(state, choices), key=lambda candidate: weigh(candidate[1]))
        return best

    return choose_best


def _choose_any(_state: State, choices: list[Choice], draws: PolicyDraws) -> Choice | None:
    return choices[choose(draws.next(), len(choices))] if choices else None


def _candidates(state: State, choices: list[Choice]) -> Iterator[tuple[Choice | None, State]]:
    """Yield no action and each accepted choice, with the state after it."""
    opened = as_opened(state, Record())
    yield None, opened
    for action, params in choices:
        after = opened.fork()
        with _ending_what_fails(after):
            if not act(after, action["id"], params)["accepted"]:
                continue
        yield (action, params), after


@contextmanager
def _ending_what_fails(state: State) -> Iterator[None]:
    """Mark a run as ended if a call in it fails."""
    try:
        yield
    except CoreError:
        state.status = {"kind": "errored"}


def _is_ongoing(state: State) -> bool:
    return bool(state.status["kind"] == "ongoing")


class _Outlook:
    """Evaluation of states by immediate value, worst event, or rollouts; states are not changed."""

    def __init__(self, rules: Rules, horizon: int) -> None:
        initial = root(State.initial(rules, 0), {}, {})
        self._losses = [distance_of(condition["when"], initial) for condition in rules.losses]
        self._wins = [distance_of(condition["when"], initial) for condition in rules.wins]
        self._horizon = horizon

    def value(self, state: State) -> float:
        """Return the distance from losing minus the distance from winning; ±2 if the run has ended."""
        if not _is_ongoing(state):
            return _WORTH_OF_ENDS[state.status["kind"]]
        data = root(state, {}, {})
        danger = min(distance(data) for distance in self._losses)
        return danger - min((distance(data) for distance in self._wins), default=0.0)

    def worst_case(self, state: State) -> float:
        """Return the lowest value of a state and of its successors under each eligible event."""
        worst = self.value(state)
        if not _is_ongoing(state):
            return worst
        for index in range(len(state.rules.events)):
            after = state.fork()
            with _ending_what_fails(after):
                if not happen_alone(after, index, Record()):
                    continue
            worst = min(worst, self.value(after))
        return worst

    def prospect(self, state: State) -> float:
        """Return the sum of values after random rollouts, with draws independent of the run's own."""
        total = 0.0
        for number in range(_ROLLOUTS):
            total += self._worth_after(state, draw(state.seed, _ROLLOUT_KEY, state.turn + 1, number))
        return total

    def _worth_after(self, state: State, seed: int) -> float:
        """Return the value after one rollout: higher for a later loss or an earlier win."""
        after = self._played_on(state, seed)
        turns = after.turn - state.turn
        match after.status["kind"]:
            case "lost":
                return self.value(after) + (turns - 1) / _ROLLOUT_TURNS
            case "won":
                return self.value(after) + (_ROLLOUT_TURNS - turns) / _ROLLOUT_TURNS
        return self.value(after)

    def _played_on(self, state: State, seed: int) -> State:
        after, last = state.fork(), min(state.turn + _ROLLOUT_TURNS, self._horizon)
        after.seed = seed
        with _ending_what_fails(after):
            while _is_ongoing(after) and after.turn < last:
                if after.turn > state.turn:
                    _act_at_random(after)
                step(after)
        return after


def _act_at_random(state: State) -> None:
    draws = PolicyDraws(state)
    choice = _choose_any(state, legal_choices(state, draws, Record()), draws)
    if choice is not None:
        action, params = choice
        act(state, action["id"], params)
