"""What a rule may refer to: the paths that exist at the start, and those that effects can create."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure.paths import MISSING, Path, lookup, parse_path

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["World", "all_effects"]


class World:
    """The static picture of a scenario's state."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.state = spec["state"]
        self.entities = {entity["id"] for entity in spec.get("entities", [])}
        self._created = list(_created(spec))

    def exists(self, path: Path) -> bool:
        """Whether a path under `state` exists, or can come to exist.

        Below an array any index will do, since arrays grow; below a path that effects write anything may
        stand.
        """
        return self.initial(path) is not MISSING or any(path[: len(made)] == made for made in self._created)

    def initial(self, path: Path) -> Any:
        """The value a path starts with; of an array's elements the first stands for all."""
        value = self.state
        for segment in path[1:]:
            if isinstance(value, list) and value and (isinstance(segment, int) or segment.isdigit()):
                value = value[min(int(segment), len(value) - 1)]
            else:
                value = lookup(value, (segment,))
        return value

    def holds_array(self, path: Path) -> bool:
        """Whether some part of the path is an array at the start: what stands below may come later."""
        return any(isinstance(lookup(self.state, path[1:end]), list) for end in range(1, len(path)))

    def is_written(self, path: Path) -> bool:
        """Whether some effect can put another value at the path, or at what holds it."""
        return any(path[: len(made)] == made or made[: len(path)] == path for made in self._created)


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
    """Every effect of a scenario, those scheduled for later included."""
    pending = [effect for rule in [*spec["actions"], *spec["random_events"]] for effect in rule["effects"]]
    while pending:
        effect = pending.pop()
        yield effect
        pending.extend(effect.get("effects", []))
