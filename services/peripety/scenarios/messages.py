"""Scenarios ↔ protobuf messages, nothing else."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.client.items import item_error
from peripety.errors import Severity
from peripety.scenarios.checks import require, unsupported
from peripety.scenarios.model import (
    Compiled,
    CompiledScenario,
    Completed,
    Draft,
    DryRunOptions,
    FoundWrong,
    GenerationLimits,
    GenerationOrder,
    Level,
    NotCompiled,
    NotGenerated,
    NumbersMoved,
    Progress,
    Rewritten,
)
from peripety.scenarios.rates import interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.errors import Finding, PeripetyError
    from peripety.pages import Page
    from peripety.scenarios.checking import Inspection
    from peripety.scenarios.model import (
        CompileEvent,
        GenerationEvent,
        NumberEdit,
        RuleEdit,
        ScenarioRecord,
        ScenarioSummary,
        Work,
    )
    from peripety.sim import DryRunReport, Persona

__all__ = [
    "compile_response",
    "compiled_scenario",
    "dry_run_options",
    "failed_verdict",
    "generation_response",
    "level_asked",
    "order",
    "scenario",
    "summaries",
    "verdict",
]

_MAX_ANSWERS = 4
_MAX_RUNS = 4_096
_MAX_FINDINGS = 50
_PERSONAS: dict[int, Persona] = {
    engine.PERSONA_UNSPECIFIED: "random",
    engine.PERSONA_RANDOM: "random",
    engine.PERSONA_IDLE: "idle",
}
_LEVELS = {
    pb.VALIDATION_LEVEL_UNSPECIFIED: Level.STATIC,
    pb.VALIDATION_LEVEL_SCHEMA: Level.SCHEMA,
    pb.VALIDATION_LEVEL_STATIC: Level.STATIC,
    pb.VALIDATION_LEVEL_DRY_RUN: Level.DRY_RUN,
}


def order(request: pb.GenerateScenarioRequest) -> GenerationOrder:
    """What a request wants a specification about."""
    return GenerationOrder(
        description=request.description,
        seed=request.seed if request.HasField("seed") else None,
        model=request.model or None,
        level=level_asked(request.level),
        limits=_limits(request),
    )


def _limits(request: pb.GenerateScenarioRequest) -> GenerationLimits:
    budget = request.budget
    if budget.HasField("max_cost"):
        raise unsupported(".budget.max_cost", "a cap on money")
    answers = request.max_attempts or _MAX_ANSWERS
    return GenerationLimits(
        answers=min(answers, budget.max_calls or answers),
        tokens=budget.max_tokens or None,
        seconds=budget.max_time.ToMilliseconds() / 1000 or None,
    )


def level_asked(level: pb.ValidationLevel.ValueType) -> Level:
    """How much is to be checked."""
    if level == pb.VALIDATION_LEVEL_CERTIFICATE:
        raise unsupported(".level", "VALIDATION_LEVEL_CERTIFICATE")
    require(level in _LEVELS, ".level", "is no ValidationLevel")
    return _LEVELS[level]


def dry_run_options(options: pb.DryRunOptions) -> DryRunOptions:
    """How to simulate."""
    persona = options.persona
    if persona not in _PERSONAS and persona in engine.Persona.values():
        raise unsupported(".dry_run.persona", engine.Persona.Name(persona))
    require(persona in _PERSONAS, ".dry_run.persona", "is no Persona")
    return DryRunOptions(
        persona=_PERSONAS[persona],
        seed=options.seed if options.HasField("seed") else None,
        max_runs=options.max_runs or _MAX_RUNS,
        horizon=options.horizon or None,
    )


def verdict(item_id: str, found: Inspection) -> pb.SpecVerdict:
    """What came of checking one item."""
    return pb.SpecVerdict(
        item_id=item_id,
        accepted=found.accepted,
        findings=_findings(found.findings),
        spec_hash=found.spec_hash,
        dry_run=_report(found.dry_run) if found.dry_run else None,
    )


def failed_verdict(item_id: str, error: PeripetyError) -> pb.SpecVerdict:
    """Why one item could not be checked."""
    return pb.SpecVerdict(item_id=item_id, error=item_error(error))


def generation_response(event: GenerationEvent) -> pb.GenerateScenarioResponse:
    """What happened to a specification while it was written; the sequence is left open."""
    response = pb.GenerateScenarioResponse
    match event:
        case Progress():
            return response(progress=_progress(event))
        case Draft(document, attempt, work):
            usage = None if work is None else _usage(work)
            return response(draft=response.Draft(spec=document, attempt=attempt, usage=usage))
        case FoundWrong(findings):
            return response(findings=_findings(findings))
        case Rewritten(document, attempt, edits):
            changed = [_rule_edit(edit) for edit in edits]
            return response(repaired=response.Repaired(spec=document, attempt=attempt, edits=changed))
        case Completed():
            return response(completed=_completed(event))
        case NotGenerated(findings, attempts, work):
            refused = response.Rejected(findings=_findings(findings), attempts=attempts, usage=_usage(work))
            return response(rejected=refused)


def _completed(event: Completed) -> pb.GenerateScenarioResponse.Completed:
    return pb.GenerateScenarioResponse.Completed(
        spec=event.document,
        findings=_findings(event.findings).findings,
        attempts=event.attempts,
        usage=_usage(event.work),
        authored_without_model=event.without_model,
        model=event.model,
    )


def compile_response(event: CompileEvent) -> pb.CompileScenarioResponse:
    """What happened to a specification while it was compiled; the sequence is left open."""
    response = pb.CompileScenarioResponse
    match event:
        case Progress():
            return response(progress=_progress(event))
        case NumbersMoved(edits, before):
            return response(repaired=response.Repaired(edits=_number_edits(edits), before=_report(before)))
        case Compiled(record):
            return response(compiled=scenario(record))
        case NotCompiled(findings, dry_run):
            report = _report(dry_run) if dry_run else None
            return response(rejected=response.Rejected(findings=_findings(findings), dry_run=report))


def _progress(event: Progress) -> pb.Progress:
    return pb.Progress(
        stage=pb.Stage.Value(f"STAGE_{event.stage.name}"),
        message=event.message,
        fraction=event.fraction,
        usage=_usage(event.work),
    )


def _usage(work: Work) -> common.ModelUsage:
    tokens = common.TokenUsage(
        input_tokens=work.usage.input_tokens,
        output_tokens=work.usage.output_tokens,
        cache_read_tokens=work.usage.cache_read_tokens,
        cache_write_tokens=work.usage.cache_write_tokens,
    )
    return common.ModelUsage(calls=work.calls, tokens=tokens)


def _findings(findings: Sequence[Finding]) -> pb.Findings:
    worst_first = sorted(findings, key=lambda finding: finding.severity is not Severity.ERROR)
    told = [
        common.Finding(
            code=finding.code,
            path=finding.path,
            message=finding.message,
            severity=common.Severity.Value(f"SEVERITY_{finding.severity.name}"),
        )
        for finding in worst_first[:_MAX_FINDINGS]
    ]
    return pb.Findings(findings=told, total=len(findings))


def _rule_edit(edit: RuleEdit) -> pb.RuleEdit:
    return pb.RuleEdit(
        kind=pb.RuleEditKind.Value(f"RULE_EDIT_KIND_{edit.kind.name}"),
        path=edit.path,
        before=edit.before,
        after=edit.after,
        summary=edit.summary,
    )


def _number_edits(edits: Sequence[NumberEdit]) -> list[pb.NumberEdit]:
    return [pb.NumberEdit(path=edit.path, before=edit.before, after=edit.after) for edit in edits]


def _report(report: DryRunReport) -> pb.DryRunReport:
    low, high = interval(report.lost, report.runs)
    return pb.DryRunReport(
        runs=report.runs,
        first_run=report.first_run,
        turns=report.turns,
        lost=report.lost,
        won=report.won,
        survived=report.survived,
        errored=report.errored,
        fail_rate=report.fail_rate,
        wilson_low=low,
        wilson_high=high,
        persona=engine.Persona.Value(f"PERSONA_{report.persona.upper()}"),
        seed=report.seed,
        losses=[engine.NamedCount(id=name, count=count) for name, count in report.losses.items()],
        horizon=report.horizon,
        errors=[
            engine.RuleError(code=error.code, rule=error.rule, message=error.message)
            for error in report.errors
        ],
        rng_version=report.rng_version,
    )


def scenario(record: ScenarioRecord) -> pb.CompiledScenario:
    """A stored scenario."""
    stored = record.scenario
    compiled = pb.CompiledScenario(
        scenario_id=stored.scenario_id,
        name=stored.name,
        spec_hash=stored.spec_hash,
        spec=stored.document,
        dry_run=_report(record.dry_run),
        edits=_number_edits(record.edits),
        findings=_findings(record.findings).findings,
    )
    compiled.create_time.FromDatetime(stored.create_time)
    return compiled


def summaries(page: Page[ScenarioSummary]) -> list[pb.ScenarioSummary]:
    """The stored versions of a page."""
    summaries = []
    for stored in page.items:
        summary = pb.ScenarioSummary(
            scenario_id=stored.scenario_id,
            name=stored.name,
            spec_hash=stored.spec_hash,
            fail_rate=stored.fail_rate,
        )
        summary.create_time.FromDatetime(stored.create_time)
        summaries.append(summary)
    return summaries


def compiled_scenario(message: pb.CompiledScenario) -> CompiledScenario:
    """What is played of a stored scenario."""
    return CompiledScenario(
        scenario_id=message.scenario_id,
        name=message.name,
        spec_hash=message.spec_hash,
        document=message.spec,
        create_time=message.create_time.ToDatetime(UTC),
    )
