"""Edges of a graph drawing, with markers at their ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.scenarios.drawing.markup import Element, element, number
from peripety.scenarios.inspecting.model import EdgeKind
from peripety.scenarios.inspecting.wording import VERBS

if TYPE_CHECKING:
    from peripety.scenarios.inspecting.drawing.boxes import Box
    from peripety.scenarios.inspecting.drawing.links import Link

__all__ = ["SIGN", "line", "sign", "stem", "tip"]

SIGN = 6.5
"""The radius of a marker."""

_TIP = 8.0
_BEND = 0.5
_GLYPHS = {
    EdgeKind.RAISES: "M-3.5 0H3.5M0 -3.5V3.5",
    EdgeKind.LOWERS: "M-3.5 0H3.5",
    EdgeKind.WRITES: "M-3.2 -1.8H3.2M-3.2 1.8H3.2",
}


def line(link: Link, rule: Box, quantity: Box, style: str) -> Element:
    """Return an edge from a rule to a quantity, with a marker for a write and an arrow for a read.

    Args:
        link: the edge bundle.
        rule: the box of the rule.
        quantity: the box of the quantity.
        style: additional CSS classes.
    """
    way = 1 if rule.x < quantity.x else -1
    start = rule.x + rule.width if way > 0 else rule.x
    end = quantity.x if way > 0 else quantity.x + quantity.width
    y1, y2 = rule.ports[link.quantity], quantity.ports[link.rule]
    parts = []
    begin = start
    if link.reads:
        parts.append(tip(start, y1, -way))
        begin += way * (_TIP - 1)
    stop = end
    if link.effect is not None:
        parts.append(sign(link.effect, end - way * SIGN, y2))
        stop -= way * 2 * SIGN
    bend = (stop - begin) * _BEND
    path = (
        f"M{number(begin)} {number(y1)}C{number(begin + bend)} {number(y1)}"
        f" {number(stop - bend)} {number(y2)} {number(stop)} {number(y2)}"
    )
    return element(
        "g",
        element("title", _told(link, rule, quantity)),
        element("path", class_="line", d=path),
        *parts,
        class_=f"link {link.kind.value}{style}",
    )


def _told(link: Link, rule: Box, quantity: Box) -> str:
    """Return the title of an edge, in words."""
    verbs = [EdgeKind.READS] if link.reads else []
    verbs += [link.effect] if link.effect else []
    return f"{rule.node.label} {' and '.join(VERBS[verb] for verb in verbs)} {quantity.node.label}"


def sign(kind: EdgeKind, x: float, y: float) -> Element:
    """Return the marker of an effect: a disc with a plus, a minus, or two bars."""
    return element(
        "g",
        element("circle", class_="sign", r=number(SIGN)),
        element("path", class_="glyph", d=_GLYPHS[kind]),
        transform=f"translate({number(x)} {number(y)})",
    )


def tip(x: float, y: float, way: int) -> Element:
    """Return an arrowhead at a box; that node depends on the node at the other end."""
    back = x - way * _TIP
    return element(
        "path",
        class_="tip",
        d=f"M{number(x)} {number(y)}L{number(back)} {number(y - 4)}V{number(y + 4)}Z",
    )


def stem(rule: Box, scheduled: Box) -> Element:
    """Return a line from a rule down to its scheduled effect, along the indented edge."""
    is_left = scheduled.x > rule.x
    x = rule.x + 9 if is_left else rule.x + rule.width - 9
    end = scheduled.x if is_left else scheduled.x + scheduled.width
    top, bottom = rule.y + rule.height, scheduled.middle
    return element(
        "g",
        element("path", class_="line", d=f"M{number(x)} {number(top)}V{number(bottom)}H{number(end)}"),
        class_="link schedules",
    )
