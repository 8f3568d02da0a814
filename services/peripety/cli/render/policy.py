"""Output of policy commands: results in one line each, and the progress of a compilation."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.cli.output import finding_lines, format_model_usage, one_line
from peripety.policy.authoring.sentence_report import summarize_sentences
from peripety.rpc.proto_json import enum_word
from peripety.rpc.status import finding_from_proto

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rich.console import Console

    from peripety.api.common.v1 import common_pb2 as common
    from peripety.api.common.v1 import quality_pb2 as quality


_DECISION = pb.DecisionResult.DESCRIPTOR.fields_by_name["decision"]
_EXPECTED = pb.PolicyScenario.DESCRIPTOR.fields_by_name["expected"]
_SOURCE = pb.PolicyScenario.DESCRIPTOR.fields_by_name["source"]
_BLAME = pb.JudgeResult.DESCRIPTOR.fields_by_name["fault"]
_PATCH = pb.RulePatch.DESCRIPTOR.fields_by_name["kind"]
_PATCHED = {"update": "changed", "add": "added", "delete": "removed"}
_SHOWN = 20
_LONGEST = 200


def format_count(number: int, noun: str) -> str:
    """Format a count with its noun: "1 rule", "2 rules"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_decision(result: pb.DecisionResult) -> str:
    """Format a decision and the rule that made it."""
    by = one_line(result.rule_id) or "no rule"
    return f"{enum_word(_DECISION, result.decision)} by {by}"


def format_request(request: pb.PolicyRequest) -> str:
    """Format a call on one line."""
    arguments = one_line((request.arguments or b"{}").decode(errors="replace"))
    roles = f" as {', '.join(map(one_line, request.roles))}" if request.roles else ""
    return f"{one_line(request.server_name)}/{one_line(request.tool_name)} {_shorten(arguments)}{roles}"


def format_failures(
    results: Iterable[pb.ScenarioResult],
    scenarios: dict[str, pb.PolicyScenario],
) -> Iterator[str]:
    """Format failed scenarios: the expected and the actual decision.

    A long list is truncated, with a note.
    """
    failed = [result for result in results if not result.passed]
    for result in failed[:_SHOWN]:
        scenario = scenarios.get(result.scenario_id)
        about = one_line(scenario.description if scenario else result.scenario_id)
        expected = f" expects {enum_word(_EXPECTED, scenario.expected)}," if scenario else ""
        yield f"  failed: {about}:{expected} is {format_decision(result.actual)}"
    if len(failed) > _SHOWN:
        yield f"  ... and {len(failed) - _SHOWN} more"


def format_rule_figures(
    kinds: Iterable[quality.Coverage], score: quality.MutationScore | None
) -> Iterator[str]:
    """Format coverage and mutation score of a policy under a line that limits what they mean.

    Args:
        kinds: the coverage by kind.
        score: the mutation score; None leaves it out.
    """
    yield "  figures of the rules as they stand; peripety policy explain compares them with the text:"
    yield from format_coverage(kinds)
    if score is not None:
        yield from format_mutation_score(score)


def format_coverage(kinds: Iterable[quality.Coverage], scope: str = "") -> Iterator[str]:
    """Format coverage, one line per kind.

    Args:
        kinds: the coverage by kind.
        scope: the part that is measured, with a space before it; empty for everything.
    """
    for one in kinds:
        kind = one_line(one.kind).replace("_", "/")
        share = f"{one.covered:,} of {one.reachable:,} ({one.covered / max(one.reachable, 1):.0%})"
        yield f"  {kind} coverage{scope}: {share if one.reachable else 'not measured'}"


def format_mutation_score(score: quality.MutationScore, scope: str = "") -> Iterator[str]:
    """Format a mutation score and the surviving mutants.

    Args:
        score: the score.
        scope: as for `format_coverage`.
    """
    counting = score.killed + score.survived
    if not counting:
        yield f"  mutants killed{scope}: not measured"
        return
    yield (
        f"  mutants killed{scope}: {score.killed:,} of {counting:,} ({score.score:.1%}),"
        f" {score.equivalent:,} more proved equivalent"
    )
    for mutant in score.survivors[:_SHOWN]:
        yield f"    survives: {format_mutant(mutant)}"
    if score.survived > _SHOWN:
        yield f"    ... and {score.survived - _SHOWN} more"


def format_mutant(mutant: quality.Mutant) -> str:
    """Format the change that a mutant makes."""
    before = _format_part(mutant.before) if mutant.HasField("before") else "nothing"
    after = _format_part(mutant.after) if mutant.HasField("after") else "nothing"
    return f"{one_line(mutant.operator)} {one_line(mutant.path)}: {before} → {after}"


def format_rule(rule: dict[str, Any]) -> str:
    """Format a rule on one line."""
    when = json.dumps(rule["when"], ensure_ascii=False)
    return f"  {one_line(rule['id'])}: {rule['then']} when {_shorten(one_line(when))}"


