"""Statistics of a certificate: sampled runs of a persona, figures from counts, and findings.

The runs are examined only at fixed counts, so the stopping point depends on the runs alone, not on pieces,
threads or processes. An interval at an early stop is slightly too narrow. The number of looks is small, and
the last one has enough runs for any rate.

Errors are certain, or decided by a test with known error rates: the band, the drift, rules that raise
errors, and proofs. An absence in a sample is a warning, because more runs could contradict it.
"""

from __future__ import annotations

from collections import Counter
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.certification.difficulty_gate import rule_finding
from peripety.certification.drift import find_excessive_drift
from peripety.certification.options import MAX_RUNS, DryRunOptions
from peripety.certification.rate_interval import rate_interval
from peripety.certification.simulation import MAX_SECONDS, SimulationRunner
from peripety.certification.types import ActionCount, NamedCount, PersonaReport, Rate, TurnCount
from peripety.errors import Finding, InternalError, ResourceExhaustedError, Severity

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence

    from peripety.certification.difficulty_gate import GateVerdict
    from peripety.certification.drift import Drift
    from peripety.certification.options import CertificateOptions
    from peripety.engine import DryRunReport, Persona, Program, Proof
    from peripety.engine.executor import Executor


_ENOUGH_TURNS = 200
_ALMOST_ALWAYS = 0.9


def build_persona_report(spec: Mapping[str, Any], counted: DryRunReport) -> PersonaReport:
    """Return the report of a persona, from detailed runs."""
    detail = counted.detail
    if detail is None:
        raise InternalError("Runs were counted without their detail")
    return PersonaReport(
        persona=counted.persona,
        turns=counted.turns,
        lost=Rate.from_count(counted.lost, counted.runs),
        won=Rate.from_count(counted.won, counted.runs),
        survived=Rate.from_count(counted.survived, counted.runs),
        errored=counted.errored,
        losses=_to_named_counts(spec["loss_conditions"], counted.losses),
        wins=_to_named_counts(spec.get("win_conditions", ()), counted.wins),
        loss_turns=tuple(TurnCount(turn, count) for turn, count in detail.lost_turns.items() if count),
        actions=tuple(
            ActionCount(name, detail.actions[name].legal, detail.actions[name].taken)
            for name in _list_ids(spec["actions"])
        ),
        events=_to_named_counts(spec["random_events"], detail.events),
    )


def find_dead_actions(reports: Sequence[PersonaReport]) -> tuple[str, ...]:
    """Return the actions that were never legal for any persona."""
    legal: dict[str, int] = {}
    for report in reports:
        for action in report.actions:
            legal[action.id] = legal.get(action.id, 0) + action.legal
    return tuple(name for name, turns in legal.items() if not turns)


def find_dominant_actions(reports: Sequence[PersonaReport]) -> tuple[str, ...]:
    """Return the actions that the planner takes almost whenever they are legal, if that was often enough.

    The planner weighs an action against all others and against doing nothing, which is always legal. Of equal
    candidates it does nothing, so an action without any effect is never dominant.
    """
    planner = find_report("planner", reports)
    return tuple(
        action.id
        for action in (planner.actions if planner else ())
        if action.legal >= _ENOUGH_TURNS and action.taken >= _ALMOST_ALWAYS * action.legal
    )


def find_report(persona: Persona, reports: Sequence[PersonaReport]) -> PersonaReport | None:
    """Return the report of one persona, if it played."""
    return next((report for report in reports if report.persona == persona), None)


def _to_named_counts(parts: Sequence[Mapping[str, Any]], counts: Mapping[str, int]) -> tuple[NamedCount, ...]:
    return tuple(NamedCount(name, counts[name]) for name in _list_ids(parts))


