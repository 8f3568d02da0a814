"""Markup as a tree, so that the text of a specification is always escaped.

`xml.etree` escapes on output. A plotting library was rejected: the drawings are rectangles and lines, and
their bytes must be the same on every machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, tostring

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Element", "Node", "element", "html", "number", "percent", "table", "xml"]

Node = Element | str
"""An element, or text."""

_WHITE = (ord("\t"), ord("\n"))
_CONTROL = {
    code: "\N{REPLACEMENT CHARACTER}"
    for code in [*range(32), *range(127, 160), 0xFFFE, 0xFFFF]
    if code not in _WHITE
}


def element(tag: str, *children: Node, **attributes: str) -> Element:
    """Return an element; in attribute names `_` becomes `-`, and a trailing one is removed."""
    made = Element(tag, {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()})
    last: Element | None = None
    for child in children:
        if isinstance(child, Element):
            made.append(child)
            last = child
        elif last is None:
            made.text = (made.text or "") + child.translate(_CONTROL)
        else:
            last.tail = (last.tail or "") + child.translate(_CONTROL)
    return made


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Element:
    """Return a table whose first column is the row header."""
    body = [
        element(
            "tr",
            element("th", element("bdi", first), scope="row"),
            *(element("td", cell) for cell in cells),
        )
        for first, *cells in rows
    ]
    return element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *(element("th", head, scope="col") for head in heads))),
        element("tbody", *body),
    )


def number(value: float) -> str:
    """Format a length or a coordinate."""
    return f"{value:.1f}"


def percent(share: float) -> str:
    """Format a share as a percentage."""
    return f"{100 * share:.1f} %"


def html(root: Element) -> bytes:
    """Serialize an HTML page."""
    return f"<!DOCTYPE html>\n{tostring(root, encoding='unicode', method='html')}\n".encode()


def xml(root: Element) -> bytes:
    """Serialize an SVG drawing."""
    return f"{tostring(root, encoding='unicode')}\n".encode()
