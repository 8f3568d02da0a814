"""Matching of clauses with tools, by the words of their names and descriptions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from peripety.authoring.policies.words import CONNECTING, PLACES, stem, stems

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.authoring.policies.literals import Read

__all__ = ["KINDS", "Subject", "Tool", "kind_of", "subject_of", "without_flags"]

KINDS: Mapping[str, frozenset[str]] = {
    "path": stems("path file folder directory dir"),
    "domain": stems("domain host url site"),
    "email": stems("email mail address recipient"),
}
"""The kind of an argument value, by a word of its role; `identifier` if no word matches."""

_ALL = re.compile(
    r"\b(?:everything|anything|nothing)\b|\b(?:all|every|any|no|each)\s+(?:other\s+)?(?:tool|call|request|action)s?\b",
    re.IGNORECASE,
)
_FLAGS = {
    "read_only": re.compile(r"\bread[- ]only\b|\bchang(?:es?|ing) nothing\b", re.IGNORECASE),
    "destructive": re.compile(
        r"(?<!non-)\b(?:destructive|irreversibl[ey]|(?:cannot|can.t|can not) be undone)\b", re.IGNORECASE
    ),
}
_ENOUGH = 2
_NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")


def kind_of(role: str) -> str:
    """Return the value kind of an argument role."""
    return next((kind for kind, words in KINDS.items() if words & stems(role)), "identifier")


@dataclass(frozen=True)
class Tool:
    """Tool with the words that identify it.

    Attributes:
        server: the server that provides it.
        name: its name.
        document: its entry in the policy document.
        roles: the roles of its arguments, by kind.
    """

    server: str
    name: str
    document: Mapping[str, Any] = field(compare=False, hash=False)
    roles: Mapping[str, tuple[str, ...]] = field(init=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        """Group the roles by value kind."""
        roles: dict[str, list[str]] = {}
        for argument in self.document.get("argument_roles") or ():
            named = roles.setdefault(kind_of(argument["role"]), [])
            if argument["role"] not in named:
                named.append(argument["role"])
        object.__setattr__(self, "roles", {kind: tuple(names) for kind, names in roles.items()})

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the stems of its name, its server, its arguments and their roles."""
        roles = (role for roles in self.roles.values() for role in roles)
        properties = (self.document.get("input_schema") or {}).get("properties", {})
        return stems(" ".join([self.name, self.server, *roles, *properties]))

    @cached_property
    def words(self) -> frozenset[str]:
        """Return the stems of its names and its description."""
        return self.names | stems(str(self.document.get("description") or ""))

    def is_named_in(self, said: frozenset[str]) -> bool:
        """Return True if the words contain its full name, or the first part of its name and its server."""
        first, *others = _NAME_PART.findall(self.name) or [self.name]
        return stem(first) in said and (stems(" ".join(others)) <= said or bool(stems(self.server) & said))

    def roles_said(self, kind: str, said: frozenset[str]) -> tuple[str, ...]:
        """Return its roles of a kind that the words specify beyond the kind: `write_path`, by "wrote"."""
        return tuple(
            role for role in self.roles.get(kind, ()) if (stems(role) - KINDS.get(kind, frozenset())) & said
        )


@dataclass(frozen=True, slots=True)
class Subject:
    """Tools that a clause is about.

    Attributes:
        tools: the tools; empty if the clause does not specify them.
        words: the words that identify the tools.
        is_all: True if the clause is about all tools, without any restriction.
    """

    tools: tuple[Tool, ...]
    words: frozenset[str] = frozenset()
    is_all: bool = False


def without_flags(text: str) -> tuple[str, str]:
    """Remove a phrase for a tool annotation from a text; return the rest and the annotation, if any."""
    for flag, phrase in _FLAGS.items():
        rest, found = phrase.subn(" ", text)
        if found:
            return rest, flag
    return text, ""


def subject_of(clause: Read, flag: str, tools: Sequence[Tool], *, described: bool) -> Subject:
    """Return the tools that a clause is about.

    Args:
        clause: the clause.
        flag: the tool annotation in the clause, if any.
        tools: all tools.
        described: also match descriptions and argument roles; enough to stop a call, not enough to allow one.
    """
    names = {literal.value for literal in clause.literals if literal.kind == "name"}
    servers = {tool.server for tool in tools if _is_server_said(tool.server, clause.text, names)}
    among = [tool for tool in tools if not servers or tool.server in servers]
    of_servers = stems(" ".join(["server", *servers]) if servers else "")
    said = stems(clause.text)
    if flag:
        return Subject(tuple(tool for tool in among if tool.document.get(flag)), of_servers)
    named = [
        tool for tool in among if tool.name in names or re.search(rf"\b{re.escape(tool.name)}\b", clause.text)
    ]
    named = named or [tool for tool in among if tool.is_named_in(said)]
    if named:
        return Subject(tuple(named), PLACES.union(of_servers, *(tool.names for tool in named)))
    if servers or _ALL.search(clause.text):
        return Subject(tuple(among), of_servers, is_all=not servers)
    if not described:
        return Subject(())
    kinds = {literal.kind for literal in clause.literals}
    return Subject(tuple(tool for tool in among if _is_described(tool, kinds, said)))


def _is_server_said(server: str, text: str, names: set[str]) -> bool:
    return server in names or re.search(rf"\b{re.escape(server)} server\b", text, re.IGNORECASE) is not None


def _is_described(tool: Tool, kinds: set[str], said: frozenset[str]) -> bool:
    if any(tool.roles_said(kind, said) for kind in kinds):
        return True
    return len((said - CONNECTING) & tool.words) >= _ENOUGH
