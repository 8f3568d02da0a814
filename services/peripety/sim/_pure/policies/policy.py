"""Compiled policy of the reference: the deciding rule of a request, and the requests that rules match."""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING, Any

from peripety.sim._core import CoreError
from peripety.sim._pure.border import parse, parse_canonical
from peripety.sim._pure.canonical import canonical
from peripety.sim._pure.policies.conditions import Condition
from peripety.sim._pure.policies.entries import Lists
from peripety.sim._pure.policies.tools import Annotation, Read

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Policy"]

_NO_RULE = -1
_UNKNOWN_TOOL = -2


class Policy:
    """Compiled policy.

    Args:
        document: in canonical form, validated.
    """

    def __init__(self, document: bytes) -> None:
        spec = parse_canonical(document)
        self._tools = {(tool["server_name"], tool["tool_name"]): Annotation(tool) for tool in spec["tools"]}
        self._lists = Lists(spec.get("lists", {}))
        rules = [*spec.get("invariants", ()), *spec["rules"]]
        self._conditions = self._compiled(rules)
        self._allows = [rule["then"] == "allow" for rule in rules]
        self._fitting: dict[tuple[str, str], list[int]] = {}

    def requests(self, requests: Sequence[bytes]) -> list[Read | None]:
        """Parse requests; None for one with an unknown tool."""
        return [self._read(parse(request)) for request in requests]

    def read(self, requests: object) -> None:
        """Return None: the reference prepares requests from JSON only."""

    def decided(self, request: object, /) -> None:
        """Return None: the reference decides prepared requests only."""

    def decided_each(self, requests: object, /) -> None:
        """Return None: the reference decides prepared requests only."""

    def deciding(self, requests: list[Read | None]) -> tuple[bytes, bytes]:
        """Return the deciding rules, and the requests with conditions that failed before them."""
        found = [self._found(read) for read in requests]
        deciding = pack(f"<{len(found)}i", *(index for index, _ in found))
        return deciding, _bits(number for number, (_, errors) in enumerate(found) if errors)

    def unevaluated(self, requests: list[Read | None], index: int) -> bytes:
        """Return the conditions up to the deciding rule that could not be evaluated for a request."""
        return canonical(
            [
                {"rule": rule, "code": error.code, "message": error.message, "path": error.path}
                for rule, error in self._found(requests[index])[1]
            ]
        )

    def matches(self, requests: list[Read | None], rules: bytes | None) -> list[tuple[bytes, bytes]]:
        """Return for each rule the requests that it matches, and those for which it fails."""
        conditions = self._conditions if rules is None else self._compiled(parse_canonical(rules))
        by_tool: dict[Annotation, list[int]] = {}
        for number, read in enumerate(requests):
            if read is not None:
                by_tool.setdefault(read.tool, []).append(number)
        return [_matches(condition, requests, by_tool) for condition in conditions]

    def _compiled(self, rules: list[dict[str, Any]]) -> list[Condition]:
        return [Condition(rule["when"], self._lists) for rule in rules]

    def _read(self, request: dict[str, Any]) -> Read | None:
        tool = self._tools.get((request["server_name"], request["tool_name"]))
        return None if tool is None else Read(request, tool)

    def _found(self, read: Read | None) -> tuple[int, list[tuple[int, CoreError]]]:
        if read is None:
            return _UNKNOWN_TOOL, []
        errors: list[tuple[int, CoreError]] = []
        for index in self._rules_for(read.tool):
            try:
                if self._conditions[index].holds(read):
                    return index, errors
            except CoreError as error:
                errors.append((index, error))
                if not self._allows[index]:
                    return index, errors
        return _NO_RULE, errors

    def _rules_for(self, tool: Annotation) -> list[int]:
        """Return the rules that can match calls of a tool."""
        name = (tool.server, tool.name)
        fitting = self._fitting.get(name)
        if fitting is None:
            fitting = [index for index, condition in enumerate(self._conditions) if condition.fits(tool)]
            self._fitting[name] = fitting
        return fitting


def _matches(
    condition: Condition, requests: list[Read | None], by_tool: dict[Annotation, list[int]]
) -> tuple[bytes, bytes]:
    holds: list[int] = []
    fails: list[int] = []
    for tool, numbers in by_tool.items():
        if not condition.fits(tool):
            continue
        for number in numbers:
            read = requests[number]
            try:
                if read is not None and condition.holds(read):
                    holds.append(number)
            except CoreError:
                fails.append(number)
    return _bits(holds), _bits(fails)


def _bits(numbers: Iterable[int]) -> bytes:
    bits = bytearray()
    for number in numbers:
        byte, bit = divmod(number, 8)
        if byte >= len(bits):
            bits.extend(bytes(byte + 1 - len(bits)))
        bits[byte] |= 1 << bit
    return bytes(bits)
