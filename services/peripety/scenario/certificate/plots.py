"""SVG plots of a certificate: shares of outcomes, with axes and legends.

Units are pixels of a drawing 720 wide.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.engine import PERSONAS
from peripety.scenario.rendering.markup import (
    build_element,
    draw_line,
    draw_text,
    format_length,
    format_percent,
    frame,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from xml.etree.ElementTree import Element

    from peripety.certification.types import Band, Certificate, PersonaReport


WIDTH = 720.0
LEFT = 100.0
RIGHT = 700.0
_LEGEND_COLUMNS = 3
_LEGEND_ROW = 18.0
_MAX_LABEL = 28


@dataclass(frozen=True, slots=True)
class PlotScale:
    """Linear scale from figures to positions: `first` is at `start`, `last` at `end`."""

    first: float
    last: float
    start: float
    end: float

    def __call__(self, figure: float) -> float:
        """Return the position of a figure."""
        return self.start + (figure - self.first) / (self.last - self.first) * (self.end - self.start)


def draw_share_grid(places: PlotScale, across: tuple[float, float], *, vertical: bool) -> Iterator[Element]:
    """Yield grid lines with labels at every fifth of a share; vertical lines have their labels below."""
    start, end = across
    for fifth in range(6):
        at, label = places(fifth / 5), f"{20 * fifth}%"
        if vertical:
            yield draw_line("grid", (at, start), (at, end))
            yield draw_text(label, at, end + 18, "middle")
        else:
            yield draw_line("grid", (start, at), (end, at))
            yield draw_text(label, start - 8, at + 4, "end")


def draw_legend(entries: Sequence[tuple[str, str]], *, lines: bool) -> tuple[list[Element], float]:
    """Return a legend of colours, from top to bottom.

    Args:
        entries: each class with its label.
        lines: True for line samples, False for area samples.

    Returns:
        The elements, and their height.
    """
    drawn = []
    for index, (style_class, label) in enumerate(entries):
        row, column = divmod(index, _LEGEND_COLUMNS)
        x, y = LEFT + column * (RIGHT - LEFT) / _LEGEND_COLUMNS, 12 + row * _LEGEND_ROW
        if lines:
            drawn.append(draw_line(f"line {style_class}", (x, y), (x + 24, y)))
        else:
            corner = {"x": format_length(x), "y": format_length(y - 6), "width": "24", "height": "12"}
            drawn.append(build_element("rect", class_=style_class, **corner))
        drawn.append(draw_text(_shorten_label(label), x + 30, y + 4))
    return drawn, 12 + _LEGEND_ROW * -(-len(entries) // _LEGEND_COLUMNS)


def _shorten_label(label: str) -> str:
    return label if len(label) <= _MAX_LABEL else f"{label[: _MAX_LABEL - 1]}…"


_ROW = 30.0
_PANEL = 90.0
_MAX_BARS = 50
_CAUSES = 7
_OTHERS = "other causes"


def draw_plots(certificate: Certificate) -> dict[str, Element]:
    """Return all plots, by name."""
    drawn = (fail_rates, survival, loss_causes, loss_turns)
    return {plot.__name__.replace("_", "-"): plot(certificate) for plot in drawn}


def fail_rates(certificate: Certificate) -> Element:
    """Plot the fail rate of each persona with its interval, over the band."""
    reports, band = certificate.personas, certificate.band
    x, bottom = PlotScale(0, 1, LEFT, RIGHT), 10 + _ROW * len(reports)
    return frame(
        "fail-rates",
        "How often each persona loses",
        f"{_describe_rates(reports)}. Band of the random persona: from "
        f"{format_percent(band.min_fail_rate)} to"
        f" {format_percent(band.max_fail_rate)}.",
        (WIDTH, bottom + 30),
        _draw_band(band, x, bottom),
        *draw_share_grid(x, (10, bottom), vertical=True),
        *(
            part
            for row, report in enumerate(reports)
            for part in _draw_whisker(report, x, 10 + _ROW * (row + 0.5))
        ),
    )


def survival(certificate: Certificate) -> Element:
    """Plot the share of runs without a loss after each turn, for each persona."""
    reports, horizon = certificate.personas, certificate.options.horizon or 1
    entries = [(f"s{_color_index(report)} d{_color_index(report)}", report.persona) for report in reports]
    keys, top = draw_legend(entries, lines=True)
    x, y = PlotScale(0, horizon, LEFT, RIGHT), PlotScale(0, 1, top + 240, top + 10)
    return frame(
        "survival",
        "Share of runs that are not lost after each turn",
        f"Not lost after {horizon} turns: "
        + ", ".join(f"{report.persona} {format_percent(1 - report.lost.value)}" for report in reports)
        + ".",
        (WIDTH, top + 285),
        *keys,
        *draw_share_grid(y, (LEFT, RIGHT), vertical=False),
        *_draw_turns_axis(x, horizon, top + 240),
        *(_draw_curve(report, style, x, y) for report, (style, _) in zip(reports, entries, strict=True)),
    )


def loss_causes(certificate: Certificate) -> Element:
    """Plot the shares of runs that each loss condition ended, stacked, for each persona."""
    reports = certificate.personas
    causes = _find_main_causes(reports)
    keys, top = draw_legend([(f"f{index}", cause) for index, cause in enumerate(causes)], lines=False)
    x, bottom = PlotScale(0, 1, LEFT, RIGHT), top + 10 + _ROW * len(reports)
    return frame(
        "loss-causes",
        "Which conditions end the runs of each persona",
        "; ".join(f"{report.persona}: {_describe_causes(report, causes)}" for report in reports) + ".",
        (WIDTH, bottom + 30),
        *keys,
        *draw_share_grid(x, (top + 10, bottom), vertical=True),
        *(
            part
            for row, report in enumerate(reports)
            for part in _draw_stacked(report, causes, x, top + 10 + _ROW * row)
        ),
    )


def loss_turns(certificate: Certificate) -> Element:
    """Plot histograms of the turns of losses, for each persona."""
    reports, horizon = certificate.personas, certificate.options.horizon or 1
    width = -(-horizon // _MAX_BARS)
    x = PlotScale(0, horizon, LEFT, RIGHT)
    panels = [
        part
        for row, report in enumerate(reports)
        for part in _draw_histogram(report, width, x, _PANEL * row + 20, _PANEL * (row + 1))
    ]
    bottom = _PANEL * len(reports)
    steps = "" if width == 1 else f" in steps of {width}"
    return frame(
        "loss-turns",
        f"In which turns{steps} runs are lost; each row has its own scale",
        "Half of the losses have come by turn: "
        + ", ".join(f"{report.persona} {_format_median(report)}" for report in reports)
        + ".",
        (WIDTH, bottom + 45),
        *panels,
        *_draw_turns_axis(x, horizon, bottom),
    )


def _color_index(report: PersonaReport) -> int:
    """Return the colour index of a persona, the same in all plots."""
    return PERSONAS.index(report.persona)


def _describe_rates(reports: Sequence[PersonaReport]) -> str:
    return ", ".join(
        f"{report.persona} {format_percent(report.lost.value)} ({format_percent(report.lost.low)} to"
        f" {format_percent(report.lost.high)})"
        for report in reports
    )


def _draw_band(band: Band, x: PlotScale, bottom: float) -> Element:
    start, end = x(band.min_fail_rate), x(band.max_fail_rate)
    return build_element(
        "rect",
        class_="band",
        x=format_length(start),
        y="10",
        width=format_length(end - start),
        height=format_length(bottom - 10),
    )


def _draw_whisker(report: PersonaReport, x: PlotScale, y: float) -> Iterator[Element]:
    own, rate = _color_index(report), report.lost
    yield _draw_row_name(report, y)
    yield draw_line(f"line s{own}", (x(rate.low), y), (x(rate.high), y))
    told = build_element("title", f"{report.persona}: {_describe_rates([report])}")
    yield build_element(
        "circle",
        told,
        class_=f"f{own}",
        cx=format_length(x(rate.value)),
        cy=format_length(y),
        r="5",
    )


def _draw_row_name(report: PersonaReport, y: float) -> Element:
    return draw_text(report.persona, LEFT - 8, y + 4, "end")


def _draw_curve(report: PersonaReport, style: str, x: PlotScale, y: PlotScale) -> Element:
    left = report.runs
    path = [f"M{format_length(x(0))} {format_length(y(1))}"]
    for lost in report.loss_turns:
        left -= lost.count
        path.append(f"H{format_length(x(lost.turn))}V{format_length(y(left / report.runs))}")
    told = build_element("title", report.persona)
    return build_element("path", told, class_=f"line {style}", d="".join([*path, f"H{format_length(x.end)}"]))


def _draw_turns_axis(x: PlotScale, horizon: int, bottom: float) -> Iterator[Element]:
    yield draw_line("grid", (x.start, bottom), (x.end, bottom))
    for turn in sorted({0, horizon, *(round(horizon * part / 5) for part in range(1, 5))}):
        yield draw_text(str(turn), x(turn), bottom + 18, "middle")
    yield draw_text("turn", (x.start + x.end) / 2, bottom + 36, "middle")


def _find_main_causes(reports: Sequence[PersonaReport]) -> list[str]:
    """Return the most frequent loss conditions, in the order of the specification, and a rest class."""
    total: Counter[str] = Counter()
    for report in reports:
        for loss in report.losses:
            total[loss.id] += loss.count
    main = {cause for cause, _ in total.most_common(_CAUSES)}
    return [cause for cause in total if cause in main] + ([_OTHERS] if len(total) > _CAUSES else [])


def _count_by_cause(report: PersonaReport, causes: Sequence[str]) -> list[int]:
    """Return the number of runs that each cause ended."""
    counts: Counter[str] = Counter()
    for loss in report.losses:
        counts[loss.id if loss.id in causes else _OTHERS] += loss.count
    return [counts[cause] for cause in causes]


def _describe_causes(report: PersonaReport, causes: Sequence[str]) -> str:
    return ", ".join(
        f"{cause} {format_percent(count / report.runs)}"
        for cause, count in zip(causes, _count_by_cause(report, causes), strict=True)
    )


def _draw_stacked(
    report: PersonaReport,
    causes: Sequence[str],
    x: PlotScale,
    top: float,
) -> Iterator[Element]:
    yield _draw_row_name(report, top + _ROW / 2)
    before = 0
    for index, (cause, count) in enumerate(zip(causes, _count_by_cause(report, causes), strict=True)):
        start, end = x(before / report.runs), x((before + count) / report.runs)
        before += count
        if count:
            told = build_element("title", f"{report.persona}, {cause}: {format_percent(count / report.runs)}")
            box = {
                "x": format_length(start),
                "y": format_length(top + 4),
                "width": format_length(end - start),
            }
            yield build_element("rect", told, class_=f"f{index}", height=format_length(_ROW - 8), **box)


def _bin_losses(report: PersonaReport, width: int) -> dict[int, float]:
    """Return the share of runs lost in each bin of turns, by the turn before the bin."""
    counts: Counter[int] = Counter()
    for lost in report.loss_turns:
        counts[(lost.turn - 1) // width * width] += lost.count
    return {turn: count / report.runs for turn, count in sorted(counts.items())}


def _draw_histogram(
    report: PersonaReport,
    width: int,
    x: PlotScale,
    top: float,
    bottom: float,
) -> Iterator[Element]:
    """Yield the bars of one persona; the highest one fills the height and is labelled with its share."""
    shares = _bin_losses(report, width)
    highest = max(shares.values(), default=0)
    y = PlotScale(0, highest or 1, bottom, top)
    yield _draw_row_name(report, bottom - 8)
    if shares:
        yield draw_text(format_percent(highest), LEFT - 8, top + 10, "end")
    for place in (top, bottom):
        yield draw_line("grid", (x.start, place), (x.end, place))
    for turn, share in shares.items():
        end = min(turn + width, x.last)
        told = build_element(
            "title",
            f"{report.persona}, turns {turn + 1} to {end:.0f}: {format_percent(share)}",
        )
        box = {
            "x": format_length(x(turn) + 1),
            "y": format_length(y(share)),
            "height": format_length(bottom - y(share)),
        }
        yield build_element(
            "rect",
            told,
            class_=f"f{_color_index(report)}",
            width=format_length(x(end) - x(turn) - 1),
            **box,
        )


def _format_median(report: PersonaReport) -> str:
    """Return the median turn of the losses."""
    seen = 0
    for lost in report.loss_turns:
        seen += lost.count
        if 2 * seen >= report.lost.count:
            return str(lost.turn)
    return "none"
