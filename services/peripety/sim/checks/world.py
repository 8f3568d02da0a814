"""Static model of a scenario's state: the initial paths, and those that effects can create."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure.paths import MISSING, Path, lookup, parse_path

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["World", "all_effects"]


class World:
    """Static model of a scenario's state."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.state = spec["state"]
        self.entities = {entity["id"] for entity in spec.get("entities", [])}
        self._created = set(_created(spec))
        self._holding = {path[:end] for path in self._created for end in range(1, len(path))}

    def exists(self, path: Path) -> bool:
        """Return True if a path under `state` exists, or can exist later.

        Any index into an array counts, since arrays can grow. Any path below one that effects write counts as
        well.
        """
        return self.initial(path) is not MISSING or self._is_below_created(path)

    def initial(self, path: Path) -> Any:
        """Return the initial value at a path; the last element of an array represents later ones."""
        value = self.state
        for segment in path[1:]:
            if isinstance(value, list) and value and _is_index(segment):
                value = value[min(int(segment), len(value) - 1)]
            else:
                value = lookup(value, (segment,))
        return value

    def may_grow(self, path: Path) -> bool:
        """Return True if the path passes an element of an initial array, which may not exist yet."""
        return any(
            isinstance(lookup(self.state, path[1:end]), list) and _is_index(path[end])
            for end in range(1, len(path))
        )

    def is_written(self, path: Path) -> bool:
        """Return True if an effect can replace the value at the path, or one of its containers."""
        return self._is_below_created(path) or path in self._holding

    def _is_below_created(self, path: Path) -> bool:
        return any(path[:end] in self._created for end in range(1, len(path) + 1))


def _is_index(segment: str | int) -> bool:
    return isinstance(segment, int) or (segment.isascii() and segment.isdecimal())


def _created(spec: dict[str, Any]) -> Iterator[Path]:
    for effect in all_effects(spec):
        try:
            path = parse_path(effect.get("path", "state"))
        except CoreError:
            continue
        if effect["op"] == "set":
            yield path
        elif effect["op"] == "patch":
            value = effect["value"]
            yield from ((*path, key) for key in value) if isinstance(value, dict) else iter([path])


def all_effects(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every effect of a scenario, including those inside schedules."""
    pending = [effect for rule in [*spec["actions"], *spec["random_events"]] for effect in rule["effects"]]
    while pending:
        effect = pending.pop()
        yield effect
        pending.extend(effect.get("effects", []))
