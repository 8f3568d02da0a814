"""Frame of an SVG drawing, with a description for screen readers and an optional style."""

from __future__ import annotations

from peripety.scenarios.drawing.markup import Element, element, number

__all__ = ["drawing", "standalone"]


def drawing(
    name: str, title: str, description: str, size: tuple[float, float], *children: Element
) -> Element:
    """Return an SVG drawing with a title and a description.

    Args:
        name: its id, unique on the page.
        title: the title.
        description: its content in words, for screen readers.
        size: its width and height.
        children: the content.
    """
    width, height = size
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", description, id=f"{name}-desc"),
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )


def standalone(svg: Element, style: str) -> Element:
    """Return the drawing with an embedded style, for a separate file."""
    alone = element("svg", element("style", style), *svg)
    alone.attrib.update(svg.attrib)
    return alone
