"""Protobuf messages shared by several requests and responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety import sim
from peripety.api.common.v1 import common_pb2 as common
from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.client.findings import finding_to_proto
from peripety.errors import Severity
from peripety.gateway.messages.answers import spent_to_proto
from peripety.scenarios.rates import interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.errors import Finding
    from peripety.scenarios.certificates.model import Rate
    from peripety.scenarios.model import NumberEdit, NumbersMoved, Progress, RuleEdit
    from peripety.sim import DryRunReport, Persona

__all__ = [
    "PERSONAS",
    "findings",
    "number_edits",
    "persona",
    "progress",
    "rate_to_proto",
    "rebalanced",
    "report",
    "rule_edit",
]

_MAX_FINDINGS = 50


def progress(event: Progress) -> pb.Progress:
    """Convert progress."""
    return pb.Progress(
        stage=pb.Stage.Value(f"STAGE_{event.stage.name}"),
        message=event.message,
        fraction=event.fraction,
        usage=spent_to_proto(event.spent),
    )


def findings(found: Sequence[Finding]) -> pb.Findings:
    """Convert findings, errors first; a long list is truncated."""
    worst_first = sorted(found, key=lambda finding: finding.severity is not Severity.ERROR)
    told = map(finding_to_proto, worst_first[:_MAX_FINDINGS])
    return pb.Findings(findings=told, total=len(found))


def rule_edit(edit: RuleEdit) -> pb.RuleEdit:
    """Convert a difference between two documents."""
    return pb.RuleEdit(
        kind=pb.RuleEditKind.Value(f"RULE_EDIT_KIND_{edit.kind.name}"),
        path=edit.path,
        before=edit.before,
        after=edit.after,
        summary=edit.summary,
    )


def number_edits(edits: Sequence[NumberEdit]) -> list[pb.NumberEdit]:
    """Convert the moved numbers."""
    return [
        pb.NumberEdit(path=edit.path, before=edit.before, after=edit.after, summary=edit.summary)
        for edit in edits
    ]


def rebalanced(event: NumbersMoved) -> pb.NumbersAdjusted:
    """Convert the event of moved numbers."""
    return pb.NumbersAdjusted(edits=number_edits(event.edits), before=report(event.before))


def persona(name: Persona) -> engine.Persona.ValueType:
    """Convert a persona."""
    return engine.Persona.Value(f"PERSONA_{name.upper()}")


PERSONAS: dict[int, Persona] = {persona(name): name for name in sim.PERSONAS}
"""The personas, by their number in a message."""


def rate_to_proto(rate: Rate) -> common.Rate:
    """Convert a rate."""
    return common.Rate(count=rate.count, total=rate.total, value=rate.value, low=rate.low, high=rate.high)


def report(played: DryRunReport) -> pb.DryRunReport:
    """Convert the report of simulated runs."""
    low, high = interval(played.lost, played.runs)
    return pb.DryRunReport(
        runs=played.runs,
        first_run=played.first_run,
        turns=played.turns,
        lost=played.lost,
        won=played.won,
        survived=played.survived,
        errored=played.errored,
        fail_rate=played.fail_rate,
        wilson_low=low,
        wilson_high=high,
        persona=persona(played.persona),
        seed=played.seed,
        losses=[engine.NamedCount(id=name, count=count) for name, count in played.losses.items()],
        horizon=played.horizon,
        errors=[
            engine.RuleError(code=error.code, rule=error.rule, message=error.message)
            for error in played.errors
        ],
        rng_version=played.rng_version,
    )
