"""Random requests for random policies: plausible ones, and such as try to get past the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.engine.policies.types import ToolRequest
from support.random_policies import (
    ARGUMENTS,
    CALLERS,
    HOSTS,
    KINDS,
    LABELS,
    NAMES,
    NUMBERS,
    PATHS,
    SERVERS,
    VERBS,
    Argument,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random


Json = dict[str, Any]

_NAMED = {argument.name: argument for argument in ARGUMENTS}


def random_requests(random: Random, spec: Json, count: int) -> list[ToolRequest]:
    """Calls that the schemas of the tools accept, with values at and around what the rules are about."""
    return [_call(random, random.choice(spec["tools"])) for _ in range(count)]


def _call(random: Random, tool: Json) -> ToolRequest:
    arguments: Json = {}
    required = tool["input_schema"].get("required", ())
    for argument in _taken(tool):
        if argument.name in required or random.random() < 0.8:
            _put(arguments, argument, _value(random, argument))
    roles = random.sample(CALLERS, random.choice((0, 1, 1, 2)))
    return ToolRequest(tool["server_name"], tool["tool_name"], arguments, tuple(roles))


def _taken(tool: Json) -> list[Argument]:
    names = []
    for name, schema in tool["input_schema"]["properties"].items():
        names += [f"{name}.{inner}" for inner in schema["properties"]] if "properties" in schema else [name]
    return [_NAMED[name] for name in names]


def _put(arguments: Json, argument: Argument, value: Any) -> None:
    outer, _, inner = argument.name.partition(".")
    if inner:
        nested = arguments.setdefault(outer, {})
        if isinstance(nested, dict):
            nested[inner] = value
    else:
        arguments[outer] = value


def _value(random: Random, argument: Argument) -> Any:
    schema = argument.schema
    if schema.get("type") == "array":
        return [
            _value(random, Argument(argument.name, schema["items"], argument.role))
            for _ in range(random.choice((0, 1, 1, 2, 3)))
        ]
    if "enum" in schema:
        return random.choice(schema["enum"])
    if argument.role:
        return _TEXTS[KINDS[argument.role]](random)
    match schema["type"]:
        case "boolean":
            return random.random() < 0.5
        case "integer":
            near = int(random.choice(NUMBERS)) + random.choice((-1, 0, 1))
            return min(max(near, schema["minimum"]), schema["maximum"])
        case _:
            return max(0, random.choice(NUMBERS) + random.choice((-0.5, 0, 0.5)))


def _path(random: Random) -> str:
    return random.choice(PATHS) + random.choice(("", "", "/k", "/k/l", "k", "/"))


def _url(random: Random) -> str:
    host = random.choice(("", "", "m.", "m")) + random.choice(HOSTS)
    return random.choice((host, f"{host}:8080", f"https://{host}/n", f"https://{host}"))


def _address(random: Random) -> str:
    return f"{random.choice(NAMES)}@{random.choice(('', '', 'm.', 'm'))}{random.choice(HOSTS)}"


_TEXTS: dict[str, Callable[[Random], str]] = {
    "path": _path,
    "domain": _url,
    "email": _address,
    "identifier": lambda random: random.choice(LABELS),
}

_SPOILT: tuple[Any, ...] = (
    None,
    True,
    0,
    -0.0,
    1e308,
    2**53 - 1,
    "",
    " ",
    "~/a",
    "a/b",
    "/a/../e/./f",
    "/../../a",
    "//a///b/",
    "/a/b/..",
    "/a\u0000/b",
    "/A",
    "/a/%2e%2e/e",
    "https://a.example@e.test/",
    "https://e.test/@a.example",
    "https://e.test?a.example",
    "https://e.test\\@a.example",
    "HTTPS://A.EXAMPLE./",
    "a.example:99999",
    "a.example:123456",
    "a..example",
    "[::1]:80",
    "\u0430.example",
    "x@a.example@b.example",
    "X@A.EXAMPLE",
    "x@",
    "@a.example",
    "one ",
    "ONE",
    "x" * 60_000,
    [],
    [[]],
    ["one", 1],
    ["one", None],
    ["/a", "b"],
    {},
    {"path": "/a"},
    {"__proto__": {}},
    "\ud7ff\U0001f600",
)


def hostile_requests(random: Random, spec: Json, count: int) -> list[ToolRequest]:
    """Calls of somebody who wants to get past the rules: any JSON, lookalikes, unknown tools."""
    return [_hostile(random, random.choice(spec["tools"])) for _ in range(count)]


def _hostile(random: Random, tool: Json) -> ToolRequest:
    call = _call(random, tool)
    arguments = dict(call.arguments)
    for argument in _taken(tool):
        if random.random() < 0.5:
            _put(arguments, argument, random.choice(_SPOILT))
    if random.random() < 0.1:
        arguments[random.choice(("path", "options", "unknown", "", "a/b", "a~b"))] = random.choice(_SPOILT)
    server, name = call.server_name, call.tool_name
    if random.random() < 0.05:
        server = random.choice((*SERVERS, server.upper(), f"{server} ", "", "x" * 300))
    if random.random() < 0.05:
        name = random.choice((*VERBS, name.upper(), "structural-unknown-tool", "", "*"))
    roles = random.choice((call.roles, call.roles * 3, ("FIRST",), ("", "first"), tuple(CALLERS)))
    return ToolRequest(server, name, arguments, roles)
