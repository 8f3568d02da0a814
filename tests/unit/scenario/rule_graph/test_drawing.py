"""Drawings of rule graphs: whole in themselves, legible, and nothing in them is markup of a stranger's."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import closing
from itertools import pairwise
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import pytest

from peripety import engine
from peripety.certification.options import DryRunOptions
from peripety.core.concurrency import WorkerPool
from peripety.scenario.rule_graph.activity import inspect_program
from peripety.scenario.rule_graph.graph import Inspection, build_graph
from peripety.scenario.rule_graph.layout import layout_nodes, reduce_crossings
from peripety.scenario.rule_graph.mermaid import render_mermaid
from peripety.scenario.rule_graph.shapes import assign_columns, bundle_edges, count_cells, wrap_label
from peripety.scenario.rule_graph.svg import render_svg
from peripety.scenario.spec_generator.generator import generate_spec
from support.engine.specs import action, full_spec, spec

HOSTILE = "</style><script>alert(1)</script>\"'`;|#quot; & \x00\u202e"
SVG = "{http://www.w3.org/2000/svg}"


def inspected(document: dict[str, Any] | bytes, runs: int = 64) -> Inspection:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()

    async def last() -> Inspection:
        options = DryRunOptions(max_runs=runs) if runs else None
        with closing(WorkerPool()) as workers:
            found = [event async for event in inspect_program(engine.compile(data), options, workers)][-1]
        assert isinstance(found, Inspection)
        return found

    return asyncio.run(last())


@pytest.fixture(scope="module")
def full() -> Inspection:
    return inspected(full_spec())


def drawn(inspection: Inspection) -> Element:
    return fromstring(render_svg(inspection))  # noqa: S314 - we wrote it


def texts(root: Element) -> list[str]:
    return [text.text or "" for text in root.iter(f"{SVG}text")]


def test_a_drawing_needs_neither_scripts_nor_a_network(full: Inspection) -> None:
    text = render_svg(full).decode()
    assert "<script" not in text
    assert not re.findall(r"(?:src|href)=|url\(|@import", text)
    assert set(re.findall(r"https?://[^\"]*", text)) == {"http://www.w3.org/2000/svg"}


def test_the_same_inspection_gives_the_same_bytes(full: Inspection) -> None:
    assert render_svg(full) == render_svg(full)
    assert render_mermaid(full) == render_mermaid(full)


def test_light_and_dark_are_both_at_hand_on_a_ground_of_its_own(full: Inspection) -> None:
    root = drawn(full)
    assert "prefers-color-scheme: dark" in (root.findtext(f"{SVG}style") or "")
    ground = root.find(f"{SVG}rect")
    assert ground is not None
    assert ground.get("class") == "page"


def test_every_node_is_drawn_with_its_heat_in_colour_and_figures(full: Inspection) -> None:
    root = drawn(full)
    nodes = [group for group in root.iter(f"{SVG}g") if (group.get("class") or "").startswith("node ")]
    assert len(nodes) == len(full.graph.nodes)
    looks = {group.findtext(f"{SVG}title"): group.get("class") for group in nodes}
    assert looks["decay a: decay: lowers a; every turn"] == "node decay h5"
    assert looks["win won: reads b; when b ≤ 0; never"] == "node win never"
    assert {"every turn", "never", "b ≤ 0"} <= set(texts(root))


def test_every_link_is_drawn_with_its_kind(full: Inspection) -> None:
    lines = [
        (group.get("class") or "").split()[1]
        for group in drawn(full).iter(f"{SVG}g")
        if (group.get("class") or "").startswith("link ") and group.find(f"{SVG}title") is not None
    ]
    assert sorted(lines) == sorted(link.kind.value for link in bundle_edges(full.graph))


def test_the_description_names_every_rule(full: Inspection) -> None:
    told = drawn(full).findtext(f"{SVG}desc") or ""
    assert told.startswith("64 runs of at most ")
    assert "decay a: decay: lowers a; every turn." in told


def test_words_of_a_stranger_stay_words() -> None:
    hostile = {**action("x"), "name": HOSTILE}
    inspection = inspected(spec(name=HOSTILE, actions=[hostile], state={HOSTILE[:20]: 1}), runs=0)
    root = drawn(inspection)
    assert [element.tag for element in root.iter() if "script" in element.tag] == []
    flowchart = render_mermaid(inspection)
    assert "<script" not in flowchart
    (label,) = re.findall(r'n\d+\["(.*?)"\]$', flowchart, re.MULTILINE)
    assert not set("<>'`;|").intersection(re.sub(r"#\d+;", "", label))


def test_without_runs_nothing_is_called_cold() -> None:
    inspection = inspected(full_spec(), runs=0)
    root = drawn(inspection)
    assert not any("never" in (group.get("class") or "") for group in root.iter(f"{SVG}g"))
    assert "classDef" not in render_mermaid(inspection)
    assert all("at work" not in text for text in texts(root))


@pytest.mark.parametrize("index", range(6))
def test_nothing_lies_on_anything_else(index: int) -> None:
    graph = build_graph(engine.parse(generate_spec(3, index)))
    lines = bundle_edges(graph)
    notes = {node.node_id: ["100% of turns (1,024)"] for node in graph.nodes}
    places = layout_nodes(reduce_crossings(assign_columns(graph), lines), lines, notes)
    for side in (assign_columns(graph).left, assign_columns(graph).middle, assign_columns(graph).right):
        boxes = [
            places.boxes[node.node_id]
            for section in side
            for block in section.blocks
            for node, _ in block.nodes
        ]
        for upper, lower in pairwise(sorted(boxes, key=lambda box: box.y)):
            assert upper.y + upper.height < lower.y
    for box in places.boxes.values():
        assert box.y >= 0
        assert box.y + box.height <= places.height + 1e-6
        assert box.x >= 0
        assert box.x + box.width <= places.width
        assert all(box.y < port < box.y + box.height for port in box.ports.values())


@pytest.mark.parametrize("index", range(6))
def test_a_flowchart_has_every_node_and_every_link(index: int) -> None:
    inspection = inspected(generate_spec(3, index), runs=0)
    lines = render_mermaid(inspection).splitlines()
    scheduled = [edge for edge in inspection.graph.edges if edge.kind.value == "schedules"]
    assert lines[0] == "flowchart LR"
    assert sum(line.startswith("    n") for line in lines) == len(inspection.graph.nodes)
    arrows = [line for line in lines if re.search(r" (<?-->|-\.->?)", line)]
    assert len(arrows) == len(bundle_edges(inspection.graph)) + len(scheduled)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("short", ["short"]),
        ("one two three", ["one two", "three"]),
        ("a.very.long.path", ["a.very.", "long.path"]),
        ("a_long_name ≤ 0", ["a_long_", "name ≤ 0"]),
        ("unbreakable_indeed", ["unbreakabl", "e_indeed"]),
        ("one two three four five six", ["one two", "three fou…"]),
        ("漢字漢字漢字", ["漢字漢字漢", "字"]),
        (" white \n space ", ["white", "space"]),
        ("", [""]),
    ],
)
def test_labels_are_broken_where_they_can_be(text: str, lines: list[str]) -> None:
    made = wrap_label(text, 10, 2)
    assert made == lines
    assert all(count_cells(line) <= 10 for line in made)
