"""The rule graph: what stands in it, and what was seen of it in play."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.sim import DryRunReport

__all__ = ["INSPECTING_RUNS", "Edge", "EdgeKind", "Graph", "Inspection", "Node", "NodeKind"]

INSPECTING_RUNS = 1_024
"""Runs that heat is counted over, where nobody says how many."""


class NodeKind(Enum):
    """What a node stands for."""

    QUANTITY = "quantity"
    ACTION = "action"
    EVENT = "event"
    LOSS = "loss"
    WIN = "win"
    DECAY = "decay"
    SCHEDULE = "schedule"


class EdgeKind(Enum):
    """What one node does to another; `WRITES` where it may raise it, lower it, or neither."""

    READS = "reads"
    RAISES = "raises"
    LOWERS = "lowers"
    WRITES = "writes"
    SCHEDULES = "schedules"


@dataclass(frozen=True, slots=True)
class Node:
    """A rule, or a quantity.

    Attributes:
        node_id: its JSON Pointer; of a quantity its path.
        kind: what it is.
        key: what the specification calls it: its id, or the path of what decays; of a quantity its path.
        label: its name for a person.
        condition: when it may be done or happen, or when it ends a run, in words; empty for always.
    """

    node_id: str
    kind: NodeKind
    key: str
    label: str
    condition: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """What a rule does to a quantity, or to a scheduled effect: `source` and `target` are ids of nodes."""

    source: str
    target: str
    kind: EdgeKind


@dataclass(frozen=True, slots=True)
class Graph:
    """What depends on what.

    Attributes:
        nodes: in the order of the specification: quantities, actions, events, losses, decay, wins; scheduled
            effects after the rule that schedules them.
        edges: in the order of the rules, each once.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Inspection:
    """A rule graph, and how much of it was at work.

    Attributes:
        name: the scenario's.
        graph: what depends on what.
        report: the runs that were played, with their detail; None where none were.
        heat: how often each node was at work in them, by its id; empty without them.
    """

    name: str
    graph: Graph
    report: DryRunReport | None
    heat: Mapping[str, int]
