"""Compiled policy: decisions about requests, and the requests that single rules match."""

from __future__ import annotations

import json
from array import array
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from peripety.errors import InvalidArgumentError
from peripety.sim._core import CoreError
from peripety.sim._pure.border import MAX_BYTES, MAX_NODES
from peripety.sim._pure.canonical import canonical
from peripety.sim._values import loads
from peripety.sim.policies.requests import encoded, refused
from peripety.sim.policies.types import (
    NO_RULE,
    UNKNOWN_TOOL,
    Decided,
    Decision,
    Matches,
    Unevaluated,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.sim._core import CorePolicy, CoreRequests
    from peripety.sim.policies.types import ToolRequest

__all__ = ["Policy", "Requests", "fits_document"]

_BEFORE_VALUES = (
    b"[",
    b"{",
    b":",
    b",",
)  # one of them precedes each value; strings may contain them too, so the count is an upper bound

_NO_RULE = Decided(Decision.DENY, NO_RULE, by_invariant=False, reasons=("no rule takes hold",))
_UNKNOWN = Decided(
    Decision.DENY, UNKNOWN_TOOL, by_invariant=True, reasons=("the policy is not about this tool",)
)


class Requests:
    """Requests, prepared once for the tools of a policy. Immutable and thread-safe.

    Attributes:
        requests: the original requests.
        core: the backend's object.
        tools: the tools they were prepared for.
    """

    def __init__(
        self, requests: Sequence[ToolRequest], core: CoreRequests, tools: Sequence[Mapping[str, Any]]
    ) -> None:
        self.requests = tuple(requests)
        self.core = core
        self.tools = tools

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self.requests)


