"""Formatting of policy results, one line each."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.cli.jsonify import enum_word
from peripety.cli.text import in_one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.api.common.v1 import quality_pb2 as quality

__all__ = [
    "audit_line",
    "counted",
    "coverage_lines",
    "decision_words",
    "failure_lines",
    "mutation_lines",
    "request_words",
    "rule_line",
    "sources_words",
]

_DECISION = pb.DecisionResult.DESCRIPTOR.fields_by_name["decision"]
_EXPECTED = pb.PolicyScenario.DESCRIPTOR.fields_by_name["expected"]
_SOURCE = pb.PolicyScenario.DESCRIPTOR.fields_by_name["source"]
_BLAME = pb.JudgeResult.DESCRIPTOR.fields_by_name["fault"]
_PATCH = pb.RulePatch.DESCRIPTOR.fields_by_name["kind"]
_PATCHED = {"update": "changed", "add": "added", "delete": "removed"}
_SHOWN = 20
_LONGEST = 200


def counted(number: int, noun: str) -> str:
    """Format a count with its noun: "1 rule", "2 rules"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def decision_words(result: pb.DecisionResult) -> str:
    """Format a decision and the rule that made it."""
    by = in_one_line(result.rule_id) or "no rule"
    return f"{enum_word(_DECISION, result.decision)} by {by}"


def request_words(request: pb.PolicyRequest) -> str:
    """Format a call on one line."""
    arguments = in_one_line((request.arguments or b"{}").decode(errors="replace"))
    roles = f" as {', '.join(map(in_one_line, request.roles))}" if request.roles else ""
    return f"{in_one_line(request.server_name)}/{in_one_line(request.tool_name)} {_short(arguments)}{roles}"


def failure_lines(
    results: Iterable[pb.ScenarioResult], scenarios: dict[str, pb.PolicyScenario]
) -> Iterator[str]:
    """Format failed scenarios: the expected and the actual decision.

    A long list is truncated, with a note.
    """
    failed = [result for result in results if not result.passed]
    for result in failed[:_SHOWN]:
        scenario = scenarios.get(result.scenario_id)
        about = in_one_line(scenario.description if scenario else result.scenario_id)
        expected = f" expects {enum_word(_EXPECTED, scenario.expected)}," if scenario else ""
        yield f"  failed: {about}:{expected} is {decision_words(result.actual)}"
    if len(failed) > _SHOWN:
        yield f"  ... and {len(failed) - _SHOWN} more"


def coverage_lines(kinds: Iterable[quality.Coverage]) -> Iterator[str]:
    """Format coverage, one line per kind."""
    for one in kinds:
        kind = in_one_line(one.kind).replace("_", "/")
        share = f" ({one.covered / one.reachable:.0%})" if one.reachable else ""
        yield f"  {kind} coverage: {one.covered:,} of {one.reachable:,}{share}"


def mutation_lines(score: quality.MutationScore) -> Iterator[str]:
    """Format a mutation score and the surviving mutants."""
    counting = score.killed + score.survived
    yield (
        f"  mutants killed: {score.killed:,} of {counting:,} ({score.score:.1%}),"
        f" {score.equivalent:,} more proved equivalent"
    )
    for mutant in score.survivors[:_SHOWN]:
        yield f"    survives: {mutant_words(mutant)}"
    if score.survived > _SHOWN:
        yield f"    ... and {score.survived - _SHOWN} more"


def mutant_words(mutant: quality.Mutant) -> str:
    """Format the change that a mutant makes."""
    before = _part(mutant.before) if mutant.HasField("before") else "nothing"
    after = _part(mutant.after) if mutant.HasField("after") else "nothing"
    return f"{in_one_line(mutant.operator)} {in_one_line(mutant.path)}: {before} → {after}"


def rule_line(rule: dict[str, Any]) -> str:
    """Format a rule on one line."""
    when = json.dumps(rule["when"], ensure_ascii=False)
    return f"  {in_one_line(rule['id'])}: {rule['then']} when {_short(in_one_line(when))}"


def sources_words(scenarios: Sequence[pb.PolicyScenario]) -> str:
    """Format the number of scenarios by source."""
    counts = Counter(enum_word(_SOURCE, one.source) for one in scenarios)
    each = ", ".join(f"{count:,} {word}" for word, count in counts.items())
    return f"{counted(len(scenarios), 'scenario')}{f' ({each})' if each else ''}"


def audit_line(entry: pb.AuditEntry) -> str:
    """Format an audit entry: the decision and its author."""
    match entry.WhichOneof("decision"):
        case "correction":
            one = entry.correction
            original, corrected = enum_word(_EXPECTED, one.original), enum_word(_EXPECTED, one.corrected)
            what = f"{one.scenario_description}: expects {corrected}, not {original}; {one.reasoning}"
        case "discarded":
            thrown = entry.discarded
            always = enum_word(_DECISION, thrown.actual)
            what = f"{thrown.scenario.description}: discarded, {thrown.rule} always decides {always}"
        case "rule_patch":
            patch = entry.rule_patch
            what = f"rule {patch.rule_id}: {_PATCHED[enum_word(_PATCH, patch.kind)]}; {patch.reasoning}"
        case _:
            judged = entry.judge_result
            blame = enum_word(_BLAME, judged.fault)
            put_aside = ", which was overruled" if judged.overruled else ""
            what = f"{judged.scenario_description}: blames {blame}{put_aside}; {judged.reasoning}"
    return f"  {in_one_line(entry.actor)}: {in_one_line(what)}"


def _part(content: bytes) -> str:
    """Format a part of a document; a whole rule as its id."""
    value = json.loads(content)
    if isinstance(value, dict) and "id" in value:
        return f"rule {in_one_line(value['id'])}"
    return _short(in_one_line(content.decode()))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
