"""Rule graph as an SVG file, without scripts and network access: edges, markers and a legend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.scenario.rendering.markup import (
    build_element,
    draw_text,
    format_length,
    frame,
    load_style,
    render_xml,
    with_style,
)
from peripety.scenario.rule_graph.activity import LEVELS, activity_levels, describe_activity
from peripety.scenario.rule_graph.graph import EdgeKind, NodeKind
from peripety.scenario.rule_graph.layout import LINE_HEIGHT, MARGIN, layout_nodes, reduce_crossings
from peripety.scenario.rule_graph.mermaid import VERBS, describe_nodes, describe_runs
from peripety.scenario.rule_graph.shapes import PADDING, assign_columns, bundle_edges

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

    from peripety.scenario.rule_graph.graph import Inspection
    from peripety.scenario.rule_graph.layout import GraphLayout
    from peripety.scenario.rule_graph.shapes import Box, EdgeBundle


MARKER_RADIUS = 6.5
"""The radius of a marker."""

_TIP = 8.0
_BEND = 0.5
_GLYPHS = {
    EdgeKind.RAISES: "M-3.5 0H3.5M0 -3.5V3.5",
    EdgeKind.LOWERS: "M-3.5 0H3.5",
    EdgeKind.WRITES: "M-3.2 -1.8H3.2M-3.2 1.8H3.2",
}


def draw_edge(bundle: EdgeBundle, rule: Box, quantity: Box, style: str) -> Element:
    """Return an edge from a rule to a quantity, with a marker for a write and an arrow for a read.

    Args:
        bundle: the edge bundle.
        rule: the box of the rule.
        quantity: the box of the quantity.
        style: additional CSS classes.
    """
    way = 1 if rule.x < quantity.x else -1
    start = rule.x + rule.width if way > 0 else rule.x
    end = quantity.x if way > 0 else quantity.x + quantity.width
    y1, y2 = rule.ports[bundle.quantity], quantity.ports[bundle.rule]
    parts = []
    begin = start
    if bundle.reads:
        parts.append(draw_arrowhead(start, y1, -way))
        begin += way * (_TIP - 1)
    stop = end
    if bundle.effect is not None:
        parts.append(draw_marker(bundle.effect, end - way * MARKER_RADIUS, y2))
        stop -= way * 2 * MARKER_RADIUS
    bend = (stop - begin) * _BEND
    path = (
        f"M{format_length(begin)} {format_length(y1)}C{format_length(begin + bend)} {format_length(y1)}"
        f" {format_length(stop - bend)} {format_length(y2)} {format_length(stop)} {format_length(y2)}"
    )
    return build_element(
        "g",
        build_element("title", _describe_edge(bundle, rule, quantity)),
        build_element("path", class_="line", d=path),
        *parts,
        class_=f"link {bundle.kind.value}{style}",
    )


def _describe_edge(bundle: EdgeBundle, rule: Box, quantity: Box) -> str:
    """Return the title of an edge, in words."""
    verbs = [EdgeKind.READS] if bundle.reads else []
    verbs += [bundle.effect] if bundle.effect else []
    return f"{rule.node.label} {' and '.join(VERBS[verb] for verb in verbs)} {quantity.node.label}"


def draw_marker(kind: EdgeKind, x: float, y: float) -> Element:
    """Return the marker of an effect: a disc with a plus, a minus, or two bars."""
    return build_element(
        "g",
        build_element("circle", class_="sign", r=format_length(MARKER_RADIUS)),
        build_element("path", class_="glyph", d=_GLYPHS[kind]),
        transform=f"translate({format_length(x)} {format_length(y)})",
    )


def draw_arrowhead(x: float, y: float, way: int) -> Element:
    """Return an arrowhead at a box; that node depends on the node at the other end."""
    back = x - way * _TIP
    return build_element(
        "path",
        class_="tip",
        d=(
            f"M{format_length(x)} {format_length(y)}L{format_length(back)} "
            f"{format_length(y - 4)}V{format_length(y + 4)}Z"
        ),
    )


def draw_stem(rule: Box, scheduled: Box) -> Element:
    """Return a line from a rule down to its scheduled effect, along the indented edge."""
    is_left = scheduled.x > rule.x
    x = rule.x + 9 if is_left else rule.x + rule.width - 9
    end = scheduled.x if is_left else scheduled.x + scheduled.width
    top, bottom = rule.y + rule.height, scheduled.middle
    return build_element(
        "g",
        build_element(
            "path",
            class_="line",
            d=f"M{format_length(x)} {format_length(top)}V{format_length(bottom)}H{format_length(end)}",
        ),
        class_="link schedules",
    )


LEGEND_HEIGHT = 62.0

_LINE_LABELS = {
    EdgeKind.RAISES: "raises it",
    EdgeKind.LOWERS: "lowers it",
    EdgeKind.WRITES: "changes it otherwise",
    EdgeKind.READS: "depends on it",
}
_ENTRY = 205.0
_LENGTH = 40.0
_SWATCH = 22.0


def draw_legend(top: float, *, with_heat: bool) -> Element:
    """Return the legend, below a vertical position."""
    heat = _draw_activity_samples(30.0) if with_heat else ()
    return build_element("g", *_draw_line_samples(8.0), *heat, transform=f"translate(0 {format_length(top)})")


def _draw_line_samples(y: float) -> Iterator[Element]:
    for index, (kind, told) in enumerate(_LINE_LABELS.items()):
        x = MARGIN + index * _ENTRY
        end = x + _LENGTH
        path = f"M{format_length(x)} {format_length(y)}H{format_length(end - MARKER_RADIUS)}"
        mark = draw_arrowhead(end, y, 1) if kind is EdgeKind.READS else draw_marker(kind, end, y)
        yield build_element(
            "g",
            build_element("path", class_="line", d=path),
            mark,
            class_=f"link {kind.value}",
        )
        yield _draw_note(told, end + 12, y)


def _draw_activity_samples(y: float) -> Iterator[Element]:
    yield _draw_note("at work: never", MARGIN, y)
    start = MARGIN + 92
    for level in range(LEVELS + 1):
        corner = {"x": format_length(start + level * (_SWATCH + 4)), "y": format_length(y - 7)}
        swatch = build_element(
            "rect",
            class_="box",
            width=format_length(_SWATCH),
            height="14",
            rx="3",
            **corner,
        )
        yield build_element("g", swatch, class_=f"h{level}" if level else "never")
    end = start + (LEVELS + 1) * (_SWATCH + 4) + 6
    yield _draw_note("most often of its kind; what is hotter has thicker lines", end, y)


def _draw_note(text: str, x: float, y: float) -> Element:
    return draw_text(text, x, y + 4, "note")


_ENDINGS = frozenset({NodeKind.LOSS, NodeKind.WIN})
_ROUND = {NodeKind.QUANTITY: 18.0, NodeKind.EVENT: 2.0, NodeKind.DECAY: 2.0}
_USUALLY_ROUND = 8.0
_BAR = 6.0
_TOP = 62.0


def render_svg(inspection: Inspection) -> bytes:
    """Render the drawing in UTF-8; equal inspections result in equal bytes."""
    lines = bundle_edges(inspection.graph)
    places = layout_nodes(
        reduce_crossings(assign_columns(inspection.graph), lines),
        lines,
        _node_notes(inspection),
    )
    bottom = _TOP + places.height + MARGIN
    size = (places.width, bottom + LEGEND_HEIGHT)
    picture = frame(
        "rules",
        f"{inspection.name}: what depends on what",
        _describe_graph(inspection),
        size,
        build_element("rect", class_="page", width=format_length(size[0]), height=format_length(size[1])),
        build_element("text", inspection.name, class_="name", x=format_length(MARGIN), y="34"),
        build_element("text", describe_runs(inspection), class_="note", x=format_length(MARGIN), y="54"),
        build_element(
            "g",
            *_draw_headings(places),
            *_draw_edges(inspection, places),
            *_draw_nodes(inspection, places),
            transform=f"translate(0 {format_length(_TOP)})",
        ),
        draw_legend(bottom, with_heat=inspection.report is not None),
    )
    return render_xml(with_style(picture, load_style("graph")))


def _describe_graph(inspection: Inspection) -> str:
    """Describe the content of the drawing, in sentences."""
    told = describe_nodes(inspection)
    rules = (node.node_id for node in inspection.graph.nodes if node.kind is not NodeKind.QUANTITY)
    return ". ".join(filter(None, [describe_runs(inspection), *(told[rule] for rule in rules), ""])).strip()


def _node_notes(inspection: Inspection) -> dict[str, list[str]]:
    """Return the lines below each label: the condition of endings, and the activity of each node."""
    return {
        node.node_id: [
            *([node.condition] if node.kind in _ENDINGS and node.condition else []),
            *filter(None, [describe_activity(node, inspection)]),
        ]
        for node in inspection.graph.nodes
    }


def _draw_headings(places: GraphLayout) -> Iterator[Element]:
    for heading in places.headings:
        yield draw_text(heading.text, heading.x, heading.y, "heading")


def _draw_nodes(inspection: Inspection, places: GraphLayout) -> Iterator[Element]:
    levels, told = activity_levels(inspection), describe_nodes(inspection)
    for name, box in places.boxes.items():
        is_cold = inspection.report is not None and not levels[name]
        yield build_element(
            "g",
            build_element("title", told[name]),
            *_draw_box(box),
            *_draw_label(box),
            class_=f"node {box.node.kind.value} {'never' if is_cold else f'h{levels[name]}'}",
        )


def _draw_box(box: Box) -> Iterator[Element]:
    corner = {"x": format_length(box.x), "y": format_length(box.y), "height": format_length(box.height)}
    round_ = format_length(_ROUND.get(box.node.kind, _USUALLY_ROUND))
    yield build_element("rect", class_="box", width=format_length(box.width), rx=round_, **corner)
    if box.node.kind in _ENDINGS:
        corner["x"] = format_length(box.x + box.width - _BAR)
        yield build_element("rect", class_="bar", width=format_length(_BAR), rx="3", **corner)


def _draw_label(box: Box) -> Iterator[Element]:
    lines = [*((line, "middle") for line in box.lines), *((note, "figure middle") for note in box.notes)]
    x = box.x + box.width / 2
    first = box.middle - LINE_HEIGHT * len(lines) / 2 + LINE_HEIGHT - PADDING / 2
    for index, (text, style) in enumerate(lines):
        yield draw_text(text, x, first + LINE_HEIGHT * index, style)


def _draw_edges(inspection: Inspection, places: GraphLayout) -> Iterator[Element]:
    levels = activity_levels(inspection)
    boxes = places.boxes
    for edge in inspection.graph.edges:
        if edge.kind is EdgeKind.SCHEDULES:
            yield draw_stem(boxes[edge.source], boxes[edge.target])
    # Edges of rarely active nodes are drawn below the others.
    for link in sorted(bundle_edges(inspection.graph), key=lambda link: levels[link.rule]):
        weight = f" w{levels[link.rule]}" if levels[link.rule] else ""
        if inspection.report is not None and not weight:
            weight = " cold"
        yield draw_edge(link, boxes[link.rule], boxes[link.quantity], weight)
