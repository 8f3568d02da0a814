"""Compiled policy of the reference: the deciding rule of a request, and the requests that rules match.

The order is that of docs/reference/policies-semantics.md. A condition is a filter by tool, and then the
other members as tests in a fixed order.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import pack
from typing import TYPE_CHECKING, Any

from peripety.engine._reference.jsonlogic import evaluate
from peripety.engine._reference.jsonlogic_operators import is_truthy
from peripety.engine._reference.policy_values import NORMALIZERS, ReferenceLists
from peripety.engine.backend_protocol import EngineError
from peripety.engine.canonical_json import canonicalize
from peripety.engine.strict_json import parse, parse_canonical

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence


@dataclass(frozen=True, slots=True)
class _ConditionMember:
    """One member of a condition: its test and its path in the rule."""

    place: str
    matches: Callable[[PreparedRequest], bool]


class CompiledCondition:
    """Condition of a rule.

    Args:
        when: the condition of the document.
        lists: the lists that it may refer to.
    """

    def __init__(self, when: dict[str, Any], lists: ReferenceLists) -> None:
        self._when = when
        self._members = [*_iter_members(when, lists)]

    def can_match_tool(self, tool: ReferenceTool) -> bool:
        """Return True if it can match calls of a tool.

        These tests cannot fail. If one is false, the condition is false before anything fails: members that
        depend on the tool precede all others but `roles`, which cannot fail either.
        """
        when = self._when
        return (
            ("servers" not in when or tool.server in when["servers"])
            and ("tools" not in when or tool.name in when["tools"])
            and ("read_only" not in when or tool.read_only is when["read_only"])
            and ("destructive" not in when or tool.destructive is when["destructive"])
            and ("argument_roles" not in when or not tool.roles.isdisjoint(when["argument_roles"]))
        )

    def matches(self, read: PreparedRequest) -> bool:
        """Return True if it matches a request whose tool fits.

        Raises:
            EngineError: it cannot be evaluated; the path is that of the member.
        """
        for member in self._members:
            try:
                if not member.matches(read):
                    return False
            except EngineError as error:
                raise EngineError(error.code, error.message, member.place) from None
        return True


def _iter_members(when: dict[str, Any], lists: ReferenceLists) -> Iterator[_ConditionMember]:
    """Yield the members that depend on more than the tool."""
    if "roles" in when:
        roles = frozenset(when["roles"])
        yield _ConditionMember("/when/roles", lambda read: not roles.isdisjoint(read.roles))
    for index, matcher in enumerate(when.get("arguments", ())):
        yield _ConditionMember(f"/when/arguments/{index}", _compile_matcher(matcher, lists))
    if "logic" in when:
        logic = when["logic"]
        yield _ConditionMember("/when/logic", lambda read: is_truthy(evaluate(logic, read.data)))


def _compile_matcher(matcher: dict[str, Any], lists: ReferenceLists) -> Callable[[PreparedRequest], bool]:
    roles, kind = frozenset(matcher["argument_roles"]), matcher["kind"]
    match = lists.expand(kind, matcher["among"]).match
    quantifier = matcher.get("quantifier", "all")

    def holds(read: PreparedRequest) -> bool:
        values = read.normalized_values(roles, kind)
        if not values:
            return False
        matching = map(match, values)
        if quantifier in {"all", "not_all"}:
            return all(matching) is (quantifier == "all")
        return any(matching) is (quantifier == "any")

    return holds


class ReferenceTool:
    """Annotation of a tool.

    Attributes:
        server: the server of the tool.
        name: the name of the tool.
        roles: the roles of its arguments.
        read_only: True if annotated as read-only.
        destructive: True if annotated as destructive.
    """

    def __init__(self, tool: dict[str, Any]) -> None:
        self.server: str = tool["server_name"]
        self.name: str = tool["tool_name"]
        self.read_only = bool(tool.get("read_only", False))
        self.destructive = bool(tool.get("destructive", False))
        self._roles_at: dict[str, set[str]] = {}
        for argument in tool.get("argument_roles", ()):
            self._roles_at.setdefault(argument["path"], set()).add(argument["role"])
        self.roles = frozenset(role for roles in self._roles_at.values() for role in roles)

    def find_paths(self, roles: frozenset[str]) -> Iterator[str]:
        """Return the paths of the arguments with one of the roles, in annotation order."""
        return (path for path, at in self._roles_at.items() if not roles.isdisjoint(at))


class PreparedRequest:
    """Prepared request; its arguments are normalized on first use.

    Args:
        request: the request.
        tool: the annotation of its tool.
    """

    def __init__(self, request: dict[str, Any], tool: ReferenceTool) -> None:
        self.tool = tool
        self.roles = frozenset(request["roles"])
        self.data = {
            "server": tool.server,
            "tool": tool.name,
            "arguments": request["arguments"],
            "roles": request["roles"],
        }
        self._normalized: dict[tuple[frozenset[str], str], list[str] | EngineError] = {}

    def normalized_values(self, roles: frozenset[str], kind: str) -> list[str]:
        """Return the normalized values of the arguments with one of the roles.

        Raises:
            EngineError: `BAD_VALUE`, or the code of the kind, for the first invalid value.
        """
        found = self._normalized.get((roles, kind))
        if found is None:
            try:
                found = [NORMALIZERS[kind](text) for text in self._iter_texts(roles)]
            except EngineError as error:
                found = error
            self._normalized[roles, kind] = found
        if isinstance(found, EngineError):
            raise found
        return found

    def _iter_texts(self, roles: frozenset[str]) -> Iterator[str]:
        for path in self.tool.find_paths(roles):
            there = _look_up(self.data["arguments"], path)
            for value in there if isinstance(there, list) else () if there is None else (there,):
                if not isinstance(value, str):
                    message = "an argument with a role has to be a text or a list of texts"
                    raise EngineError("BAD_VALUE", message)
                yield value


def _look_up(value: Any, path: str) -> Any:
    for escaped in path.split("/")[1:]:
        segment = escaped.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(segment)
        elif isinstance(value, list) and _is_index(segment) and int(segment) < len(value):
            value = value[int(segment)]
        else:
            return None
    return value


def _is_index(segment: str) -> bool:
    # No array has an index with more digits.
    digits = segment.isascii() and segment.isdigit() and len(segment) <= len("100000")
    return digits and (segment == "0" or not segment.startswith("0"))


_NO_RULE = -1
_UNKNOWN_TOOL = -2


class ReferencePolicy:
    """Compiled policy.

    Args:
        document: in canonical form, validated.
    """

    def __init__(self, document: bytes) -> None:
        spec = parse_canonical(document)
        self._tools = {
            (tool["server_name"], tool["tool_name"]): ReferenceTool(tool) for tool in spec["tools"]
        }
        self._lists = ReferenceLists(spec.get("lists", {}))
        rules = [*spec.get("invariants", ()), *spec["rules"]]
        self._conditions = self._compile_conditions(rules)
        self._allows = [rule["then"] == "allow" for rule in rules]
        self._fitting: dict[tuple[str, str], list[int]] = {}

    def parse_requests(self, requests: Sequence[bytes]) -> list[PreparedRequest | None]:
        """Parse requests; None for one with an unknown tool."""
        return [self._prepare_request(parse(request)) for request in requests]

    def prepare(self, requests: object) -> None:
        """Return None: the reference prepares requests from JSON only."""

    def decide_one(self, request: object, /) -> None:
        """Return None: the reference decides prepared requests only."""

    def decide_many_fast(self, requests: object, /) -> None:
        """Return None: the reference decides prepared requests only."""

    def decide_many(self, requests: list[PreparedRequest | None]) -> tuple[bytes, bytes]:
        """Return the deciding rules, and the requests with conditions that failed before them."""
        found = [self._find_deciding(read) for read in requests]
        deciding = pack(f"<{len(found)}i", *(index for index, _ in found))
        return deciding, _pack_bits(number for number, (_, errors) in enumerate(found) if errors)

    def explain_errors(self, requests: list[PreparedRequest | None], index: int) -> bytes:
        """Return the conditions up to the deciding rule that could not be evaluated for a request."""
        return canonicalize(
            [
                {"rule": rule, "code": error.code, "message": error.message, "path": error.path}
                for rule, error in self._find_deciding(requests[index])[1]
            ],
        )

    def match_rules(
        self,
        requests: list[PreparedRequest | None],
        rules: bytes | None,
    ) -> list[tuple[bytes, bytes]]:
        """Return for each rule the requests that it matches, and those for which it fails."""
        conditions = self._conditions if rules is None else self._compile_conditions(parse_canonical(rules))
        by_tool: dict[ReferenceTool, list[int]] = {}
        for number, read in enumerate(requests):
            if read is not None:
                by_tool.setdefault(read.tool, []).append(number)
        return [_match_condition(condition, requests, by_tool) for condition in conditions]

    def _compile_conditions(self, rules: list[dict[str, Any]]) -> list[CompiledCondition]:
        return [CompiledCondition(rule["when"], self._lists) for rule in rules]

    def _prepare_request(self, request: dict[str, Any]) -> PreparedRequest | None:
        tool = self._tools.get((request["server_name"], request["tool_name"]))
        return None if tool is None else PreparedRequest(request, tool)

    def _find_deciding(self, read: PreparedRequest | None) -> tuple[int, list[tuple[int, EngineError]]]:
        if read is None:
            return _UNKNOWN_TOOL, []
        errors: list[tuple[int, EngineError]] = []
        for index in self._rules_for(read.tool):
            try:
                if self._conditions[index].matches(read):
                    return index, errors
            except EngineError as error:
                errors.append((index, error))
                if not self._allows[index]:
                    return index, errors
        return _NO_RULE, errors

    def _rules_for(self, tool: ReferenceTool) -> list[int]:
        """Return the rules that can match calls of a tool."""
        name = (tool.server, tool.name)
        fitting = self._fitting.get(name)
        if fitting is None:
            fitting = [
                index for index, condition in enumerate(self._conditions) if condition.can_match_tool(tool)
            ]
            self._fitting[name] = fitting
        return fitting


def _match_condition(
    condition: CompiledCondition,
    requests: list[PreparedRequest | None],
    by_tool: dict[ReferenceTool, list[int]],
) -> tuple[bytes, bytes]:
    holds: list[int] = []
    fails: list[int] = []
    for tool, numbers in by_tool.items():
        if not condition.can_match_tool(tool):
            continue
        for number in numbers:
            read = requests[number]
            try:
                if read is not None and condition.matches(read):
                    holds.append(number)
            except EngineError:
                fails.append(number)
    return _pack_bits(holds), _pack_bits(fails)


def _pack_bits(numbers: Iterable[int]) -> bytes:
    bits = bytearray()
    for number in numbers:
        byte, bit = divmod(number, 8)
        if byte >= len(bits):
            bits.extend(bytes(byte + 1 - len(bits)))
        bits[byte] |= 1 << bit
    return bytes(bits)
