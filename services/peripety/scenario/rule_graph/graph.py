"""Rule graph: nodes, edges, and their construction from the paths that rules read and write."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.engine import rule_text
from peripety.engine.lowering import CONDITIONS, find_target, lower
from peripety.engine.schema_validation import format_pointer
from peripety.engine.static_analysis.evaluation import find_signs
from peripety.errors import ResourceExhaustedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.engine import DryRunReport


DEFAULT_INSPECTION_RUNS = 1_024
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
class GraphNode:
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
class GraphEdge:
    """Relation of a rule to a quantity or to a scheduled effect; `source` and `target` are ids of nodes."""

    source: str
    target: str
    kind: EdgeKind


@dataclass(frozen=True, slots=True)
class RuleGraph:
    """Rule graph.

    Attributes:
        nodes: in the order of the specification: quantities, actions, events, losses, decay, wins; scheduled
            effects after their rule.
        edges: in the order of the rules, without duplicates.
    """

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


@dataclass(frozen=True, slots=True)
class Inspection:
    """Rule graph with its activity.

    Attributes:
        name: the name of the scenario.
        graph: the rule graph.
        report: the runs, with their details; None without runs.
        activity: the activity of each node in them, by its id; empty without runs.
    """

    name: str
    graph: RuleGraph
    report: DryRunReport | None
    activity: Mapping[str, int]


Path = tuple[str | int, ...]

_ITERATORS = frozenset({"map", "filter", "reduce", "all", "some", "none"})
_UP_OR_DOWN = {"inc": 1, "dec": -1}
_BY_SIGN = {1: EdgeKind.RAISES, -1: EdgeKind.LOWERS, 0: EdgeKind.WRITES}


def find_read_paths(logic: Any, root: str = "state") -> Iterator[Path]:
    """Yield the state paths that an expression reads, with repetitions.

    Args:
        logic: the expression.
        root: the root of the paths; `derives` for derived values.
    """
    if isinstance(logic, list):
        for item in logic:
            yield from find_read_paths(item, root)
    elif isinstance(logic, dict):
        for operator, given in logic.items():
            operands = given if isinstance(given, list) else [given]
            if operator == "var":
                yield from _variables(operands[:1], root)
            elif operator in CONDITIONS and root == "state":
                yield from (
                    ("state", CONDITIONS[operator], name) for name in operands if isinstance(name, str)
                )
            elif operator in {"missing", "missing_some"}:
                yield from _variables(operands, root)
            # The expression for each element can read only that element.
            inner = [*operands[:1], *operands[2:]] if operator in _ITERATORS else operands
            yield from find_read_paths(inner, root)


def find_written_paths(
    effect: Mapping[str, Any],
    signs: Mapping[str, int],
) -> Iterator[tuple[Path, EdgeKind]]:
    """Yield the paths that an effect writes, with the kind of the write; none for logs and schedules.

    The subject of an operation of the story, such as `reveal`, counts as its path.

    Args:
        effect: the effect.
        signs: the signs of the derived values in scope.
    """
    target = find_target(effect)
    if target is not None:
        yield target, EdgeKind.WRITES
    if "path" not in effect:
        return
    path, value = engine.parse_path(effect["path"]), effect.get("value")
    if effect["op"] == "patch" and isinstance(value, dict):
        for key in value:
            yield (*path, key), EdgeKind.WRITES
    else:
        yield path, _BY_SIGN[_UP_OR_DOWN.get(effect["op"], 0) * _sign_of_amount(value, signs)]


def _variables(operands: list[Any], root: str) -> Iterator[Path]:
    """Yield the variables of a root among operands."""
    for operand in operands:
        if isinstance(operand, list):
            yield from _variables(operand, root)
        elif isinstance(operand, str):
            path = engine.parse_path(engine.variable_to_path(operand)) if operand else ()
            if path[:1] == (root,):
                yield path


def _sign_of_amount(value: Any, signs: Mapping[str, int]) -> int:
    if isinstance(value, str):
        return signs.get(value, 0)
    if isinstance(value, (int, float)):
        return (value > 0) - (value < 0)
    return 0


_MAX_EDGES = 20_000


def build_graph(spec: Mapping[str, Any]) -> RuleGraph:
    """Return the dependencies in a valid specification.

    A quantity is a value of the state, or a whole array, that some rule reads or writes. A rule that reads or
    writes an object depends on all of its quantities.

    Raises:
        ResourceExhaustedError: `GRAPH_TOO_LARGE`.
    """
    rules = [rule for section in _rules_by_section(spec) for rule in section]
    quantities = _QuantityIndex(spec["state"], (path for rule in rules for path, _ in rule.accesses))
    edges: dict[GraphEdge, None] = {}
    for rule in rules:
        edges.update(dict.fromkeys(rule.schedules))
        for path, kind in rule.accesses:
            found = quantities.at(path)
            edges.update((GraphEdge(rule.node.node_id, quantity, kind), None) for quantity in found)
            if len(edges) > _MAX_EDGES:
                raise _too_large_error()
    return RuleGraph((*quantities.nodes(), *(rule.node for rule in rules)), tuple(edges))


def _too_large_error() -> ResourceExhaustedError:
    return ResourceExhaustedError(
        f"The rule graph has more than {_MAX_EDGES:,} edges, which is too many to draw: let rules name the"
        " quantities that they need instead of whole objects",
        code="GRAPH_TOO_LARGE",
    )


@dataclass(frozen=True, slots=True)
class _RuleNode:
    """Node with its reads, writes and scheduled effects."""

    node: GraphNode
    accesses: list[tuple[Path, EdgeKind]] = field(default_factory=list)
    schedules: list[GraphEdge] = field(default_factory=list)


def _rules_by_section(spec: Mapping[str, Any]) -> Iterator[Iterator[_RuleNode]]:
    yield _rules_with_effects(spec["actions"], "actions", NodeKind.ACTION, "preconditions")
    yield _rules_with_effects(spec["random_events"], "random_events", NodeKind.EVENT, "when")
    yield _ending_rules(spec["loss_conditions"], "loss_conditions", NodeKind.LOSS)
    yield _decay_rules(spec["negativity_budget"].get("decay_per_turn", {}))
    yield _ending_rules(spec.get("win_conditions", []), "win_conditions", NodeKind.WIN)


def _rules_with_effects(
    rules: Iterable[Mapping[str, Any]],
    section: str,
    kind: NodeKind,
    condition: str,
) -> Iterator[_RuleNode]:
    """Yield actions or events, each with its scheduled effects."""
    for index, rule in enumerate(rules):
        place = format_pointer([section, index])
        told = rule_text.describe_condition(rule[condition])
        node = GraphNode(place, kind, rule["id"], rule.get("name", rule["id"]), told)
        found: dict[str, _RuleNode] = {}
        for variant in engine.list_variants(rule):
            made = _RuleNode(node)
            read = find_read_paths([variant[condition], *variant.get("derives", {}).values()])
            made.accesses.extend((path, EdgeKind.READS) for path in read)
            for part in _with_effects(made, variant["effects"], find_signs(variant)):
                whole = found.setdefault(part.node.node_id, _RuleNode(part.node))
                whole.accesses.extend(part.accesses)
                whole.schedules.extend(part.schedules)
        yield from found.values()


def _with_effects(
    rule: _RuleNode,
    effects: Iterable[Mapping[str, Any]],
    known: Mapping[str, int],
) -> Iterator[_RuleNode]:
    """Yield a rule with the accesses of its effects, followed by its scheduled effects."""
    later = []
    for index, effect in enumerate(effects):
        if effect["op"] == "schedule":
            place = f"{rule.node.node_id}/effects/{index}"
            scheduled = _RuleNode(GraphNode(place, NodeKind.SCHEDULE, effect["id"], effect["id"]))
            rule.schedules.append(GraphEdge(rule.node.node_id, place, EdgeKind.SCHEDULES))
            later.append((scheduled, effect["effects"]))
        else:
            rule.accesses.extend((path, EdgeKind.READS) for path in find_read_paths(effect.get("when")))
            rule.accesses.extend(find_written_paths(effect, known))
    yield rule
    for scheduled, inner in later:
        yield from _with_effects(scheduled, inner, known)


def _ending_rules(
    conditions: Iterable[Mapping[str, Any]],
    section: str,
    kind: NodeKind,
) -> Iterator[_RuleNode]:
    for index, condition in enumerate(conditions):
        name, told = condition["id"], rule_text.describe_condition(condition["when"])
        node = GraphNode(format_pointer([section, index]), kind, name, name, told)
        yield _RuleNode(node, [(path, EdgeKind.READS) for path in find_read_paths(condition["when"])])


def _decay_rules(amounts: Mapping[str, float]) -> Iterator[_RuleNode]:
    for text, amount in amounts.items():
        path = engine.parse_path(text)
        place = format_pointer(["negativity_budget", "decay_per_turn", text])
        node = GraphNode(place, NodeKind.DECAY, text, f"{rule_text.format_path(text)}: decay")
        yield _RuleNode(node, [(path, EdgeKind.LOWERS if amount > 0 else EdgeKind.RAISES)] if amount else [])


_TOLD_SECTIONS = frozenset({"clues", "statements"})


def find_unread_actions(spec: Mapping[str, Any]) -> list[str]:
    """Return the ids of the actions whose changes no ending, event or other action reads.

    An action that reveals a clue or makes a statement informs the player, and one that changes nothing is a
    way to wait; neither is returned.

    Args:
        spec: a valid scenario.
    """
    rules = [rule for section in _rules_by_section(lower(spec).spec) for rule in section]
    readers: dict[Path, set[str]] = defaultdict(set)
    readers_within: dict[Path, set[str]] = defaultdict(set)
    written: dict[str, list[Path]] = defaultdict(list)
    for rule in rules:
        # A scheduled effect belongs to the rule that contains it.
        owner = "/".join(rule.node.node_id.split("/")[:3])
        for path, kind in rule.accesses:
            if kind is not EdgeKind.READS:
                written[owner].append(path)
                continue
            readers[path].add(owner)
            for end in range(1, len(path)):
                readers_within[path[:end]].add(owner)

    def is_read(path: Path, writer: str) -> bool:
        found = readers_within[path].union(*(readers[path[:end]] for end in range(1, len(path) + 1)))
        return bool(found - {writer})

    return [
        rule.node.key
        for rule in rules
        if rule.node.kind is NodeKind.ACTION
        and written[rule.node.node_id]
        and not any(
            _TOLD_SECTIONS.intersection(path[1:2]) or is_read(path, rule.node.node_id)
            for path in written[rule.node.node_id]
        )
    ]


class _QuantityIndex:
    """Quantities behind the accessed paths; an object counts as the quantities accessed within it."""

    def __init__(self, state: Any, touched: Iterable[Path]) -> None:
        self._state = state
        paths = {self._quantity_path(path) for path in touched}
        holding = {path[:end] for path in paths for end in range(1, len(path))}
        self._paths = sorted(paths - holding)
        self._within: dict[Path, list[str]] = {}
        for path in self._paths:
            for end in range(1, len(path) + 1):
                self._within.setdefault(path[:end], []).append(engine.format_path(path))

    def nodes(self) -> Iterator[GraphNode]:
        """Yield a node for each quantity."""
        for path in self._paths:
            text = engine.format_path(path)
            yield GraphNode(text, NodeKind.QUANTITY, text, rule_text.format_path(text))

    def at(self, path: Path) -> list[str]:
        """Return the ids of the quantities at a path."""
        return self._within[self._quantity_path(path)]

    def _quantity_path(self, path: Path) -> Path:
        """Return the part of a path that leads into objects; an element of an array counts as the array."""
        value = self._state
        for end, segment in enumerate(path[1:], start=1):
            if isinstance(value, list) or isinstance(segment, int):
                return path[:end]
            value = value.get(segment) if isinstance(value, dict) else None
        return path
