"""Static checks of the tools of a policy, and lookups for the checks of its rules.

The cost of validating arguments is estimated, because shared references in a schema can make it grow
exponentially.
"""

from __future__ import annotations

from collections import defaultdict
from enum import IntEnum
from itertools import chain
from typing import TYPE_CHECKING, Any

from peripety.engine.schema_validation import find_schema_defects, parse_pointer
from peripety.errors import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


MAX_VALIDATION_COST = 4_096
"""Maximum number of subschemas that may be applied to one value."""

_LIST_KEYWORDS = ("allOf", "anyOf", "oneOf")
_SINGLE_KEYWORDS = ("not", "if", "then", "else")
_NAMED_KEYWORDS = ("dependentSchemas", "dependencies")
_REFERENCE_KEYWORDS = ("$ref", "$dynamicRef", "$recursiveRef")
_NESTED_KEYWORDS = (
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
)


def estimate_validation_cost(schema: Mapping[str, Any]) -> int:
    """Return the maximum number of subschemas applied to one value, capped at `MAX_VALIDATION_COST` + 1.

    A recursive reference inside a nested value counts once, because the depth of the value bounds it.

    Args:
        schema: a parsed JSON document.
    """
    known = _ReferenceResolver(schema)
    counts: dict[int, int] = {}
    inner_of: dict[int, tuple[list[Any], list[list[Any]]]] = {}
    waiting: list[Any] = [schema]
    while waiting:
        part = waiting[-1]
        place = id(part)
        if place not in inner_of:  # first visit: count the referenced parts before this one
            counts[place] = 1
            inner_of[place] = (same, choices) = (
                [*_iter_same_value_subschemas(part, known)],
                [*_iter_nested_subschemas(part)],
            )
            waiting += (one for one in (*same, *chain(*choices)) if id(one) not in inner_of)
            continue
        waiting.pop()
        same, choices = inner_of[place]
        total = 1 + sum(counts[id(one)] for one in same)
        total += sum(max((counts[id(one)] for one in choice), default=0) for choice in choices)
        counts[place] = min(total, MAX_VALIDATION_COST + 1)
    return counts[id(schema)]


class _ReferenceResolver:
    """Resolver of references inside a schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._root = schema
        self._named: dict[str, Any] = {}
        waiting: list[Any] = [schema]
        while waiting:
            part = waiting.pop()
            if isinstance(part, dict):
                for key, prefix in (("$anchor", "#"), ("$dynamicAnchor", "#"), ("$id", "")):
                    if isinstance(part.get(key), str):
                        self._named[prefix + part[key]] = part
                waiting += part.values()
            elif isinstance(part, list):
                waiting += part

    def resolve(self, reference: Any) -> Any:
        """Return the part that a reference resolves to, or None if it is unknown."""
        if not isinstance(reference, str):
            return None
        if reference in self._named:
            return self._named[reference]
        base, _, path = reference.partition("#")
        part: Any = self._named.get(base, self._root)
        for segment in parse_pointer(path):
            if isinstance(part, dict):
                part = part.get(segment)
            elif isinstance(part, list) and segment.isdecimal() and int(segment) < len(part):
                part = part[int(segment)]
            else:
                return None
        return part


def _iter_same_value_subschemas(part: Mapping[str, Any], known: _ReferenceResolver) -> Iterator[Any]:
    """Yield the subschemas that apply to the same value."""
    found = [one for key in _LIST_KEYWORDS for one in _as_list(part.get(key))]
    found += [part.get(key) for key in _SINGLE_KEYWORDS]
    found += [one for key in _NAMED_KEYWORDS for one in _list_values(part.get(key))]
    found += [known.resolve(part.get(key)) for key in _REFERENCE_KEYWORDS]
    yield from (one for one in found if isinstance(one, dict))


def _iter_nested_subschemas(part: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Yield groups of subschemas for nested values; of each group, at most one applies to a given value."""
    choices = [
        _list_values(part.get("properties")),
        _as_list(part.get("prefixItems")),
        _as_list(part.get("items")),
    ]
    choices += [[one] for one in _list_values(part.get("patternProperties"))]
    choices += [[part.get(key)] for key in _NESTED_KEYWORDS]
    for choice in choices:
        schemas = [one for one in choice if isinstance(one, dict)]
        if schemas:
            yield schemas


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _list_values(value: Any) -> list[Any]:
    return [*value.values()] if isinstance(value, dict) else []


# Tools that are examined for one variable; the remaining ones may declare it.
_MAX_EXAMINED_TOOLS = 256

# Keywords that may allow more than the own `properties` of a schema.
_OPEN_KEYWORDS = frozenset(
    {"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties"},
)


