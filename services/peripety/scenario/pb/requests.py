"""Requests from proto; certificates and parts shared by messages.

Requests from protobuf messages.

Certificates, their options and their progress as protobuf messages.

Protobuf messages shared by several requests and responses.

Items and verdicts of a batch as protobuf messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from peripety import engine as engine_api
from peripety.api.common.v1 import common_pb2 as common
from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.core.config import ProviderName
from peripety.core.validation import require_field
from peripety.engine import PERSONAS, Persona
from peripety.errors import InvalidArgumentError, Severity
from peripety.gateway.pb.requests import budget_from_proto
from peripety.gateway.pb.responses import spent_to_proto
from peripety.rpc.status import batch_items, finding_to_proto, item_error_to_proto
from peripety.scenario.balance.balancer import CONFIRMING_RUNS, BalanceOrder, BalanceTarget
from peripety.scenario.batch import BatchOptions, DocumentVerdict
from peripety.scenario.certificate.certifier import CertificateComparison, CertificationRefused
from peripety.scenario.certificate.types import (
    MAX_RUNS,
    Certificate,
    CertificateOptions,
    PersonaReport,
    certificate_hash,
    decode,
    encode,
)
from peripety.scenario.dry_run.rate_interval import rate_interval
from peripety.scenario.rule_graph.graph import DEFAULT_INSPECTION_RUNS
from peripety.scenario.types import (
    AmendmentOrder,
    DryRunOptions,
    GenerationLimits,
    GenerationOrder,
    Progress,
    ValidationLevel,
)
from peripety.scenario.validation import unsupported_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.engine import DryRunReport, Proof
    from peripety.errors import Finding
    from peripety.scenario.batch import Document
    from peripety.scenario.certificate.certifier import CertifyEvent
    from peripety.scenario.certificate.types import NamedCount, Rate
    from peripety.scenario.types import NumberEdit, NumbersAdjusted, RuleEdit


_MAX_FINDINGS = 50


def progress_to_proto(event: Progress) -> pb.Progress:
    """Convert progress."""
    return pb.Progress(
        stage=pb.Stage.Value(f"STAGE_{event.stage.name}"),
        message=event.message,
        fraction=event.fraction,
        usage=spent_to_proto(event.spent),
    )


def findings_to_proto(found: Sequence[Finding]) -> pb.Findings:
    """Convert findings, errors first; a long list is truncated."""
    worst_first = sorted(found, key=lambda finding: finding.severity is not Severity.ERROR)
    told = map(finding_to_proto, worst_first[:_MAX_FINDINGS])
    return pb.Findings(findings=told, total=len(found))


def rule_edit_to_proto(edit: RuleEdit) -> pb.RuleEdit:
    """Convert a difference between two documents."""
    return pb.RuleEdit(
        kind=pb.RuleEditKind.Value(f"RULE_EDIT_KIND_{edit.kind.name}"),
        path=edit.path,
        before=edit.before,
        after=edit.after,
        summary=edit.summary,
    )


def number_edits_to_proto(edits: Sequence[NumberEdit]) -> list[pb.NumberEdit]:
    """Convert the moved numbers."""
    return [
        pb.NumberEdit(path=edit.path, before=edit.before, after=edit.after, summary=edit.summary)
        for edit in edits
    ]


def numbers_adjusted_to_proto(event: NumbersAdjusted) -> pb.NumbersAdjusted:
    """Convert the event of moved numbers."""
    return pb.NumbersAdjusted(edits=number_edits_to_proto(event.edits), before=report_to_proto(event.before))


def persona_to_proto(name: Persona) -> engine.Persona.ValueType:
    """Convert a persona."""
    return engine.Persona.Value(f"PERSONA_{name.upper()}")


PERSONA_NAMES: dict[int, Persona] = {persona_to_proto(name): name for name in engine_api.PERSONAS}
"""The personas, by their number in a message."""


def rate_to_proto(rate: Rate) -> common.Rate:
    """Convert a rate."""
    return common.Rate(count=rate.count, total=rate.total, value=rate.value, low=rate.low, high=rate.high)


def report_to_proto(played: DryRunReport) -> pb.DryRunReport:
    """Convert the report of simulated runs."""
    low, high = rate_interval(played.lost, played.runs)
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
        persona=persona_to_proto(played.persona),
        seed=played.seed,
        losses=[engine.NamedCount(id=name, count=count) for name, count in played.losses.items()],
        horizon=played.horizon,
        errors=[
            engine.RuleError(code=error.code, rule=error.rule, message=error.message)
            for error in played.errors
        ],
        rng_version=played.rng_version,
    )


def certificate_options_from_proto(
    options: pb.CertificateOptions,
    field: str = ".options",
) -> CertificateOptions:
    """Convert certificate options.

    Args:
        options: the message.
        field: its path in the request.
    """
    for persona in options.personas:
        require_field(persona in PERSONA_NAMES, f"{field}.personas", "is not a Persona")
    return CertificateOptions(
        personas=tuple(PERSONA_NAMES[persona] for persona in options.personas) or PERSONAS,
        seed=options.seed if options.HasField("seed") else None,
        max_runs=options.max_runs or MAX_RUNS,
        horizon=options.horizon or None,
    )


def certify_event_to_proto(event: CertifyEvent) -> pb.CertifyScenarioResponse:
    """Convert an event of a certification; the caller sets the sequence number."""
    response = pb.CertifyScenarioResponse
    match event:
        case Progress():
            return response(progress=progress_to_proto(event))
        case PersonaReport():
            return response(persona=_persona_report_to_proto(event))
        case Certificate():
            return response(certificate=certificate_to_proto(event))
        case CertificationRefused(findings):
            return response(rejected=response.Rejected(findings=findings_to_proto(findings)))


def check_event_to_proto(event: Progress | CertificateComparison) -> pb.CheckCertificateResponse:
    """Convert an event of a certificate check; the caller sets the sequence number."""
    response = pb.CheckCertificateResponse
    match event:
        case Progress():
            return response(progress=progress_to_proto(event))
        case CertificateComparison(findings):
            told = findings_to_proto(findings).findings
            return response(checked=response.Checked(matches=event.matches, findings=told))


def certificate_to_proto(certified: Certificate) -> pb.Certificate:
    """Convert a certificate with its document."""
    document = encode(certified)
    return pb.Certificate(
        certificate_hash=certificate_hash(document),
        document=document,
        spec_hash=certified.spec_hash,
        verdict=pb.CertificateVerdict.Value(f"CERTIFICATE_VERDICT_{certified.verdict.name}"),
        findings=findings_to_proto(certified.findings).findings,
        options=_certificate_options_to_proto(certified.options),
        personas=[_persona_report_to_proto(report) for report in certified.personas],
        planner_gap=certified.planner_gap or 0,
        drifts=[
            pb.Drift(path=drift.path, per_turn=drift.per_turn, limit=drift.limit)
            for drift in certified.drifts
        ],
        proofs=[_proof_to_proto(proof) for proof in certified.proofs],
        dead_actions=certified.dead_actions,
        dominant_actions=certified.dominant_actions,
        engine_version=certified.engine_version,
        rng_version=certified.rng_version,
        band=pb.TargetBand(
            min_fail_rate=certified.band.min_fail_rate,
            max_fail_rate=certified.band.max_fail_rate,
        ),
    )


def _certificate_options_to_proto(options: CertificateOptions) -> pb.CertificateOptions:
    return pb.CertificateOptions(
        personas=[persona_to_proto(name) for name in options.personas],
        seed=options.seed,
        max_runs=options.max_runs,
        horizon=options.horizon or 0,
    )


def _persona_report_to_proto(report: PersonaReport) -> pb.PersonaReport:
    return pb.PersonaReport(
        persona=persona_to_proto(report.persona),
        turns=report.turns,
        lost=rate_to_proto(report.lost),
        won=rate_to_proto(report.won),
        survived=rate_to_proto(report.survived),
        losses=_named_counts_to_proto(report.losses),
        wins=_named_counts_to_proto(report.wins),
        loss_turns=[pb.TurnCount(turn=lost.turn, count=lost.count) for lost in report.loss_turns],
        actions=[engine.NamedCount(id=action.id, count=action.taken) for action in report.actions],
        events=_named_counts_to_proto(report.events),
        errored=report.errored,
    )


def _proof_to_proto(proof: Proof) -> pb.Proof:
    return pb.Proof(
        code=proof.code,
        path=proof.path,
        argument=proof.argument,
        witness=[
            engine.ActionCall(
                action_id=call.action_id,
                params={name: _param_to_proto(value) for name, value in call.params.items()},
            )
            for call in proof.witness
        ],
    )


def _param_to_proto(value: str | float) -> engine.ParamValue:
    match value:
        case bool():
            return engine.ParamValue(flag=value)
        case str():
            return engine.ParamValue(text=value)
        case _:
            return engine.ParamValue(number=value)


def _named_counts_to_proto(counts: Iterable[NamedCount]) -> list[engine.NamedCount]:
    return [engine.NamedCount(id=counted.id, count=counted.count) for counted in counts]


_Default = TypeVar("_Default", ValidationLevel, None)

_MAX_ANSWERS = 4
_MAX_RUNS = 4_096
_PERSONAS: dict[int, Persona] = {
    engine.PERSONA_UNSPECIFIED: "random",
    **PERSONA_NAMES,
}
_GATE_PERSONAS = frozenset[Persona]({"random", "idle"})
_LEVELS = {
    pb.VALIDATION_LEVEL_SCHEMA: ValidationLevel.SCHEMA,
    pb.VALIDATION_LEVEL_STATIC: ValidationLevel.STATIC,
    pb.VALIDATION_LEVEL_DRY_RUN: ValidationLevel.DRY_RUN,
    pb.VALIDATION_LEVEL_CERTIFICATE: ValidationLevel.CERTIFICATE,
}


def order_from_proto(request: pb.GenerateScenarioRequest) -> GenerationOrder:
    """Convert a generation request."""
    return GenerationOrder(
        description=request.description,
        seed=request.seed if request.HasField("seed") else None,
        model=request.model or None,
        level=level_from_proto(request.level, ValidationLevel.CERTIFICATE),
        limits=_limits_from_proto(request),
        refresh=request.refresh,
    )


def amendment_from_proto(request: pb.AmendScenarioRequest) -> AmendmentOrder:
    """Convert an amendment request."""
    return AmendmentOrder(
        request.scenario_id,
        request.instruction,
        expected_hash=request.expected_spec_hash or None,
        model=request.model or None,
        level=level_from_proto(request.level, None),
        limits=_limits_from_proto(request),
    )


def _limits_from_proto(request: pb.GenerateScenarioRequest | pb.AmendScenarioRequest) -> GenerationLimits:
    budget = budget_from_proto(".budget", request.budget)
    return GenerationLimits(request.max_attempts or _MAX_ANSWERS, budget)


def level_from_proto(level: pb.ValidationLevel.ValueType, default: _Default) -> ValidationLevel | _Default:
    """Convert a validation level; return the default if it is unspecified."""
    if level == pb.VALIDATION_LEVEL_UNSPECIFIED:
        return default
    require_field(level in _LEVELS, ".level", "is not a ValidationLevel")
    return _LEVELS[level]


def batch_options_from_proto(options: pb.ValidationOptions) -> BatchOptions:
    """Convert batch validation options."""
    return BatchOptions(
        level_from_proto(options.level, ValidationLevel.STATIC),
        dry_run_options_from_proto(options.dry_run),
        certificate_options_from_proto(options.certificate, ".certificate"),
    )


def balance_order_from_proto(request: pb.BalanceScenarioRequest) -> BalanceOrder:
    """Convert a balance request; every persona is allowed."""
    require_field(request.HasField("target"), ".target", "is required: how often the persona should lose")
    target = BalanceTarget(request.target.min_fail_rate, request.target.max_fail_rate)
    return BalanceOrder(request.spec, target, _simulation_options(request.dry_run, CONFIRMING_RUNS))


def inspection_options_from_proto(request: pb.InspectScenarioRequest) -> DryRunOptions | None:
    """Convert the simulation options of an inspection, None for no runs; every persona is allowed."""
    return (
        _simulation_options(request.dry_run, DEFAULT_INSPECTION_RUNS) if request.HasField("dry_run") else None
    )


def dry_run_options_from_proto(options: pb.DryRunOptions) -> DryRunOptions:
    """Convert simulation options of the gate, which allows only some personas."""
    simulated = _simulation_options(options, _MAX_RUNS)
    if simulated.persona not in _GATE_PERSONAS:
        raise unsupported_error(".dry_run.persona", engine.Persona.Name(options.persona))
    return simulated


def _simulation_options(options: pb.DryRunOptions, runs: int) -> DryRunOptions:
    require_field(options.persona in _PERSONAS, ".dry_run.persona", "is not a Persona")
    return DryRunOptions(
        persona=_PERSONAS[options.persona],
        seed=options.seed if options.HasField("seed") else None,
        max_runs=options.max_runs or runs,
        horizon=options.horizon or None,
    )


def provider_from_proto(name: str) -> ProviderName | None:
    """Convert the name of a provider whose tool limits apply; None if empty."""
    known = {known.value: known for known in ProviderName}
    require_field(not name or name in known, ".provider", f"must be one of {', '.join(known)}, or empty")
    return known.get(name)


_MAX_ITEM_ID_BYTES = 256


def documents_from_proto(items: Iterable[pb.SpecItem]) -> list[Document[str]]:
    """Convert the items of a message; an invalid item does not affect the others."""
    return [(item.item_id, _content_from_proto(item)) for item in items]


def _content_from_proto(item: pb.SpecItem) -> bytes | DocumentVerdict:
    try:
        size = len(item.item_id.encode())
        require_field(
            0 < size <= _MAX_ITEM_ID_BYTES,
            ".item_id",
            f"must have 1 to {_MAX_ITEM_ID_BYTES} bytes",
        )
    except InvalidArgumentError as error:
        return DocumentVerdict(error=error)
    return item.spec


def verdicts_to_proto(found: Iterable[tuple[str, DocumentVerdict]]) -> Iterator[pb.ValidateScenariosResponse]:
    """Convert verdicts to as few messages as sizes allow; the caller sets the sequence numbers."""
    for some in batch_items(_verdict_to_proto(item_id, verdict) for item_id, verdict in found):
        yield pb.ValidateScenariosResponse(verdicts=some)


def _verdict_to_proto(item_id: str, found: DocumentVerdict) -> pb.SpecVerdict:
    if found.error:
        return pb.SpecVerdict(item_id=item_id, error=item_error_to_proto(found.error))
    findings = findings_to_proto(found.findings)
    findings.total = found.total
    return pb.SpecVerdict(
        item_id=item_id,
        accepted=found.is_accepted,
        findings=findings,
        spec_hash=found.spec_hash,
        dry_run=report_to_proto(found.dry_run) if found.dry_run else None,
        certificate=certificate_to_proto(decode(found.certificate)) if found.certificate else None,
    )
