"""Findings of the analysis, each with an explanation or an example run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.errors import Severity
from peripety.sim.proofs import arguments
from peripety.sim.proofs.domain import NUMBER, TEXT, Value
from peripety.sim.proofs.plays import LARGE, examples
from peripety.sim.proofs.readings import FAILS
from peripety.sim.proofs.turns import may_hold
from peripety.sim.types import Proof, ProofCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.sim._core import CoreProgram
    from peripety.sim._pure.state import Rules
    from peripety.sim.proofs.turns import Course

__all__ = ["claims"]

# An array that may exceed this length may exceed the limits of the state.
_MANY = 1000


def claims(rules: Rules, course: Course, core: CoreProgram, seed: int, horizon: int) -> list[Proof]:
    """Return the findings about a scenario, by code and in document order.

    Args:
        rules: the scenario.
        course: the reachable states.
        core: the compiled scenario, for examples.
        seed: seed of the examples.
        horizon: number of turns.
    """
    errors: dict[str, Proof] = {}
    growth: dict[str, Proof] = {}
    for example in examples(rules, core, seed, horizon) if _may_go_wrong(course) else ():
        code: ProofCode = "TYPE_ERROR" if example.fails else "RUNAWAY_GROWTH"
        severity = Severity.ERROR if example.fails else Severity.WARNING
        argument = f"In the run of the witness, in turn {len(example.calls)}: {example.message}."
        proofs = errors if example.fails else growth
        proofs[example.rule] = Proof(code, example.rule, argument, severity, example.calls)
    for rule, reach in course.reaches.items():
        if not reach.works and not any(place == rule or place.startswith(f"{rule}/") for place in errors):
            within = arguments.turns_of(horizon)
            argument = f"It fails wherever it is reached within {within}, whatever was done before."
            errors[reach.place] = Proof("TYPE_ERROR", reach.place, argument, Severity.ERROR)
    findings = _Findings(rules, course, horizon, errors)
    return [
        *findings.certain_losses(),
        *findings.conditions("UNREACHABLE_WIN"),
        *findings.conditions("IMPOSSIBLE_LOSS"),
        *findings.dead("DEAD_ACTION"),
        *findings.dead("DEAD_EVENT"),
        *errors.values(),
        *growth.values(),
    ]


def _may_go_wrong(course: Course) -> bool:
    """Return True if a rule may fail because of its values, or a value may grow without bound."""
    fails = any(reach.fails & FAILS for reach in course.reaches.values())
    return fails or any(map(_may_run_away, course.states.values()))


def _may_run_away(value: Value) -> bool:
    """Return True if the bounds allow a large number, or a string or array of any length."""
    if value.kinds & NUMBER and (value.low < -LARGE or value.high > LARGE):
        return True
    if value.kinds & TEXT and value.texts is None:
        return True
    array, holder = value.array, value.object
    if array is not None and (array.most > _MANY or array.item is None or _may_run_away(array.item)):
        return True
    if holder is None:
        return False
    return holder.rest is None or any(map(_may_run_away, [*holder.fields.values(), holder.rest]))


class _Findings:
    """Claims about conditions that never or always hold."""

    def __init__(self, rules: Rules, course: Course, horizon: int, errors: dict[str, Proof]) -> None:
        self._rules = rules
        self._course = course
        self._horizon = horizon
        self._errors = errors

    def certain_losses(self) -> Iterator[Proof]:
        """Yield the loss that ends every run."""
        place = self._course.ended_by
        if place is not None and self._course.certain:
            condition = self._rules.losses[int(place.split("/")[2])]["when"]
            argument = arguments.certain(condition, self._course.last, self._rules, self._course.turns)
            yield Proof("CERTAIN_LOSS", place.removesuffix("/when"), argument, Severity.ERROR)

    def conditions(self, code: ProofCode) -> Iterator[Proof]:
        """Yield the conditions of a section that never end a run."""
        section, conditions = (
            ("win_conditions", self._rules.wins)
            if code == "UNREACHABLE_WIN"
            else ("loss_conditions", self._rules.losses)
        )
        never = [
            (f"/{section}/{index}/when", condition["when"])
            for index, condition in enumerate(conditions)
            if f"/{section}/{index}/when" not in self._course.holding
        ]
        severity = Severity.ERROR if len(never) == len(conditions) else Severity.WARNING
        for place, condition in never:
            if place not in self._errors:
                argument = self._argument(condition, "conditions", place, {})
                yield Proof(code, place.removesuffix("/when"), argument, severity)

    def dead(self, code: ProofCode) -> Iterator[Proof]:
        """Yield the actions or events whose condition never holds."""
        section, key, stage, rules = (
            ("actions", "preconditions", "actions", self._rules.actions)
            if code == "DEAD_ACTION"
            else ("random_events", "when", "events", self._rules.events)
        )
        for index, rule in enumerate(rules):
            place = f"/{section}/{index}/{key}"
            if place not in self._course.holding and not any(each.startswith(place) for each in self._errors):
                argument = self._argument(rule[key], stage, place, rule.get("params", {}))
                yield Proof(code, f"/{section}/{index}", argument)

    def _argument(self, condition: Any, stage: str, place: str, params: dict[str, Any]) -> str:
        if place not in self._course.reaches:
            return "It is never evaluated: earlier conditions end every run first."
        states = self._course.states[stage]
        return arguments.never(
            condition,
            states,
            self._rules,
            self._horizon,
            lambda part: not may_hold(self._rules, part, states, params, self._course.turns),
        )
