"""Gap scenarios: generated scenarios that reach coverage targets or kill mutants which a suite misses.

Candidates are crossed over, so that one scenario can replace several, and get a description in one
sentence. The result is a complete and minimal suite of given and generated scenarios.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import chain, count
from random import Random
from typing import TYPE_CHECKING, Any

from peripety.core.mutation_testing import REMOVED
from peripety.engine import ToolRequest, canonicalize
from peripety.engine.schema_validation import parse_pointer
from peripety.policy.analysis.equivalence import Differs, Reached, Unreachable
from peripety.policy.analysis.lint import find_requests
from peripety.policy.coverage_generation.minimize import choose_scenarios, minimize_suite, reached_by_scenario
from peripety.policy.mutation.runner import (
    MutantRun,
    MutationContext,
    iter_mutant_runs,
    mutation_score,
    to_report,
)
from peripety.policy.rule_paths import argument_violations
from peripety.policy.types import CoverageGenerated, Expectation, ScenarioOrigin, TestScenario
from peripety.policy.verification.coverage import (
    CONDITION_DECISION_COVERAGE,
    RULE_COVERAGE,
    EvaluatedSuite,
    coverage_by_kind,
    iter_bits,
    reaching_scenarios,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.engine import Policy
    from peripety.policy.analysis.equivalence import ReachResult
    from peripety.policy.mutation.operators import PolicyMutation
    from peripety.policy.verification.coverage import CoverageTarget


_CHILDREN_PER_REQUEST = 20


def cross_over(policy: Policy, requests: Iterable[ToolRequest]) -> Iterator[ToolRequest]:
    """Yield the valid requests and combinations of them, each once.

    The combinations are deterministic.

    Args:
        policy: the policy with the tools of the requests.
        requests: the requests.
    """
    tools = {(tool["server_name"], tool["tool_name"]): tool for tool in policy.spec["tools"]}
    given = [*requests]
    seen: set[bytes] = set()
    for request in (*given, *_iter_children(given)):
        schema = tools[request.server_name, request.tool_name].get("input_schema")
        key = canonicalize([request.server_name, request.tool_name, request.arguments, [*request.roles]])
        if key not in seen and not argument_violations(schema, request.arguments):
            seen.add(key)
            yield request


def _iter_children(requests: Sequence[ToolRequest]) -> Iterator[ToolRequest]:
    """Yield requests that combine arguments of requests to the same tool."""
    of_tools: dict[tuple[str, str], list[ToolRequest]] = {}
    for request in requests:
        of_tools.setdefault((request.server_name, request.tool_name), []).append(request)
    random = Random(0)  # noqa: S311 - not used for secrets
    for request in requests:
        others = of_tools[request.server_name, request.tool_name]
        for _ in range(_CHILDREN_PER_REQUEST if len(others) > 1 else 0):
            yield _make_child(random, request, others)


def _make_child(random: Random, parent: ToolRequest, others: Sequence[ToolRequest]) -> ToolRequest:
    """Return a request with arguments of others; two arrays may be concatenated."""
    other = random.choice(others).arguments
    arguments: dict[str, Any] = {}
    for name in sorted({*parent.arguments, *other}):
        source = random.choice((parent, random.choice(others))).arguments
        if name in source:
            value, more = source[name], other.get(name)
            both = isinstance(value, list) and isinstance(more, list) and random.choice((True, False))
            arguments[name] = value + more if both else value
    roles = random.choice((parent, random.choice(others))).roles
    return ToolRequest(parent.server_name, parent.tool_name, arguments, roles)


_MAX_SHOWN_CHARACTERS = 60

_MATCHES_VALUE = "{before} is one of the values that {rule} matches"
_DEPENDS = "{rule} depends on {before}"
_REQUIRES_NOT = "{rule} requires {before}, not {after}"
_LOGIC_USES = "the logic of {rule} uses {before}, not {after}"
_MUTATION_TEMPLATES = {
    "drop_rule": "{rule} changes the decision",
    "swap_rules": "{rule} is evaluated before the next rule",
    "change_decision": "{rule} decides {before}, not {after}",
    "drop_member": "{rule} depends on its {part}",
    "drop_matcher": "{rule} depends on its {part}",
    "drop_server": _MATCHES_VALUE,
    "drop_tool": _MATCHES_VALUE,
    "drop_role": _MATCHES_VALUE,
    "drop_argument_role": _MATCHES_VALUE,
    "drop_entry": _MATCHES_VALUE,
    "drop_list_value": _MATCHES_VALUE,
    "drop_element": _MATCHES_VALUE,
    "drop_operand": _DEPENDS,
    "negate_logic": _DEPENDS,
    "flip_read_only": "{rule} checks read_only",
    "flip_destructive": "{rule} checks destructive",
    "change_quantifier": _REQUIRES_NOT,
    "read_as_identifier": "{rule} compares values as {before}, not as plain text",
    "widen_path": "{rule} matches {before}, not all of {after}",
    "widen_host": "{rule} matches {before}, not all of {after}",
    "narrow_path": "{rule} matches all of {before}, not only {after}",
    "narrow_host": "{rule} matches all of {before}, not only {after}",
    "swap_comparison": _LOGIC_USES,
    "swap_connective": _LOGIC_USES,
    "shift_number": "{rule} compares with {before}, not with {after}",
}
_POINT_NAMES = {
    "on": "at",
    "inside": "just inside",
    "outside": "just outside",
    "below": "just below",
    "above": "just above",
}
_DEFAULT_QUANTIFIER = "all"


def describe_mutation(policy: Policy, mutation: PolicyMutation) -> str:
    """Describe a request that a policy and a mutant decide differently."""
    before, after = mutation.before, mutation.after
    if _MUTATION_TEMPLATES[mutation.operator] is _LOGIC_USES:
        (before,), (after,) = before, after
    return _MUTATION_TEMPLATES[mutation.operator].format(
        rule=policy.rules[min(mutation.rules)]["id"],
        part="/".join(map(str, mutation.place[3:])) or "condition",
        before=_shorten_json(_DEFAULT_QUANTIFIER if before is REMOVED else before),
        after="nothing" if after is REMOVED else _shorten_json(after),
    )


def describe_target(policy: Policy, target: CoverageTarget) -> str:
    """Describe a request that reaches a coverage target."""
    index = target.ways[0].rule
    if index == len(policy.rules):
        return "no rule applies"
    rule = policy.rules[index]["id"]
    if target.kind == RULE_COVERAGE:
        return f"{rule} decides"
    *place, wanted = parse_pointer(target.path)
    if target.kind == CONDITION_DECISION_COVERAGE:
        holds = "holds" if wanted == "true" else "does not hold"
        return f"{rule} is evaluated, and its {'/'.join(place[3:])} {holds}"
    return (
        f"{rule} is evaluated for a value {_POINT_NAMES[wanted]} "
        f"{_shorten_json(_part_at(policy.spec, place))}"
    )


def _part_at(document: Any, place: list[str]) -> Any:
    for segment in place:
        document = document[int(segment) if isinstance(document, list) else segment]
    return document


def _shorten_json(part: Any) -> str:
    text = json.dumps(part, ensure_ascii=False)
    return text if len(text) <= _MAX_SHOWN_CHARACTERS else f"{text[:_MAX_SHOWN_CHARACTERS]}…"


def candidate_scenarios(
    policy: Policy,
    runs: Sequence[MutantRun],
    missed: Sequence[CoverageTarget],
    explored: Sequence[ReachResult],
) -> list[TestScenario]:
    """Return scenarios without descriptions that expect the decision of the rules.

    Args:
        policy: the policy.
        runs: mutants to kill.
        missed: coverage targets to reach.
        explored: the result of the search for each target.
    """
    requests = [
        *cross_over(policy, [*_requests_for_targets(policy, missed, explored), *_requests_for_mutants(runs)]),
    ]
    return [*_to_scenarios(policy, requests)]


def describe_candidate(policy: Policy, goal: MutantRun | CoverageTarget, names: set[str]) -> str:
    """Return a unique description of a scenario that kills a mutant or reaches a target."""
    about = (
        describe_mutation(policy, goal.mutation)
        if isinstance(goal, MutantRun)
        else describe_target(policy, goal)
    )
    return unique_description(names, about)


def unique_description(names: set[str], description: str) -> str:
    """Return a description that is not in a set of names, and add it to the set."""
    numbered = (f"{description} ({number})" for number in count(2))
    name = next(name for name in chain([description], numbered) if name not in names)
    names.add(name)
    return name


def _requests_for_mutants(survivors: Iterable[MutantRun]) -> Iterator[ToolRequest]:
    return (done.verdict.witness for done in survivors if isinstance(done.verdict, Differs))


def _requests_for_targets(
    policy: Policy,
    missed: Sequence[CoverageTarget],
    explored: Sequence[ReachResult],
) -> Iterator[ToolRequest]:
    """Yield requests for targets, the most significant ones first, because the first of equals is used."""
    closest = find_requests(policy, [aim.closer for aim in missed if aim.closer])
    yield from (how.request for how in (*closest, *explored) if isinstance(how, Reached))


def _to_scenarios(policy: Policy, requests: Sequence[ToolRequest]) -> Iterator[TestScenario]:
    """Yield scenarios without descriptions that expect the decision of the rules."""
    for request, decided in zip(requests, policy.decide_many(requests), strict=True):
        expected = Expectation(decided.decision.value)
        reason, rule_id = decided.reasons[-1], decided.rule_id
        yield TestScenario("", request, expected, reason, ScenarioOrigin.DIRECTED, rule_id)


def generate_for_gaps(
    policy: Policy,
    scenarios: Sequence[TestScenario],
    max_scenarios: int = 0,
) -> Iterator[TestScenario | CoverageGenerated]:
    """Generate scenarios for coverage gaps without a model; they expect the decision of the rules.

    Args:
        policy: the policy.
        scenarios: the existing scenarios.
        max_scenarios: maximum number of scenarios; 0 for no limit.

    Yields:
        The scenarios, those that add most first; at the end, the coverage of all scenarios together.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; a request is invalid.
    """
    subject = MutationContext(policy)
    missing = _find_gaps(subject, EvaluatedSuite(policy, scenarios))
    names = {scenario.description for scenario in scenarios}
    added = [*_generate_additions(subject, missing, names)][: max_scenarios or None]
    yield from added

    wanted, runs = subject.targets, missing.runs
    everything = EvaluatedSuite(policy, [*scenarios, *added])
    covered = {aim.path for aim, by in zip(wanted, reaching_scenarios(everything, wanted), strict=True) if by}
    unreachable = {
        aim.path
        for aim, how in zip(missing.targets, missing.search_results, strict=True)
        if how == Unreachable()
    }
    killers = everything.failing_by_change(done.mutation.rules for done in runs)
    scored = (replace(done, killers=by) for done, by in zip(runs, killers, strict=True))
    yield CoverageGenerated(
        coverage_by_kind(wanted, covered, unreachable),
        mutation_score(to_report(everything.scenarios, done) for done in scored),
    )


def generate_scenarios_from_scratch(context: MutationContext) -> Iterator[TestScenario]:
    """Generate scenarios from scratch that reach every target that can be reached.

    Raises:
        TimeLimitReachedError: the time limit is reached.
    """
    yield from _generate_additions(context, _find_gaps(context, EvaluatedSuite(context.policy, ())), set())


@dataclass(frozen=True, slots=True)
class _SuiteGaps:
    """The gaps of a suite.

    Attributes:
        runs: the results of all mutants.
        targets: the coverage targets that it does not reach.
        search_results: the result of the search for each of these.
    """

    runs: Sequence[MutantRun]
    targets: Sequence[CoverageTarget]
    search_results: Sequence[ReachResult]


def _find_gaps(context: MutationContext, suite: EvaluatedSuite) -> _SuiteGaps:
    runs = [*iter_mutant_runs(context, suite, context.mutations)]
    missed = [
        aim
        for aim, by in zip(context.targets, reaching_scenarios(suite, context.targets), strict=True)
        if not by
    ]
    return _SuiteGaps(runs, missed, context.find_reaching(missed))


def _generate_additions(
    context: MutationContext,
    missing: _SuiteGaps,
    names: set[str],
) -> Iterator[TestScenario]:
    """Yield few candidates that kill and reach all that any does, described by the first thing they add."""
    missed = missing.targets
    survivors = [done for done in missing.runs if not done.killers]
    things: list[MutantRun | CoverageTarget] = [*survivors, *missed]
    found = EvaluatedSuite(
        context.policy,
        candidate_scenarios(context.policy, survivors, missed, missing.search_results),
    )
    killed = found.failing_by_change(done.mutation.rules for done in survivors)
    adds = reached_by_scenario([*killed, *reaching_scenarios(found, missed)], len(found.scenarios))
    known = 0
    for number in choose_scenarios(adds):
        thing = things[next(iter_bits(adds[number] & ~known))]
        known |= adds[number]
        yield replace(found.scenarios[number], description=describe_candidate(found.policy, thing, names))


def complete_suite(policy: Policy, scenarios: Sequence[TestScenario]) -> tuple[TestScenario, ...]:
    """Choose from given and generated scenarios a small suite that reaches all that any of them reaches.

    Unlike the result of `cover`, a generated scenario may replace several others.

    Returns:
        The same as `minimal_suite`.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; a request is invalid.
    """
    return complete_in_context(MutationContext(policy), scenarios)


def complete_in_context(
    context: MutationContext,
    scenarios: Sequence[TestScenario],
) -> tuple[TestScenario, ...]:
    """Return the same as `complete`, with cached facts about the policy.

    Raises:
        InvalidArgumentError: `REQUEST_INVALID`; a request is invalid.
        TimeLimitReachedError: the time limit is reached.
    """
    names = {scenario.description for scenario in scenarios}
    made = generate_scenarios_from_scratch(context)
    named = (replace(one, description=unique_description(names, one.description)) for one in made)
    return minimize_suite(context, [*scenarios, *named])
