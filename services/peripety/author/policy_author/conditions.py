"""Conditions of a policy rule: the tools that a clause describes, and matchers from its literals and bounds.

A clause matches a tool by the words of the tool's name and description.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from peripety.author.policy_author.sentences import PLACE_WORDS, PLACEHOLDER, STOP_WORDS, stem, stems
from peripety.engine import validate_policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.author.policy_author.sentences import ExtractedLiterals, Literal, NumericBound


_CALLER = re.compile(
    rf"\broles?\s+(?:{PLACEHOLDER})|(?:{PLACEHOLDER})\s+(?:role|caller|user)s?\b",
    re.IGNORECASE,
)
_NUMBERS = {"number", "integer"}
_BOUNDING = stems("max min maximum minimum limit count number of total")


def find_caller_roles(clause: ExtractedLiterals, known: frozenset[str]) -> tuple[str, ...]:
    """Return the caller roles of a clause: quoted names that are neither tools nor servers."""
    names = [one.value for one in clause.literals if one.kind == "name" and one.value not in known]
    return tuple(names) if _CALLER.search(clause.text) else ()


def build_conditions(
    tool: DescribedTool,
    clause: ExtractedLiterals,
    subject: ClauseSubject,
    lists: Mapping[str, str],
    *,
    is_stopping: bool,
    negate: bool = False,
) -> list[dict[str, Any]] | None:
    """Return the members of `when` for the literals and the bound of a clause.

    Args:
        tool: the tool.
        clause: the clause, with its literals.
        subject: all tools that the clause is about.
        lists: the value kind of each list.
        is_stopping: True for a rule that stops calls; then one matching value is enough.
        negate: negate each condition.

    Returns:
        One condition for each kind of literal and for the bound; None if the tool lacks an argument for one
        of them.
    """
    found: list[dict[str, Any]] = []
    for (kind, others), entries in _group_literals(tool, clause.literals, lists).items():
        roles = _find_argument_roles(tool, kind, clause, subject, is_stopping=is_stopping)
        if not roles or not all(_is_valid_entry(kind, entry) for entry in entries):
            return None
        quantifier = _QUANTIFIERS[is_stopping, others is not negate]
        matcher = {"argument_roles": list(roles), "kind": kind, "among": entries, "quantifier": quantifier}
        found.append({"arguments": [matcher]})
    if clause.bound is not None:
        argument = _find_numeric_argument(tool, clause)
        if argument is None:
            return None
        bound = clause.bound.negated if negate else clause.bound
        found.append({"logic": _bound_to_logic(argument, bound, is_stopping=is_stopping)})
    return found


def build_caller_condition(callers: Sequence[str], *, negate: bool) -> list[dict[str, Any]]:
    """Return the condition that the caller has one of the roles, or has none of them."""
    if not callers:
        return []
    if negate:
        return [{"logic": {"!": [{"or": [{"in": [caller, {"var": "roles"}]} for caller in callers]}]}}]
    return [{"roles": list(callers)}]


def merge_conditions(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the conjunction of the conditions."""
    matchers = [matcher for one in found for matcher in one.get("arguments", ())]
    merged = {key: value for one in found for key, value in one.items()}
    return {**merged, "arguments": matchers} if matchers else merged


_QUANTIFIERS = {(False, False): "all", (False, True): "none", (True, False): "any", (True, True): "not_all"}


def _group_literals(
    tool: DescribedTool,
    literals: Sequence[Literal],
    lists: Mapping[str, str],
) -> dict[tuple[str, bool], list[str]]:
    """Group the literals of a clause by kind and by whether the complement is meant."""
    found: dict[tuple[str, bool], list[str]] = {}
    for literal in literals:
        kind, value = literal.kind, literal.value
        if kind == "list":
            kind = lists.get(value.removeprefix("@"), "unknown")
        elif kind == "domain" and not tool.roles.get("domain") and tool.roles.get("email"):
            kind, value = "email", f"*@{value}"
        elif kind == "name":
            kind = "unknown" if value.startswith("@") else "identifier"
        found.setdefault((kind, literal.is_complement), []).append(value)
    return found


@lru_cache(maxsize=1_024)
def _is_valid_entry(kind: str, entry: str) -> bool:
    """Return True if the engine accepts the entry for its kind; references to lists are checked earlier."""
    if entry.startswith("@"):
        return True
    tool = {"server_name": "a", "tool_name": "b", "argument_roles": [{"path": "/a", "role": "a"}]}
    matcher = {"argument_roles": ["a"], "kind": kind, "among": [entry]}
    rule = {"id": "a", "when": {"arguments": [matcher]}, "then": "deny", "reason": "a"}
    policy = {"policy_version": "1.0", "id": "a", "name": "a", "tools": [tool], "rules": [rule]}
    return not validate_policy(json.dumps(policy))


