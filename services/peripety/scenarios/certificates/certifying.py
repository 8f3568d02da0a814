"""From a program to its certificate: proofs, the gate, and runs of every persona."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.errors import InternalError
from peripety.gateway.streams import following
from peripety.scenarios.certificates.figures import (
    dead_actions,
    dominant_actions,
    persona_report,
)
from peripety.scenarios.certificates.findings import Evidence, findings
from peripety.scenarios.certificates.measuring import measure, most_runs
from peripety.scenarios.certificates.model import (
    ENGINE_VERSION,
    Band,
    Certificate,
    CertificateVerdict,
    PersonaReport,
    rounded,
)
from peripety.scenarios.drift import drifts, watched
from peripety.scenarios.gate import rate_sentence, verdict_of
from peripety.scenarios.model import DryRunOptions, Progress, Stage, errors_among
from peripety.scenarios.runs import MOST_SECONDS, Runner
from peripety.sim import PERSONAS, RNG_VERSION

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from peripety.scenarios.certificates.model import CertificateOptions
    from peripety.scenarios.drift import Drift
    from peripety.scenarios.gate import Verdict
    from peripety.sim import DryRunReport, Persona, Program
    from peripety.workers import Worker

__all__ = ["certificate_of", "certify"]

_SINCE = 0.1
_EFFORT = {"planner": 5}


async def certify(
    program: Program, options: CertificateOptions, workers: Worker, most_seconds: float = MOST_SECONDS
) -> AsyncIterator[Progress | PersonaReport | Certificate]:
    """Measure how fair a scenario is, and say what that comes to.

    What comes of it follows from the scenario and the options alone. Where the gate meets a rule that fails,
    nobody else plays: their figures would be of a scenario that does not work.

    Args:
        program: the scenario.
        options: what to measure.
        workers: prove and play.
        most_seconds: so long the gate, and each persona, may play.

    Yields:
        Progress, how each persona fared as soon as that is known, and the certificate as the last item.

    Raises:
        ResourceExhaustedError: the runs of a persona take longer than there is time.
    """
    yield Progress(Stage.CERTIFYING, "proving what needs no dice", 0.0)
    proofs = await workers.run(program.proofs, options.horizon)
    yield Progress(Stage.CERTIFYING, "testing the band", _SINCE / 2)
    gate = await verdict_of(program, _gate_options(options), workers, most_seconds)
    options = _settled(options, gate)
    watch = watched(program)
    counted: list[DryRunReport] = []
    reports: list[PersonaReport] = []
    playing = (gate.report.persona,) if gate.report.errors else options.personas
    for persona, since, until in _spans(playing):
        report: DryRunReport | None = None
        async with following(measure(program, persona, options, watch, workers, most_seconds)) as steps:
            async for report in steps:
                done = since + (until - since) * report.runs / most_runs(persona, options)
                yield Progress(Stage.CERTIFYING, rate_sentence(report), done)
        if report is None:
            raise InternalError("A persona was measured without any run")
        counted.append(report)
        reports.append(persona_report(program.spec, report))
        yield reports[-1]
    by_persona = {report.persona: report for report in counted}
    evidence = Evidence(
        program.spec, gate, counted, reports, _drifts(program, by_persona[gate.report.persona]), proofs
    )
    gap = await _planner_gap(program, options, by_persona.get("planner"), workers, most_seconds)
    yield _certificate(program, options, evidence, gap)


async def certificate_of(program: Program, options: CertificateOptions, workers: Worker) -> Certificate:
    """The certificate alone; see `certify`."""
    async with following(certify(program, options, workers)) as events:
        async for event in events:
            if isinstance(event, Certificate):
                return event
    raise InternalError("Certifying ended without a certificate")


def _gate_options(options: CertificateOptions) -> DryRunOptions:
    usual = DryRunOptions()
    return replace(
        usual, seed=options.seed, max_runs=min(usual.max_runs, options.max_runs), horizon=options.horizon
    )


def _settled(options: CertificateOptions, gate: Verdict) -> CertificateOptions:
    """The options with everything that was left open as it was taken."""
    playing = tuple(
        persona for persona in PERSONAS if persona in options.personas or persona == gate.report.persona
    )
    return replace(options, personas=playing, seed=gate.report.seed, horizon=gate.report.horizon)


def _spans(playing: Iterable[Persona]) -> Iterator[tuple[Persona, float, float]]:
    """Each persona with the fractions of the whole work between which it plays."""
    efforts = {persona: _EFFORT.get(persona, 1) for persona in playing}
    since = _SINCE
    for persona, effort in efforts.items():
        until = since + (1 - _SINCE) * effort / sum(efforts.values())
        yield persona, since, min(until, 1.0)
        since = until


def _drifts(program: Program, report: DryRunReport) -> tuple[Drift, ...]:
    return tuple(replace(drift, per_turn=rounded(drift.per_turn)) for drift in drifts(program, report))


async def _planner_gap(
    program: Program,
    options: CertificateOptions,
    planner: DryRunReport | None,
    workers: Worker,
    most_seconds: float,
) -> float | None:
    """What thinking is worth: how much less the planner loses, of the same runs, than the random persona."""
    if planner is None:
        return None
    how = DryRunOptions(seed=options.seed, horizon=options.horizon)
    chance = await Runner(program, how, workers, most_seconds).play(0, planner.runs)
    return rounded(chance.fail_rate - planner.fail_rate)


def _certificate(
    program: Program, options: CertificateOptions, evidence: Evidence, planner_gap: float | None
) -> Certificate:
    found = findings(evidence)
    budget = program.spec["negativity_budget"]
    return Certificate(
        spec_hash=program.spec_hash,
        engine_version=ENGINE_VERSION,
        rng_version=RNG_VERSION,
        options=options,
        band=Band(budget["min_fail_rate"], budget.get("max_fail_rate", 1.0)),
        verdict=CertificateVerdict.REFUSED if errors_among(found) else CertificateVerdict.CERTIFIED,
        findings=found,
        personas=tuple(evidence.reports),
        planner_gap=planner_gap,
        drifts=tuple(evidence.drifts),
        proofs=tuple(evidence.proofs),
        dead_actions=dead_actions(evidence.reports),
        dominant_actions=dominant_actions(evidence.reports),
    )
