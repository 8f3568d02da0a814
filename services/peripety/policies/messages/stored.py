"""Stored policies and audit logs to protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.gateway.messages.answers import spent_to_proto
from peripety.policies.messages import parts, reports
from peripety.policies.model import (
    DiscardedScenario,
    Judgement,
    RulePatch,
    ScenarioCorrection,
)

if TYPE_CHECKING:
    from peripety.pages import Page
    from peripety.policies.model import AuditEntry, CompiledPolicy, GenerationTurn, PolicySummary

__all__ = ["audit_entry", "policy", "summaries", "turn"]


def policy(stored: CompiledPolicy) -> pb.CompiledPolicy:
    """Convert a stored policy."""
    compiled = stored.compiled
    message = pb.CompiledPolicy(
        policy_id=stored.policy_id,
        policy_hash=stored.policy_hash,
        document=compiled.document,
        scenarios=parts.scenarios(compiled.scenarios),
        verification=reports.verification(compiled.verification),
        audit=map(audit_entry, compiled.audit),
        input_hash=stored.input_hash,
    )
    message.create_time.FromDatetime(stored.create_time)
    return message


def summaries(page: Page[PolicySummary]) -> list[pb.PolicySummary]:
    """Convert a page of policies."""
    told = []
    for stored in page.items:
        summary = pb.PolicySummary(
            policy_id=stored.policy_id,
            policy_hash=stored.policy_hash,
            rules=stored.rules,
            scenarios=stored.scenarios,
        )
        summary.create_time.FromDatetime(stored.create_time)
        told.append(summary)
    return told


def turn(told: GenerationTurn) -> pb.GenerationTurn:
    """Convert the usage of a turn."""
    return pb.GenerationTurn(
        turn=told.turn, scenarios=told.scenarios, repaired=told.repaired, usage=spent_to_proto(told.spent)
    )


def audit_entry(entry: AuditEntry) -> pb.AuditEntry:
    """Convert an entry of the audit log."""
    match entry.decision:
        case ScenarioCorrection() as correction:
            told = pb.AuditEntry(correction=_correction(correction))
        case DiscardedScenario() as discarded:
            told = pb.AuditEntry(discarded=_discarded(discarded))
        case RulePatch() as patch:
            told = pb.AuditEntry(rule_patch=parts.rule_patch(patch))
        case Judgement() as judgement:
            told = pb.AuditEntry(judge_result=_judgement(judgement))
    told.round, told.actor = entry.round, entry.actor
    told.time.FromNanoseconds(round(entry.time * 1e9))
    return told


def _correction(correction: ScenarioCorrection) -> pb.ScenarioCorrection:
    return pb.ScenarioCorrection(
        scenario_description=correction.scenario_description,
        original=parts.expectation(correction.original_decision),
        corrected=parts.expectation(correction.corrected_decision),
        reasoning=correction.corrected_reasoning,
    )


def _discarded(discarded: DiscardedScenario) -> pb.DiscardedScenario:
    return pb.DiscardedScenario(
        scenario=parts.scenario(discarded.scenario),
        rule=discarded.rule,
        actual=pb.Decision.Value(f"DECISION_{discarded.actual.name}"),
    )


def _judgement(judgement: Judgement) -> pb.JudgeResult:
    return pb.JudgeResult(
        scenario_description=judgement.scenario_description,
        fault=pb.FaultAttribution.Value(f"FAULT_ATTRIBUTION_{judgement.blame.name}"),
        reasoning=judgement.reasoning,
        overruled=judgement.overruled,
    )
