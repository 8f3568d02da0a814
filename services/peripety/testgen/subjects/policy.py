"""A policy as subject: a request is the input, a decision is the output."""

from __future__ import annotations

import json
from functools import cached_property
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.errors import Finding, InvalidArgumentError, PeripetyError
from peripety.policy.analysis.equivalence import Equivalent, Unreachable, compare_variants
from peripety.policy.coverage_generation.gap_scenarios import describe_target
from peripety.policy.mutation.operators import iter_mutations, mutated_rules
from peripety.policy.mutation.runner import MutantRun, to_report
from peripety.policy.rule_paths import argument_violations
from peripety.policy.types import Expectation, TestScenario
from peripety.policy.verification.coverage import (
    EvaluatedSuite,
    coverage_targets,
    find_reaching_requests,
    reaching_scenarios,
)
from peripety.testgen.subjects.schema_values import boundary_values
from peripety.testgen.subjects.subject import (
    NO_LINES,
    BodySchema,
    RunResult,
    SubjectKind,
    SubjectTarget,
    pairwise,
)
from peripety.testgen.types import DraftTest, TaskContext, TestStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from peripety.core.mutation_testing import Mutant
    from peripety.policy.mutation.operators import PolicyMutation
    from peripety.testgen.types import TestCase


_MAX_BASELINE_TESTS = 64
_MAX_TESTS_PER_TOOL = 8
_MAX_OBSERVED_CHARACTERS = 1_000
_EXPECTATION_VALUES = tuple(expectation.value for expectation in Expectation)
_CATEGORY_BY_DECISION = {"allow": "allowed", "deny": "denied", "escalate": "escalated"}
_BODY_SCHEMA = {
    "type": "object",
    "description": "A tool call, and the expected decision of the policy.",
    "properties": {
        "server_name": {"type": "string"},
        "tool_name": {"type": "string"},
        "arguments": {
            "type": ["string", "object"],
            "description": "The arguments of the call: a JSON object, or its text.",
        },
        "roles": {"type": "array", "items": {"type": "string"}, "description": "Roles of the caller."},
        "expected": {"type": "string", "enum": [*_EXPECTATION_VALUES]},
    },
    "required": ["server_name", "tool_name", "arguments", "roles", "expected"],
    "additionalProperties": False,
}
_BODY_FORM = BodySchema(_BODY_SCHEMA)


