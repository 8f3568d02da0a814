"""The frame of a drawing: it says in words what it shows, and may bring its own style."""

from __future__ import annotations

from peripety.scenarios.drawing.markup import Element, element, number

__all__ = ["drawing", "standalone"]


def drawing(
    name: str, title: str, description: str, size: tuple[float, float], *children: Element
) -> Element:
    """A drawing that says in words what it shows.

    Args:
        name: tells it from others of the same page.
        title: what it is.
        description: what it shows, for whoever does not see it.
        size: its width and height.
        children: what is drawn.
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
    """A drawing that brings its own style, for a file of its own."""
    alone = element("svg", element("style", style), *svg)
    alone.attrib.update(svg.attrib)
    return alone
