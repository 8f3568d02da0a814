"""Certificate of a scenario: proofs, the difficulty gate, and runs of every persona.

A certificate states how fair a scenario is. It is a pure function of the specification, the options and two
version
numbers (engine semantics and random numbers). It contains no time, machine or backend, and its name is the
hash of
its canonical document. So it needs no signature: anyone who doubts it can compute it again and compare bytes,
and a
verdict cache needs no other key. This purity is the main invariant of the package, and explains most of its
rules.

Order of the work:

1. Proofs. Abstract interpretation of the rules, without any run.
2. The difficulty gate. It decides the band, on its own blocks of the same run numbers.
3. Runs of each persona, until the interval of its fail rate is narrow. All personas use the
same run
   numbers, and therefore the same random numbers.
4. The planner gap: the fail rates of random and planner on exactly the same runs. With common random numbers
most of
   the noise cancels out, and a scenario in which no action matters has a gap of exactly 0.

Design decisions:

- The gate decides the band, although the runs of the certificate are more. Otherwise a scenario could pass
  registration and fail certification at the same budget, or the other way round.
- The random persona always plays, because the band and the drift are defined by it.
- If the gate finds a rule that raises errors, only the gate's persona plays. Other figures would describe a
  scenario
  that does not work.
- Runs are examined at fixed counts (256, doubled up to 9,604). Stopping after arbitrary pieces would save
  runs, but
  the result would depend on the machine. An exact sequential interval was rejected: it is wider, and hard to
  explain.
- Only proofs and tests with known error rates are errors. Absence in a sample is a warning.
- Figures have six decimals. C libraries disagree in the last digits of `pow` and `log`; rounding hides that
  without
  an exact decimal arithmetic.

The texts of the findings are part of the document. A changed text changes the hash, so `--check` would report
stored
certificates as different.
"""

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
    """Measure the fairness of a scenario.

    The result depends only on the scenario and the options. If the gate finds a rule that raises errors, no
    other persona plays.

    Args:
        program: the scenario.
        options: certificate options.
        workers: pool for proofs and simulation.
        most_seconds: time limit of the gate, and of each persona.

    Yields:
        Progress, the report of each persona as soon as it is complete, and the certificate as the last item.

    Raises:
        ResourceExhaustedError: the runs of a persona exceed the time limit.
    """
    yield Progress(Stage.CERTIFYING, "proving without simulation", 0.0)
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
    """Return only the certificate, without progress."""
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
    """Return the options with all defaults filled in."""
    playing = tuple(
        persona for persona in PERSONAS if persona in options.personas or persona == gate.report.persona
    )
    return replace(options, personas=playing, seed=gate.report.seed, horizon=gate.report.horizon)


def _spans(playing: Iterable[Persona]) -> Iterator[tuple[Persona, float, float]]:
    """Yield each persona with its start and end as fractions of the whole work."""
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
    """Return the fail rate of the random persona minus the planner's, on the same runs."""
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