def _list_ids(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    return [part["id"] for part in parts]


_DIFFERING_PERSONAS: tuple[Persona, ...] = ("idle", "random", "greedy", "planner", "saboteur")
"""The personas whose results would differ if actions had any effect."""
_READING_PERSONAS: tuple[Persona, ...] = ("curious", "par")


@dataclass(frozen=True, slots=True)
class CertificateInputs:
    """Input of the findings.

    Attributes:
        spec: the specification.
        gate: the verdict of the difficulty gate.
        persona_runs: the runs of each persona.
        reports: the figures of these runs.
        drifts: the drift of each quantity.
        proofs: the proofs.
    """

    spec: Mapping[str, Any]
    gate: GateVerdict
    persona_runs: Sequence[DryRunReport]
    reports: Sequence[PersonaReport]
    drifts: Sequence[Drift]
    proofs: Sequence[Proof]


def find_issues(evidence: CertificateInputs) -> tuple[Finding, ...]:
    """Return all findings, errors first."""
    proved = proofs_to_findings(evidence.proofs)
    known = {finding.path for finding in proved}
    found = [
        *proved,
        # The gate may have more runs than its persona here.
        *_rule_failures((*evidence.persona_runs, evidence.gate.report)),
        *(evidence.gate.findings if evidence.gate.miss else evidence.gate.players),
        *find_excessive_drift(evidence.drifts),
        *_lost_at_once(evidence.persona_runs),
        *_never_won(evidence),
        # A proof makes the count redundant.
        *(finding for finding in _never_active_warnings(evidence) if finding.path not in known),
        *_dominant_action_warnings(evidence),
        *_irrelevant_choice_warning(evidence),
    ]
    return tuple(sorted(found, key=lambda finding: finding.severity is not Severity.ERROR))


def _rule_failures(counted: Iterable[DryRunReport]) -> Iterator[Finding]:
    """Yield each rule error once, as first found."""
    told = set()
    for report in counted:
        for error in report.errors:
            if (error.code, error.rule) not in told:
                told.add((error.code, error.rule))
                yield rule_finding(error, report)


def _lost_at_once(counted: Sequence[DryRunReport]) -> Iterator[Finding]:
    if all(report.lost == report.runs == report.turns and report.horizon > 1 for report in counted):
        message = "every run of every persona is lost in its first turn, so there is nothing to play"
        yield Finding("LOST_AT_ONCE", "/loss_conditions", message, Severity.WARNING)


def _never_won(evidence: CertificateInputs) -> Iterator[Finding]:
    if not evidence.spec.get("win_conditions") or any(report.won.count for report in evidence.reports):
        return
    is_proved = any(
        proof.code == "UNREACHABLE_WIN" and proof.severity is Severity.ERROR for proof in evidence.proofs
    )
    message = f"nobody won any of {_count_runs(evidence)} runs: bring a win within reach, or leave wins out"
    severity = Severity.ERROR if is_proved else Severity.WARNING
    yield Finding("NEVER_WON", "/win_conditions", message, severity)


def _never_active_warnings(evidence: CertificateInputs) -> Iterator[Finding]:
    runs = _count_runs(evidence)
    losses = _sum_counts(report.losses for report in evidence.reports)
    events = _sum_counts(report.events for report in evidence.reports)
    for place, loss in enumerate(evidence.spec["loss_conditions"]):
        if not losses[loss["id"]]:
            message = f"no run of {runs} ended by '{loss['id']}': bring it closer, or leave it out"
            yield _warning_finding("LOSS_NEVER_MET", f"/loss_conditions/{place}", message)
    dead = find_dead_actions(evidence.reports)
    for place, action in enumerate(evidence.spec["actions"]):
        if action["id"] in dead:
            message = (
                f"in no turn of {runs} runs was '{action['id']}' among the choices: loosen its preconditions"
            )
            yield _warning_finding("ACTION_NEVER_LEGAL", f"/actions/{place}", message)
    for place, event in enumerate(evidence.spec["random_events"]):
        if not events[event["id"]]:
            message = (
                f"in no turn of {runs} runs was '{event['id']}' drawn: loosen its 'when', or leave it out"
            )
            yield _warning_finding("EVENT_NEVER_DRAWN", f"/random_events/{place}", message)


def _dominant_action_warnings(evidence: CertificateInputs) -> Iterator[Finding]:
    dominant = set(find_dominant_actions(evidence.reports))
    planner = find_report("planner", evidence.reports)
    if planner is not None and evidence.spec["spec_version"] != "1.0":
        # The action that wins ends the run: of course the planner prefers it.
        dominant -= {action.id for action in planner.actions if action.taken <= planner.won.count}
    for place, action in enumerate(evidence.spec["actions"]):
        if action["id"] in dominant:
            message = (
                f"the planner takes '{action['id']}' almost whenever it may, so there is little to decide:"
                " make it cost something, or other actions worth more"
            )
            yield _warning_finding("DOMINANT_ACTION", f"/actions/{place}", message)


def _irrelevant_choice_warning(evidence: CertificateInputs) -> Iterator[Finding]:
    players = [report for name in _DIFFERING_PERSONAS if (report := find_report(name, evidence.reports))]
    if not evidence.spec["actions"] or len(players) < len(_DIFFERING_PERSONAS):
        return
    # Players that follow a solution or try everything may show what the others do not find.
    players += [report for name in _READING_PERSONAS if (report := find_report(name, evidence.reports))]
    if _intervals_overlap([report.lost for report in players]) and _intervals_overlap(
        [report.won for report in players],
    ):
        message = (
            "whoever plays, and however, loses and wins as often as who does nothing: let actions bear on"
            " what ends a run"
        )
        yield _warning_finding("CHOICES_DO_NOT_MATTER", "/actions", message)


def _intervals_overlap(rates: Sequence[Rate]) -> bool:
    """Return True if one rate is inside all the intervals."""
    return max(rate.low for rate in rates) <= min(rate.high for rate in rates)


def _sum_counts(counts: Iterable[Iterable[NamedCount]]) -> Counter[str]:
    """Sum the counts of all personas."""
    total: Counter[str] = Counter()
    for persona in counts:
        for counted in persona:
            total[counted.id] += counted.count
    return total


def _count_runs(evidence: CertificateInputs) -> int:
    return sum(report.runs for report in evidence.reports)


def _warning_finding(code: str, path: str, message: str) -> Finding:
    return Finding(code, path, message, Severity.WARNING)


_FIRST_LOOK = 256


@dataclass(frozen=True, slots=True)
class _Precision:
    """Required precision of a fail rate.

    Attributes:
        half_width: the maximum half width of its interval.
        runs: the number of runs that is enough for any rate.
    """

    half_width: float
    runs: int


_DEFAULT_PRECISION = _Precision(0.01, MAX_RUNS)
_PRECISION_BY_PERSONA = dict.fromkeys(("planner", "curious", "par"), _Precision(0.04, 600))
"""The precision of personas whose runs are slow."""


async def sample_persona(
    program: Program,
    persona: Persona,
    options: CertificateOptions,
    watch: Mapping[str, float],
    workers: Executor,
    most_seconds: float = MAX_SECONDS,
) -> AsyncGenerator[DryRunReport]:
    """Simulate one persona until its fail rate is known precisely enough.

    Args:
        program: the scenario.
        persona: the persona; all personas use the same run numbers, and therefore the same random numbers.
        options: the seed, the horizon and the maximum number of runs.
        watch: paths of numbers to follow, with their scales.
        workers: worker pool.
        most_seconds: time limit of the runs.

    Yields:
        The detailed report so far, after each piece; the last one is complete.

    Raises:
        ResourceExhaustedError: the runs exceed the time limit.
    """
    how = DryRunOptions(persona, options.seed, max_runs_of(persona, options), options.horizon)
    runner = SimulationRunner(program, how, workers, most_seconds)
    report: DryRunReport | None = None
    for look in _look_points(how.max_runs):
        played = 0 if report is None else report.runs
        before = report
        async with aclosing(
            _with_persona_in_errors(runner.stream(played, look - played, watch), persona),
        ) as pieces:
            async for piece in pieces:
                report = piece if before is None else before.merge(piece)
                yield report
        if report is not None and _is_precise_enough(report):
            return


async def _with_persona_in_errors(
    pieces: AsyncGenerator[DryRunReport],
    persona: Persona,
) -> AsyncGenerator[DryRunReport]:
    """Yield the pieces; add the persona to the error for exceeded time."""
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece
    except ResourceExhaustedError as error:
        raise ResourceExhaustedError(
            f"The runs of the {persona} persona exceed the time limit: omit it, or allow more"
            " time, fewer runs or a shorter horizon",
            code=error.code,
        ) from None


def max_runs_of(persona: Persona, options: CertificateOptions) -> int:
    """Return the maximum number of runs of a persona."""
    return min(_precision_of(persona).runs, options.max_runs)


def _look_points(most: int) -> Iterator[int]:
    """Yield the numbers of runs after which the interval is examined."""
    look = _FIRST_LOOK
    while look < most:
        yield look
        look *= 2
    yield most


def _is_precise_enough(report: DryRunReport) -> bool:
    low, high = rate_interval(report.lost, report.runs)
    return (high - low) / 2 <= _precision_of(report.persona).half_width


def _precision_of(persona: Persona) -> _Precision:
    return _PRECISION_BY_PERSONA.get(persona, _DEFAULT_PRECISION)


def proofs_to_findings(proofs: Iterable[Proof]) -> tuple[Finding, ...]:
    """Convert proofs to findings, with their explanations as messages."""
    return tuple(Finding(proof.code, proof.path, proof.argument, proof.severity) for proof in proofs)
