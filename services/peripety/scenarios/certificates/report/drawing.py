"""Axes, legends and styles of plots; units are pixels of a drawing 720 wide."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from peripety.scenarios.drawing.markup import Element, element, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["LEFT", "RIGHT", "WIDTH", "Scale", "legend", "share_grid", "style"]

WIDTH = 720.0
LEFT = 100.0
RIGHT = 700.0
_LEGEND_COLUMNS = 3
_LEGEND_ROW = 18.0
_MAX_LABEL = 28


@dataclass(frozen=True, slots=True)
class Scale:
    """Linear scale from figures to positions: `first` is at `start`, `last` at `end`."""

    first: float
    last: float
    start: float
    end: float

    def __call__(self, figure: float) -> float:
        """Return the position of a figure."""
        return self.start + (figure - self.first) / (self.last - self.first) * (self.end - self.start)


def share_grid(places: Scale, across: tuple[float, float], *, vertical: bool) -> Iterator[Element]:
    """Yield grid lines with labels at every fifth of a share; vertical lines have their labels below."""
    start, end = across
    for fifth in range(6):
        at, label = number(places(fifth / 5)), f"{20 * fifth} %"
        if vertical:
            yield element("line", class_="grid", x1=at, x2=at, y1=number(start), y2=number(end))
            yield element("text", label, class_="middle", x=at, y=number(end + 18))
        else:
            yield element("line", class_="grid", x1=number(start), x2=number(end), y1=at, y2=at)
            yield element("text", label, class_="end", x=number(start - 8), y=number(places(fifth / 5) + 4))


def legend(entries: Sequence[tuple[str, str]], *, lines: bool) -> tuple[list[Element], float]:
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
            ends = {"x1": number(x), "x2": number(x + 24), "y1": number(y), "y2": number(y)}
            drawn.append(element("line", class_=f"line {style_class}", **ends))
        else:
            corner = {"x": number(x), "y": number(y - 6), "width": "24", "height": "12"}
            drawn.append(element("rect", class_=style_class, **corner))
        drawn.append(element("text", _short(label), x=number(x + 30), y=number(y + 4)))
    return drawn, 12 + _LEGEND_ROW * -(-len(entries) // _LEGEND_COLUMNS)


def style(name: str) -> str:
    """Return the style sheet of drawings (`plots`) or of pages (`page`)."""
    return resources.files(__package__).joinpath(f"{name}.css").read_text("utf-8")


def _short(label: str) -> str:
    return label if len(label) <= _MAX_LABEL else f"{label[: _MAX_LABEL - 1]}…"
