"""Certificates, their options and their progress as protobuf messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.requests import require
from peripety.scenarios.certificates.certifier import NotCertifiable
from peripety.scenarios.certificates.checking import Comparison
from peripety.scenarios.certificates.document import certificate_hash, encode
from peripety.scenarios.certificates.model import (
    MOST_RUNS,
    Certificate,
    CertificateOptions,
    PersonaReport,
)
from peripety.scenarios.messages import parts
from peripety.scenarios.model import Progress
from peripety.sim import PERSONAS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.scenarios.certificates.certifier import CertifyEvent
    from peripety.scenarios.certificates.model import NamedCount
    from peripety.sim import Proof

__all__ = ["certificate", "certify_response", "check_response", "options_asked"]


def options_asked(options: pb.CertificateOptions, field: str = ".options") -> CertificateOptions:
    """Convert certificate options.

    Args:
        options: the message.
        field: its path in the request.
    """
    for persona in options.personas:
        require(persona in parts.PERSONAS, f"{field}.personas", "is not a Persona")
    return CertificateOptions(
        personas=tuple(parts.PERSONAS[persona] for persona in options.personas) or PERSONAS,
        seed=options.seed if options.HasField("seed") else None,
        max_runs=options.max_runs or MOST_RUNS,
        horizon=options.horizon or None,
    )


def certify_response(event: CertifyEvent) -> pb.CertifyScenarioResponse:
    """Convert an event of a certification; the caller sets the sequence number."""
    response = pb.CertifyScenarioResponse
    match event:
        case Progress():
            return response(progress=parts.progress(event))
        case PersonaReport():
            return response(persona=_persona_report(event))
        case Certificate():
            return response(certificate=certificate(event))
        case NotCertifiable(findings):
            return response(rejected=response.Rejected(findings=parts.findings(findings)))


def check_response(event: Progress | Comparison) -> pb.CheckCertificateResponse:
    """Convert an event of a certificate check; the caller sets the sequence number."""
    response = pb.CheckCertificateResponse
    match event:
        case Progress():
            return response(progress=parts.progress(event))
        case Comparison(findings):
            told = parts.findings(findings).findings
            return response(checked=response.Checked(matches=event.matches, findings=told))


def certificate(certified: Certificate) -> pb.Certificate:
    """Convert a certificate with its document."""
    document = encode(certified)
    return pb.Certificate(
        certificate_hash=certificate_hash(document),
        document=document,
        spec_hash=certified.spec_hash,
        verdict=pb.CertificateVerdict.Value(f"CERTIFICATE_VERDICT_{certified.verdict.name}"),
        findings=parts.findings(certified.findings).findings,
        options=_options(certified.options),
        personas=[_persona_report(report) for report in certified.personas],
        planner_gap=certified.planner_gap or 0,
        drifts=[
            pb.Drift(path=drift.path, per_turn=drift.per_turn, limit=drift.limit)
            for drift in certified.drifts
        ],
        proofs=[_proof(proof) for proof in certified.proofs],
        dead_actions=certified.dead_actions,
        dominant_actions=certified.dominant_actions,
        engine_version=certified.engine_version,
        rng_version=certified.rng_version,
        band=pb.TargetBand(
            min_fail_rate=certified.band.min_fail_rate, max_fail_rate=certified.band.max_fail_rate
        ),
    )


def _options(options: CertificateOptions) -> pb.CertificateOptions:
    return pb.CertificateOptions(
        personas=[parts.persona(name) for name in options.personas],
        seed=options.seed,
        max_runs=options.max_runs,
        horizon=options.horizon or 0,
    )


def _persona_report(report: PersonaReport) -> pb.PersonaReport:
    return pb.PersonaReport(
        persona=parts.persona(report.persona),
        turns=report.turns,
        lost=parts.rate_to_proto(report.lost),
        won=parts.rate_to_proto(report.won),
        survived=parts.rate_to_proto(report.survived),
        losses=_named(report.losses),
        wins=_named(report.wins),
        loss_turns=[pb.TurnCount(turn=lost.turn, count=lost.count) for lost in report.loss_turns],
        actions=[engine.NamedCount(id=action.id, count=action.taken) for action in report.actions],
        events=_named(report.events),
        errored=report.errored,
    )


def _proof(proof: Proof) -> pb.Proof:
    return pb.Proof(
        code=proof.code,
        path=proof.path,
        argument=proof.argument,
        witness=[
            engine.ActionCall(
                action_id=call.action_id,
                params={name: _param(value) for name, value in call.params.items()},
            )
            for call in proof.witness
        ],
    )


def _param(value: str | float) -> engine.ParamValue:
    match value:
        case bool():
            return engine.ParamValue(flag=value)
        case str():
            return engine.ParamValue(text=value)
        case _:
            return engine.ParamValue(number=value)


def _named(counts: Iterable[NamedCount]) -> list[engine.NamedCount]:
    return [engine.NamedCount(id=counted.id, count=counted.count) for counted in counts]
