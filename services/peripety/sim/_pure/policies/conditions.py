"""Conditions: each member becomes a test of a request, and all of them are made in their fixed order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure.convert import truthy
from peripety.sim._pure.logic import evaluate
from peripety.sim._pure.policies.values import ENTRIES, READERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from peripety.sim._pure.policies.tools import Read

__all__ = ["Condition", "Lists"]


class Lists:
    """The lists of a policy, with the values of those that they name in their place."""

    def __init__(self, lists: dict[str, Any]) -> None:
        self._lists = lists

    def entries(self, among: Iterable[str]) -> Iterator[str]:
        """The entries, without names of lists among them."""
        for entry in among:
            if entry.startswith("@"):
                yield from self.entries(self._lists[entry[1:]]["values"])
            else:
                yield entry


@dataclass(frozen=True, slots=True)
class _Member:
    """One member of a condition: whether it holds, and where it stands in its rule."""

    place: str
    holds: Callable[[Read], bool]


class Condition:
    """When a rule takes hold.

    Args:
        when: the condition of a document.
        lists: what it may name.
    """

    def __init__(self, when: dict[str, Any], lists: Lists) -> None:
        self._members = [*_members(when, lists)]

    def holds(self, read: Read) -> bool:
        """Whether it holds for a request.

        Raises:
            CoreError: it cannot be evaluated; the path says which member.
        """
        for member in self._members:
            try:
                if not member.holds(read):
                    return False
            except CoreError as error:
                raise CoreError(error.code, error.message, member.place) from None
        return True


def _members(when: dict[str, Any], lists: Lists) -> Iterator[_Member]:
    if "servers" in when:
        servers = frozenset(when["servers"])
        yield _Member("/when/servers", lambda read: read.server in servers)
    if "tools" in when:
        tools = frozenset(when["tools"])
        yield _Member("/when/tools", lambda read: read.tool in tools)
    if "roles" in when:
        roles = frozenset(when["roles"])
        yield _Member("/when/roles", lambda read: not roles.isdisjoint(read.roles))
    if "argument_roles" in when:
        argument_roles = frozenset(when["argument_roles"])
        yield _Member(
            "/when/argument_roles", lambda read: not argument_roles.isdisjoint(read.annotation.roles)
        )
    if "read_only" in when:
        read_only = when["read_only"]
        yield _Member("/when/read_only", lambda read: read.annotation.read_only is read_only)
    if "destructive" in when:
        destructive = when["destructive"]
        yield _Member("/when/destructive", lambda read: read.annotation.destructive is destructive)
    for index, matcher in enumerate(when.get("arguments", ())):
        yield _Member(f"/when/arguments/{index}", _matcher(matcher, lists))
    if "logic" in when:
        logic = when["logic"]
        yield _Member("/when/logic", lambda read: truthy(evaluate(logic, read.root)))


def _matcher(matcher: dict[str, Any], lists: Lists) -> Callable[[Read], bool]:
    roles = frozenset(matcher["argument_roles"])
    read_value, entry = READERS[matcher["kind"]], ENTRIES[matcher["kind"]]
    entries = [entry(text) for text in lists.entries(matcher["among"])]
    quantifier = matcher.get("quantifier", "all")

    def holds(read: Read) -> bool:
        values = [read_value(text) for text in read.values(roles)]
        if not values:
            return False
        matching = [any(matches(value) for matches in entries) for value in values]
        match quantifier:
            case "all":
                return all(matching)
            case "any":
                return any(matching)
            case "none":
                return not any(matching)
            case _:
                return not all(matching)

    return holds
