"""Legend of a rule graph: the meaning of edges and colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.scenarios.drawing.markup import Element, element, number
from peripety.scenarios.inspecting.drawing.lines import SIGN, sign, tip
from peripety.scenarios.inspecting.drawing.placing import MARGIN
from peripety.scenarios.inspecting.heat import LEVELS
from peripety.scenarios.inspecting.model import EdgeKind

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LEGEND_HEIGHT", "legend"]

LEGEND_HEIGHT = 62.0

_LINES = {
    EdgeKind.RAISES: "raises it",
    EdgeKind.LOWERS: "lowers it",
    EdgeKind.WRITES: "changes it otherwise",
    EdgeKind.READS: "depends on it",
}
_ENTRY = 205.0
_LENGTH = 40.0
_SWATCH = 22.0


def legend(top: float, *, with_heat: bool) -> Element:
    """Return the legend, below a vertical position."""
    heat = _heat(30.0) if with_heat else ()
    return element("g", *_lines(8.0), *heat, transform=f"translate(0 {number(top)})")


def _lines(y: float) -> Iterator[Element]:
    for index, (kind, told) in enumerate(_LINES.items()):
        x = MARGIN + index * _ENTRY
        end = x + _LENGTH
        path = f"M{number(x)} {number(y)}H{number(end - SIGN)}"
        mark = tip(end, y, 1) if kind is EdgeKind.READS else sign(kind, end, y)
        yield element("g", element("path", class_="line", d=path), mark, class_=f"link {kind.value}")
        yield _note(told, end + 12, y)


def _heat(y: float) -> Iterator[Element]:
    yield _note("at work: never", MARGIN, y)
    start = MARGIN + 92
    for level in range(LEVELS + 1):
        corner = {"x": number(start + level * (_SWATCH + 4)), "y": number(y - 7)}
        swatch = element("rect", class_="box", width=number(_SWATCH), height="14", rx="3", **corner)
        yield element("g", swatch, class_=f"h{level}" if level else "never")
    end = start + (LEVELS + 1) * (_SWATCH + 4) + 6
    yield _note("most often of its kind; what is hotter has thicker lines", end, y)


def _note(text: str, x: float, y: float) -> Element:
    return element("text", text, class_="note", x=number(x), y=number(y + 4))