class Presence(IntEnum):
    """Presence of an argument according to the schema of a tool."""

    IMPOSSIBLE = 0
    """The schema rejects the argument."""
    UNDECLARED = 1
    """The schema does not declare the argument, but allows it."""
    POSSIBLE = 2


def check_tools(tools: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """Yield the findings about the tools."""
    seen: dict[tuple[str, str], int] = {}
    for index, tool in enumerate(tools):
        first = seen.setdefault((tool["server_name"], tool["tool_name"]), index)
        if first != index:
            message = f"duplicate tool '{_format_tool(tool)}', already at /tools/{first}"
            yield Finding("DUPLICATE_TOOL", f"/tools/{index}", message)
        if "input_schema" not in tool:
            continue
        wrong = _find_schema_defects(tool["input_schema"])
        for defect in wrong:
            place = f"/tools/{index}/input_schema{defect.path}"
            yield Finding("BAD_SCHEMA", place, defect.message)
        if not wrong:
            yield from _check_argument_roles(tool, f"/tools/{index}")


def _find_schema_defects(schema: Mapping[str, Any]) -> list[Finding]:
    if estimate_validation_cost(schema) > MAX_VALIDATION_COST:
        message = (
            f"more than {MAX_VALIDATION_COST} subschemas apply to one value; reduce "
            "the references between them"
        )
        return [Finding("BAD_SCHEMA", "", message)]
    return find_schema_defects(schema)


def _check_argument_roles(tool: Mapping[str, Any], place: str) -> Iterator[Finding]:
    for index, argument in enumerate(tool.get("argument_roles", ())):
        if _find_presence(tool["input_schema"], parse_pointer(argument["path"])) is not Presence.POSSIBLE:
            message = f"the input_schema of '{_format_tool(tool)}' has nothing at {argument['path'][:80]}"
            yield Finding(
                "UNKNOWN_ARGUMENT",
                f"{place}/argument_roles/{index}/path",
                message,
                Severity.WARNING,
            )


def _format_tool(tool: Mapping[str, Any]) -> str:
    return f"{tool['server_name'][:80]}/{tool['tool_name'][:80]}"


class ToolSets:
    """Tools of a policy as bit sets: bit `n` is tool `n`."""

    def __init__(self, tools: Sequence[Mapping[str, Any]]) -> None:
        self._tools = tools
        self.all_tools = (1 << len(tools)) - 1
        self.by_server: defaultdict[str, int] = defaultdict(int)
        self.by_name: defaultdict[str, int] = defaultdict(int)
        self.by_role: defaultdict[str, int] = defaultdict(int)
        self.read_only = self.destructive = 0
        for index, tool in enumerate(tools):
            bit = 1 << index
            self.by_server[tool["server_name"]] |= bit
            self.by_name[tool["tool_name"]] |= bit
            for role in {argument["role"] for argument in tool.get("argument_roles", ())}:
                self.by_role[role] |= bit
            self.read_only |= bit if tool.get("read_only") else 0
            self.destructive |= bit if tool.get("destructive") else 0

    def find_presence(self, among: int, path: Sequence[str]) -> Presence:
        """Return the strongest presence of an argument in a set of tools.

        A tool without a schema may have any argument.
        """
        best = Presence.IMPOSSIBLE
        for looked_at, tool in enumerate(self._iter_tools(among)):
            if looked_at == _MAX_EXAMINED_TOOLS or "input_schema" not in tool:
                return Presence.POSSIBLE
            best = max(best, _find_presence(tool["input_schema"], path))
            if best is Presence.POSSIBLE:
                break
        return best

    def _iter_tools(self, among: int) -> Iterator[Mapping[str, Any]]:
        while among:
            lowest = among & -among
            yield self._tools[lowest.bit_length() - 1]
            among ^= lowest


def _find_presence(schema: Any, path: Sequence[str]) -> Presence:
    for segment in path:
        if schema is False:
            return Presence.IMPOSSIBLE
        if not isinstance(schema, dict) or not _OPEN_KEYWORDS.isdisjoint(schema):
            return Presence.POSSIBLE
        properties = schema.get("properties", {})
        if segment in properties and _allows_type(schema, "object"):
            schema = properties[segment]
        elif segment.isdecimal() and _allows_type(schema, "array"):
            return Presence.POSSIBLE
        elif schema.get("additionalProperties") is False or not _allows_type(schema, "object"):
            return Presence.IMPOSSIBLE
        else:
            return Presence.UNDECLARED if properties else Presence.POSSIBLE
    return Presence.IMPOSSIBLE if schema is False else Presence.POSSIBLE


def _allows_type(schema: Mapping[str, Any], kind: str) -> bool:
    return kind in schema.get("type", kind)
