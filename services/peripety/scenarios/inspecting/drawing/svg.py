"""Rule graph as an SVG file, without scripts and network access."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from peripety.scenarios.drawing.frame import drawing, standalone
from peripety.scenarios.drawing.markup import Element, element, number, xml
from peripety.scenarios.inspecting.drawing.boxes import PADDING
from peripety.scenarios.inspecting.drawing.columns import columns
from peripety.scenarios.inspecting.drawing.legend import LEGEND_HEIGHT, legend
from peripety.scenarios.inspecting.drawing.lines import line, stem
from peripety.scenarios.inspecting.drawing.links import links
from peripety.scenarios.inspecting.drawing.ordering import ordered
from peripety.scenarios.inspecting.drawing.placing import LINE_HEIGHT, MARGIN, placed
from peripety.scenarios.inspecting.heat import heat_levels, told_heat
from peripety.scenarios.inspecting.model import EdgeKind, NodeKind
from peripety.scenarios.inspecting.wording import told_nodes, told_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.scenarios.inspecting.drawing.boxes import Box
    from peripety.scenarios.inspecting.drawing.placing import Places
    from peripety.scenarios.inspecting.model import Inspection

__all__ = ["svg"]

_ENDINGS = frozenset({NodeKind.LOSS, NodeKind.WIN})
_ROUND = {NodeKind.QUANTITY: 18.0, NodeKind.EVENT: 2.0, NodeKind.DECAY: 2.0}
_USUALLY_ROUND = 8.0
_BAR = 6.0
_TOP = 62.0


def svg(inspection: Inspection) -> bytes:
    """Render the drawing in UTF-8; equal inspections result in equal bytes."""
    lines = links(inspection.graph)
    places = placed(ordered(columns(inspection.graph), lines), lines, _notes(inspection))
    bottom = _TOP + places.height + MARGIN
    size = (places.width, bottom + LEGEND_HEIGHT)
    picture = drawing(
        "rules",
        f"{inspection.name}: what depends on what",
        _described(inspection),
        size,
        element("rect", class_="page", width=number(size[0]), height=number(size[1])),
        element("text", inspection.name, class_="name", x=number(MARGIN), y="34"),
        element("text", told_runs(inspection), class_="note", x=number(MARGIN), y="54"),
        element(
            "g",
            *_headings(places),
            *_lines(inspection, places),
            *_nodes(inspection, places),
            transform=f"translate(0 {number(_TOP)})",
        ),
        legend(bottom, with_heat=inspection.report is not None),
    )
    style = resources.files(__package__).joinpath("graph.css").read_text("utf-8")
    return xml(standalone(picture, style))


def _described(inspection: Inspection) -> str:
    """Describe the content of the drawing, in sentences."""
    told = told_nodes(inspection)
    rules = (node.node_id for node in inspection.graph.nodes if node.kind is not NodeKind.QUANTITY)
    return ". ".join(filter(None, [told_runs(inspection), *(told[rule] for rule in rules), ""])).strip()


def _notes(inspection: Inspection) -> dict[str, list[str]]:
    """Return the lines below each label: the condition of endings, and the activity of each node."""
    return {
        node.node_id: [
            *([node.condition] if node.kind in _ENDINGS and node.condition else []),
            *filter(None, [told_heat(node, inspection)]),
        ]
        for node in inspection.graph.nodes
    }


def _headings(places: Places) -> Iterator[Element]:
    for heading in places.headings:
        yield element("text", heading.text, class_="heading", x=number(heading.x), y=number(heading.y))


def _nodes(inspection: Inspection, places: Places) -> Iterator[Element]:
    levels, told = heat_levels(inspection), told_nodes(inspection)
    for name, box in places.boxes.items():
        is_cold = inspection.report is not None and not levels[name]
        yield element(
            "g",
            element("title", told[name]),
            *_box(box),
            *_text(box),
            class_=f"node {box.node.kind.value} {'never' if is_cold else f'h{levels[name]}'}",
        )


def _box(box: Box) -> Iterator[Element]:
    corner = {"x": number(box.x), "y": number(box.y), "height": number(box.height)}
    round_ = number(_ROUND.get(box.node.kind, _USUALLY_ROUND))
    yield element("rect", class_="box", width=number(box.width), rx=round_, **corner)
    if box.node.kind in _ENDINGS:
        corner["x"] = number(box.x + box.width - _BAR)
        yield element("rect", class_="bar", width=number(_BAR), rx="3", **corner)


def _text(box: Box) -> Iterator[Element]:
    lines = [*((line, "middle") for line in box.lines), *((note, "figure middle") for note in box.notes)]
    x = number(box.x + box.width / 2)
    first = box.middle - LINE_HEIGHT * len(lines) / 2 + LINE_HEIGHT - PADDING / 2
    for index, (text, style) in enumerate(lines):
        yield element("text", text, class_=style, x=x, y=number(first + LINE_HEIGHT * index))


def _lines(inspection: Inspection, places: Places) -> Iterator[Element]:
    levels = heat_levels(inspection)
    boxes = places.boxes
    for edge in inspection.graph.edges:
        if edge.kind is EdgeKind.SCHEDULES:
            yield stem(boxes[edge.source], boxes[edge.target])
    # Edges of rarely active nodes are drawn below the others.
    for link in sorted(links(inspection.graph), key=lambda link: levels[link.rule]):
        weight = f" w{levels[link.rule]}" if levels[link.rule] else ""
        if inspection.report is not None and not weight:
            weight = " cold"
        yield line(link, boxes[link.rule], boxes[link.quantity], weight)
