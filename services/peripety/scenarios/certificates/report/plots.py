"""SVG plots of a certificate."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from peripety.scenarios.certificates.report.drawing import (
    LEFT,
    RIGHT,
    WIDTH,
    Scale,
    legend,
    share_grid,
)
from peripety.scenarios.drawing.frame import drawing
from peripety.scenarios.drawing.markup import Element, element, number, percent
from peripety.sim import PERSONAS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.scenarios.certificates.model import Band, Certificate, PersonaReport

__all__ = ["fail_rates", "loss_causes", "loss_turns", "plots", "survival"]

_ROW = 30.0
_PANEL = 90.0
_MOST_BARS = 50
_CAUSES = 7
_OTHERS = "other causes"


def plots(certificate: Certificate) -> dict[str, Element]:
    """Return all plots, by name."""
    drawn = (fail_rates, survival, loss_causes, loss_turns)
    return {plot.__name__.replace("_", "-"): plot(certificate) for plot in drawn}


def fail_rates(certificate: Certificate) -> Element:
    """Plot the fail rate of each persona with its interval, over the band."""
    reports, band = certificate.personas, certificate.band
    x, bottom = Scale(0, 1, LEFT, RIGHT), 10 + _ROW * len(reports)
    return drawing(
        "fail-rates",
        "How often each persona loses",
        f"{_rates(reports)}. Band of the random persona: from {percent(band.min_fail_rate)} to"
        f" {percent(band.max_fail_rate)}.",
        (WIDTH, bottom + 30),
        _band(band, x, bottom),
        *share_grid(x, (10, bottom), vertical=True),
        *(
            part
            for row, report in enumerate(reports)
            for part in _whisker(report, x, 10 + _ROW * (row + 0.5))
        ),
    )


def survival(certificate: Certificate) -> Element:
    """Plot the share of runs without a loss after each turn, for each persona."""
    reports, horizon = certificate.personas, certificate.options.horizon or 1
    entries = [(f"s{_number(report)} d{_number(report)}", report.persona) for report in reports]
    keys, top = legend(entries, lines=True)
    x, y = Scale(0, horizon, LEFT, RIGHT), Scale(0, 1, top + 240, top + 10)
    return drawing(
        "survival",
        "Share of runs that are not lost after each turn",
        f"Not lost after {horizon} turns: "
        + ", ".join(f"{report.persona} {percent(1 - report.lost.value)}" for report in reports)
        + ".",
        (WIDTH, top + 285),
        *keys,
        *share_grid(y, (LEFT, RIGHT), vertical=False),
        *_turns_axis(x, horizon, top + 240),
        *(_curve(report, style, x, y) for report, (style, _) in zip(reports, entries, strict=True)),
    )


def loss_causes(certificate: Certificate) -> Element:
    """Plot the shares of runs that each loss condition ended, stacked, for each persona."""
    reports = certificate.personas
    causes = _main_causes(reports)
    keys, top = legend([(f"f{index}", cause) for index, cause in enumerate(causes)], lines=False)
    x, bottom = Scale(0, 1, LEFT, RIGHT), top + 10 + _ROW * len(reports)
    return drawing(
        "loss-causes",
        "Which conditions end the runs of each persona",
        "; ".join(f"{report.persona}: {_told_causes(report, causes)}" for report in reports) + ".",
        (WIDTH, bottom + 30),
        *keys,
        *share_grid(x, (top + 10, bottom), vertical=True),
        *(
            part
            for row, report in enumerate(reports)
            for part in _stacked(report, causes, x, top + 10 + _ROW * row)
        ),
    )


def loss_turns(certificate: Certificate) -> Element:
    """Plot histograms of the turns of losses, for each persona."""
    reports, horizon = certificate.personas, certificate.options.horizon or 1
    width = -(-horizon // _MOST_BARS)
    x = Scale(0, horizon, LEFT, RIGHT)
    panels = [
        part
        for row, report in enumerate(reports)
        for part in _histogram(report, width, x, _PANEL * row + 20, _PANEL * (row + 1))
    ]
    bottom = _PANEL * len(reports)
    steps = "" if width == 1 else f" in steps of {width}"
    return drawing(
        "loss-turns",
        f"In which turns{steps} runs are lost; each row has its own scale",
        "Half of the losses have come by turn: "
        + ", ".join(f"{report.persona} {_median(report)}" for report in reports)
        + ".",
        (WIDTH, bottom + 45),
        *panels,
        *_turns_axis(x, horizon, bottom),
    )


def _number(report: PersonaReport) -> int:
    """Return the colour index of a persona, the same in all plots."""
    return PERSONAS.index(report.persona)


def _rates(reports: Sequence[PersonaReport]) -> str:
    return ", ".join(
        f"{report.persona} {percent(report.lost.value)} ({percent(report.lost.low)} to"
        f" {percent(report.lost.high)})"
        for report in reports
    )


def _band(band: Band, x: Scale, bottom: float) -> Element:
    start, end = x(band.min_fail_rate), x(band.max_fail_rate)
    return element(
        "rect", class_="band", x=number(start), y="10", width=number(end - start), height=number(bottom - 10)
    )


def _whisker(report: PersonaReport, x: Scale, y: float) -> Iterator[Element]:
    own, rate = _number(report), report.lost
    yield _row_name(report, y)
    ends = {"x1": number(x(rate.low)), "x2": number(x(rate.high)), "y1": number(y), "y2": number(y)}
    yield element("line", class_=f"line s{own}", **ends)
    told = element("title", f"{report.persona}: {_rates([report])}")
    yield element("circle", told, class_=f"f{own}", cx=number(x(rate.value)), cy=number(y), r="5")


def _row_name(report: PersonaReport, y: float) -> Element:
    return element("text", report.persona, class_="end", x=number(LEFT - 8), y=number(y + 4))


def _curve(report: PersonaReport, style: str, x: Scale, y: Scale) -> Element:
    left = report.runs
    path = [f"M{number(x(0))} {number(y(1))}"]
    for lost in report.loss_turns:
        left -= lost.count
        path.append(f"H{number(x(lost.turn))}V{number(y(left / report.runs))}")
    told = element("title", report.persona)
    return element("path", told, class_=f"line {style}", d="".join([*path, f"H{number(x.end)}"]))


def _turns_axis(x: Scale, horizon: int, bottom: float) -> Iterator[Element]:
    yield element(
        "line", class_="grid", x1=number(x.start), x2=number(x.end), y1=number(bottom), y2=number(bottom)
    )
    for turn in sorted({0, horizon, *(round(horizon * part / 5) for part in range(1, 5))}):
        yield element("text", str(turn), class_="middle", x=number(x(turn)), y=number(bottom + 18))
    yield element("text", "turn", class_="middle", x=number((x.start + x.end) / 2), y=number(bottom + 36))


def _main_causes(reports: Sequence[PersonaReport]) -> list[str]:
    """Return the most frequent loss conditions, in the order of the specification, and a rest class."""
    total: Counter[str] = Counter()
    for report in reports:
        for loss in report.losses:
            total[loss.id] += loss.count
    main = {cause for cause, _ in total.most_common(_CAUSES)}
    return [cause for cause in total if cause in main] + ([_OTHERS] if len(total) > _CAUSES else [])


def _by_cause(report: PersonaReport, causes: Sequence[str]) -> list[int]:
    """Return the number of runs that each cause ended."""
    counts: Counter[str] = Counter()
    for loss in report.losses:
        counts[loss.id if loss.id in causes else _OTHERS] += loss.count
    return [counts[cause] for cause in causes]


def _told_causes(report: PersonaReport, causes: Sequence[str]) -> str:
    return ", ".join(
        f"{cause} {percent(count / report.runs)}"
        for cause, count in zip(causes, _by_cause(report, causes), strict=True)
    )


def _stacked(report: PersonaReport, causes: Sequence[str], x: Scale, top: float) -> Iterator[Element]:
    yield _row_name(report, top + _ROW / 2)
    before = 0
    for index, (cause, count) in enumerate(zip(causes, _by_cause(report, causes), strict=True)):
        start, end = x(before / report.runs), x((before + count) / report.runs)
        before += count
        if count:
            told = element("title", f"{report.persona}, {cause}: {percent(count / report.runs)}")
            box = {"x": number(start), "y": number(top + 4), "width": number(end - start)}
            yield element("rect", told, class_=f"f{index}", height=number(_ROW - 8), **box)


def _binned(report: PersonaReport, width: int) -> dict[int, float]:
    """Return the share of runs lost in each bin of turns, by the turn before the bin."""
    counts: Counter[int] = Counter()
    for lost in report.loss_turns:
        counts[(lost.turn - 1) // width * width] += lost.count
    return {turn: count / report.runs for turn, count in sorted(counts.items())}


def _histogram(report: PersonaReport, width: int, x: Scale, top: float, bottom: float) -> Iterator[Element]:
    """Yield the bars of one persona; the highest one fills the height and is labelled with its share."""
    shares = _binned(report, width)
    highest = max(shares.values(), default=0)
    y = Scale(0, highest or 1, bottom, top)
    yield _row_name(report, bottom - 8)
    if shares:
        yield element("text", percent(highest), class_="end", x=number(LEFT - 8), y=number(top + 10))
    for place in (top, bottom):
        ends = {"x1": number(x.start), "x2": number(x.end), "y1": number(place), "y2": number(place)}
        yield element("line", class_="grid", **ends)
    for turn, share in shares.items():
        end = min(turn + width, x.last)
        told = element("title", f"{report.persona}, turns {turn + 1} to {end:.0f}: {percent(share)}")
        box = {"x": number(x(turn) + 1), "y": number(y(share)), "height": number(bottom - y(share))}
        yield element("rect", told, class_=f"f{_number(report)}", width=number(x(end) - x(turn) - 1), **box)


def _median(report: PersonaReport) -> str:
    """Return the median turn of the losses."""
    seen = 0
    for lost in report.loss_turns:
        seen += lost.count
        if 2 * seen >= report.lost.count:
            return str(lost.turn)
    return "none"
