"""Tools as a policy annotates them, and requests as they are read for that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Annotation", "Read"]


class Annotation:
    """What a policy knows of a tool."""

    def __init__(self, tool: dict[str, Any]) -> None:
        self._paths: dict[str, set[str]] = {}
        for argument in tool.get("argument_roles", ()):
            self._paths.setdefault(argument["path"], set()).add(argument["role"])
        self.roles = frozenset(role for roles in self._paths.values() for role in roles)
        self.read_only = bool(tool.get("read_only", False))
        self.destructive = bool(tool.get("destructive", False))

    def paths(self, roles: frozenset[str]) -> Iterator[list[str]]:
        """The segments of the paths with one of the roles, in the order of the annotations."""
        for path, at in self._paths.items():
            if not roles.isdisjoint(at):
                yield [s.replace("~1", "/").replace("~0", "~") for s in path.split("/")[1:]]


@dataclass(frozen=True, slots=True)
class Read:
    """A request, with what is known of its tool; None when the policy is not about it."""

    server: str
    tool: str
    roles: tuple[str, ...]
    annotation: Annotation
    root: dict[str, Any]

    def values(self, roles: frozenset[str]) -> Iterator[str]:
        """The texts among the arguments with one of the roles.

        Raises:
            CoreError: `BAD_VALUE`.
        """
        for path in self.annotation.paths(roles):
            found = _at(self.root["arguments"], path)
            for value in found if isinstance(found, list) else () if found is None else (found,):
                if not isinstance(value, str):
                    raise CoreError(
                        "BAD_VALUE", "an argument with a role has to be a text or a list of texts"
                    )
                yield value


def _at(value: Any, path: list[str]) -> Any:
    for segment in path:
        if isinstance(value, dict):
            value = value.get(segment)
        elif isinstance(value, list) and _is_index(segment) and int(segment) < len(value):
            value = value[int(segment)]
        else:
            return None
    return value


def _is_index(segment: str) -> bool:
    # As long as any array can be: longer digits are no index of one.
    digits = segment.isascii() and segment.isdigit() and len(segment) <= len("100000")
    return digits and (segment == "0" or not segment.startswith("0"))
