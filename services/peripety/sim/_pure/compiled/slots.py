"""Slots: the changing values of a state, each with a local variable.

Only values that some effect writes can change: leaves (numbers, booleans, texts) and arrays of leaves. Each
is assumed to preserve its first kind, which every write is checked against. A value that is null or absent at
first is `None` until written. Everything else in the state is a constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.sim._pure.compiled.code import Kind, NotLoweredError
from peripety.sim._pure.paths import MISSING, Path, child, lookup, parse_path, variable_step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.sim._pure.state import Rules

__all__ = ["Element", "Layout", "Slot", "all_effects", "items_kind", "leaf_kind"]

_LEAVES: dict[type, Kind] = {bool: Kind.BOOLEAN, float: Kind.NUMBER, str: Kind.TEXT}


@dataclass(frozen=True)
class Slot:
    """Local variable of the run.

    Attributes:
        name: the name of the variable.
        path: the path of its value in the state.
        kind: the kind of its value.
        initial: the first value; None or `MISSING` if it may be absent.
    """

    name: str
    path: Path
    kind: Kind
    initial: Any

    @property
    def is_optional(self) -> bool:
        """True if the value may be `None`."""
        return self.initial is None or self.initial is MISSING


@dataclass(frozen=True)
class Element:
    """Item of a changing array; it may not exist."""

    slot: Slot
    index: int


class Layout:
    """Slots of a scenario, in path order.

    Raises:
        NotLoweredError: something other than leaves and arrays of leaves changes.
    """

    def __init__(self, rules: Rules) -> None:
        self._root = {"state": rules.initial}
        self.slots: dict[Path, Slot] = {}
        paths = sorted(set(_written(rules)), key=_path_order)
        given = dict(_given(rules))
        for path in paths:
            if any(path[:end] in self.slots for end in range(2, len(path))):
                continue  # an element of an array that is a slot itself
            initial = lookup(self._root, path)
            if initial is MISSING and not isinstance(lookup(self._root, path[:-1]), dict):
                raise NotLoweredError("a write to where nothing can be")
            if isinstance(initial, list):
                kind = items_kind(initial or [given.get(path, 0.0)]).many
            else:
                is_empty = initial is None or initial is MISSING
                kind = leaf_kind(given.get(path, 0.0) if is_empty else initial)
            self.slots[path] = Slot(f"s{len(self.slots)}", path, kind, initial)

    def target(self, path: Path) -> Slot | Element:
        """Return the target of an effect."""
        if path in self.slots:
            return self.slots[path]
        slot, index = self.slots.get(path[:-1]), path[-1]
        if slot is None or not slot.kind.is_list or not isinstance(index, int):
            raise NotLoweredError("a write beside the slots")
        return Element(slot, index)

    def find(self, variable: Path) -> Slot | Element | Any:
        """Return what a variable under `state` reads: a slot, an element, a constant, or `MISSING`."""
        value: Any = self._root
        path: Path = ()
        for segment in variable:
            step = variable_step(value, segment)
            slot = self.slots.get(path)
            if slot is not None:
                is_last = len(path) + 1 == len(variable)
                return Element(slot, step) if is_last and isinstance(step, int) else MISSING
            value, path = child(value, step), (*path, step)
        if path in self.slots:
            return self.slots[path]
        if any(slot.path[: len(path)] == path for slot in self.slots.values()):
            raise NotLoweredError("a part of the state that changes inside")
        return value


def leaf_kind(value: Any) -> Kind:
    """Return the kind of a leaf."""
    if value is None:
        return Kind.NULL
    if type(value) not in _LEAVES:
        raise NotLoweredError("not a leaf")
    return _LEAVES[type(value)]


def items_kind(items: list[Any]) -> Kind:
    """Return the common kind of an array's items; an empty array gets an arbitrary one."""
    kinds = {leaf_kind(item) for item in items} or {Kind.NUMBER}
    if len(kinds) > 1:
        raise NotLoweredError("an array of several kinds")
    return kinds.pop()


def all_effects(rules: Rules) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield every effect of the scenario, including those inside schedules, with its rule."""
    pending = [(effect, rule) for rule in [*rules.actions, *rules.events] for effect in rule["effects"]]
    while pending:
        effect, rule = pending.pop()
        yield effect, rule
        pending.extend((later, rule) for later in effect.get("effects", []))


def _written(rules: Rules) -> Iterator[Path]:
    yield from map(parse_path, rules.decay)
    for effect, _ in all_effects(rules):
        if effect["op"] == "patch":
            if not isinstance(effect["value"], dict):
                raise NotLoweredError("a patch with a derived value")
            path = parse_path(effect["path"])
            yield from ((*path, key) for key in effect["value"])
        elif "path" in effect:
            yield parse_path(effect["path"])


def _given(rules: Rules) -> Iterator[tuple[Path, Any]]:
    """Yield a leaf written to each path; it determines the kind of an initially absent value."""
    for effect, rule in all_effects(rules):
        value = effect.get("value")
        if isinstance(value, dict):
            path = parse_path(effect["path"])
            yield from (((*path, key), leaf) for key, leaf in value.items() if type(leaf) in _LEAVES)
        elif type(value) in _LEAVES and value not in rule.get("derives", {}):
            yield parse_path(effect["path"]), value


def _path_order(path: Path) -> list[tuple[bool, Any]]:
    return [(isinstance(segment, int), segment) for segment in path]
