"""HTML report of a certificate: verdict, plots with their figures, tables, and the command to verify it.

The page has no scripts and needs no network. A table with the data of a plot has the name of the plot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.certification.types import certificate_hash, encode
from peripety.scenario.certificate.plots import draw_plots
from peripety.scenario.rendering.markup import (
    build_element,
    build_table,
    format_percent,
    load_style,
    render_html,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from xml.etree.ElementTree import Element

    from peripety.certification.types import Certificate, PersonaReport, Rate


def build_tables(certificate: Certificate) -> dict[str, Element]:
    """Return all tables, by the name of the plot with the same data, or by subject."""
    reports = certificate.personas
    names = [report.persona for report in reports]
    made = {
        "fail-rates": build_table(
            "Shares of runs, with their 95% intervals",
            ("persona", "runs", "lost", "won", "survived", "errored", "turns a run"),
            map(_outcome_row, reports),
        ),
        "survival": build_table(
            "Runs not lost after each turn",
            ("turn", *names),
            _survival_rows(certificate),
        ),
        "loss-causes": _count_table("Runs that each condition ended", "condition", reports, _ending_rows),
        "loss-turns": build_table("Runs lost in each turn", ("turn", *names), _loss_rows(reports)),
        "actions": _count_table(
            "Turns in which each action was chosen, of those in which it was legal",
            "action",
            reports,
            _action_rows,
        ),
        "events": _count_table("Times each event was drawn", "event", reports, _event_rows),
    }
    if certificate.drifts:
        rows = [(drift.path, f"{drift.per_turn:.4f}", f"{drift.limit:g}") for drift in certificate.drifts]
        caption = "Drift: the mean change in a turn away from losing, in parts of the first distance from it"
        made["drifts"] = build_table(caption, ("quantity", "drift", "limit"), rows)
    return made


def _outcome_row(report: PersonaReport) -> tuple[str, ...]:
    return (
        report.persona,
        f"{report.runs:,}",
        *map(_format_rate, (report.lost, report.won, report.survived)),
        f"{report.errored:,}",
        f"{report.turns / report.runs:.1f}",
    )


def _format_rate(rate: Rate) -> str:
    return f"{format_percent(rate.value)} ({format_percent(rate.low)} to {format_percent(rate.high)})"


def _survival_rows(certificate: Certificate) -> Iterable[tuple[str, ...]]:
    """Yield the share of runs without a loss, after each turn with a loss."""
    lost = [_losses_by_turn(report) for report in certificate.personas]
    left = [report.runs for report in certificate.personas]
    for turn in sorted(set().union(*lost)):
        left = [runs - losses.get(turn, 0) for runs, losses in zip(left, lost, strict=True)]
        shares = (runs / report.runs for runs, report in zip(left, certificate.personas, strict=True))
        yield str(turn), *map(format_percent, shares)


def _loss_rows(reports: Sequence[PersonaReport]) -> Iterable[tuple[str, ...]]:
    lost = [_losses_by_turn(report) for report in reports]
    for turn in sorted(set().union(*lost)):
        yield str(turn), *(str(losses.get(turn, 0)) for losses in lost)


def _losses_by_turn(report: PersonaReport) -> dict[int, int]:
    return {lost.turn: lost.count for lost in report.loss_turns}


def _count_table(
    caption: str,
    what: str,
    reports: Sequence[PersonaReport],
    of: Callable[[PersonaReport], list[tuple[str, str]]],
) -> Element:
    """Return a table with a row for each counted part and a column for each persona."""
    rows = ((cells[0][0], *(count for _, count in cells)) for cells in zip(*map(of, reports), strict=True))
    return build_table(caption, (what, *(report.persona for report in reports)), rows)


def _ending_rows(report: PersonaReport) -> list[tuple[str, str]]:
    return [(ended.id, f"{ended.count:,}") for ended in (*report.losses, *report.wins)]


def _action_rows(report: PersonaReport) -> list[tuple[str, str]]:
    return [(action.id, f"{action.taken:,} of {action.legal:,}") for action in report.actions]


def _event_rows(report: PersonaReport) -> list[tuple[str, str]]:
    return [(event.id, f"{event.count:,}") for event in report.events]


def render_page(certificate: Certificate, spec: Mapping[str, Any]) -> bytes:
    """Render the report in UTF-8; equal certificates result in equal bytes.

    Args:
        certificate: the certificate.
        spec: the certified specification, for its name.
    """
    name = str(spec["name"])
    return render_html(
        build_element(
            "html",
            build_element(
                "head",
                build_element("meta", charset="utf-8"),
                build_element("meta", name="viewport", content="width=device-width, initial-scale=1"),
                build_element("title", f"{name}: {certificate.verdict.value}"),
                build_element("style", load_style("page"), load_style("plots")),
            ),
            build_element("body", build_element("main", *_render_sections(certificate, name))),
            lang="en",
        ),
    )


def _render_sections(certificate: Certificate, name: str) -> Iterator[Element]:
    yield build_element("h1", build_element("bdi", name))
    yield build_element("p", *_render_verdict(certificate))
    yield from _render_findings(certificate)
    figures = build_tables(certificate)
    for plot, svg in draw_plots(certificate).items():
        yield build_element(
            "figure",
            build_element("figcaption", svg.findtext("title", "")),
            svg,
            build_element("details", build_element("summary", "The figures"), _wrap_wide(figures.pop(plot))),
        )
    yield build_element("h2", "What was done, and what happened")
    yield from map(_wrap_wide, figures.values())
    yield from _render_proofs(certificate)
    yield from _render_identity(certificate)


def _render_verdict(certificate: Certificate) -> Iterator[Element | str]:
    verdict, band = certificate.verdict.value, certificate.band
    yield build_element("strong", f"{verdict.capitalize()}.", class_=verdict)
    yield (
        f" The specification wants the random persona to lose {format_percent(band.min_fail_rate)} to"
        f" {format_percent(band.max_fail_rate)} of its runs."
    )
    if certificate.planner_gap is not None:
        points = f"{100 * abs(certificate.planner_gap):.1f}"
        less = "more" if certificate.planner_gap < 0 else "less"
        yield f" The planner loses {points} points {less} of them than the random persona."


def _render_findings(certificate: Certificate) -> Iterator[Element]:
    if not certificate.findings:
        return
    yield build_element("h2", "Findings")
    yield build_element(
        "ul",
        *(
            build_element(
                "li",
                build_element("strong", f"{found.severity.value} {found.code}", class_=found.severity.value),
                " ",
                build_element("code", found.path or "/"),
                ": ",
                build_element("bdi", found.message),
                *([build_element("div", f"Fix: {found.remedy}")] if found.remedy else []),
            )
            for found in certificate.findings
        ),
    )


def _render_proofs(certificate: Certificate) -> Iterator[Element]:
    if not certificate.proofs:
        return
    yield build_element("h2", "Proofs")
    for proof in certificate.proofs:
        claim, place = build_element("strong", proof.code), build_element("code", proof.path)
        yield build_element("p", claim, " ", place, ": ", build_element("bdi", proof.argument))
        if proof.witness:
            calls = (
                build_element("li", build_element("bdi", call.action_id or "nothing"))
                for call in proof.witness
            )
            yield build_element(
                "details",
                build_element("summary", "A run that proves it"),
                build_element("ol", *calls),
            )


def _render_identity(certificate: Certificate) -> Iterator[Element]:
    options = certificate.options
    yield build_element("h2", "Identity of the certificate")
    yield _wrap_wide(
        build_table(
            "These inputs result in the same figures",
            ("what", "value"),
            [
                ("certificate", certificate_hash(encode(certificate))),
                ("specification", certificate.spec_hash),
                (
                    "engine",
                    f"semantics {certificate.engine_version}, random numbers {certificate.rng_version}",
                ),
                ("seed", str(options.seed)),
                ("most runs of a persona", str(options.max_runs)),
                ("most turns of a run", str(options.horizon)),
            ],
        ),
    )
    command = build_element("code", "peripety certify --check CERTIFICATE SPECIFICATION")
    yield build_element("p", "To compute it again: ", command)


def _wrap_wide(figures: Element) -> Element:
    """Return a table in a container that scrolls horizontally, also with the keyboard."""
    name = figures.findtext("caption", "")
    return build_element("div", figures, class_="wide", tabindex="0", role="region", aria_label=name)