class PolicySubject:
    """A policy.

    Args:
        policy: the compiled policy.
    """

    kind = SubjectKind.POLICY
    is_fenced = None
    context = TaskContext.POLICY
    body_schema: Mapping[str, Any] = _BODY_SCHEMA
    unmeasured_lines = NO_LINES
    changed_since = ""
    unmutated = ""

    def __init__(self, policy: engine.Policy) -> None:
        self._policy = policy
        self._covered_cache: dict[str, frozenset[str]] = {}
        self._tools = {(tool["server_name"], tool["tool_name"]): tool for tool in policy.spec["tools"]}

    @cached_property
    def material(self) -> Mapping[str, Any]:
        """The document."""
        return {"policy": self._policy.spec}

    @cached_property
    def targets(self) -> Sequence[SubjectTarget]:
        """Rules, both values of clauses, and both sides of boundaries."""
        reached = zip(
            self._coverage_targets,
            find_reaching_requests(self._policy, self._coverage_targets),
            strict=True,
        )
        return tuple(
            SubjectTarget(
                aim.kind,
                aim.path,
                describe_target(self._policy, aim),
                not isinstance(how, Unreachable),
            )
            for aim, how in reached
        )

    @cached_property
    def mutants(self) -> Sequence[Mutant]:
        """Mutants of the rules."""
        return tuple(to_report((), MutantRun(mutation, 0, None)) for mutation in self._mutations.values())

    def excerpts(self, paths: Sequence[str]) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 - of programs
        """Return no parts of sources: the whole document is the material."""
        return ()

    def further_mutants(self, known: int, count: int) -> Sequence[Mutant]:  # noqa: ARG002 - of programs
        """Return none: all mutants are measured."""
        return ()

    def problems(self, body: Mapping[str, Any]) -> Sequence[Finding]:
        """Return invalid requests, and arguments that the tool rejects."""
        return _BODY_FORM.validate_body(body) or [*self._request_problems(body)]

    def soundness(self, test: TestCase) -> Sequence[Finding]:
        """Return a finding for an unknown tool, which every policy denies."""
        body = test.body or {}
        if (body.get("server_name"), body.get("tool_name")) in self._tools:
            return ()
        return (Finding("TAUTOLOGY", "/tool_name", "every policy denies an unknown tool"),)

    def same_input(self, body: Mapping[str, Any]) -> Any:
        """Return the request."""
        request = parse_scenario_body(body).request
        arguments = dict(request.arguments)
        return [request.server_name, request.tool_name, arguments, sorted({*request.roles})]

    def run(self, test: TestCase) -> RunResult:
        """Decide the request once."""
        try:
            scenario = parse_scenario_body(test.body or {})
            decided = self._policy.decide(scenario.request)
        except PeripetyError as error:
            finding = Finding("REQUEST_INVALID", "", error.message)
            return RunResult(TestStatus.NOT_EXECUTABLE, "", "", (finding,))
        by = f" by {decided.rule_id}" if decided.rule_id else " by default"
        observed = f"{decided.decision.value}{by}: {'; '.join(decided.reasons)}"[:_MAX_OBSERVED_CHARACTERS]
        trace = sha256(repr(decided).encode()).hexdigest()
        if scenario.expected_decision.is_met_by(decided.decision):
            return RunResult(TestStatus.PASSED, observed, trace, (), self._covered_targets(scenario))
        wanted = scenario.expected_decision.value
        message = f"the policy decides {decided.decision.value}; expected {wanted}"
        return RunResult(
            TestStatus.FAILED,
            observed,
            trace,
            (Finding("EXPECTATION_NOT_MET", "/expected", message),),
        )

    def kills(self, test: TestCase, among: Collection[str]) -> frozenset[str]:
        """Return the mutants that make another decision."""
        suite = EvaluatedSuite(self._policy, [parse_scenario_body(test.body or {})])
        asked = [mutant_id for mutant_id in self._mutations if mutant_id in among]
        failing = suite.failing_by_change([self._mutations[mutant_id].rules for mutant_id in asked])
        return frozenset(mutant_id for mutant_id, by in zip(asked, failing, strict=True) if by)

    def equivalent(self, among: Collection[str]) -> frozenset[str]:
        """Return the mutants that are proved equivalent."""
        asked = [mutant_id for mutant_id in self._mutations if mutant_id in among]
        rules = self._policy.rules
        verdicts = compare_variants(
            self._policy,
            [mutated_rules(rules, self._mutations[mutant_id]) for mutant_id in asked],
        )
        same = (isinstance(verdict, Equivalent) for verdict in verdicts)
        return frozenset(mutant_id for mutant_id, is_same in zip(asked, same, strict=True) if is_same)

    def baseline_tests(self) -> Iterator[DraftTest]:
        """Yield calls of every tool, with pairwise boundary values and the roles in conditions."""
        return islice(self._iter_baseline_tests(), _MAX_BASELINE_TESTS)

    @cached_property
    def _coverage_targets(self) -> Any:
        return coverage_targets(self._policy)

    @cached_property
    def _mutations(self) -> dict[str, PolicyMutation]:
        return {mutation.mutant_id: mutation for mutation in iter_mutations(self._policy)}

    def _covered_targets(self, scenario: TestScenario) -> frozenset[str]:
        """Return the targets that a passing scenario reaches; the result is cached."""
        key = repr(scenario)
        if key not in self._covered_cache:
            found = zip(
                self._coverage_targets,
                reaching_scenarios(EvaluatedSuite(self._policy, [scenario]), self._coverage_targets),
                strict=True,
            )
            self._covered_cache[key] = frozenset(f"{aim.kind}:{aim.path}" for aim, by in found if by)
        return self._covered_cache[key]

    def _request_problems(self, body: Mapping[str, Any]) -> Iterator[Finding]:
        try:
            request = parse_scenario_body(body).request
            self._policy.prepare([request])
        except InvalidArgumentError as error:
            yield Finding("REQUEST_INVALID", "", error.message)
            return
        tool = self._tools.get((request.server_name, request.tool_name))
        if tool is not None:
            for found in argument_violations(tool.get("input_schema"), request.arguments):
                message = f"the tool rejects the call: {found.message}"
                yield Finding("ARGUMENTS_REFUSED", f"/arguments{found.path}", message)

    def _iter_baseline_tests(self) -> Iterator[DraftTest]:
        roles = [[], *([role] for role in sorted(_collect_roles(self._policy.spec)))]
        for server_name, tool_name in sorted(self._tools):
            schema = self._tools[server_name, tool_name].get("input_schema") or {}
            factors: dict[str, Sequence[Any]] = {
                f"/{name}": values for name, values in _argument_values(schema)
            }
            for row in islice(pairwise({**factors, "roles": roles}), _MAX_TESTS_PER_TOOL):
                arguments = {name[1:]: value for name, value in row.items() if name != "roles"}
                if argument_violations(schema, arguments):
                    continue
                request = engine.ToolRequest(server_name, tool_name, arguments, tuple(row["roles"]))
                decision = self._policy.decide(request).decision.value
                yield DraftTest(
                    f"{tool_name}_{decision}",
                    json.dumps([server_name, tool_name, arguments, row["roles"]], ensure_ascii=False),
                    decision,
                    "the current decision of the policy",
                    1.0,
                    {
                        "server_name": server_name,
                        "tool_name": tool_name,
                        "arguments": arguments,
                        "roles": row["roles"],
                        "expected": decision,
                    },
                    _CATEGORY_BY_DECISION[decision],
                )


