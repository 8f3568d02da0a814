"""Markup as a tree, so that what a specification says is always text and never markup.

`xml.etree` escapes when it writes. No library that draws plots is used: these are rectangles and lines, and
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
    """An element; in the names of attributes `_` stands for `-`, and a last one for nothing."""
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
    """A table whose first column names its rows."""
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
    """A length or a place in a drawing."""
    return f"{value:.1f}"


def percent(share: float) -> str:
    """A share for people."""
    return f"{100 * share:.1f} %"


def html(root: Element) -> bytes:
    """A page as its file has it."""
    return f"<!DOCTYPE html>\n{tostring(root, encoding='unicode', method='html')}\n".encode()


def xml(root: Element) -> bytes:
    """A drawing as its file has it."""
    return f"{tostring(root, encoding='unicode')}\n".encode()
