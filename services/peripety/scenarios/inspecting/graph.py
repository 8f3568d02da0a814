"""Construction of the rule graph of a specification."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.errors import ResourceExhaustedError
from peripety.scenarios import phrases
from peripety.scenarios.inspecting.model import Edge, EdgeKind, Graph, Node, NodeKind
from peripety.scenarios.inspecting.touching import read_paths, written_paths
from peripety.sim.proofs.signs import signs
from peripety.sim.schema import pointer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.scenarios.inspecting.touching import Path

__all__ = ["rule_graph"]


_MOST_EDGES = 20_000


def rule_graph(spec: Mapping[str, Any]) -> Graph:
    """Return the dependencies in a valid specification.

    A quantity is a value of the state, or a whole array, that some rule reads or writes. A rule that reads or
    writes an object depends on all of its quantities.

    Raises:
        ResourceExhaustedError: `GRAPH_TOO_LARGE`.
    """
    rules = [rule for section in _sections(spec) for rule in section]
    quantities = _Quantities(spec["state"], (path for rule in rules for path, _ in rule.touched))
    edges: dict[Edge, None] = {}
    for rule in rules:
        edges.update(dict.fromkeys(rule.schedules))
        for path, kind in rule.touched:
            found = quantities.at(path)
            edges.update((Edge(rule.node.node_id, quantity, kind), None) for quantity in found)
            if len(edges) > _MOST_EDGES:
                raise _too_large()
    return Graph((*quantities.nodes(), *(rule.node for rule in rules)), tuple(edges))


def _too_large() -> ResourceExhaustedError:
    return ResourceExhaustedError(
        f"The rule graph has more than {_MOST_EDGES:,} edges, which is too many to draw: let rules name the"
        " quantities that they need instead of whole objects",
        code="GRAPH_TOO_LARGE",
    )


@dataclass(frozen=True, slots=True)
class _Rule:
    """Node with its reads, writes and scheduled effects."""

    node: Node
    touched: list[tuple[Path, EdgeKind]] = field(default_factory=list)
    schedules: list[Edge] = field(default_factory=list)


def _sections(spec: Mapping[str, Any]) -> Iterator[Iterator[_Rule]]:
    yield _acting(spec["actions"], "actions", NodeKind.ACTION, "preconditions")
    yield _acting(spec["random_events"], "random_events", NodeKind.EVENT, "when")
    yield _endings(spec["loss_conditions"], "loss_conditions", NodeKind.LOSS)
    yield _decays(spec["negativity_budget"].get("decay_per_turn", {}))
    yield _endings(spec.get("win_conditions", []), "win_conditions", NodeKind.WIN)


def _acting(
    rules: Iterable[Mapping[str, Any]], section: str, kind: NodeKind, condition: str
) -> Iterator[_Rule]:
    """Yield actions or events, each with its scheduled effects."""
    for index, rule in enumerate(rules):
        place = pointer([section, index])
        told = phrases.condition(rule[condition])
        made = _Rule(Node(place, kind, rule["id"], rule.get("name", rule["id"]), told))
        derives = rule.get("derives", {})
        read = read_paths([rule[condition], *derives.values()])
        made.touched.extend((path, EdgeKind.READS) for path in read)
        yield from _carried_out(made, rule["effects"], signs(rule))


def _carried_out(
    rule: _Rule, effects: Iterable[Mapping[str, Any]], known: Mapping[str, int]
) -> Iterator[_Rule]:
    """Yield a rule with the accesses of its effects, followed by its scheduled effects."""
    later = []
    for index, effect in enumerate(effects):
        if effect["op"] == "schedule":
            place = f"{rule.node.node_id}/effects/{index}"
            scheduled = _Rule(Node(place, NodeKind.SCHEDULE, effect["id"], effect["id"]))
            rule.schedules.append(Edge(rule.node.node_id, place, EdgeKind.SCHEDULES))
            later.append((scheduled, effect["effects"]))
        else:
            rule.touched.extend(written_paths(effect, known))
    yield rule
    for scheduled, inner in later:
        yield from _carried_out(scheduled, inner, known)


def _endings(conditions: Iterable[Mapping[str, Any]], section: str, kind: NodeKind) -> Iterator[_Rule]:
    for index, condition in enumerate(conditions):
        name, told = condition["id"], phrases.condition(condition["when"])
        node = Node(pointer([section, index]), kind, name, name, told)
        yield _Rule(node, [(path, EdgeKind.READS) for path in read_paths(condition["when"])])


def _decays(amounts: Mapping[str, float]) -> Iterator[_Rule]:
    for text, amount in amounts.items():
        path = sim.parse_path(text)
        place = pointer(["negativity_budget", "decay_per_turn", text])
        node = Node(place, NodeKind.DECAY, text, f"{phrases.quantity(text)}: decay")
        yield _Rule(node, [(path, EdgeKind.LOWERS if amount > 0 else EdgeKind.RAISES)] if amount else [])


class _Quantities:
    """Quantities behind the accessed paths; an object counts as the quantities accessed within it."""

    def __init__(self, state: Any, touched: Iterable[Path]) -> None:
        self._state = state
        paths = {self._whole(path) for path in touched}
        holding = {path[:end] for path in paths for end in range(1, len(path))}
        self._paths = sorted(paths - holding)
        self._within: dict[Path, list[str]] = {}
        for path in self._paths:
            for end in range(1, len(path) + 1):
                self._within.setdefault(path[:end], []).append(sim.format_path(path))

    def nodes(self) -> Iterator[Node]:
        """Yield a node for each quantity."""
        for path in self._paths:
            text = sim.format_path(path)
            yield Node(text, NodeKind.QUANTITY, text, phrases.quantity(text))

    def at(self, path: Path) -> list[str]:
        """Return the ids of the quantities at a path."""
        return self._within[self._whole(path)]

    def _whole(self, path: Path) -> Path:
        """Return the part of a path that leads into objects; an element of an array counts as the array."""
        value = self._state
        for end, segment in enumerate(path[1:], start=1):
            if isinstance(value, list) or isinstance(segment, int):
                return path[:end]
            value = value.get(segment) if isinstance(value, dict) else None
        return path
