"""Scenario subject: tests play turns, with expectations after each turn.

Coverage targets that are proved unreachable do not count.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from peripety.core.concurrency import raise_if_cancelled
from peripety.engine.schema_validation import format_pointer
from peripety.errors import Finding, PeripetyError
from peripety.testgen.subjects.scenario.baseline_tests import scenario_baseline_tests
from peripety.testgen.subjects.scenario.case_body import (
    BODY_SCHEMA,
    MAX_ACTIONS,
    MAX_STEPS,
    NOT_EXECUTABLE_CODES,
    has_failure,
    is_tautology,
    parse_body,
    play,
)
from peripety.testgen.subjects.scenario.mutants import ScenarioMutants
from peripety.testgen.subjects.subject import NO_LINES, BodySchema, RunResult, SubjectKind, SubjectTarget
from peripety.testgen.types import TaskContext, TestStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from peripety import engine
    from peripety.core.mutation_testing import Mutant
    from peripety.testgen.subjects.scenario.case_body import ScenarioBody
    from peripety.testgen.types import DraftTest, TestCase


_UNREACHABLE_CODES = frozenset({"DEAD_ACTION", "DEAD_EVENT", "IMPOSSIBLE_LOSS", "UNREACHABLE_WIN"})


def scenario_targets(program: engine.Program) -> Iterator[tuple[tuple[str, str], SubjectTarget]]:
    """Yield the targets in the order of the document, each with the kind and id that playback reports."""
    spec = program.spec
    dead = {proof.path for proof in program.prove() if proof.code in _UNREACHABLE_CODES}
    for index, action in enumerate(spec["actions"]):
        path, name = format_pointer(("actions", index)), action["id"]
        yield (
            ("action", name),
            SubjectTarget("action", path, f"get action '{name}' accepted", path not in dead),
        )
        if action["preconditions"] or action["params"]:
            yield ("rejection", name), SubjectTarget("rejection", path, f"get action '{name}' rejected")
    for index, event in enumerate(spec["random_events"]):
        path, name = format_pointer(("random_events", index)), event["id"]
        yield ("event", name), SubjectTarget("event", path, f"make event '{name}' happen", path not in dead)
    for section, what in (("loss_conditions", "lose"), ("win_conditions", "win")):
        for index, ending in enumerate(spec.get(section) or ()):
            path, name = format_pointer((section, index)), ending["id"]
            yield ("ending", name), SubjectTarget("ending", path, f"{what} by '{name}'", path not in dead)
    for place, effect in _iter_scheduling_effects(spec):
        name = effect["id"]
        yield (
            ("schedule", name),
            SubjectTarget("schedule", format_pointer(place), f"make scheduled effect '{name}' run"),
        )


def _iter_scheduling_effects(
    spec: Mapping[str, Any],
) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    """Yield the first scheduling effect of each id."""
    seen: set[str] = set()
    for section in ("actions", "random_events"):
        for index, rule in enumerate(spec[section]):
            for place, effect in _iter_nested_scheduling(rule["effects"], (section, index, "effects")):
                if effect["id"] not in seen:
                    seen.add(effect["id"])
                    yield place, effect


def _iter_nested_scheduling(
    effects: Sequence[Mapping[str, Any]],
    place: tuple[str | int, ...],
) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    for index, effect in enumerate(effects):
        if effect["op"] == "schedule":
            yield (*place, index), effect
            yield from _iter_nested_scheduling(effect["effects"], (*place, index, "effects"))


_MAX_OBSERVED_BYTES = 4 * 1024
_BODY_FORM = BodySchema(BODY_SCHEMA)


class ScenarioSubject:
    """A compiled scenario.

    Args:
        program: the scenario.
    """

    kind = SubjectKind.SCENARIO
    is_fenced = None
    context = TaskContext.SCENARIO
    body_schema: Mapping[str, Any] = BODY_SCHEMA
    unmeasured_lines = NO_LINES
    changed_since = ""
    unmutated = ""

    def __init__(self, program: engine.Program) -> None:
        self._program = program
        self._mutants = ScenarioMutants(program)
        self._targets = dict(scenario_targets(program))

    @cached_property
    def material(self) -> Mapping[str, Any]:
        """The document."""
        return {"scenario": self._program.spec}

    @property
    def targets(self) -> Sequence[SubjectTarget]:
        """Accepted and rejected actions, events, endings and scheduled effects."""
        return tuple(self._targets.values())

    @property
    def mutants(self) -> Sequence[Mutant]:
        """Mutants of the document that are valid."""
        return self._mutants.mutants

    def excerpts(self, paths: Sequence[str]) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 - of programs
        """Return no parts of sources: the whole document is the material."""
        return ()

    def further_mutants(self, known: int, count: int) -> Sequence[Mutant]:  # noqa: ARG002 - of programs
        """Return none: all mutants are measured."""
        return ()

    def problems(self, body: Mapping[str, Any]) -> Sequence[Finding]:
        """Return unknown or too many actions, and expectations that are not JSONLogic."""
        return _BODY_FORM.validate_body(body) or [*self._body_problems(body)]

    def soundness(self, test: TestCase) -> Sequence[Finding]:
        """Return `STUB` without any expectation, `TAUTOLOGY` if it holds in any state."""
        try:
            body = parse_body(test.body or {})
        except PeripetyError:
            return ()
        expected = [step.expect for step in body.steps if step.expect is not None]
        if any(step.accepted is not None and step.actions for step in body.steps):
            return ()
        if not expected:
            return (Finding("STUB", "/steps", "no expectation; add a condition after a turn"),)
        if all(map(is_tautology, expected)):
            return (Finding("TAUTOLOGY", "/steps", "the expectation holds in any state"),)
        return ()

    def same_input(self, body: Mapping[str, Any]) -> Any:
        """Return the seed and the actions of each turn."""
        read = parse_body(body)
        seed = self._program.spec["seed"] if read.seed is None else read.seed
        played_actions = [
            [[action.action_id, dict(action.params)] for action in step.actions] for step in read.steps
        ]
        return {"seed": seed, "steps": played_actions}

    def run(self, test: TestCase) -> RunResult:
        """Play a test once."""
        try:
            told = play(self._program, parse_body(test.body or {}))
        except PeripetyError as error:
            finding = Finding("EXPECTATION_INVALID", "/steps", error.message)
            return RunResult(TestStatus.NOT_EXECUTABLE, "", "", (finding,))
        observed = "\n".join(told.observed).encode()[:_MAX_OBSERVED_BYTES].decode(errors="ignore")
        findings = tuple(told.findings)
        if not findings:
            covered = frozenset(self._targets[one].target_id for one in told.covered if one in self._targets)
            return RunResult(TestStatus.PASSED, observed, told.trace, (), covered)
        cannot = any(finding.code in NOT_EXECUTABLE_CODES for finding in findings)
        status = TestStatus.NOT_EXECUTABLE if cannot else TestStatus.FAILED
        return RunResult(status, observed, told.trace, findings)

    def kills(self, test: TestCase, among: Collection[str]) -> frozenset[str]:
        """Return the mutants on which a test fails."""
        body: ScenarioBody = parse_body(test.body or {})
        killed: set[str] = set()
        for mutant_id in among:
            raise_if_cancelled()
            if has_failure(self._mutants.program_of(mutant_id), body):
                killed.add(mutant_id)
        return frozenset(killed)

    def equivalent(self, among: Collection[str]) -> frozenset[str]:
        """Return the mutants that are proved equivalent: they change effects of a rule that never applies."""
        dead = [target.path for target in self.targets if not target.is_reachable]
        paths = {mutant.mutant_id: mutant.path for mutant in self.mutants}
        return frozenset(
            one for one in among if any(_is_effect_of_dead_rule(paths[one], path) for path in dead)
        )

    def baseline_tests(self) -> Iterator[DraftTest]:
        """Yield calls at the bounds of their parameters, every pair of actions, and idle turns."""
        return scenario_baseline_tests(self._program)

    def _body_problems(self, body: Mapping[str, Any]) -> Iterator[Finding]:
        try:
            read = parse_body(body)
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
                path = format_pointer(("steps", index, "actions"))
                yield Finding("TOO_MANY_ACTIONS", path, f"must have at most {MAX_ACTIONS} actions")
            for number, action in enumerate(step.actions):
                if action.action_id not in known:
                    path = format_pointer(("steps", index, "actions", number, "action_id"))
                    told = ", ".join(sorted(known)[:20])
                    yield Finding("UNKNOWN_ACTION", path, f"unknown action; use one of {told}")
                if not isinstance(action.params, dict):
                    path = format_pointer(("steps", index, "actions", number, "params"))
                    yield Finding("BODY_INVALID", path, "is not an object")


def _is_effect_of_dead_rule(path: str, dead: str) -> bool:
    """Return True if a change belongs to the effects of a rule that never applies.

    A change of the rule's condition does not count, because the rule may apply after it.
    """
    return path.startswith(f"{dead}/effects/")
