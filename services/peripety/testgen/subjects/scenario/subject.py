"""A compiled scenario as subject."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from peripety.errors import Finding, PeripetyError
from peripety.sim.schema import pointer
from peripety.testgen.model import TaskContext, TestStatus
from peripety.testgen.subjects.scenario.body import BODY_SCHEMA, MAX_ACTIONS, MAX_STEPS, read_body
from peripety.testgen.subjects.scenario.floor import floor
from peripety.testgen.subjects.scenario.mutants import ScenarioMutants
from peripety.testgen.subjects.scenario.playing import NOT_EXECUTABLE, fails, played
from peripety.testgen.subjects.scenario.targets import targets
from peripety.testgen.subjects.scenario.truisms import is_truism
from peripety.testgen.subjects.shapes import Shape
from peripety.testgen.subjects.subject import Ran, SubjectKind
from peripety.workers import go_on

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from peripety import sim
    from peripety.quality import Mutant
    from peripety.testgen.model import Draft, TestCase
    from peripety.testgen.subjects.scenario.body import Body
    from peripety.testgen.subjects.subject import Target

__all__ = ["ScenarioSubject"]

_MOST_OBSERVED = 4 * 1024
_SHAPE = Shape(BODY_SCHEMA)


class ScenarioSubject:
    """A compiled scenario.

    Args:
        program: the scenario.
    """

    kind = SubjectKind.SCENARIO
    context = TaskContext.SCENARIO
    body_schema: Mapping[str, Any] = BODY_SCHEMA

    def __init__(self, program: sim.Program) -> None:
        self._program = program
        self._mutants = ScenarioMutants(program)
        self._targets = dict(targets(program))

    @cached_property
    def material(self) -> Mapping[str, Any]:
        """The document."""
        return {"scenario": self._program.spec}

    @property
    def targets(self) -> Sequence[Target]:
        """Accepted and rejected actions, events, endings and scheduled effects."""
        return tuple(self._targets.values())

    @property
    def mutants(self) -> Sequence[Mutant]:
        """Mutants of the document that are valid."""
        return self._mutants.mutants

    def problems(self, body: Mapping[str, Any]) -> Sequence[Finding]:
        """Return unknown or too many actions, and expectations that are not JSONLogic."""
        return _SHAPE.misshapen(body) or [*self._problems(body)]

    def soundness(self, test: TestCase) -> Sequence[Finding]:
        """Return `STUB` without any expectation, `TAUTOLOGY` if it holds in any state."""
        try:
            body = read_body(test.body or {})
        except PeripetyError:
            return ()
        expected = [step.expect for step in body.steps if step.expect is not None]
        if any(step.accepted is not None and step.actions for step in body.steps):
            return ()
        if not expected:
            return (Finding("STUB", "/steps", "no expectation; add a condition after a turn"),)
        if all(map(is_truism, expected)):
            return (Finding("TAUTOLOGY", "/steps", "the expectation holds in any state"),)
        return ()

    def same_input(self, body: Mapping[str, Any]) -> Any:
        """Return the seed and the actions of each turn."""
        read = read_body(body)
        seed = self._program.spec["seed"] if read.seed is None else read.seed
        played_actions = [
            [[action.action_id, dict(action.params)] for action in step.actions] for step in read.steps
        ]
        return {"seed": seed, "steps": played_actions}

    def run(self, test: TestCase) -> Ran:
        """Play a test once."""
        try:
            told = played(self._program, read_body(test.body or {}))
        except PeripetyError as error:
            finding = Finding("EXPECTATION_INVALID", "/steps", error.message)
            return Ran(TestStatus.NOT_EXECUTABLE, "", "", (finding,))
        observed = "\n".join(told.observed).encode()[:_MOST_OBSERVED].decode(errors="ignore")
        findings = tuple(told.findings)
        if not findings:
            covered = frozenset(self._targets[one].target_id for one in told.covered if one in self._targets)
            return Ran(TestStatus.PASSED, observed, told.trace, (), covered)
        cannot = any(finding.code in NOT_EXECUTABLE for finding in findings)
        status = TestStatus.NOT_EXECUTABLE if cannot else TestStatus.FAILED
        return Ran(status, observed, told.trace, findings)

    def kills(self, test: TestCase, among: Collection[str]) -> frozenset[str]:
        """Return the mutants on which a test fails."""
        body: Body = read_body(test.body or {})
        killed: set[str] = set()
        for mutant_id in among:
            go_on()
            if fails(self._mutants.program(mutant_id), body):
                killed.add(mutant_id)
        return frozenset(killed)

    def equivalent(self, among: Collection[str]) -> frozenset[str]:
        """Return the mutants that are proved equivalent: they change effects of a rule that never applies."""
        dead = [target.path for target in self.targets if not target.is_reachable]
        paths = {mutant.mutant_id: mutant.path for mutant in self.mutants}
        return frozenset(one for one in among if any(_is_inert(paths[one], path) for path in dead))

    def floor(self) -> Iterator[Draft]:
        """Yield calls at the bounds of their parameters, every pair of actions, and idle turns."""
        return floor(self._program)

    def _problems(self, body: Mapping[str, Any]) -> Iterator[Finding]:
        try:
            read = read_body(body)
        except KeyError as error:
            yield Finding("BODY_INVALID", "/steps", f"has an action without {error.args[0]}")
            return
        except PeripetyError as error:
            yield Finding("EXPECTATION_INVALID", "/steps", error.message)
            return
        if not 0 < len(read.steps) <= MAX_STEPS:
            yield Finding("BAD_STEPS", "/steps", f"must have 1 to {MAX_STEPS} turns")
        known = {action["id"] for action in self._program.spec["actions"]}
        for index, step in enumerate(read.steps):
            if len(step.actions) > MAX_ACTIONS:
                path = pointer(("steps", index, "actions"))
                yield Finding("TOO_MANY_ACTIONS", path, f"must have at most {MAX_ACTIONS} actions")
            for number, action in enumerate(step.actions):
                if action.action_id not in known:
                    path = pointer(("steps", index, "actions", number, "action_id"))
                    told = ", ".join(sorted(known)[:20])
                    yield Finding("UNKNOWN_ACTION", path, f"unknown action; use one of {told}")
                if not isinstance(action.params, dict):
                    path = pointer(("steps", index, "actions", number, "params"))
                    yield Finding("BODY_INVALID", path, "is not an object")


def _is_inert(path: str, dead: str) -> bool:
    """Return True if a change belongs to the effects of a rule that never applies.

    A change of the rule's condition does not count, because the rule may apply after it.
    """
    return path.startswith(f"{dead}/effects/")
