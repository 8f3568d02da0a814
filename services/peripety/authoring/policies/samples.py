"""Sample calls for a rule, built from its matchers and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from peripety.authoring.policies.tools import kind_of
from peripety.sim import ToolRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["calls_for"]

_ELSEWHERE: Final = {
    "path": "/elsewhere/example",
    "domain": "elsewhere.example",
    "email": "someone@elsewhere.example",
    "identifier": "something-else",
}
_OTHERS = {"none", "not_all"}
_PLAIN: Final = {
    "string": "example",
    "integer": 1,
    "number": 1,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}


def calls_for(
    rule: Mapping[str, Any], tools: Sequence[Mapping[str, Any]], lists: Mapping[str, Mapping[str, Any]]
) -> Iterator[ToolRequest]:
    """Yield calls that a rule may match, simplest first.

    Args:
        rule: a rule of this package.
        tools: the tools, as in a policy document.
        lists: the lists, as in a policy document.
    """
    when = rule["when"]
    callers = tuple(when.get("roles", ()))[:1]
    for tool in tools:
        if tool["server_name"] not in when["servers"] or tool["tool_name"] not in when["tools"]:
            continue
        for values in _values(when, lists):
            for number in _numbers(when.get("logic")):
                arguments = _arguments(tool, values, number)
                yield ToolRequest(tool["server_name"], tool["tool_name"], arguments, callers)


def _values(when: Mapping[str, Any], lists: Mapping[str, Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """Yield values by role, first for the first entry of each matcher, then for the second ones."""
    matchers = when.get("arguments", ())
    for number in range(max((len(_entries(one, lists)) for one in matchers), default=1)):
        values = {}
        for matcher in matchers:
            entries = _entries(matcher, lists)
            if matcher.get("quantifier") in _OTHERS or not entries:
                value = _ELSEWHERE[matcher["kind"]]
            else:
                value = _inside(matcher["kind"], entries[min(number, len(entries) - 1)])
            values.update(dict.fromkeys(matcher["argument_roles"], value))
        yield values


def _entries(matcher: Mapping[str, Any], lists: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [
        value
        for entry in matcher["among"]
        for value in (lists.get(entry[1:], {}).get("values", ()) if entry.startswith("@") else (entry,))
    ]


def _inside(kind: str, entry: str) -> str:
    """Return a value that the entry matches."""
    if kind == "path":
        return f"{entry.rstrip('/')}/example"
    if kind == "domain":
        return entry.replace("*", "www", 1)
    if kind == "email" and entry.startswith("*@"):
        return f"someone@{entry[2:].replace('*', 'www', 1)}"
    return entry


def _numbers(logic: Any) -> Iterator[tuple[str, float] | None]:
    """Yield the numbers at and next to each bound of an expression, with the argument of each."""
    compared = list(_compared(logic))
    if not compared:
        yield None
    for path, number in compared:
        for candidate in (number, number + 1, number - 1):
            yield path.removeprefix("arguments."), candidate


def _compared(logic: Any) -> Iterator[tuple[str, float]]:
    for operator, operands in logic.items() if isinstance(logic, Mapping) else ():
        if operator in {"and", "or"}:
            for operand in operands:
                yield from _compared(operand)
        elif operator in {"<", "<=", ">", ">="}:
            variable, number = operands
            yield variable["var"], number


def _arguments(
    tool: Mapping[str, Any], values: Mapping[str, str], number: tuple[str, float] | None
) -> dict[str, Any]:
    """Return valid arguments of the tool, with the given values for its roles."""
    schema = tool.get("input_schema") or {}
    properties = schema.get("properties", {})
    arguments = {name: _plain(properties.get(name, {})) for name in schema.get("required", ())}
    if number is not None:
        arguments[number[0]] = number[1]
    for argument in tool.get("argument_roles") or ():
        name, *below = argument["path"].split("/")[1:]
        value = values.get(argument["role"])
        if value is None and name in arguments:
            value = _ELSEWHERE[kind_of(argument["role"])]
        if value is not None and not below:
            arguments[name] = [value] if properties.get(name, {}).get("type") == "array" else value
    return arguments


def _plain(schema: Mapping[str, Any]) -> Any:
    """Return a value that a simple schema accepts."""
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "array" and schema.get("minItems"):
        return [_plain(schema.get("items", {}))] * schema["minItems"]
    if kind in {"integer", "number"}:
        return schema.get("minimum", _PLAIN[kind])
    return _PLAIN.get(kind, "example")