def parse_scenario_body(body: Mapping[str, Any]) -> TestScenario:
    """Parse a body as a scenario.

    Raises:
        InvalidArgumentError: the body is invalid.
    """
    arguments = body.get("arguments") or {}
    if isinstance(arguments, str):
        arguments = _parse_arguments(arguments)
    if not isinstance(arguments, dict):
        raise InvalidArgumentError("arguments: not a JSON object", code="REQUEST_INVALID")
    try:
        expected = Expectation(body["expected"])
        server_name, tool_name = str(body["server_name"]), str(body["tool_name"])
    except (KeyError, ValueError):
        told = ", ".join(_EXPECTATION_VALUES)
        raise InvalidArgumentError(
            f"requires server_name, tool_name, and expected as one of {told}",
            code="REQUEST_INVALID",
        ) from None
    roles = tuple(map(str, body.get("roles") or ()))
    return TestScenario("", engine.ToolRequest(server_name, tool_name, arguments, roles), expected)


def _parse_arguments(text: str) -> Any:
    if text.strip().lower() in {"", "null", "none"}:
        return {}
    try:
        return engine.parse(text)
    except PeripetyError as error:
        raise InvalidArgumentError(f"arguments: not JSON: {error.message}", code="REQUEST_INVALID") from None


def _argument_values(schema: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[Any]]]:
    """Yield the boundary values of each argument, or a plain value of its type."""
    for name, argument in sorted((schema.get("properties") or {}).items()):
        values = [*boundary_values(argument)] if isinstance(argument, dict) else []
        if values:
            yield name, values


def _collect_roles(part: Any) -> set[str]:
    """Return the roles in conditions."""
    if isinstance(part, list):
        return set().union(*map(_collect_roles, part)) if part else set()
    if not isinstance(part, dict):
        return set()
    named = part.get("roles")
    found = {role for role in named if isinstance(role, str)} if isinstance(named, list) else set()
    return found.union(*map(_collect_roles, part.values()))
