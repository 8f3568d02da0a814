"""Conditions resolved for one tool: the parts that are settled, and the arguments that the rest reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.policies.analysis.logic import formula

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.policies.analysis.logic import Formula
    from peripety.policies.analysis.paths import Path

__all__ = ["Entries", "Lists", "Matching", "Resolved", "Terms"]


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """The values that a matcher compares with; one object for equal entries of a policy."""

    values: tuple[str, ...]


class Lists:
    """The lists of a policy, expanded for matchers."""

    def __init__(self, lists: Mapping[str, Any]) -> None:
        self._lists = lists
        self._known: dict[tuple[str, ...], Entries] = {}

    def entries(self, among: Sequence[str]) -> Entries:
        """Return the entries with list names replaced by the values of the lists."""
        key = tuple(among)
        if key not in self._known:
            self._known[key] = Entries(tuple(dict.fromkeys(self._flat(key))))
        return self._known[key]

    def _flat(self, among: Sequence[str]) -> Iterator[str]:
        for entry in among:
            if entry.startswith("@"):
                yield from self._flat(self._lists[entry[1:]]["values"])
            else:
                yield entry


@dataclass(frozen=True, slots=True)
class Matching:
    """A matcher, with the argument paths that it reads for a tool."""

    paths: tuple[Path, ...]
    kind: str
    entries: Entries
    quantifier: str


@dataclass(frozen=True, slots=True, eq=False)
class Resolved:
    """The part of a condition that depends on the request, for a tool to which the condition applies.

    Attributes:
        roles: the caller needs one of them; None for any caller.
        matchings: the matchers, in order.
        formula: the logic; None without one.
    """

    roles: frozenset[str] | None
    matchings: tuple[Matching, ...]
    formula: Formula | None


class Terms:
    """One tool, as one policy annotates it.

    Args:
        tool: the annotation.
        lists: the lists of the policy.
    """

    def __init__(self, tool: Mapping[str, Any], lists: Lists) -> None:
        self.server: str = tool["server_name"]
        self.tool: str = tool["tool_name"]
        self.schema: Mapping[str, Any] | None = tool.get("input_schema")
        self._lists = lists
        self._paths: dict[Path, set[str]] = {}
        for argument in tool.get("argument_roles", ()):
            segments = argument["path"].split("/")[1:]
            path = tuple(one.replace("~1", "/").replace("~0", "~") for one in segments)
            self._paths.setdefault(path, set()).add(argument["role"])
        self._roles = frozenset(role for roles in self._paths.values() for role in roles)
        self._marks = {mark: bool(tool.get(mark, False)) for mark in ("read_only", "destructive")}
        self._known: dict[int, tuple[Mapping[str, Any], Resolved]] = {}
        told = [tool.get("argument_roles", ()), self.schema, self._marks]
        self.told = sim.canonical(told)

    def applies(self, when: Mapping[str, Any]) -> bool:
        """Return True if a condition can hold for the tool, for some request."""
        return (
            self.server in when.get("servers", (self.server,))
            and self.tool in when.get("tools", (self.tool,))
            and all(when.get(mark, have) is have for mark, have in self._marks.items())
            and ("argument_roles" not in when or not self._roles.isdisjoint(when["argument_roles"]))
        )

    def resolved(self, when: Mapping[str, Any]) -> Resolved:
        """Return the part of an applicable condition that depends on the request."""
        known = self._known.get(id(when))
        if known is None:
            roles = frozenset(when["roles"]) if "roles" in when else None
            logic = when.get("logic")
            known = self._known[id(when)] = (
                when,
                Resolved(
                    roles,
                    tuple(map(self._matching, when.get("arguments", ()))),
                    formula(logic, self.server, self.tool) if logic else None,
                ),
            )
        return known[1]

    def _matching(self, matcher: Mapping[str, Any]) -> Matching:
        roles = matcher["argument_roles"]
        return Matching(
            tuple(path for path, at in self._paths.items() if not at.isdisjoint(roles)),
            matcher["kind"],
            self._lists.entries(matcher["among"]),
            matcher.get("quantifier", "all"),
        )
