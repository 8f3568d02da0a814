"""Static checks of the tools of a policy, and lookups for the checks of its rules."""

from __future__ import annotations

from collections import defaultdict
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from peripety.errors import Finding, Severity
from peripety.sim.policies.checks.schemas import MAX_LOOKS, looks
from peripety.sim.schema import defects, segments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Presence", "Tools", "check_tools"]

# Tools that are examined for one variable; the remaining ones may declare it.
_TOOLS_LOOKED_AT = 256

# Keywords that may allow more than the own `properties` of a schema.
_ELSEWHERE = frozenset(
    {"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "patternProperties"}
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
            message = f"duplicate tool '{_shown(tool)}', already at /tools/{first}"
            yield Finding("DUPLICATE_TOOL", f"/tools/{index}", message)
        if "input_schema" not in tool:
            continue
        wrong = _defects(tool["input_schema"])
        for defect in wrong:
            place = f"/tools/{index}/input_schema{defect.path}"
            yield Finding("BAD_SCHEMA", place, defect.message)
        if not wrong:
            yield from _check_argument_roles(tool, f"/tools/{index}")


def _defects(schema: Mapping[str, Any]) -> list[Finding]:
    if looks(schema) > MAX_LOOKS:
        message = f"more than {MAX_LOOKS} subschemas apply to one value; reduce the references between them"
        return [Finding("BAD_SCHEMA", "", message)]
    return defects(schema)


def _check_argument_roles(tool: Mapping[str, Any], place: str) -> Iterator[Finding]:
    for index, argument in enumerate(tool.get("argument_roles", ())):
        if _presence(tool["input_schema"], segments(argument["path"])) is not Presence.POSSIBLE:
            message = f"the input_schema of '{_shown(tool)}' has nothing at {argument['path'][:80]}"
            yield Finding(
                "UNKNOWN_ARGUMENT", f"{place}/argument_roles/{index}/path", message, Severity.WARNING
            )


def _shown(tool: Mapping[str, Any]) -> str:
    return f"{tool['server_name'][:80]}/{tool['tool_name'][:80]}"


class Tools:
    """Tools of a policy as bit sets: bit `n` is tool `n`."""

    def __init__(self, tools: Sequence[Mapping[str, Any]]) -> None:
        self._tools = tools
        self.all = (1 << len(tools)) - 1
        self.of_server: defaultdict[str, int] = defaultdict(int)
        self.of_name: defaultdict[str, int] = defaultdict(int)
        self.with_role: defaultdict[str, int] = defaultdict(int)
        self.read_only = self.destructive = 0
        for index, tool in enumerate(tools):
            bit = 1 << index
            self.of_server[tool["server_name"]] |= bit
            self.of_name[tool["tool_name"]] |= bit
            for role in {argument["role"] for argument in tool.get("argument_roles", ())}:
                self.with_role[role] |= bit
            self.read_only |= bit if tool.get("read_only") else 0
            self.destructive |= bit if tool.get("destructive") else 0

    def presence(self, among: int, path: Sequence[str]) -> Presence:
        """Return the strongest presence of an argument in a set of tools.

        A tool without a schema may have any argument.
        """
        best = Presence.IMPOSSIBLE
        for looked_at, tool in enumerate(self._members(among)):
            if looked_at == _TOOLS_LOOKED_AT or "input_schema" not in tool:
                return Presence.POSSIBLE
            best = max(best, _presence(tool["input_schema"], path))
            if best is Presence.POSSIBLE:
                break
        return best

    def _members(self, among: int) -> Iterator[Mapping[str, Any]]:
        while among:
            lowest = among & -among
            yield self._tools[lowest.bit_length() - 1]
            among ^= lowest


def _presence(schema: Any, path: Sequence[str]) -> Presence:
    for segment in path:
        if schema is False:
            return Presence.IMPOSSIBLE
        if not isinstance(schema, dict) or not _ELSEWHERE.isdisjoint(schema):
            return Presence.POSSIBLE
        properties = schema.get("properties", {})
        if segment in properties and _may_be(schema, "object"):
            schema = properties[segment]
        elif segment.isdecimal() and _may_be(schema, "array"):
            return Presence.POSSIBLE
        elif schema.get("additionalProperties") is False or not _may_be(schema, "object"):
            return Presence.IMPOSSIBLE
        else:
            return Presence.UNDECLARED if properties else Presence.POSSIBLE
    return Presence.IMPOSSIBLE if schema is False else Presence.POSSIBLE


def _may_be(schema: Mapping[str, Any], kind: str) -> bool:
    return kind in schema.get("type", kind)
