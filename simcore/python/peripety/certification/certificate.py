"""Certificates: how they are computed and verified.

A certificate states how fair a scenario is. It is a pure function of the specification, the options and two
version numbers (engine semantics and random numbers). It contains no time, machine or backend, and its name
is the hash of its canonical document. So it needs no signature: anyone who doubts it can compute it again
and compare bytes, and a verdict cache needs no other key. This purity is the main invariant of the package,
and explains most of its rules.

Order of the work:

1. Proofs. Abstract interpretation of the rules, without any run.
2. The difficulty gate. It decides the band, on its own blocks of the same run numbers.
3. Runs of each persona, until the interval of its fail rate is narrow. All personas use the same run
   numbers, and therefore the same random numbers.
4. The planner gap: the fail rates of random and planner on exactly the same runs. With common random
   numbers most of the noise cancels out, and a scenario in which no action matters has a gap of exactly 0.

Design decisions:

- The gate decides the band, although the runs of the certificate are more. Otherwise a scenario could pass
  registration and fail certification at the same budget, or the other way round.
- The random persona always plays, because the band and the drift are defined by it.
- From version 1.1 on, curious plays too, and par where there are solutions. Certificates of version 1.0 are
  the same as before.
- If the gate finds a rule that raises errors, only the gate's persona plays. Other figures would describe a
  scenario that does not work.
- Runs are examined at fixed counts (256, doubled up to 9,604). Stopping after arbitrary pieces would save
  runs, but the result would depend on the machine. An exact sequential interval was rejected: it is wider,
  and hard to explain.
- Only proofs and tests with known error rates are errors. Absence in a sample is a warning.
- Figures have six decimals. C libraries disagree in the last digits of `pow` and `log`; rounding hides that
  without an exact decimal arithmetic.

The texts of the findings are part of the document. A changed text changes the hash, so `--check` would
report stored certificates as different.

Verification recomputes a certificate and compares the documents.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.certification.difficulty_gate import describe_rate, evaluate_to_verdict
from peripety.certification.drift import measure_drift, watched_paths
from peripety.certification.options import CertificateOptions, DryRunOptions, validate_certificate_options
from peripety.certification.simulation import MAX_SECONDS, SimulationRunner
from peripety.certification.statistics import (
    CertificateInputs,
    build_persona_report,
    find_dead_actions,
    find_dominant_actions,
    find_issues,
    max_runs_of,
    sample_persona,
)
from peripety.certification.types import (
    ENGINE_VERSION,
    Band,
    Certificate,
    CertificateVerdict,
    PersonaReport,
    decode,
    round_figure,
    to_json_fields,
)
from peripety.engine import PERSONAS, RNG_VERSION
from peripety.engine.executor import InlineExecutor
from peripety.engine.json_values import find_differences, format_part
from peripety.engine.schema_validation import format_pointer
from peripety.errors import (
    FailedPreconditionError,
    Finding,
    InternalError,
    InvalidArgumentError,
    filter_errors,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping

    from peripety.certification.difficulty_gate import GateVerdict
    from peripety.certification.drift import Drift
    from peripety.engine import DryRunReport, Persona, Program
    from peripety.engine.executor import Executor


_PROOFS_SHARE = 0.1
_EFFORT = {"planner": 5}


@dataclass(frozen=True, slots=True)
class CertificationProgress:
    """Progress of a certification.

    Attributes:
        message: one short sentence for display.
        fraction: the completed share of the work, 0 … 1; never decreases.
    """

    message: str
    fraction: float


async def certify(
    program: Program,
    options: CertificateOptions,
    workers: Executor,
    most_seconds: float = MAX_SECONDS,
) -> AsyncGenerator[CertificationProgress | PersonaReport | Certificate]:
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
    yield CertificationProgress("proving without simulation", 0.0)
    proofs = await workers.run(program.prove, options.horizon)
    yield CertificationProgress("testing the band", _PROOFS_SHARE / 2)
    gate = await evaluate_to_verdict(
        program,
        _gate_options(options),
        workers,
        most_seconds,
        explains=program.spec["spec_version"] != "1.0",
    )
    options = _fill_defaults(options, gate, program.spec)
    watch = watched_paths(program)
    counted: list[DryRunReport] = []
    reports: list[PersonaReport] = []
    playing = (gate.report.persona,) if gate.report.errors else options.personas
    for persona, since, until in _progress_spans(playing):
        report: DryRunReport | None = None
        async with aclosing(sample_persona(program, persona, options, watch, workers, most_seconds)) as steps:
            async for report in steps:
                done = since + (until - since) * report.runs / max_runs_of(persona, options)
                yield CertificationProgress(describe_rate(report), done)
        if report is None:
            raise InternalError("A persona was measured without any run")
        counted.append(report)
        reports.append(build_persona_report(program.spec, report))
        yield reports[-1]
    by_persona = {report.persona: report for report in counted}
    evidence = CertificateInputs(
        program.spec,
        gate,
        counted,
        reports,
        _rounded_drifts(program, by_persona[gate.report.persona]),
        proofs,
    )
    gap = await _planner_gap(program, options, by_persona.get("planner"), workers, most_seconds)
    yield _build_certificate(program, options, evidence, gap)


async def build_certificate(program: Program, options: CertificateOptions, workers: Executor) -> Certificate:
    """Return only the certificate of a scenario, without progress; see `certify`.

    Raises:
        ResourceExhaustedError: the runs of a persona exceed the time limit.
    """
    async with aclosing(certify(program, options, workers)) as events:
        async for event in events:
            if isinstance(event, Certificate):
                return event
    raise InternalError("Certifying ended without a certificate")


def certify_document(document: str | bytes, options: CertificateOptions | None = None) -> Certificate:
    """Certify a document in the calling thread, without an event loop.

    Args:
        document: the specification, as JSON.
        options: certificate options; the default ones if None.

    Raises:
        SpecError: the specification has errors.
        InvalidArgumentError: an option is out of range.
        ResourceExhaustedError: the runs of a persona exceed the time limit.
    """
    options = options or CertificateOptions()
    validate_certificate_options(options)
    return asyncio.run(build_certificate(engine.compile(document), options, InlineExecutor()))


def _gate_options(options: CertificateOptions) -> DryRunOptions:
    usual = DryRunOptions()
    return replace(
        usual,
        seed=options.seed,
        max_runs=min(usual.max_runs, options.max_runs),
        horizon=options.horizon,
    )


def _fill_defaults(
    options: CertificateOptions,
    gate: GateVerdict,
    spec: Mapping[str, Any],
) -> CertificateOptions:
    """Return the options with all defaults filled in, and with the players of the version."""
    wanted: set[Persona] = {*options.personas, gate.report.persona}
    if spec["spec_version"] != "1.0":
        wanted.add("curious")
    if "solutions" in spec:
        wanted.add("par")
    playing = tuple(persona for persona in PERSONAS if persona in wanted)
    return replace(options, personas=playing, seed=gate.report.seed, horizon=gate.report.horizon)


def _progress_spans(playing: Iterable[Persona]) -> Iterator[tuple[Persona, float, float]]:
    """Yield each persona with its start and end as fractions of the whole work."""
    efforts = {persona: _EFFORT.get(persona, 1) for persona in playing}
    since = _PROOFS_SHARE
    for persona, effort in efforts.items():
        until = since + (1 - _PROOFS_SHARE) * effort / sum(efforts.values())
        yield persona, since, min(until, 1.0)
        since = until


def _rounded_drifts(program: Program, report: DryRunReport) -> tuple[Drift, ...]:
    return tuple(
        replace(drift, per_turn=round_figure(drift.per_turn)) for drift in measure_drift(program, report)
    )


async def _planner_gap(
    program: Program,
    options: CertificateOptions,
    planner: DryRunReport | None,
    workers: Executor,
    most_seconds: float,
) -> float | None:
    """Return the fail rate of the random persona minus the planner's, on the same runs."""
    if planner is None:
        return None
    how = DryRunOptions(seed=options.seed, horizon=options.horizon)
    chance = await SimulationRunner(program, how, workers, most_seconds).run(0, planner.runs)
    return round_figure(chance.fail_rate - planner.fail_rate)