def format_sources(scenarios: Sequence[pb.PolicyScenario]) -> str:
    """Format the number of scenarios by source."""
    counts = Counter(enum_word(_SOURCE, one.source) for one in scenarios)
    each = ", ".join(f"{count:,} {word}" for word, count in counts.items())
    return f"{format_count(len(scenarios), 'scenario')}{f' ({each})' if each else ''}"


def format_audit_entry(entry: pb.AuditEntry) -> str:
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
    return f"  {one_line(entry.actor)}: {one_line(what)}"


def _format_part(content: bytes) -> str:
    """Format a part of a document; a whole rule as its id."""
    value = json.loads(content)
    if isinstance(value, dict) and "id" in value:
        return f"rule {one_line(value['id'])}"
    return _shorten(one_line(content.decode()))


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


_PHASE = pb.CompilePolicyResponse.Progress.DESCRIPTOR.fields_by_name["phase"]


@contextmanager
def live_policy_view(out: Console, constitution: str = "") -> Iterator[PolicyProgressView]:
    """Yield a progress view of the compilation of a written policy. The bar is shown only on a terminal."""
    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as bar:
        task = bar.add_task("", total=1.0)

        def follow(told: pb.CompilePolicyResponse.Progress) -> None:
            bar.update(task, completed=told.fraction, description=one_line(told.message))

        yield PolicyProgressView(out, follow, constitution)


class PolicyProgressView:
    """Console output of the events of a policy compilation.

    Args:
        out: the console.
        follow: called with each progress event.
        constitution: the written policy, whose sentences are counted above all figures.
    """

    def __init__(
        self,
        out: Console,
        follow: Callable[[pb.CompilePolicyResponse.Progress], None] = lambda _: None,
        constitution: str = "",
    ) -> None:
        self._out = out
        self._constitution = constitution
        self._follow = follow
        self._phase = pb.COMPILE_PHASE_UNSPECIFIED
        self._scenarios: dict[str, pb.PolicyScenario] = {}

    def show(self, event: pb.CompilePolicyResponse) -> None:
        """Print one event."""
        match event.WhichOneof("event"):
            case "progress":
                self._progress(event.progress)
            case "rules_written":
                rules = json.loads(event.rules_written.document).get("rules", ())
                self._print(f"    {format_count(len(rules), 'rule')}")
                self._findings(event.rules_written.findings)
            case "scenarios_written":
                self._show_written(event.scenarios_written)
            case "verified":
                passed, failed = event.verified.passed, event.verified.failed
                self._print(f"    {passed:,} passed, {failed:,} failed", "yellow" if failed else "green")
                self._lines(format_failures(event.verified.failures, self._scenarios), "yellow")
            case "decided":
                self._print(format_audit_entry(event.decided))
            case "compiled":
                self._show_compiled(event.compiled)
            case "failed":
                self._print(f"  given up{_format_used(event.failed.usage)}", "red")

    def _progress(self, progress: pb.CompilePolicyResponse.Progress) -> None:
        if progress.phase != self._phase:
            self._print(f"  {enum_word(_PHASE, progress.phase)}", "dim")
        self._phase = progress.phase
        self._follow(progress)

    def _show_written(self, written: pb.CompilePolicyResponse.ScenariosWritten) -> None:
        self._scenarios |= {one.scenario_id: one for one in written.scenarios}
        used = _format_used(written.turn.usage) if written.HasField("turn") else ""
        if written.scenarios:
            self._print(f"    {format_sources(written.scenarios)}{used}")

    def _show_compiled(self, compiled: pb.CompilePolicyResponse.Compiled) -> None:
        policy = compiled.policy
        rules = json.loads(policy.document)["rules"]
        cached = ", cached for the same input; no model was called" if compiled.from_cache else ""
        self._print(f"{format_count(len(rules), 'rule')}, {format_sources(policy.scenarios)}{cached}", "bold")
        findings = [*map(finding_from_proto, compiled.findings)]
        self._print(
            f"  {summarize_sentences(self._constitution, findings)}; figures of the rules as they stand:"
        )
        self._lines(format_coverage(policy.verification.coverage))
        if policy.verification.HasField("mutation"):
            self._lines(format_mutation_score(policy.verification.mutation))
        self._print(f"  {format_count(len(policy.audit), 'decision')} recorded{_format_used(compiled.usage)}")
        self._findings(compiled.findings)

    def _findings(self, findings: Iterable[common.Finding]) -> None:
        self._lines(finding_lines([*map(finding_from_proto, findings)]), "yellow")

    def _lines(self, lines: Iterable[str], style: str | None = None) -> None:
        for line in lines:
            self._print(line, style)

    def _print(self, line: str, style: str | None = None) -> None:
        self._out.print(line, style=style)


def _format_used(usage: common.ModelUsage) -> str:
    return f" · {format_model_usage(usage)}" if usage.calls else ""
