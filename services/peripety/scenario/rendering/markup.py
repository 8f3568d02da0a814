"""SVG and HTML markup: elements, tables, lines, text, frame and style of a drawing.

Markup is a tree, so that the text of a specification is always escaped on output. A plotting library was
rejected: the drawings are rectangles and lines, and their bytes must be the same on every machine.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, tostring

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


Node = Element | str
"""An element, or text."""

_WHITE = (ord("\t"), ord("\n"))
_CONTROL = {
    code: "\N{REPLACEMENT CHARACTER}"
    for code in [*range(32), *range(127, 160), 0xFFFE, 0xFFFF]
    if code not in _WHITE
}


def build_element(tag: str, *children: Node, **attributes: str) -> Element:
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


def build_table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Element:
    """Return a table whose first column is the row header."""
    body = [
        build_element(
            "tr",
            build_element("th", build_element("bdi", first), scope="row"),
            *(build_element("td", cell) for cell in cells),
        )
        for first, *cells in rows
    ]
    return build_element(
        "table",
        build_element("caption", caption),
        build_element(
            "thead",
            build_element("tr", *(build_element("th", head, scope="col") for head in heads)),
        ),
        build_element("tbody", *body),
    )


def format_length(value: float) -> str:
    """Format a length or a coordinate."""
    return f"{value:.1f}"


def format_percent(share: float) -> str:
    """Format a share as a percentage."""
    return f"{share:.1%}"


def render_html(root: Element) -> bytes:
    """Serialize an HTML page."""
    return f"<!DOCTYPE html>\n{tostring(root, encoding='unicode', method='html')}\n".encode()


def render_xml(root: Element) -> bytes:
    """Serialize an SVG drawing."""
    return f"{tostring(root, encoding='unicode')}\n".encode()


def load_style(name: str) -> str:
    """Return a style sheet of this package: `graph`, `page` or `plots`."""
    return resources.files("peripety.scenario.rendering").joinpath(f"{name}.css").read_text("utf-8")


def draw_line(style_class: str, start: tuple[float, float], end: tuple[float, float]) -> Element:
    """Return a straight line between two points, each as x and y."""
    (x1, y1), (x2, y2) = start, end
    return build_element(
        "line",
        class_=style_class,
        x1=format_length(x1),
        x2=format_length(x2),
        y1=format_length(y1),
        y2=format_length(y2),
    )


def draw_text(text: str, x: float, y: float, style_class: str = "") -> Element:
    """Return a line of text at a point; y is its baseline."""
    style = {"class_": style_class} if style_class else {}
    return build_element("text", text, **style, x=format_length(x), y=format_length(y))


def frame(name: str, title: str, description: str, size: tuple[float, float], *children: Element) -> Element:
    """Return an SVG drawing with a title and a description.

    Args:
        name: its id, unique on the page.
        title: the title.
        description: its content in words, for screen readers.
        size: its width and height.
        children: the content.
    """
    width, height = size
    return build_element(
        "svg",
        build_element("title", title, id=f"{name}-title"),
        build_element("desc", description, id=f"{name}-desc"),
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {format_length(width)} {format_length(height)}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )


def with_style(svg: Element, style: str) -> Element:
    """Return the drawing with an embedded style, for a separate file."""
    alone = build_element("svg", build_element("style", style), *svg)
    alone.attrib.update(svg.attrib)
    return alone
