"""Events, reports and policies to protobuf; sequence numbers are added later."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from peripety.api.common.v1 import quality_pb2 as quality
from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.core.idempotency.store import PendingResponse
from peripety.engine import canonicalize
from peripety.errors import Finding, Severity
from peripety.gateway.pb.responses import spent_to_proto
from peripety.gateway.types.response import UsageTotal
from peripety.policy.events import (
    CompileProgress,
    PolicyCompileFailed,
    RulesWritten,
    ScenariosVerified,
    ScenariosWritten,
)
from peripety.policy.types import AuditEntry, DiscardedScenario, Judgement, RulePatch, ScenarioCorrection
from peripety.rpc.messages import copy_fields
from peripety.rpc.status import batch_items, finding_to_proto

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.core.mutation_testing import Coverage, Mutant, MutationScore
    from peripety.core.validation import Page
    from peripety.engine.policies.types import DecisionResult, ToolRequest
    from peripety.policy.compile_cache import CacheableEvent, CachedResult
    from peripety.policy.partial_evaluation import PartialDecision
    from peripety.policy.types import (
        CompiledPolicy,
        CoverageGenerated,
        DecisionChange,
        Expectation,
        GenerationTurn,
        MutantBlock,
        PolicyDifference,
        PolicySummary,
        RuleIssue,
        ScenarioResult,
        TestScenario,
        VerificationReport,
    )
    from peripety.policy.verification.back_translation import DecidedCall, RuleStatement, SentenceStatement


_ID_DIGITS = 16


def tool_request_to_proto(request: ToolRequest) -> pb.PolicyRequest:
    """Convert a tool call."""
    return pb.PolicyRequest(
        server_name=request.server_name,
        tool_name=request.tool_name,
        arguments=canonicalize(request.arguments),
        roles=request.roles,
    )


def decision_to_proto(decided: DecisionResult) -> pb.DecisionResult:
    """Convert a decision with its reasons."""
    troubles = (
        Finding(error.code, error.path, f"{error.rule_id}: {error.message}", Severity.WARNING)
        for error in decided.errors
    )
    return pb.DecisionResult(
        decision=pb.Decision.Value(f"DECISION_{decided.decision.name}"),
        rule_id=decided.rule_id,
        by_invariant=decided.by_invariant,
        reasons=decided.reasons,
        errors=map(finding_to_proto, troubles),
    )


def expectation_to_proto(expected: Expectation) -> pb.Expectation.ValueType:
    """Convert an expectation."""
    return pb.Expectation.Value(f"EXPECTATION_{expected.name}")


def scenario_id(scenario: TestScenario) -> str:
    """Return the id of a scenario: the given one, or a digest of its description."""
    named = sha256(scenario.description.encode()).hexdigest()[:_ID_DIGITS]
    return scenario.scenario_id or f"scn_{named}"


def scenario_to_proto(written: TestScenario) -> pb.PolicyScenario:
    """Convert a scenario."""
    return copy_fields(
        pb.PolicyScenario,
        written,
        scenario_id=scenario_id(written),
        request=tool_request_to_proto(written.request),
        expected=written.expected_decision,
    )


def scenarios_to_proto(written: Iterable[TestScenario]) -> list[pb.PolicyScenario]:
    """Convert scenarios."""
    return [*map(scenario_to_proto, written)]


def rule_patch_to_proto(patch: RulePatch) -> pb.RulePatch:
    """Convert a change of a rule."""
    return copy_fields(
        pb.RulePatch,
        patch,
        before=None if patch.before is None else canonicalize(patch.before),
        after=None if patch.after is None else canonicalize(patch.after),
    )


_MAX_EXAMPLES = 100
"""Limit of listed examples."""


def verification_to_proto(report: VerificationReport) -> pb.VerificationReport:
    """Convert a verification report."""
    failed = len(report.failures)
    return pb.VerificationReport(
        passed=len(report.results) - failed,
        failed=failed,
        results=map(_result_to_proto, report.results),
        coverage=coverage_to_proto(report.coverage),
        mutation=None if report.mutation is None else mutation_score_to_proto(report.mutation),
    )


def _result_to_proto(result: ScenarioResult) -> pb.ScenarioResult:
    return copy_fields(
        pb.ScenarioResult,
        result,
        scenario_id=scenario_id(result.scenario),
        actual=decision_to_proto(result.actual),
    )


def coverage_to_proto(kinds: Iterable[Coverage]) -> list[quality.Coverage]:
    """Convert coverage by kind."""
    return [
        copy_fields(
            quality.Coverage,
            one,
            uncovered=one.uncovered[:_MAX_EXAMPLES],
            unreachable=one.unreachable[:_MAX_EXAMPLES],
        )
        for one in kinds
    ]


def mutation_score_to_proto(score: MutationScore) -> quality.MutationScore:
    """Convert a mutation score."""
    survivors = map(_mutant_to_proto, score.survivors[:_MAX_EXAMPLES])
    return copy_fields(quality.MutationScore, score, survivors=survivors)


def mutants_to_proto(done: MutantBlock) -> Iterator[pb.RunMutationTestsResponse.Mutants]:
    """Yield mutants in as few messages as the size limit allows."""
    for some in batch_items(map(_mutant_to_proto, done.mutants)):
        yield pb.RunMutationTestsResponse.Mutants(mutants=some, total=done.total)


def covered_to_proto(found: CoverageGenerated) -> pb.GenerateCoverageScenariosResponse.Covered:
    """Convert the final result of coverage generation."""
    return pb.GenerateCoverageScenariosResponse.Covered(
        coverage=coverage_to_proto(found.coverage),
        mutation=mutation_score_to_proto(found.mutation),
    )


def _mutant_to_proto(mutant: Mutant) -> quality.Mutant:
    return copy_fields(quality.Mutant, mutant, killed_by=mutant.killed_by[:_MAX_EXAMPLES])


def policy_to_proto(stored: CompiledPolicy) -> pb.CompiledPolicy:
    """Convert a stored policy."""
    compiled = stored.compiled
    return copy_fields(
        pb.CompiledPolicy,
        stored,
        document=compiled.document,
        scenarios=scenarios_to_proto(compiled.scenarios),
        verification=verification_to_proto(compiled.verification),
        audit=map(audit_entry_to_proto, compiled.audit),
    )


def summaries_to_proto(page: Page[PolicySummary]) -> list[pb.PolicySummary]:
    """Convert a page of policies."""
    return [copy_fields(pb.PolicySummary, stored) for stored in page.items]


def turn_to_proto(told: GenerationTurn) -> pb.GenerationTurn:
    """Convert the usage of a turn."""
    return copy_fields(pb.GenerationTurn, told, usage=spent_to_proto(told.spent))


def audit_entry_to_proto(entry: AuditEntry) -> pb.AuditEntry:
    """Convert an entry of the audit log."""
    match entry.decision:
        case ScenarioCorrection() as correction:
            told = pb.AuditEntry(correction=_correction_to_proto(correction))
        case DiscardedScenario() as discarded:
            scenario = scenario_to_proto(discarded.scenario)
            told = pb.AuditEntry(discarded=copy_fields(pb.DiscardedScenario, discarded, scenario=scenario))
        case RulePatch() as patch:
            told = pb.AuditEntry(rule_patch=rule_patch_to_proto(patch))
        case Judgement() as judgement:
            told = pb.AuditEntry(judge_result=copy_fields(pb.JudgeResult, judgement, fault=judgement.blame))
    told.round, told.actor = entry.round, entry.actor
    told.time.FromNanoseconds(round(entry.time * 1e9))
    return told


def _correction_to_proto(correction: ScenarioCorrection) -> pb.ScenarioCorrection:
    return copy_fields(
        pb.ScenarioCorrection,
        correction,
        original=correction.original_decision,
        corrected=correction.corrected_decision,
        reasoning=correction.corrected_reasoning,
    )


def event_to_proto(
    event: CacheableEvent | PendingResponse[CachedResult],
) -> pb.CompilePolicyResponse | PendingResponse[pb.CompilePolicyResponse]:
    """Convert a compile event; a pending write is converted after its commit."""
    return event.map(_compiled_to_proto) if isinstance(event, PendingResponse) else _event_to_proto(event)


def _event_to_proto(event: CacheableEvent) -> pb.CompilePolicyResponse:
    response = pb.CompilePolicyResponse
    match event:
        case CompileProgress():
            told = response(progress=copy_fields(response.Progress, event))
        case RulesWritten():
            told = response(rules_written=copy_fields(response.RulesWritten, event))
        case ScenariosWritten():
            told = response(scenarios_written=_scenarios_written_to_proto(event))
        case ScenariosVerified():
            told = response(verified=_verified_to_proto(event))
        case AuditEntry():
            told = response(decided=audit_entry_to_proto(event))
        case PolicyCompileFailed():
            told = response(failed=_failed_to_proto(event))
    return told


def _scenarios_written_to_proto(event: ScenariosWritten) -> pb.CompilePolicyResponse.ScenariosWritten:
    turn = None if event.turn is None else turn_to_proto(event.turn)
    return pb.CompilePolicyResponse.ScenariosWritten(scenarios=scenarios_to_proto(event.scenarios), turn=turn)


def _verified_to_proto(event: ScenariosVerified) -> pb.CompilePolicyResponse.Verified:
    failures = event.report.failures
    return pb.CompilePolicyResponse.Verified(
        round=event.round,
        passed=len(event.report.results) - len(failures),
        failed=len(failures),
        failures=map(_result_to_proto, failures),
    )


def _failed_to_proto(event: PolicyCompileFailed) -> pb.CompilePolicyResponse.Failed:
    return copy_fields(
        pb.CompilePolicyResponse.Failed,
        event,
        scenarios=scenarios_to_proto(event.scenarios),
        verification=None if event.verification is None else verification_to_proto(event.verification),
        audit=map(audit_entry_to_proto, event.audit),
        usage=spent_to_proto(event.spent),
    )


def _compiled_to_proto(kept: CachedResult) -> pb.CompilePolicyResponse:
    compiled = kept.policy.compiled
    # A cached result has no usage in this request.
    spent, turns = (UsageTotal(), ()) if kept.from_cache else (compiled.spent, compiled.turns)
    return pb.CompilePolicyResponse(
        compiled=pb.CompilePolicyResponse.Compiled(
            policy=policy_to_proto(kept.policy),
            usage=spent_to_proto(spent),
            turns=map(turn_to_proto, turns),
            from_cache=kept.from_cache,
            findings=map(finding_to_proto, compiled.findings),
        ),
    )


def issues_to_proto(found: Iterable[RuleIssue]) -> pb.AnalyzePolicyResponse:
    """Convert lint issues."""
    return pb.AnalyzePolicyResponse(issues=map(_issue_to_proto, found))


def _issue_to_proto(issue: RuleIssue) -> pb.RuleIssue:
    witness = None if issue.witness is None else tool_request_to_proto(issue.witness)
    return copy_fields(pb.RuleIssue, issue, witness=witness)


def sentences_to_proto(sentences: Iterable[SentenceStatement]) -> pb.ExplainPolicyResponse:
    """Convert the rules of each sentence in English."""
    return pb.ExplainPolicyResponse(
        sentences=[
            pb.SentenceStatement(sentence=one.sentence, rules=map(_rule_statement_to_proto, one.rules))
            for one in sentences
        ],
    )


def _rule_statement_to_proto(rule: RuleStatement) -> pb.RuleStatement:
    decided, nearest = map(_decided_call_to_proto, (rule.decided, rule.nearest))
    return copy_fields(pb.RuleStatement, rule, decided=decided, nearest=nearest)


def _decided_call_to_proto(call: DecidedCall | None) -> pb.DecidedCall | None:
    if call is None:
        return None
    return pb.DecidedCall(
        request=tool_request_to_proto(call.request), decision=decision_to_proto(call.decision)
    )


def partial_decision_to_proto(partial: PartialDecision) -> pb.DecidePartiallyResponse:
    """Convert the remaining conditions of a tool."""
    rules = (
        copy_fields(pb.RemainingRule, rule, condition=canonicalize(rule.condition)) for rule in partial.rules
    )
    return copy_fields(pb.DecidePartiallyResponse, partial, rules=rules)


def difference_to_proto(found: PolicyDifference) -> pb.DiffPoliciesResponse:
    """Convert a policy difference."""
    return copy_fields(
        pb.DiffPoliciesResponse,
        found,
        changes=map(_change_to_proto, found.changes),
        rule_changes=map(rule_patch_to_proto, found.rule_changes),
    )


def _change_to_proto(change: DecisionChange) -> pb.DecisionChange:
    return pb.DecisionChange(
        witness=tool_request_to_proto(change.witness),
        before=decision_to_proto(change.before),
        after=decision_to_proto(change.after),
    )
