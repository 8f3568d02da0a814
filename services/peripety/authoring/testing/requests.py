"""Generation of requests for a policy: the values of its rules, their neighbours, and disguised variants."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from itertools import combinations, islice, pairwise
from typing import TYPE_CHECKING, Any

from peripety.authoring.testing.values import Value, around_entry, around_number, of_schema
from peripety.sim import ToolRequest
from peripety.sim.schema import check, pointer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["Request", "requests_of"]

_MOST_OF_TOOL = 500
_MOST_UNDER_ROLES = 24
_MOST_VALUES = 30
_MOST_LISTED = 8
_PLAIN = "example"


@dataclass(frozen=True)
class Request:
    """Request with its test tags.

    Attributes:
        request: the request.
        borders: JSON Pointers of boundaries, each with its side.
        fits: the test categories it belongs to, independent of the decision.
    """

    request: ToolRequest
    borders: frozenset[str] = frozenset()
    fits: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """Return it as readable text."""
        given = json.dumps(dict(self.request.arguments), ensure_ascii=False)
        by = f" by {', '.join(self.request.roles)}" if self.request.roles else ""
        return f"{self.request.server_name}/{self.request.tool_name} {given}{by}"


@dataclass
class _Argument:
    """Argument of a tool with candidate values; the first is an ordinary one."""

    name: str
    values: list[Value] = field(default_factory=list)


def requests_of(document: Mapping[str, Any], rules: Sequence[Mapping[str, Any]]) -> Iterator[Request]:
    """Yield valid requests for each tool of a policy, simplest first, without duplicates.

    Args:
        document: the policy.
        rules: its invariants and rules.
    """
    roles = [(), *((role,) for role in _roles(rules))]
    for tool in document["tools"]:
        seen = set()
        for request in islice(_of_tool(tool, document, rules, roles), _MOST_OF_TOOL):
            if str(request) not in seen:
                seen.add(str(request))
                yield request


def _of_tool(
    tool: Mapping[str, Any],
    document: Mapping[str, Any],
    rules: Sequence[Mapping[str, Any]],
    roles: Sequence[tuple[str, ...]],
) -> Iterator[Request]:
    """Yield the ordinary request under each role, then requests that differ in one value, then in two."""
    arguments = [*_arguments(tool, document, rules)]
    plain = {one.name: one.values[0] for one in arguments}
    every = tuple(role for held in roles for role in held)
    held_by = [*dict.fromkeys([*roles, every])]
    for number, row in enumerate(_rows(arguments, plain, tool.get("input_schema"))):
        given = {name: value.given for name, value in row.items()}
        # Roles are combined only with the first values; all combinations would be too many.
        for held in held_by if number < _MOST_UNDER_ROLES else ((),):
            request = ToolRequest(tool["server_name"], tool["tool_name"], given, held)
            yield Request(request, *_tags(row, plain))


def _rows(
    arguments: Sequence[_Argument], plain: Mapping[str, Value], schema: Mapping[str, Any] | None
) -> Iterator[Mapping[str, Value]]:
    """Yield argument values that satisfy the schema of the tool."""

    def is_taken(row: Mapping[str, Value]) -> bool:
        given = {name: value.given for name, value in row.items()}
        return schema is None or not check(schema, given, linear=True)

    yield from filter(is_taken, [plain])
    taken: dict[str, list[Value]] = {}
    for one in arguments:
        taken[one.name] = [value for value in one.values[1:] if is_taken({**plain, one.name: value})]
        yield from ({**plain, one.name: value} for value in taken[one.name])
    for left in plain:
        yield from filter(is_taken, [{name: value for name, value in plain.items() if name != left}])
    pairs = (
        {**plain, one: value, other: beside}
        for one, other in combinations(taken, 2)
        for value in taken[one]
        for beside in taken[other]
    )
    yield from filter(is_taken, islice(pairs, _MOST_OF_TOOL))


def _tags(row: Mapping[str, Value], plain: Mapping[str, Value]) -> tuple[frozenset[str], frozenset[str]]:
    borders = frozenset().union(*(value.borders for value in row.values()))
    fits = {"boundary"} if borders else set()
    if len(row) < len(plain) or any(value.is_disguised for value in row.values()):
        fits.add("evasion")
    return borders, frozenset(fits)


def _arguments(
    tool: Mapping[str, Any], document: Mapping[str, Any], rules: Sequence[Mapping[str, Any]]
) -> Iterator[_Argument]:
    """Yield the arguments from schema, roles and rules, with candidate values for each."""
    properties = (tool.get("input_schema") or {}).get("properties") or {}
    of_roles: dict[str, set[str]] = {}
    for argument in tool.get("argument_roles") or ():
        of_roles.setdefault(argument["path"].split("/")[1], set()).add(argument["role"])
    compared = [*_compared(document, rules, tool)]
    names = dict.fromkeys([*properties, *of_roles, *(name for name, *_ in compared)])
    is_closed = (tool.get("input_schema") or {}).get("additionalProperties") is False
    for name in properties if is_closed else names:
        schema = properties.get(name)
        schema = schema if isinstance(schema, dict) else {}
        values = [*of_schema(schema)]
        for place, number in ((place, number) for of, place, number in compared if of == name):
            values += around_number(number, place)
        for place, kind, entry in _entries(of_roles.get(name, set()), document, rules):
            values += around_entry(kind, entry, place)
        if schema.get("type") == "array":
            values = [*_listed(values)]
        elif not values or not isinstance(values[0].given, str | int | float | bool):
            values.insert(0, Value(_PLAIN))
        if not schema and name in of_roles:
            # Without a schema, the argument may also be a list.
            values += _listed(values[1:_MOST_LISTED])
        yield _Argument(name, [*_merged(values)][:_MOST_VALUES])


def _merged(values: Iterable[Value]) -> Iterator[Value]:
    """Merge duplicate values and their boundaries."""
    merged: dict[str, Value] = {}
    for value in values:
        key = json.dumps(value.given)
        same = merged.get(key, value)
        merged[key] = replace(same, borders=same.borders | value.borders)
    return iter(merged.values())


def _listed(values: Sequence[Value]) -> Iterator[Value]:
    """Yield lists with one value, with two adjacent values, and the empty list."""
    single = [value for value in values if not isinstance(value.given, list)]
    for value in single or [Value(_PLAIN)]:
        yield Value([value.given], value.borders, value.is_disguised)
    for one, other in pairwise(single):
        yield Value([one.given, other.given], one.borders | other.borders, is_disguised=True)
    yield Value([], is_disguised=True)


def _entries(
    roles: set[str], document: Mapping[str, Any], rules: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, str, str]]:
    """Yield the pointer, kind and text of each matcher entry for the roles."""
    lists = document.get("lists") or {}
    for at, rule in _placed(document, rules):
        for number, matcher in enumerate(rule["when"].get("arguments", ())):
            if not roles & {*matcher["argument_roles"]}:
                continue
            waiting = [(pointer((*at, "when", "arguments", number, "among")), matcher["among"])]
            seen: set[str] = set()
            while waiting:
                place, entries = waiting.pop()
                for index, entry in enumerate(entries):
                    if not entry.startswith("@"):
                        yield f"{place}/{index}", matcher["kind"], entry
                    elif entry not in seen and entry[1:] in lists:
                        seen.add(entry)
                        waiting.append((pointer(("lists", entry[1:], "values")), lists[entry[1:]]["values"]))


def _placed(
    document: Mapping[str, Any], rules: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    invariants = len(document.get("invariants") or ())
    for index, rule in enumerate(rules):
        yield ("invariants", index) if index < invariants else ("rules", index - invariants), rule


def _compared(
    document: Mapping[str, Any], rules: Sequence[Mapping[str, Any]], tool: Mapping[str, Any]
) -> Iterator[tuple[str, str, Any]]:
    """Yield each argument in an expression, with the pointer to the compared value, and the value."""
    for at, rule in _placed(document, rules):
        tools = rule["when"].get("tools")
        if "logic" in rule["when"] and (tools is None or tool["tool_name"] in tools):
            yield from _in_logic(rule["when"]["logic"], pointer((*at, "when", "logic")))


def _in_logic(logic: Any, place: str) -> Iterator[tuple[str, str, Any]]:
    if isinstance(logic, list):
        for index, part in enumerate(logic):
            yield from _in_logic(part, f"{place}/{index}")
    if not isinstance(logic, dict):
        return
    for operator, operands in logic.items():
        here = f"{place}{pointer((operator,))}"
        yield from _in_logic(operands, here)
        if isinstance(operands, list):
            names = [_argument(part) for part in operands]
            name = next((one for one in names if one), None)
            for index, part in enumerate(operands if name else ()):
                if isinstance(part, int | float | str | bool):
                    yield str(name), f"{here}/{index}", part
                elif isinstance(part, list):
                    yield from ((str(name), f"{here}/{index}/{n}", one) for n, one in enumerate(part))


def _argument(part: Any) -> str | None:
    """Return the argument that a variable reads, in full or in part."""
    match part:
        case {"var": str(path)} | {"var": [str(path), *_]} if path.startswith("arguments."):
            return path.split(".")[1]
    return None


def _roles(rules: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the caller roles in conditions, in order."""
    found: dict[str, None] = {}
    for rule in rules:
        found |= dict.fromkeys(rule["when"].get("roles", ()))
    return [*found]