def _find_argument_roles(
    tool: DescribedTool,
    kind: str,
    clause: ExtractedLiterals,
    subject: ClauseSubject,
    *,
    is_stopping: bool,
) -> tuple[str, ...]:
    """Return the argument roles of a clause; a rule that allows calls covers all roles of the kind."""
    said = stems(clause.text)
    if is_stopping and any(one.roles_mentioned(kind, said) for one in subject.tools):
        return tool.roles_mentioned(kind, said)
    return tool.roles.get(kind, ())


def _find_numeric_argument(tool: DescribedTool, clause: ExtractedLiterals) -> str | None:
    """Return the single numeric argument whose name occurs in the clause."""
    said = stems(clause.text)
    properties = (tool.document.get("input_schema") or {}).get("properties", {})
    fitting = [
        name
        for name, schema in properties.items()
        if isinstance(schema, Mapping) and schema.get("type") in _NUMBERS and (stems(name) - _BOUNDING) & said
    ]
    return fitting[0] if len(fitting) == 1 else None


def _bound_to_logic(argument: str, bound: NumericBound, *, is_stopping: bool) -> dict[str, Any]:
    path = f"arguments.{argument}"
    compared = {bound.operator: [{"var": path}, bound.number]}
    # A missing argument compares as 0. It must not allow a call.
    return compared if is_stopping else {"and": [{"!": [{"missing": [path]}]}, compared]}


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
        r"(?<!non-)\b(?:destructive|irreversibl[ey]|(?:cannot|can.t|can not) be undone)\b",
        re.IGNORECASE,
    ),
}
_ENOUGH = 2
_NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")


def value_kind(role: str) -> str:
    """Return the value kind of an argument role."""
    return next((kind for kind, words in KINDS.items() if words & stems(role)), "identifier")


@dataclass(frozen=True)
class DescribedTool:
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
            named = roles.setdefault(value_kind(argument["role"]), [])
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

    def is_mentioned(self, words: frozenset[str]) -> bool:
        """Return True if the words contain its full name, or the first part of its name and its server."""
        first, *others = _NAME_PART.findall(self.name) or [self.name]
        return stem(first) in words and (stems(" ".join(others)) <= words or bool(stems(self.server) & words))

    def roles_mentioned(self, kind: str, words: frozenset[str]) -> tuple[str, ...]:
        """Return its roles of a kind that the words specify beyond the kind: `write_path`, by "wrote"."""
        return tuple(
            role for role in self.roles.get(kind, ()) if (stems(role) - KINDS.get(kind, frozenset())) & words
        )


@dataclass(frozen=True, slots=True)
class ClauseSubject:
    """Tools that a clause is about.

    Attributes:
        tools: the tools; empty if the clause does not specify them.
        words: the words that identify the tools.
        is_all: True if the clause is about all tools, without any restriction.
    """

    tools: tuple[DescribedTool, ...]
    words: frozenset[str] = frozenset()
    is_all: bool = False


def extract_annotation(text: str) -> tuple[str, str]:
    """Remove a phrase for a tool annotation from a text; return the rest and the annotation, if any."""
    for flag, phrase in _FLAGS.items():
        rest, found = phrase.subn(" ", text)
        if found:
            return rest, flag
    return text, ""


def match_tools(
    clause: ExtractedLiterals,
    flag: str,
    tools: Sequence[DescribedTool],
    *,
    described: bool,
) -> ClauseSubject:
    """Return the tools that a clause is about.

    Args:
        clause: the clause.
        flag: the tool annotation in the clause, if any.
        tools: all tools.
        described: also match descriptions and argument roles; enough to stop a call, not enough to allow one.
    """
    names = {literal.value for literal in clause.literals if literal.kind == "name"}
    servers = {tool.server for tool in tools if _is_server_mentioned(tool.server, clause.text, names)}
    among = [tool for tool in tools if not servers or tool.server in servers]
    of_servers = stems(" ".join(["server", *servers]) if servers else "")
    said = stems(clause.text)
    if flag:
        return ClauseSubject(tuple(tool for tool in among if tool.document.get(flag)), of_servers)
    named = [
        tool for tool in among if tool.name in names or re.search(rf"\b{re.escape(tool.name)}\b", clause.text)
    ]
    named = named or [tool for tool in among if tool.is_mentioned(said)]
    if named:
        return ClauseSubject(tuple(named), PLACE_WORDS.union(of_servers, *(tool.names for tool in named)))
    if servers or _ALL.search(clause.text):
        return ClauseSubject(tuple(among), of_servers, is_all=not servers)
    if not described:
        return ClauseSubject(())
    kinds = {literal.kind for literal in clause.literals}
    return ClauseSubject(tuple(tool for tool in among if _matches_description(tool, kinds, said)))


def _is_server_mentioned(server: str, text: str, names: set[str]) -> bool:
    return server in names or re.search(rf"\b{re.escape(server)} server\b", text, re.IGNORECASE) is not None


def _matches_description(tool: DescribedTool, kinds: set[str], said: frozenset[str]) -> bool:
    if any(tool.roles_mentioned(kind, said) for kind in kinds):
        return True
    return len((said - STOP_WORDS) & tool.words) >= _ENOUGH
