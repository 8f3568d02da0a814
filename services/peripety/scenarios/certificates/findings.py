"""Findings of a certificate, derived from its figures.

Errors are certain, or decided by a test with known error rates: the band, the drift, rules that raise errors,
and proofs. An absence in a sample is a warning, because more runs could contradict it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.errors import Finding, Severity
from peripety.scenarios.certificates.figures import dead_actions, dominant_actions, report_of
from peripety.scenarios.drift import drift_findings
from peripety.scenarios.gate import rule_finding
from peripety.scenarios.proving import findings_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.scenarios.certificates.model import NamedCount, PersonaReport, Rate
    from peripety.scenarios.drift import Drift
    from peripety.scenarios.gate import Verdict
    from peripety.sim import DryRunReport, Persona, Proof

__all__ = ["Evidence", "findings"]

_PLAYERS: tuple[Persona, ...] = ("idle", "random", "greedy", "planner", "saboteur")
"""The personas whose results would differ if actions had any effect."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Input of the findings.

    Attributes:
        spec: the specification.
        gate: the verdict of the difficulty gate.
        counted: the runs of each persona.
        reports: the figures of these runs.
        drifts: the drift of each quantity.
        proofs: the proofs.
    """

    spec: Mapping[str, Any]
    gate: Verdict
    counted: Sequence[DryRunReport]
    reports: Sequence[PersonaReport]
    drifts: Sequence[Drift]
    proofs: Sequence[Proof]


def findings(evidence: Evidence) -> tuple[Finding, ...]:
    """Return all findings, errors first."""
    proved = findings_of(evidence.proofs)
    known = {finding.path for finding in proved}
    found = [
        *proved,
        # The gate may have more runs than its persona here.
        *_failures((*evidence.counted, evidence.gate.report)),
        *(evidence.gate.findings if evidence.gate.miss else ()),
        *drift_findings(evidence.drifts),
        *_lost_at_once(evidence.counted),
        *_never_won(evidence),
        # A proof makes the count redundant.
        *(finding for finding in _never_seen(evidence) if finding.path not in known),
        *_dominant(evidence),
        *_indifferent(evidence),
    ]
    return tuple(sorted(found, key=lambda finding: finding.severity is not Severity.ERROR))


def _failures(counted: Iterable[DryRunReport]) -> Iterator[Finding]:
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


def _never_won(evidence: Evidence) -> Iterator[Finding]:
    if not evidence.spec.get("win_conditions") or any(report.won.count for report in evidence.reports):
        return
    is_proved = any(
        proof.code == "UNREACHABLE_WIN" and proof.severity is Severity.ERROR for proof in evidence.proofs
    )
    message = f"nobody won any of {_runs(evidence)} runs: bring a win within reach, or leave wins out"
    severity = Severity.ERROR if is_proved else Severity.WARNING
    yield Finding("NEVER_WON", "/win_conditions", message, severity)


def _never_seen(evidence: Evidence) -> Iterator[Finding]:
    runs = _runs(evidence)
    losses = _total(report.losses for report in evidence.reports)
    events = _total(report.events for report in evidence.reports)
    for place, loss in enumerate(evidence.spec["loss_conditions"]):
        if not losses[loss["id"]]:
            message = f"no run of {runs} ended by '{loss['id']}': bring it closer, or leave it out"
            yield _warning("LOSS_NEVER_MET", f"/loss_conditions/{place}", message)
    dead = dead_actions(evidence.reports)
    for place, action in enumerate(evidence.spec["actions"]):
        if action["id"] in dead:
            message = (
                f"in no turn of {runs} runs was '{action['id']}' among the choices: loosen its preconditions"
            )
            yield _warning("ACTION_NEVER_LEGAL", f"/actions/{place}", message)
    for place, event in enumerate(evidence.spec["random_events"]):
        if not events[event["id"]]:
            message = (
                f"in no turn of {runs} runs was '{event['id']}' drawn: loosen its 'when', or leave it out"
            )
            yield _warning("EVENT_NEVER_DRAWN", f"/random_events/{place}", message)


def _dominant(evidence: Evidence) -> Iterator[Finding]:
    dominant = dominant_actions(evidence.reports)
    for place, action in enumerate(evidence.spec["actions"]):
        if action["id"] in dominant:
            message = (
                f"the planner takes '{action['id']}' almost whenever it may, so there is little to decide:"
                " make it cost something, or other actions worth more"
            )
            yield _warning("DOMINANT_ACTION", f"/actions/{place}", message)


def _indifferent(evidence: Evidence) -> Iterator[Finding]:
    players = [report for name in _PLAYERS if (report := report_of(name, evidence.reports))]
    if not evidence.spec["actions"] or len(players) < len(_PLAYERS):
        return
    if _overlap([report.lost for report in players]) and _overlap([report.won for report in players]):
        message = (
            "whoever plays, and however, loses and wins as often as who does nothing: let actions bear on"
            " what ends a run"
        )
        yield _warning("CHOICES_DO_NOT_MATTER", "/actions", message)


def _overlap(rates: Sequence[Rate]) -> bool:
    """Return True if one rate is inside all the intervals."""
    return max(rate.low for rate in rates) <= min(rate.high for rate in rates)


def _total(counts: Iterable[Iterable[NamedCount]]) -> Counter[str]:
    """Sum the counts of all personas."""
    total: Counter[str] = Counter()
    for persona in counts:
        for counted in persona:
            total[counted.id] += counted.count
    return total


def _runs(evidence: Evidence) -> int:
    return sum(report.runs for report in evidence.reports)


def _warning(code: str, path: str, message: str) -> Finding:
    return Finding(code, path, message, Severity.WARNING)
