"""Tables of a certificate; a table with the data of a plot has the name of the plot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.scenarios.drawing.markup import percent, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from peripety.scenarios.certificates.model import Certificate, PersonaReport, Rate
    from peripety.scenarios.drawing.markup import Element

__all__ = ["tables"]


def tables(certificate: Certificate) -> dict[str, Element]:
    """Return all tables, by the name of the plot with the same data, or by subject."""
    reports = certificate.personas
    names = [report.persona for report in reports]
    made = {
        "fail-rates": table(
            "Shares of runs, with their 95 % intervals",
            ("persona", "runs", "lost", "won", "survived", "errored", "turns a run"),
            map(_fared, reports),
        ),
        "survival": table("Runs not lost after each turn", ("turn", *names), _survivors(certificate)),
        "loss-causes": _counted("Runs that each condition ended", "condition", reports, _endings),
        "loss-turns": table("Runs lost in each turn", ("turn", *names), _losses(reports)),
        "actions": _counted(
            "Turns in which each action was chosen, of those in which it was legal",
            "action",
            reports,
            _actions,
        ),
        "events": _counted("Times each event was drawn", "event", reports, _events),
    }
    if certificate.drifts:
        rows = [(drift.path, f"{drift.per_turn:.4f}", f"{drift.limit:g}") for drift in certificate.drifts]
        caption = "Drift: the mean change in a turn away from losing, in parts of the first distance from it"
        made["drifts"] = table(caption, ("quantity", "drift", "limit"), rows)
    return made


def _fared(report: PersonaReport) -> tuple[str, ...]:
    return (
        report.persona,
        f"{report.runs:,}",
        *map(_rate, (report.lost, report.won, report.survived)),
        f"{report.errored:,}",
        f"{report.turns / report.runs:.1f}",
    )


def _rate(rate: Rate) -> str:
    return f"{percent(rate.value)} ({percent(rate.low)} to {percent(rate.high)})"


def _survivors(certificate: Certificate) -> Iterable[tuple[str, ...]]:
    """Yield the share of runs without a loss, after each turn with a loss."""
    lost = [_by_turn(report) for report in certificate.personas]
    left = [report.runs for report in certificate.personas]
    for turn in sorted(set().union(*lost)):
        left = [runs - losses.get(turn, 0) for runs, losses in zip(left, lost, strict=True)]
        shares = (runs / report.runs for runs, report in zip(left, certificate.personas, strict=True))
        yield str(turn), *map(percent, shares)


def _losses(reports: Sequence[PersonaReport]) -> Iterable[tuple[str, ...]]:
    lost = [_by_turn(report) for report in reports]
    for turn in sorted(set().union(*lost)):
        yield str(turn), *(str(losses.get(turn, 0)) for losses in lost)


def _by_turn(report: PersonaReport) -> dict[int, int]:
    return {lost.turn: lost.count for lost in report.loss_turns}


def _counted(
    caption: str,
    what: str,
    reports: Sequence[PersonaReport],
    of: Callable[[PersonaReport], list[tuple[str, str]]],
) -> Element:
    """Return a table with a row for each counted part and a column for each persona."""
    rows = ((cells[0][0], *(count for _, count in cells)) for cells in zip(*map(of, reports), strict=True))
    return table(caption, (what, *(report.persona for report in reports)), rows)


def _endings(report: PersonaReport) -> list[tuple[str, str]]:
    return [(ended.id, f"{ended.count:,}") for ended in (*report.losses, *report.wins)]


def _actions(report: PersonaReport) -> list[tuple[str, str]]:
    return [(action.id, f"{action.taken:,} of {action.legal:,}") for action in report.actions]


def _events(report: PersonaReport) -> list[tuple[str, str]]:
    return [(event.id, f"{event.count:,}") for event in report.events]
