"""Rule graph types, and the activity measured in runs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.sim import DryRunReport

__all__ = ["INSPECTING_RUNS", "Edge", "EdgeKind", "Graph", "Inspection", "Node", "NodeKind"]

INSPECTING_RUNS = 1_024
"""The default number of runs for activity."""


class NodeKind(Enum):
    """Kind of a node."""

    QUANTITY = "quantity"
    ACTION = "action"
    EVENT = "event"
    LOSS = "loss"
    WIN = "win"
    DECAY = "decay"
    SCHEDULE = "schedule"


class EdgeKind(Enum):
    """Kind of an edge; `WRITES` if the direction of a change is unknown."""

    READS = "reads"
    RAISES = "raises"
    LOWERS = "lowers"
    WRITES = "writes"
    SCHEDULES = "schedules"


@dataclass(frozen=True, slots=True)
class Node:
    """Rule or quantity.

    Attributes:
        node_id: its JSON Pointer; for a quantity its path.
        kind: its kind.
        key: its id in the specification; for decay and quantities the path.
        label: its display name.
        condition: its condition in words; empty for always.
    """

    node_id: str
    kind: NodeKind
    key: str
    label: str
    condition: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """Relation of a rule to a quantity or to a scheduled effect; `source` and `target` are ids of nodes."""

    source: str
    target: str
    kind: EdgeKind


@dataclass(frozen=True, slots=True)
class Graph:
    """Rule graph.

    Attributes:
        nodes: in the order of the specification: quantities, actions, events, losses, decay, wins; scheduled
            effects after their rule.
        edges: in the order of the rules, without duplicates.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Inspection:
    """Rule graph with its activity.

    Attributes:
        name: the name of the scenario.
        graph: the rule graph.
        report: the runs, with their details; None without runs.
        heat: the activity of each node in them, by its id; empty without runs.
    """

    name: str
    graph: Graph
    report: DryRunReport | None
    heat: Mapping[str, int]