def _build_certificate(
    program: Program,
    options: CertificateOptions,
    evidence: CertificateInputs,
    planner_gap: float | None,
) -> Certificate:
    found = find_issues(evidence)
    budget = program.spec["negativity_budget"]
    return Certificate(
        spec_hash=program.spec_hash,
        engine_version=ENGINE_VERSION,
        rng_version=RNG_VERSION,
        options=options,
        band=Band(budget["min_fail_rate"], budget.get("max_fail_rate", 1.0)),
        verdict=CertificateVerdict.REFUSED if filter_errors(found) else CertificateVerdict.CERTIFIED,
        findings=found,
        personas=tuple(evidence.reports),
        planner_gap=planner_gap,
        drifts=tuple(evidence.drifts),
        proofs=tuple(evidence.proofs),
        dead_actions=find_dead_actions(evidence.reports),
        dominant_actions=find_dominant_actions(evidence.reports),
    )


@dataclass(frozen=True, slots=True)
class CertificateComparison:
    """Result of a verification.

    Attributes:
        findings: the differences, with JSON Pointers into the certificate; empty for a match.
    """

    findings: tuple[Finding, ...]

    @property
    def matches(self) -> bool:
        """Return True if the recomputed document is the same."""
        return not self.findings


async def verify_certificate(
    document: bytes,
    spec: bytes,
    workers: Executor,
    most_seconds: float = MAX_SECONDS,
) -> AsyncGenerator[CertificationProgress | CertificateComparison]:
    """Recompute a certificate under its own options, and compare.

    Args:
        document: the certificate.
        spec: the certified specification, as JSON.
        workers: pool for proofs and simulation.
        most_seconds: time limit of each persona.

    Yields:
        Progress, and the comparison as the last item.

    Raises:
        InvalidArgumentError: the document is not a certificate, or is of another specification.
        SpecError: the specification has errors.
        FailedPreconditionError: it was made by another version of the engine.
        ResourceExhaustedError: the runs of a persona exceed the time limit.
    """
    given = decode(document)
    validate_certificate_options(given.options)
    _require_same_versions(given)
    program = await workers.run(engine.compile, spec)
    _require_same_spec(given, program)
    async with aclosing(certify(program, given.options, workers, most_seconds)) as events:
        async for event in events:
            if isinstance(event, CertificationProgress):
                yield event
            elif isinstance(event, Certificate):
                yield CertificateComparison(
                    tuple(_difference_findings(to_json_fields(given), to_json_fields(event))),
                )


def _require_same_versions(given: Certificate) -> None:
    ours = (ENGINE_VERSION, RNG_VERSION)
    theirs = (given.engine_version, given.rng_version)
    if theirs != ours:
        raise FailedPreconditionError(
            f"The certificate was made by version {theirs[0]} of the engine with random numbers {theirs[1]},"
            f" and this is version {ours[0]} with {ours[1]}: check it with a program of that version, or"
            " certify anew",
            code="OTHER_ENGINE",
        )


def _require_same_spec(given: Certificate, program: Program) -> None:
    if given.spec_hash != program.spec_hash:
        raise InvalidArgumentError(
            f"The certificate is about the specification {given.spec_hash}, and this one is"
            f" {program.spec_hash}: give the one that it is about, or certify this one",
            code="OTHER_SPEC",
        )


def _difference_findings(given: Any, computed: Any) -> Iterator[Finding]:
    for place, one, other in find_differences(given, computed):
        message = f"the certificate has {format_part(one)}, but the computed value is {format_part(other)}"
        yield Finding("CERTIFICATE_DIFFERS", format_pointer(place), message)
