"""Annotated tools of a policy, and prepared requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure.policies.values import READERS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Annotation", "Read"]


class Annotation:
    """Annotation of a tool.

    Attributes:
        server: the server of the tool.
        name: the name of the tool.
        roles: the roles of its arguments.
        read_only: True if annotated as read-only.
        destructive: True if annotated as destructive.
    """

    def __init__(self, tool: dict[str, Any]) -> None:
        self.server: str = tool["server_name"]
        self.name: str = tool["tool_name"]
        self.read_only = bool(tool.get("read_only", False))
        self.destructive = bool(tool.get("destructive", False))
        self._roles_at: dict[str, set[str]] = {}
        for argument in tool.get("argument_roles", ()):
            self._roles_at.setdefault(argument["path"], set()).add(argument["role"])
        self.roles = frozenset(role for roles in self._roles_at.values() for role in roles)

    def paths(self, roles: frozenset[str]) -> Iterator[str]:
        """Return the paths of the arguments with one of the roles, in annotation order."""
        return (path for path, at in self._roles_at.items() if not roles.isdisjoint(at))


class Read:
    """Prepared request; its arguments are normalized on first use.

    Args:
        request: the request.
        tool: the annotation of its tool.
    """

    def __init__(self, request: dict[str, Any], tool: Annotation) -> None:
        self.tool = tool
        self.roles = frozenset(request["roles"])
        self.root = {
            "server": tool.server,
            "tool": tool.name,
            "arguments": request["arguments"],
            "roles": request["roles"],
        }
        self._read: dict[tuple[frozenset[str], str], list[str] | CoreError] = {}

    def values(self, roles: frozenset[str], kind: str) -> list[str]:
        """Return the normalized values of the arguments with one of the roles.

        Raises:
            CoreError: `BAD_VALUE`, or the code of the kind, for the first invalid value.
        """
        found = self._read.get((roles, kind))
        if found is None:
            try:
                found = [READERS[kind](text) for text in self._texts(roles)]
            except CoreError as error:
                found = error
            self._read[roles, kind] = found
        if isinstance(found, CoreError):
            raise found
        return found

    def _texts(self, roles: frozenset[str]) -> Iterator[str]:
        for path in self.tool.paths(roles):
            there = _at(self.root["arguments"], path)
            for value in there if isinstance(there, list) else () if there is None else (there,):
                if not isinstance(value, str):
                    message = "an argument with a role has to be a text or a list of texts"
                    raise CoreError("BAD_VALUE", message)
                yield value


def _at(value: Any, path: str) -> Any:
    for escaped in path.split("/")[1:]:
        segment = escaped.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(segment)
        elif isinstance(value, list) and _is_index(segment) and int(segment) < len(value):
            value = value[int(segment)]
        else:
            return None
    return value


def _is_index(segment: str) -> bool:
    # No array has an index with more digits.
    digits = segment.isascii() and segment.isdigit() and len(segment) <= len("100000")
    return digits and (segment == "0" or not segment.startswith("0"))
