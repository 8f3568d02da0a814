"""Conditions of rules on the arguments of a tool, from the literals and bounds of a clause."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from peripety.authoring.policies.literals import PLACE
from peripety.authoring.policies.words import stems
from peripety.sim import validate_policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.authoring.policies.literals import Bound, Literal, Read
    from peripety.authoring.policies.tools import Subject, Tool

__all__ = ["caller_condition", "conditions", "named_callers", "together"]

_CALLER = re.compile(rf"\broles?\s+(?:{PLACE})|(?:{PLACE})\s+(?:role|caller|user)s?\b", re.IGNORECASE)
_NUMBERS = {"number", "integer"}
_BOUNDING = stems("max min maximum minimum limit count number of total")


def named_callers(clause: Read, known: frozenset[str]) -> tuple[str, ...]:
    """Return the caller roles of a clause: quoted names that are neither tools nor servers."""
    names = [one.value for one in clause.literals if one.kind == "name" and one.value not in known]
    return tuple(names) if _CALLER.search(clause.text) else ()


def conditions(
    tool: Tool,
    clause: Read,
    subject: Subject,
    lists: Mapping[str, str],
    *,
    stops: bool,
    opposite: bool = False,
) -> list[dict[str, Any]] | None:
    """Return the members of `when` for the literals and the bound of a clause.

    Args:
        tool: the tool.
        clause: the clause, with its literals.
        subject: all tools that the clause is about.
        lists: the value kind of each list.
        stops: True for a rule that stops calls; then one matching value is enough.
        opposite: negate each condition.

    Returns:
        One condition for each kind of literal and for the bound; None if the tool lacks an argument for one
        of them.
    """
    found: list[dict[str, Any]] = []
    for (kind, others), entries in _entries(tool, clause.literals, lists).items():
        roles = _roles(tool, kind, clause, subject, stops=stops)
        if not roles or not all(_is_entry(kind, entry) for entry in entries):
            return None
        quantifier = _QUANTIFIERS[stops, others is not opposite]
        matcher = {"argument_roles": list(roles), "kind": kind, "among": entries, "quantifier": quantifier}
        found.append({"arguments": [matcher]})
    if clause.bound is not None:
        argument = _number(tool, clause)
        if argument is None:
            return None
        bound = clause.bound.opposite if opposite else clause.bound
        found.append({"logic": _logic(argument, bound, stops=stops)})
    return found


def caller_condition(callers: Sequence[str], *, opposite: bool) -> list[dict[str, Any]]:
    """Return the condition that the caller has one of the roles, or has none of them."""
    if not callers:
        return []
    if opposite:
        return [{"logic": {"!": [{"or": [{"in": [caller, {"var": "roles"}]} for caller in callers]}]}}]
    return [{"roles": list(callers)}]


def together(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the conjunction of the conditions."""
    matchers = [matcher for one in found for matcher in one.get("arguments", ())]
    merged = {key: value for one in found for key, value in one.items()}
    return {**merged, "arguments": matchers} if matchers else merged


_QUANTIFIERS = {(False, False): "all", (False, True): "none", (True, False): "any", (True, True): "not_all"}


def _entries(
    tool: Tool, literals: Sequence[Literal], lists: Mapping[str, str]
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
        found.setdefault((kind, literal.others), []).append(value)
    return found


@lru_cache(maxsize=1_024)
def _is_entry(kind: str, entry: str) -> bool:
    """Return True if the engine accepts the entry for its kind; references to lists are checked earlier."""
    if entry.startswith("@"):
        return True
    tool = {"server_name": "a", "tool_name": "b", "argument_roles": [{"path": "/a", "role": "a"}]}
    matcher = {"argument_roles": ["a"], "kind": kind, "among": [entry]}
    rule = {"id": "a", "when": {"arguments": [matcher]}, "then": "deny", "reason": "a"}
    policy = {"policy_version": "1.0", "id": "a", "name": "a", "tools": [tool], "rules": [rule]}
    return not validate_policy(json.dumps(policy))


def _roles(tool: Tool, kind: str, clause: Read, subject: Subject, *, stops: bool) -> tuple[str, ...]:
    """Return the argument roles of a clause; a rule that allows calls covers all roles of the kind."""
    said = stems(clause.text)
    if stops and any(one.roles_said(kind, said) for one in subject.tools):
        return tool.roles_said(kind, said)
    return tool.roles.get(kind, ())


def _number(tool: Tool, clause: Read) -> str | None:
    """Return the single numeric argument whose name occurs in the clause."""
    said = stems(clause.text)
    properties = (tool.document.get("input_schema") or {}).get("properties", {})
    fitting = [
        name
        for name, schema in properties.items()
        if isinstance(schema, Mapping) and schema.get("type") in _NUMBERS and (stems(name) - _BOUNDING) & said
    ]
    return fitting[0] if len(fitting) == 1 else None


def _logic(argument: str, bound: Bound, *, stops: bool) -> dict[str, Any]:
    path = f"arguments.{argument}"
    compared = {bound.operator: [{"var": path}, bound.number]}
    # A missing argument compares as 0. It must not allow a call.
    return compared if stops else {"and": [{"!": [{"missing": [path]}]}, compared]}
