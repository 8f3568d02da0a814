"""Trace of the solutions of a document: which of their steps are not legal, and what ends the runs.

The rates of the persona `par` do not show where a solution goes wrong. Here its moves are made one by one, so
that each rejected step and each loss has a turn.
"""

from __future__ import annotations

from collections import Counter
from statistics import median_low
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.engine.lowering import lower
from peripety.engine.rng import run_seed
from peripety.errors import PeripetyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.engine import DryRunReport, Program, State

RUNS = 64
"""The number of traced runs."""

_MAX_TOLD = 2
# A step that is seldom illegal is not what goes wrong.
_OFTEN = RUNS // 8


def trace_solutions(program: Program, report: DryRunReport) -> str:
    """Play the solutions, and return a clause about their illegal steps and about the ends of lost runs.

    Of several solutions for one hidden truth each is played in turn.

    Args:
        program: a scenario with solutions.
        report: runs of the persona `par`; the first of them are traced.
    """
    solutions = lower(program.spec).spec["solutions"]
    illegal: dict[str, list[int]] = {}
    lost: dict[str, list[int]] = {}
    for number in range(RUNS):
        state = program.new_state(run_seed(report.seed, report.first_run + number))
        fitting = [solution for solution in solutions if _is_for(program, state, solution)]
        steps = fitting[number % len(fitting)]["steps"] if fitting else []
        trace = _Trace(program, state, steps)
        trace.play(report.horizon)
        for step, turn in trace.illegal.items():
            illegal.setdefault(step, []).append(turn)
        if state.status.kind == "lost":
            lost.setdefault(f"'{state.status.condition}' before {trace.next_step}", []).append(state.turn)
    told = [*_describe(illegal, "a turn is lost at {}, which is not legal,"), *_describe(lost, "lost by {}")]
    return f"of {RUNS} traced runs: {', '.join(told)}" if told else ""


def _describe(found: dict[str, list[int]], text: str) -> Iterator[str]:
    for what, count in Counter({what: len(turns) for what, turns in found.items()}).most_common(_MAX_TOLD):
        if count >= _OFTEN:
            yield f"{text.format(what)} in {count}, at the median in turn {median_low(found[what])}"


def _is_for(program: Program, state: State, solution: dict[str, Any]) -> bool:
    data = {
        "state": state.tree(),
        "params": {},
        "derives": {},
        "turn": 1,
        "entities": program.spec.get("entities", []),
    }
    try:
        return "when" not in solution or bool(engine.evaluate({"!!": [solution["when"]]}, data))
    except PeripetyError:
        return False


class _Trace:
    """The moves of one run, in the order of the persona `par`.

    Attributes:
        illegal: the steps that cost a turn because they and their replacement were not legal, each with the
            first such turn.
    """

    def __init__(self, program: Program, state: State, steps: Sequence[dict[str, Any]]) -> None:
        self._program = program
        self._state = state
        self._steps = steps
        self._next = 0
        self.illegal: dict[str, int] = {}

    @property
    def next_step(self) -> str:
        """Return the name of the step that comes next."""
        return self._name(self._next) if self._steps else "any step"

    def play(self, horizon: int) -> None:
        """Play a run to its end."""
        while self._state.status.kind == "ongoing" and self._state.turn < horizon:
            self._move()
            self._program.step(self._state)

    def _move(self) -> None:
        for _ in self._steps:
            step, following = self._steps[self._next], (self._next + 1) % len(self._steps)
            if self._act(step):
                self._next = following
                return
            otherwise = step.get("otherwise", "wait")
            if otherwise != "skip":
                if otherwise == "wait" or not self._act(otherwise):
                    self.illegal.setdefault(self._name(self._next), self._state.turn + 1)
                return
            self._next = following

    def _act(self, move: dict[str, Any]) -> bool:
        return self._program.act(self._state, move["action"], move.get("params", {})).accepted

    def _name(self, index: int) -> str:
        return f"step {index + 1} '{self._steps[index]['action']}'"
