"""Requests of ScenarioService from protobuf; certificates, reports and verdicts to protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from peripety import engine as engine_api
from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.certification.certificate import CertificateComparison
from peripety.certification.options import MAX_RUNS, USUAL_PERSONAS, CertificateOptions, DryRunOptions
from peripety.certification.rate_interval import rate_interval
from peripety.certification.types import Certificate, PersonaReport, certificate_hash, decode, encode
from peripety.core.config import ProviderName
from peripety.core.validation import check_item_id
from peripety.engine import Persona
from peripety.errors import InvalidArgumentError, Severity, require_field
from peripety.gateway.pb.requests import budget_from_proto
from peripety.gateway.pb.responses import spent_to_proto
from peripety.rpc.messages import copy_fields, members_by_number
from peripety.rpc.status import batch_items, finding_to_proto, item_error_to_proto
from peripety.scenario.balance.balancer import CONFIRMING_RUNS, BalanceOrder, BalanceTarget
from peripety.scenario.batch import BatchOptions, DocumentVerdict
from peripety.scenario.certificate.certifier import CertificationRefused
from peripety.scenario.rule_graph.graph import DEFAULT_INSPECTION_RUNS
from peripety.scenario.types import (
    AmendmentOrder,
    GenerationLimits,
    GenerationOrder,
    Progress,
    ValidationLevel,
)
from peripety.scenario.validation import unsupported_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.engine import DryRunReport
    from peripety.errors import Finding
    from peripety.scenario.batch import Document
    from peripety.scenario.certificate.certifier import CertifyEvent
    from peripety.scenario.types import NumbersAdjusted


_MAX_FINDINGS = 50


def progress_to_proto(event: Progress) -> pb.Progress:
    """Convert progress."""
    return copy_fields(pb.Progress, event, usage=spent_to_proto(event.spent))


def findings_to_proto(found: Sequence[Finding]) -> pb.Findings:
    """Convert findings, errors first; a long list is truncated."""
    worst_first = sorted(found, key=lambda finding: finding.severity is not Severity.ERROR)
    told = map(finding_to_proto, worst_first[:_MAX_FINDINGS])
    return pb.Findings(findings=told, total=len(found))


def numbers_adjusted_to_proto(event: NumbersAdjusted) -> pb.NumbersAdjusted:
    """Convert the event of moved numbers."""
    return copy_fields(pb.NumbersAdjusted, event, before=report_to_proto(event.before))


PERSONA_NAMES: dict[int, Persona] = {
    engine.Persona.Value(f"PERSONA_{name.upper()}"): name for name in engine_api.PERSONAS
}
"""The personas, by their number in a message."""


def report_to_proto(played: DryRunReport) -> pb.DryRunReport:
    """Convert the report of simulated runs."""
    low, high = rate_interval(played.lost, played.runs)
    losses = [engine.NamedCount(id=name, count=count) for name, count in played.losses.items()]
    return copy_fields(pb.DryRunReport, played, wilson_low=low, wilson_high=high, losses=losses)


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
        personas=tuple(PERSONA_NAMES[persona] for persona in options.personas) or USUAL_PERSONAS,
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
    return copy_fields(
        pb.Certificate,
        certified,
        certificate_hash=certificate_hash(document),
        document=document,
        findings=findings_to_proto(certified.findings).findings,
        personas=map(_persona_report_to_proto, certified.personas),
    )


def _persona_report_to_proto(report: PersonaReport) -> pb.PersonaReport:
    actions = [engine.NamedCount(id=action.id, count=action.taken) for action in report.actions]
    return copy_fields(pb.PersonaReport, report, actions=actions)


_Default = TypeVar("_Default", ValidationLevel, None)

_MAX_ANSWERS = 4
_MAX_RUNS = 4_096
_PERSONAS: dict[int, Persona] = {
    engine.PERSONA_UNSPECIFIED: "random",
    **PERSONA_NAMES,
}
_GATE_PERSONAS = frozenset[Persona]({"random", "idle"})
_LEVELS = members_by_number(pb.ValidationLevel, ValidationLevel)


def order_from_proto(request: pb.GenerateScenarioRequest) -> GenerationOrder:
    """Convert a generation request."""
    return GenerationOrder(
        description=request.description,
        seed=request.seed if request.HasField("seed") else None,
        model=request.model or None,
        level=level_from_proto(request.level, ValidationLevel.CERTIFICATE),
        limits=_limits_from_proto(request),
        refresh=request.refresh,
        language=request.language,
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


def documents_from_proto(items: Iterable[pb.SpecItem]) -> list[Document[str]]:
    """Convert the items of a message; an invalid item does not affect the others."""
    return [(item.item_id, _content_from_proto(item)) for item in items]


def _content_from_proto(item: pb.SpecItem) -> bytes | DocumentVerdict:
    try:
        check_item_id(item.item_id)
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
    return copy_fields(
        pb.SpecVerdict,
        found,
        item_id=item_id,
        accepted=found.is_accepted,
        findings=findings,
        dry_run=report_to_proto(found.dry_run) if found.dry_run else None,
        certificate=certificate_to_proto(decode(found.certificate)) if found.certificate else None,
    )
