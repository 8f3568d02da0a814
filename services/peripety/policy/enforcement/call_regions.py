"""Regions of calls: the observed calls of a tool as sets of values by argument, joined without additions.

Two regions that differ in the values of one argument are joined. Their union then contains nothing else,
except the numbers between the observed ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety.author.policy_author.permissions import MOST_LISTED_VALUES, CallLimit
from peripety.author.policy_author.vocabulary import DescribedTool, Test, to_presence, value_kind
from peripety.engine import ToolRequest
from peripety.engine.policies.policy import normalize_value
from peripety.engine.schema_validation import parse_pointer
from peripety.policy.enforcement.decision_log import REDACTED, call_hash

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.author.policy_author.vocabulary import ToolArgument


Key = tuple[str, str]
"""Key of a limited value: `role` or `argument`, and its name."""
Values = frozenset[Any] | tuple[float, float]
"""Texts, or the smallest and the largest number."""


@dataclass(frozen=True, slots=True)
class CallRegion:
    """Calls of one tool that agree in which arguments are set.

    Attributes:
        tool: the tool.
        fixed: limits that all calls share.
        values: the values by key.
        calls: the observed calls with the numbers of their lines.
    """

    tool: DescribedTool
    fixed: tuple[CallLimit, ...]
    values: Mapping[Key, Values]
    calls: tuple[tuple[int, ToolRequest], ...]


class InexpressibleError(Exception):
    """A call cannot be expressed as limits."""


class RegionReader:
    """Reader of single calls.

    Args:
        tools: the tools, as in a policy document.
        opened: names or roles of arguments that stay unlimited.
    """

    def __init__(self, tools: Sequence[Mapping[str, Any]], opened: frozenset[str]) -> None:
        self._tools = {
            (one["server_name"], one["tool_name"]): DescribedTool(one["server_name"], one["tool_name"], one)
            for one in tools
        }
        self._opened = opened

    def read(self, entry: Mapping[str, Any]) -> CallRegion:
        """Return the region of one call.

        Args:
            entry: its line in a decision log.

        Raises:
            InexpressibleError: a limited argument has a value that no rule can see.
        """
        request = ToolRequest(
            entry["server_name"], entry["tool_name"], entry["arguments"], tuple(entry["roles"])
        )
        tool = self._tools.get((request.server_name, request.tool_name))
        if tool is None:
            name = f"{request.server_name}/{request.tool_name}"
            raise InexpressibleError(f"the policy has no tool {name}; add it to tools.json")
        is_redacted = call_hash(request) != entry["call_hash"]
        fixed = [CallLimit((Test("roles", values=(role,)),)) for role in request.roles]
        values: dict[Key, Values] = {}
        for role in dict.fromkeys(one["role"] for one in tool.document.get("argument_roles", ())):
            found = frozenset(self._read_role(tool, request, role, is_redacted=is_redacted))
            if found:
                values["role", role] = found
        known = {one.name: one for one in tool.arguments if one.name}
        for name in dict.fromkeys([*known, *request.arguments]):
            role = known[name].role if name in known else ""
            if {name, role} & self._opened:
                continue
            if name not in known:
                about = f"{name} of {tool.server}/{tool.name}"
                raise InexpressibleError(f"{about} is not in its input schema")
            value = request.arguments.get(name)
            limit = _limit_presence(tool, known[name], value)
            if limit is not None:
                fixed.append(limit)
            elif not role:
                values["argument", name] = _read_value(tool, name, value, is_redacted=is_redacted)
        return CallRegion(tool, tuple(fixed), values, ((entry["sequence"], request),))

    def _read_role(
        self, tool: DescribedTool, request: ToolRequest, role: str, *, is_redacted: bool
    ) -> Iterator[str]:
        """Yield the values of the arguments with a role, in normal form."""
        for one in tool.document["argument_roles"]:
            segments = parse_pointer(one["path"])
            name = segments[0] if len(segments) == 1 else role
            if one["role"] != role or {role, name} & self._opened:
                continue
            value: Any = request.arguments
            for segment in segments:
                value = value.get(segment) if isinstance(value, dict) else None
            about = f"{'/'.join(segments)} of {tool.server}/{tool.name}"
            way_out = describe_way_out(name)
            for text in value if isinstance(value, list) else () if value is None else (value,):
                if is_redacted and text == REDACTED:
                    raise InexpressibleError(f"{about} is redacted in the log{way_out}")
                normal = normalize_value(value_kind(role), text) if isinstance(text, str) else None
                if normal is None:
                    raise InexpressibleError(f"{about} has a value that no rule can read{way_out}")
                yield normal


def _limit_presence(tool: DescribedTool, argument: ToolArgument, value: Any) -> CallLimit | None:
    """Return the limit for an argument that is missing, a flag, or one of several with a role."""
    if argument.is_flag and (value is None or isinstance(value, bool)):
        return CallLimit((Test("choice", (argument.name,), values=(True,)),), is_negated=value is not True)
    if value is None:
        return CallLimit((to_presence(argument),), is_negated=True)
    if not argument.role:
        return None
    if value == []:
        about = f"{argument.name} of {tool.server}/{tool.name}"
        raise InexpressibleError(f"{about} is an empty list{describe_way_out(argument.name)}")
    is_shared = sum(one.role == argument.role for one in tool.arguments) > 1
    if not is_shared or argument.name in tool.required:
        return None
    # The values of the role may be those of the other arguments.
    return CallLimit((to_presence(argument),))


def _read_value(tool: DescribedTool, name: str, value: Any, *, is_redacted: bool) -> Values:
    """Return the value of an argument without a role."""
    wrong = ""
    if is_redacted and _is_redacted(value):
        wrong = "is redacted in the log"
    elif isinstance(value, bool) or not isinstance(value, str | int | float):
        wrong = f"is {'a list' if isinstance(value, list) else 'an object'} without a role"
    elif value == "":
        wrong = "is an empty text"
    if wrong:
        raise InexpressibleError(f"{name} of {tool.server}/{tool.name} {wrong}{describe_way_out(name)}")
    if isinstance(value, str):
        return frozenset([value])
    number = int(value) if value == int(value) else value
    return number, number


def _is_redacted(value: Any) -> bool:
    """Return True if a value, or a value in it, is redacted."""
    if isinstance(value, dict):
        return any(map(_is_redacted, value.values()))
    return any(map(_is_redacted, value)) if isinstance(value, list) else value == REDACTED


def describe_way_out(argument: str) -> str:
    """Return the end of a message about an argument: how it can be left open."""
    return f"; --any {argument} leaves it open"


def join_regions(regions: Sequence[CallRegion]) -> list[CallRegion]:
    """Join regions that differ in one value only, so that their union contains nothing else.

    Numbers are joined first: "at most 5 for a, at most 9 for b" is closer to the calls than the other order.
    """
    keys = sorted(
        {(not isinstance(value, tuple), key) for region in regions for key, value in region.values.items()}
    )
    while True:
        count = len(regions)
        for _, key in keys:
            joined: dict[str, CallRegion] = {}
            for region in regions:
                same = f"{type(region.values.get(key))} {describe_region(region, key)}"
                known = joined.get(same)
                joined[same] = _join_pair(known, region, key) if known else region
            regions = [*joined.values()]
        if len(regions) == count:
            return [*regions]


def describe_region(region: CallRegion, without: Key | None = None) -> str:
    """Return a text that equal regions share; equal up to one value, with `without`."""
    values = sorted((key, sorted(map(repr, value))) for key, value in region.values.items() if key != without)
    return repr((region.tool, region.fixed, values))


def _join_pair(first: CallRegion, second: CallRegion, key: Key) -> CallRegion:
    values = dict(first.values)
    if key in values:
        one, other = values[key], second.values[key]
        values[key] = (
            (min(*one, *other), max(*one, *other)) if isinstance(one, tuple) else one | frozenset(other)
        )
    return replace(first, values=values, calls=first.calls + second.calls)


def split_values(region: CallRegion) -> Iterator[CallRegion]:
    """Yield regions with few texts of each argument that has no role: only values of roles can be lists."""
    for key, value in region.values.items():
        if key[0] == "argument" and isinstance(value, frozenset) and len(value) > MOST_LISTED_VALUES:
            texts = sorted(value)
            for first in range(0, len(texts), MOST_LISTED_VALUES):
                some = texts[first : first + MOST_LISTED_VALUES]
                part = replace(region, values={**region.values, key: frozenset(some)})
                own = [one for one in part.calls if one[1].arguments.get(key[1]) in some]
                yield from split_values(replace(part, calls=tuple(own)))
            return
    yield region