class Policy:
    """Compiled policy. Immutable and thread-safe.

    Attributes:
        document: the policy in canonical form.
        policy_hash: SHA-256 of `document`, in hex.
        spec: the parsed document; shared, so read-only.
        rules: the invariants, then the rules, in order of evaluation; shared as well.
        invariants: number of invariants.
    """

    def __init__(self, document: bytes, core: CorePolicy) -> None:
        self.document = document
        self.policy_hash = sha256(document).hexdigest()
        self.spec: Mapping[str, Any] = loads(document)
        self.invariants = len(self.spec.get("invariants", ()))
        self.rules: tuple[Mapping[str, Any], ...] = (
            *self.spec.get("invariants", ()),
            *self.spec["rules"],
        )
        # Indexed by the deciding rule as the backend reports it; decisions without a rule have negative
        # indices.
        self._outcomes = [*map(self._outcome, range(len(self.rules))), _UNKNOWN, _NO_RULE]
        self._core = core

    def prepare(self, requests: Sequence[ToolRequest]) -> Requests:
        """Prepare requests once for repeated decisions.

        The result is valid for this policy and for every other one with the same `tools`.

        Raises:
            InvalidArgumentError: `REQUEST_INVALID`; the violations name each request and field.
        """
        requests = tuple(requests)  # iterated more than once
        read = self._core.read(requests)
        if read is not None:
            return Requests(requests, read, self.spec["tools"])
        documents = encoded(requests)
        try:
            return Requests(requests, self._core.requests(documents), self.spec["tools"])
        except CoreError:
            raise refused(requests) from None

    def decide(self, request: ToolRequest) -> Decided:
        """Decide a request.

        Raises:
            InvalidArgumentError: as `prepare`.
        """
        deciding = self._core.decided(request)
        if deciding is None:
            return self._decide_prepared(self.prepare([request]))[0]
        return self._outcomes[deciding]

    def decide_many(self, requests: Requests | Sequence[ToolRequest]) -> list[Decided]:
        """Decide many requests.

        Raises:
            InvalidArgumentError: as `prepare`.
            ValueError: the requests were prepared for other tools.
        """
        if isinstance(requests, Requests):
            return self._decide_prepared(requests)
        requests = tuple(requests)  # as in `prepare`
        found = self._core.decided_each(requests)
        if found is None:
            return self._decide_prepared(self.prepare(requests))
        decided, left = self._told(found[0]), [*_members(found[1])]
        if left:
            try:
                others = self.prepare([requests[number] for number in left])
            except InvalidArgumentError:
                raise refused(requests) from None
            for number, told in zip(left, self._decide_prepared(others), strict=True):
                decided[number] = told
        return decided

    def deciding(self, requests: Requests) -> Sequence[int]:
        """Return the index in `rules` of the deciding rule of each request; -1: no rule, -2: unknown tool.

        Raises:
            ValueError: the requests were prepared for other tools.
        """
        return _integers(self._core.deciding(self._read(requests))[0])

    def matches(
        self, requests: Requests, rules: Sequence[Mapping[str, Any]] | None = None
    ) -> tuple[Matches, ...]:
        """Evaluate the condition of each rule by itself, independently of earlier rules.

        Args:
            requests: the requests.
            rules: the policy's own `rules` by default. Others, such as mutants, must use its tools and lists
                and have passed the checks of a document.

        Raises:
            ValueError: the requests were prepared for other tools.
        """
        read = self._read(requests)
        return tuple(
            Matches(int.from_bytes(holds, "little"), int.from_bytes(fails, "little"))
            for document in ((None,) if rules is None else _documents(rules))
            for holds, fails in self._core.matches(read, document)
        )

    def _read(self, requests: Requests) -> CoreRequests:
        # Backends identify tools by index, so requests prepared for other tools would be misread.
        if requests.tools is not self.spec["tools"] and requests.tools != self.spec["tools"]:
            raise ValueError("the requests were prepared for a policy with other tools")
        return requests.core

    def _outcome(self, index: int) -> Decided:
        rule = self.rules[index]
        return Decided(
            Decision(rule["then"]),
            rule["id"],
            by_invariant=index < self.invariants,
            reasons=(rule["reason"],),
        )

    def _decide_prepared(self, requests: Requests) -> list[Decided]:
        deciding, errors = self._core.deciding(self._read(requests))
        decided = self._told(deciding)
        for number in _members(errors):
            decided[number] = self._with_errors(decided[number], requests, number)
        return decided

    def _told(self, deciding: bytes) -> list[Decided]:
        return [*map(self._outcomes.__getitem__, _integers(deciding))]

    def _with_errors(self, decided: Decided, requests: Requests, number: int) -> Decided:
        errors = tuple(
            Unevaluated(self.rules[error["rule"]]["id"], error["code"], error["message"], error["path"])
            for error in json.loads(self._core.unevaluated(requests.core, number))
        )
        told = (f"the condition of {error.rule_id} cannot be evaluated: {error.message}" for error in errors)
        return Decided(
            decided.decision, decided.rule_id, decided.by_invariant, (*told, *decided.reasons), errors
        )


def _integers(packed: bytes) -> Sequence[int]:
    integers = array("i")
    integers.frombytes(packed)
    return integers


def _members(bits: bytes) -> Iterator[int]:
    """Yield the numbers in a bit set, in order."""
    for place, byte in enumerate(bits):
        if byte:
            yield from (8 * place + bit for bit in range(8) if byte >> bit & 1)


def _documents(rules: Sequence[Mapping[str, Any]]) -> Iterator[bytes]:
    """Yield the rules as JSON arrays, each within the limits of one document."""
    part: list[bytes] = []
    size = values = 0
    for rule in map(canonical, rules):
        most = _most_values(rule)
        if part and (size + len(rule) >= MAX_BYTES or values + most >= MAX_NODES):
            yield b"[%b]" % b",".join(part)
            part, size, values = [], 0, 0
        part.append(rule)
        size += len(rule) + 1
        values += most + 1
    if part:
        yield b"[%b]" % b",".join(part)


def _most_values(document: bytes) -> int:
    """Return an upper bound of the number of values in a document."""
    return sum(map(document.count, _BEFORE_VALUES))


def fits_document(rule: Mapping[str, Any]) -> bool:
    """Return True if a rule is certainly within the limits of a document, so that `matches` accepts it."""
    document = b"[%b]" % canonical(rule)
    return len(document) <= MAX_BYTES and _most_values(document) < MAX_NODES
