"""Public part of an action: everything that neither reads nor writes restricted state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.scenarios.inspecting.touching import Path, read_paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["Public", "PublicAction"]


@dataclass(frozen=True, slots=True)
class PublicAction:
    """Public part of an action.

    Attributes:
        preconditions: the preconditions that read only public state.
        has_secret_preconditions: True if there are others.
        effects: the effects on public state.
        derives: the derived values of the action; one that reads restricted state is reduced to its name.
    """

    preconditions: Mapping[str, Any]
    has_secret_preconditions: bool
    effects: tuple[Mapping[str, Any], ...]
    derives: Mapping[str, Any]


class Public:
    """Public view of a scenario.

    Args:
        spec: a valid scenario.
        viewer: an entity whose private state counts as public; None for no entity.
    """

    def __init__(self, spec: Mapping[str, Any], viewer: str | None = None) -> None:
        self._visibility = sim.Visibility(spec)
        self._viewer = viewer

    def part_of(self, action: Mapping[str, Any]) -> PublicAction:
        """Return the public part of an action of the scenario."""
        conditions = _conjuncts(action["preconditions"])
        seen = [one for one in conditions if self._sees_all(read_paths(one))]
        derives = {
            name: logic if self._sees_all(read_paths(logic)) else {"var": f"derives.{name}"}
            for name, logic in (action.get("derives") or {}).items()
        }
        return PublicAction(
            preconditions=_joined(seen),
            has_secret_preconditions=len(seen) < len(conditions),
            effects=tuple(self.effects(action["effects"])),
            derives=derives,
        )

    def effects(self, effects: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        """Yield the effects that write only public state."""
        for one in effects:
            if one["op"] == "schedule":
                later = list(self.effects(one["effects"]))
                if later:
                    yield {**one, "effects": later}
            elif "path" not in one or self._sees_all(_written(sim.parse_path(one["path"]), one.get("value"))):
                yield one

    def _sees_all(self, paths: Iterable[Path]) -> bool:
        audiences = map(self._visibility.audience, paths)
        return all(audience is None or self._viewer in audience for audience in audiences)


def _conjuncts(logic: Mapping[str, Any]) -> list[Any]:
    """Return the conditions of a conjunction."""
    match logic:
        case {"and": [*conditions]}:
            return conditions
        case _:
            return [logic]


def _joined(conditions: list[Any]) -> Mapping[str, Any]:
    match conditions:
        case []:
            return {}
        case [dict(only)]:
            return only
        case _:
            return {"and": conditions}


def _written(path: Path, value: Any) -> Iterator[Path]:
    """Yield a written path, and the paths below it that a value contains."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ())
    for key, inner in items:
        yield from _written((*path, key), inner)
