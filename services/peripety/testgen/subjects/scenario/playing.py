"""Playback of tests on a scenario, turn by turn, with checks of their expectations."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from peripety.errors import Finding, PeripetyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety import sim
    from peripety.testgen.subjects.scenario.body import Body, Step

__all__ = ["NOT_EXECUTABLE", "Played", "Turn", "fails", "played", "turns"]

NOT_EXECUTABLE = frozenset({"UNKNOWN_ACTION", "RUN_ENDED", "EXPECTATION_INVALID", "LIMIT"})
"""Codes of findings that mean that a test is not executable."""

_MOST_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Turn:
    """One played turn.

    Attributes:
        acted: the results of the actions, in order.
        stepped: the result of the world step.
        state: the current state of the run.
        problem: the first unmet expectation; None if all are met.
    """

    acted: tuple[sim.ActResult, ...]
    stepped: sim.StepResult
    state: sim.State
    problem: Finding | None

    @property
    def changes(self) -> tuple[sim.Change, ...]:
        """All changes of the turn, in order."""
        return (*(change for result in self.acted for change in result.changes), *self.stepped.changes)


@dataclass
class Played:
    """The result of playing a test.

    Attributes:
        findings: the reasons for a failure; `path` points into its body.
        observed: a line for each turn.
        covered: the covered parts, as kind and id.
        trace: a digest of everything observable.
    """

    findings: list[Finding] = field(default_factory=list)
    observed: list[str] = field(default_factory=list)
    covered: set[tuple[str, str]] = field(default_factory=set)
    trace: str = ""


def turns(program: sim.Program, body: Body) -> Iterator[Turn]:
    """Play a test to its end, or to the first turn with an unmet expectation.

    Raises:
        PeripetyError: a turn cannot be played. Turns after the end of the run raise `RUN_ENDED`, unknown
            actions raise `UNKNOWN_ACTION`.
    """
    state = program.new_state(body.seed)
    for index, step in enumerate(body.steps):
        acted = tuple(program.act(state, action.action_id, action.params) for action in step.actions)
        stepped = program.step(state)
        problem = _problem(step, f"/steps/{index}", acted, stepped, state)
        yield Turn(acted, stepped, state, problem)
        if problem is not None:
            return


def fails(program: sim.Program, body: Body) -> bool:
    """Return True if a test fails on a scenario, or cannot be played on it."""
    try:
        return any(turn.problem is not None for turn in turns(program, body))
    except PeripetyError:
        return True


def played(program: sim.Program, body: Body) -> Played:
    """Play a test, and return the complete result."""
    told, digest = Played(), sha256()
    try:
        for index, turn in enumerate(turns(program, body)):
            digest.update(f"{turn.acted}{turn.stepped}{turn.state.hash()}".encode())
            told.observed.append(_line(index, turn, body.steps[index]))
            told.covered |= {*_covered(turn, body.steps[index])}
            if turn.problem is not None:
                told.findings.append(turn.problem)
    except PeripetyError as error:
        code = error.code if error.code in NOT_EXECUTABLE else "LIMIT"
        told.findings.append(Finding(code, f"/steps/{len(told.observed)}", error.message))
    told.trace = digest.hexdigest()
    return told


def _problem(
    step: Step,
    path: str,
    acted: tuple[sim.ActResult, ...],
    stepped: sim.StepResult,
    state: sim.State,
) -> Finding | None:
    if step.accepted is not None:
        for index, result in enumerate(acted):
            if result.accepted is not step.accepted:
                reason = result.reasons[0].message if result.reasons else "no reason against it"
                message = f"the action is {'accepted' if result.accepted else 'rejected'}: {reason}"
                return Finding("EXPECTATION_NOT_MET", f"{path}/actions/{index}", message)
    if step.rule is None:
        return None
    status = stepped.status
    data = {
        "state": state.tree(),
        "turn": state.turn,
        "status": status.kind,
        "ending": status.condition,
        "event": stepped.event,
    }
    try:
        holds = step.rule.evaluate(data)
    except PeripetyError as error:
        return Finding("EXPECTATION_INVALID", f"{path}/expect", f"cannot be evaluated: {error.message}")
    if holds:
        return None
    return Finding("EXPECTATION_NOT_MET", f"{path}/expect", "does not hold after the turn")


def _covered(turn: Turn, step: Step) -> Iterator[tuple[str, str]]:
    for action, result in zip(step.actions, turn.acted, strict=True):
        yield ("action" if result.accepted else "rejection"), action.action_id
    if turn.stepped.event is not None:
        yield "event", turn.stepped.event
    if turn.stepped.status.condition is not None:
        yield "ending", turn.stepped.status.condition
    for change in turn.changes:
        kind, _, name = change.cause.partition(":")
        if kind in {"schedule", "decay"}:
            yield kind, name or "decay"


def _line(index: int, turn: Turn, step: Step) -> str:
    did = [
        f"{action.action_id} {'accepted' if result.accepted else f'rejected ({result.reasons[0].code})'}"
        for action, result in zip(step.actions, turn.acted, strict=True)
    ]
    if turn.stepped.event is not None:
        did.append(f"event {turn.stepped.event}")
    after = {change.path: change.after for change in turn.changes}
    shown = [f"{path} = {value!r}" for path, value in [*after.items()][:_MOST_SHOWN]]
    status = turn.stepped.status
    ending = f" by {status.condition}" if status.condition else ""
    return "; ".join(
        [f"turn {index + 1}: {', '.join(did) or 'nothing done'}", *shown, f"{status.kind}{ending}"]
    )
