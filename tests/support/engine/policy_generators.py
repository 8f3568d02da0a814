"""Random policies, tool requests and near-miss texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.engine.policies.types import ToolRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random


Json = dict[str, Any]


@dataclass(frozen=True)
class _Shape:
    """Contents of a policy. A range is (fewest, most); a number is a probability."""

    servers: tuple[int, int] = (2, 5)
    tools: tuple[int, int] = (5, 10)
    rules: tuple[int, int] = (20, 60)
    invariants: tuple[int, int] = (1, 4)
    lists: tuple[int, int] = (2, 5)
    across: float = 0.15
    opaque: float = 0.05


SHAPES: dict[str, _Shape] = {
    "mixed": _Shape(),
    "by_server": _Shape(across=0.0, opaque=0.0),
    "few_by_server": _Shape((2, 3), (2, 4), (5, 12), (1, 2), (1, 2), across=0.0, opaque=0.0),
    "small": _Shape((1, 2), (1, 3), (1, 6), (0, 2), (0, 2)),
    "opaque": _Shape(opaque=0.6),
    "many": _Shape(servers=(5, 5), tools=(10, 10), rules=(200, 400)),
}
"""Rules `by_server` are about one server each, and can be analysed."""

SERVERS = ("alpha", "beta", "gamma", "delta", "epsilon")
VERBS = ("read", "write", "list", "send", "fetch", "move", "remove", "tag", "count", "share")
_READING = frozenset({"read", "list", "fetch", "count"})
_ENDING = frozenset({"remove", "write", "move"})
CALLERS = ("first", "second", "third", "guest")
_MODES = ("plain", "quick", "full")
LABELS = ("one", "two", "three", "four", "five")
PATHS = ("/a", "/a/b", "/a/b/c", "/a/d", "/e", "/e/f", "/e/f/g", "/h", "/h/i/j")
HOSTS = ("a.example", "b.example", "c.a.example", "d.c.a.example", "e.test")
NAMES = ("x", "y", "z")
NUMBERS = (0, 1, 5, 10, 25, 50, 99.5, 100)
_QUANTIFIERS = ("all", "any", "none", "not_all", None, None)

# The roles of arguments, each with the kind of its values.
KINDS = {
    "source_path": "path",
    "target_path": "path",
    "origin": "domain",
    "recipient": "email",
    "label": "identifier",
}
_ANY_TEXT: Json = {"type": "string", "minLength": 1, "maxLength": 200}


@dataclass(frozen=True)
class Argument:
    """A tool argument: its path, its role, and its schema."""

    name: str
    schema: Json
    role: str = ""

    @property
    def pointer(self) -> str:
        return f"/{self.name.replace('.', '/')}"


ARGUMENTS = (
    Argument("path", _ANY_TEXT, "source_path"),
    Argument("to_path", _ANY_TEXT, "target_path"),
    Argument("paths", {"type": "array", "items": _ANY_TEXT, "maxItems": 4}, "source_path"),
    Argument("url", _ANY_TEXT, "origin"),
    Argument("options.host", _ANY_TEXT, "origin"),
    Argument("to", {"type": "array", "items": _ANY_TEXT, "maxItems": 4}, "recipient"),
    Argument("copy_to", _ANY_TEXT, "recipient"),
    Argument("label", {"enum": [*LABELS]}, "label"),
    Argument("labels", {"type": "array", "items": {"enum": [*LABELS]}, "maxItems": 4}, "label"),
    Argument("amount", {"type": "number", "minimum": 0, "maximum": 1000}),
    Argument("size", {"type": "integer", "minimum": 0, "maximum": 1000}),
    Argument("options.depth", {"type": "integer", "minimum": 0, "maximum": 20}),
    Argument("force", {"type": "boolean"}),
    Argument("mode", {"type": "string", "enum": [*_MODES]}),
)


def random_policy(random: Random, shape: str = "mixed") -> Json:
    """A policy document of one of the `SHAPES` that passes every check."""
    return _Writer(random, SHAPES[shape]).policy()


class _Writer:
    """Writes one policy."""

    def __init__(self, random: Random, shape: _Shape) -> None:
        self._random = random
        self._shape = shape
        self._lists: Json = {}
        self._tools: dict[str, dict[str, list[Argument]]] = {}
        self._roles: set[str] = set()

    def policy(self) -> Json:
        tools = [self._tool(server, verb) for server, verb in self._offered()]
        self._write_lists()
        servers = [*self._tools]
        rules = sorted(
            (self._rule(self._random.choice(servers)) for _ in range(self._count(self._shape.rules))),
            key=lambda when: -len(when[0]) + self._random.random(),
        )
        return {
            "policy_version": "1.0",
            "id": "random",
            "name": "A random policy",
            "tools": tools,
            "lists": self._lists,
            "invariants": [self._invariant(n) for n in range(self._count(self._shape.invariants))],
            "rules": [self._named(f"r{n}", when, then) for n, (when, then) in enumerate(rules)],
        }

    def _count(self, bounds: tuple[int, int]) -> int:
        return self._random.randint(*bounds)

    # --- tools and lists ---

    def _offered(self) -> list[tuple[str, str]]:
        servers = SERVERS[: self._count(self._shape.servers)]
        return [
            (server, verb)
            for server in servers
            for verb in self._random.sample(VERBS, self._count(self._shape.tools))
        ]

    def _tool(self, server: str, verb: str) -> Json:
        arguments = self._random.sample(ARGUMENTS, self._random.randint(1, 4))
        self._tools.setdefault(server, {})[verb] = arguments
        self._roles |= {one.role for one in arguments if one.role}
        tool: Json = {
            "server_name": server,
            "tool_name": verb,
            "description": f"Does what its name says, with {', '.join(one.name for one in arguments)}.",
            "input_schema": self._schema(arguments),
            "argument_roles": [{"path": one.pointer, "role": one.role} for one in arguments if one.role],
        }
        if verb in _READING:
            tool["read_only"] = True
        if verb in _ENDING:
            tool["destructive"] = True
        return tool

    def _schema(self, arguments: Sequence[Argument]) -> Json:
        whole: Json = {"type": "object", "properties": {}, "additionalProperties": False}
        for argument in arguments:
            outer, _, inner = argument.name.partition(".")
            if inner:
                nested = whole["properties"].setdefault(
                    outer,
                    {"type": "object", "properties": {}, "additionalProperties": False},
                )
                nested["properties"][inner] = argument.schema
            else:
                whole["properties"][outer] = argument.schema
        required = [one.name for one in arguments if "." not in one.name and self._random.random() < 0.5]
        return whole | ({"required": required} if required else {})

    def _write_lists(self) -> None:
        for number in range(self._count(self._shape.lists)):
            kind = self._random.choice([*_ENTRIES])
            before = [f"@{name}" for name, one in self._lists.items() if one["kind"] == kind]
            values = self._some(_ENTRIES[kind], 3)
            if before and self._random.random() < 0.5:
                values.append(self._random.choice(before))
            self._lists[f"list{number}"] = {"kind": kind, "values": values}

    def _some(self, choices: Sequence[Any], most: int) -> list[Any]:
        return self._random.sample(choices, self._random.randint(1, min(most, len(choices))))

    # --- rules ---

    def _named(self, rule_id: str, when: Json, then: str) -> Json:
        return {
            "id": rule_id,
            "description": f"What {rule_id} is about.",
            "principle": f"Sentence {rule_id} of the written policy.",
            "when": when,
            "then": then,
            "reason": f"{rule_id} says {then}.",
        }

    def _invariant(self, number: int) -> Json:
        server = self._random.choice([*self._tools])
        if self._roles and self._random.random() < 0.7:
            matcher = self._matcher(self._random.choice(sorted(self._roles))) | {"quantifier": "any"}
            return self._named(f"structural-{number}", {"arguments": [matcher]}, "deny")
        tools = self._some([*self._tools[server]], 1)
        then = self._random.choice(("allow", "escalate"))
        return self._named(f"structural-{number}", {"servers": [server], "tools": tools}, then)

    def _rule(self, server: str) -> tuple[Json, str]:
        random = self._random
        tools = self._some([*self._tools[server]], 3)
        # The first of the tools has everything that the condition requires.
        first, arguments = tools[0], self._tools[server][tools[0]]
        when: Json = {"servers": [server]}
        if random.random() < self._shape.across:
            when["servers"] = sorted({server, *self._some([*self._tools], 2)})
        if random.random() < 0.8:
            when["tools"] = tools
        if random.random() < 0.3:
            when["roles"] = self._some(CALLERS, 2)
        roles = sorted({one.role for one in arguments if one.role})
        if roles and random.random() < 0.15:
            when["argument_roles"] = self._some(roles, 2)
        if random.random() < 0.1:
            when.update(random.choice(({"read_only": first in _READING}, {"destructive": first in _ENDING})))
        if roles and random.random() < 0.6:
            when["arguments"] = [self._matcher(role) for role in self._some(roles, 2)]
        if random.random() < (0.35 if len(when) > 2 else 0.7):
            when["logic"] = self._logic(arguments)
        return when, random.choice(("allow", "allow", "allow", "deny", "deny", "escalate", "escalate"))

    def _matcher(self, role: str) -> Json:
        kind = KINDS[role]
        roles = [role]
        if self._random.random() < 0.2:
            roles = sorted(other for other in self._roles if KINDS[other] == kind)
        among = self._some(_ENTRIES[kind], 3)
        lists = [f"@{name}" for name, one in self._lists.items() if one["kind"] == kind]
        if lists and self._random.random() < 0.4:
            among.append(self._random.choice(lists))
        matcher: Json = {"argument_roles": roles, "kind": kind, "among": among}
        quantifier = self._random.choice(_QUANTIFIERS)
        return matcher if quantifier is None else matcher | {"quantifier": quantifier}

    def _logic(self, arguments: Sequence[Argument]) -> Json:
        random = self._random
        if random.random() < self._shape.opaque:
            values = [{"var": f"arguments.{random.choice(arguments).name}"} for _ in range(2)]
            return random.choice(_OPAQUE)(random, *values)
        atoms = [self._atom(random.choice(arguments)) for _ in range(random.choice((1, 1, 2, 3)))]
        if len(atoms) == 1:
            return atoms[0] if random.random() < 0.8 else {"!": atoms}
        return {random.choice(("and", "or")): atoms}

    def _atom(self, argument: Argument) -> Json:
        random = self._random
        value = {"var": f"arguments.{argument.name}"}
        match argument.schema.get("type"):
            case "number" | "integer":
                return {random.choice(("<", "<=", ">", ">=")): [value, random.choice(NUMBERS)]}
            case "boolean":
                return random.choice(({"!": [value]}, {"==": [value, True]}, {"!!": [value]}))
        if "enum" in argument.schema and random.random() < 0.9:
            allowed = argument.schema["enum"]
            if random.random() < 0.5:
                return {random.choice(("==", "!=", "===")): [value, random.choice(allowed)]}
            return {"in": [value, self._some(allowed, 2)]}
        if random.random() < 0.5:
            return {"in": [random.choice(CALLERS), {"var": "roles"}]}
        return {"missing": [f"arguments.{argument.name}"]} if random.random() < 0.5 else {"!!": [value]}


_ENTRIES: dict[str, Sequence[str]] = {
    "path": PATHS,
    "domain": (*HOSTS, *(f"*.{host}" for host in HOSTS[:3])),
    "email": (
        *(f"{name}@{host}" for name in NAMES for host in HOSTS[:2]),
        *(f"*@{host}" for host in HOSTS[:3]),
        "*@*.a.example",
    ),
    "identifier": LABELS,
}

# Conditions that no analysis looks into: two arguments at once, arithmetic, concatenated texts.
_OPAQUE: tuple[Callable[[Random, Json, Json], Json], ...] = (
    lambda random, one, other: {"<": [{"+": [one, other]}, random.choice(NUMBERS)]},
    lambda random, one, other: {"==": [{"cat": [one, other]}, random.choice(_MODES)]},
    lambda _random, one, other: {"<": [one, other]},
    lambda random, one, _other: {"some": [one, {"==": [{"var": ""}, random.choice(LABELS)]}]},
)


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
    """Return calls that try to evade the rules: any JSON, lookalikes, unknown tools."""
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


PIECES = {
    "path": ("/", "/", "..", ".", "a", "b", "ab", "A", "~", "\0", " ", "é", "...", "%2e", "\\", "/a/b"),
    "host": (
        "a",
        "b",
        "a.b",
        ".",
        "-",
        "_",
        "A",
        "0",
        "1",
        "01",
        "0x",
        "0x1f",
        "255",
        "256",
        ":80",
        ":",
        "é",
    ),
    "url": (
        "://",
        "https://",
        "x",
        "@",
        "/",
        "?",
        "#",
        ":",
        "a.b",
        "[",
        "]",
        "::",
        "::1",
        "1.2.3.4",
        "\\",
        " ",
    ),
    "bracketed": ("1", "::", ":", "ffff", "0", "1.2.3.4", "00f", "12345", "1.2.3", "a", "g", "%1"),
    "address": ("a", "B", "+", "@", "a.b", ".", "*", "é", "\u212a", '"', " ", "[1.2.3.4]", "x" * 64),
}


def random_text(random: Random) -> str:
    """A text of a few pieces."""
    pieces = PIECES[random.choice((*PIECES,))]
    text = "".join(random.choices(pieces, k=random.choice((1, 2, 3, 4, 6, 9))))
    kind = random.random()
    if kind < 0.15:
        return f"[{text}]{random.choice(('', '.', ':1', ':123456'))}"
    if kind < 0.25:
        return "/" + text
    if kind < 0.35:
        return f"{random.choice(('https://', 'x+y://u:v@', '1://'))}{text}"
    if kind < 0.42:
        return f"a@{text}"
    if kind < 0.45:
        return ".".join([text[:63] or "a"] * random.choice((20, 60, 127, 128)))
    return text
