"""Compiled policy: decisions about requests, and the requests that single rules match.

`validate_policy` and `compile_policy` read a document. `normalize_value` returns the normal form of an
argument value, for analysis of rules without a request.
"""

from __future__ import annotations

import json
from array import array
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from peripety.engine._backend import ACTIVE_BACKEND
from peripety.engine._reference.policy_values import NORMALIZERS
from peripety.engine.backend_protocol import EngineError
from peripety.engine.canonical_json import canonicalize
from peripety.engine.documents import canonicalize_document
from peripety.engine.json_values import loads
from peripety.engine.policies.requests import encode_requests, invalid_requests_error
from peripety.engine.policies.rule_checks import check_policy
from peripety.engine.policies.types import (
    NO_RULE,
    UNKNOWN_TOOL,
    ConditionError,
    Decision,
    DecisionResult,
    RuleMatches,
)
from peripety.engine.schema_validation import validate_against_schema
from peripety.engine.schemas import POLICY_SPEC, schema_document
from peripety.engine.strict_json import MAX_BYTES, MAX_NODES
from peripety.errors import Finding, InvalidArgumentError, Severity, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.engine.backend_protocol import BackendPolicy, BackendRequests
    from peripety.engine.policies.types import ToolRequest


_VALUE_PREFIXES = (
    b"[",
    b"{",
    b":",
    b",",
)  # one of them precedes each value; strings may contain them too, so the count is an upper bound

_NO_RULE_DECISION = DecisionResult(
    Decision.DENY,
    NO_RULE,
    by_invariant=False,
    reasons=("no rule takes hold",),
)
_UNKNOWN_TOOL_DECISION = DecisionResult(
    Decision.DENY,
    UNKNOWN_TOOL,
    by_invariant=True,
    reasons=("the policy is not about this tool",),
)


class PreparedRequests:
    """Requests, prepared once for the tools of a policy. Immutable and thread-safe.

    Attributes:
        requests: the original requests.
        backend_requests: the backend's object.
        tools: the tools they were prepared for.
    """

    def __init__(
        self,
        requests: Sequence[ToolRequest],
        backend_requests: BackendRequests,
        tools: Sequence[Mapping[str, Any]],
    ) -> None:
        self.requests = tuple(requests)
        self.backend_requests = backend_requests
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

    def __init__(self, document: bytes, backend_policy: BackendPolicy) -> None:
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
        self._outcomes = [
            *map(self._build_outcome, range(len(self.rules))),
            _UNKNOWN_TOOL_DECISION,
            _NO_RULE_DECISION,
        ]
        self._backend_policy = backend_policy

    def prepare(self, requests: Sequence[ToolRequest]) -> PreparedRequests:
        """Prepare requests once for repeated decisions.

        The result is valid for this policy and for every other one with the same `tools`.

        Raises:
            InvalidArgumentError: `REQUEST_INVALID`; the violations name each request and field.
        """
        requests = tuple(requests)  # iterated more than once
        read = self._backend_policy.prepare(requests)
        if read is not None:
            return PreparedRequests(requests, read, self.spec["tools"])
        documents = encode_requests(requests)
        try:
            return PreparedRequests(
                requests,
                self._backend_policy.parse_requests(documents),
                self.spec["tools"],
            )
        except EngineError:
            raise invalid_requests_error(requests) from None

    def decide(self, request: ToolRequest) -> DecisionResult:
        """Decide a request.

        Raises:
            InvalidArgumentError: as `prepare`.
        """
        deciding = self._backend_policy.decide_one(request)
        if deciding is None:
            return self._decide_prepared(self.prepare([request]))[0]
        return self._outcomes[deciding]

    def decide_many(self, requests: PreparedRequests | Sequence[ToolRequest]) -> list[DecisionResult]:
        """Decide many requests.

        Raises:
            InvalidArgumentError: as `prepare`.
            ValueError: the requests were prepared for other tools.
        """
        if isinstance(requests, PreparedRequests):
            return self._decide_prepared(requests)
        requests = tuple(requests)  # as in `prepare`
        found = self._backend_policy.decide_many_fast(requests)
        if found is None:
            return self._decide_prepared(self.prepare(requests))
        decided, left = self._to_outcomes(found[0]), [*_iter_bits(found[1])]
        if left:
            try:
                others = self.prepare([requests[number] for number in left])
            except InvalidArgumentError:
                raise invalid_requests_error(requests) from None
            for number, told in zip(left, self._decide_prepared(others), strict=True):
                decided[number] = told
        return decided

    def find_deciding_rules(self, requests: PreparedRequests) -> Sequence[int]:
        """Return the index in `rules` of the deciding rule of each request; -1: no rule, -2: unknown tool.

        Raises:
            ValueError: the requests were prepared for other tools.
        """
        return _unpack_integers(self._backend_policy.decide_many(self._require_same_tools(requests))[0])

    def match_rules(
        self,
        requests: PreparedRequests,
        rules: Sequence[Mapping[str, Any]] | None = None,
    ) -> tuple[RuleMatches, ...]:
        """Evaluate the condition of each rule by itself, independently of earlier rules.

        Args:
            requests: the requests.
            rules: the policy's own `rules` by default. Others, such as mutants, must use its tools and lists
                and have passed the checks of a document.

        Raises:
            ValueError: the requests were prepared for other tools.
        """
        read = self._require_same_tools(requests)
        return tuple(
            RuleMatches(int.from_bytes(holds, "little"), int.from_bytes(fails, "little"))
            for document in ((None,) if rules is None else _split_documents(rules))
            for holds, fails in self._backend_policy.match_rules(read, document)
        )

    def _require_same_tools(self, requests: PreparedRequests) -> BackendRequests:
        # Backends identify tools by index, so requests prepared for other tools would be misread.
        if requests.tools is not self.spec["tools"] and requests.tools != self.spec["tools"]:
            raise ValueError("the requests were prepared for a policy with other tools")
        return requests.backend_requests

    def _build_outcome(self, index: int) -> DecisionResult:
        rule = self.rules[index]
        return DecisionResult(
            Decision(rule["then"]),
            rule["id"],
            by_invariant=index < self.invariants,
            reasons=(rule["reason"],),
        )

    def _decide_prepared(self, requests: PreparedRequests) -> list[DecisionResult]:
        deciding, errors = self._backend_policy.decide_many(self._require_same_tools(requests))
        decided = self._to_outcomes(deciding)
        for number in _iter_bits(errors):
            decided[number] = self._add_errors(decided[number], requests, number)
        return decided

    def _to_outcomes(self, deciding: bytes) -> list[DecisionResult]:
        return [*map(self._outcomes.__getitem__, _unpack_integers(deciding))]

    def _add_errors(self, decided: DecisionResult, requests: PreparedRequests, number: int) -> DecisionResult:
        errors = tuple(
            ConditionError(self.rules[error["rule"]]["id"], error["code"], error["message"], error["path"])
            for error in json.loads(self._backend_policy.explain_errors(requests.backend_requests, number))
        )
        told = (f"the condition of {error.rule_id} cannot be evaluated: {error.message}" for error in errors)
        return DecisionResult(
            decided.decision,
            decided.rule_id,
            decided.by_invariant,
            (*told, *decided.reasons),
            errors,
        )


def _unpack_integers(packed: bytes) -> Sequence[int]:
    integers = array("i")
    integers.frombytes(packed)
    return integers


def _iter_bits(bits: bytes) -> Iterator[int]:
    """Yield the numbers in a bit set, in order."""
    for place, byte in enumerate(bits):
        if byte:
            yield from (8 * place + bit for bit in range(8) if byte >> bit & 1)


def _split_documents(rules: Sequence[Mapping[str, Any]]) -> Iterator[bytes]:
    """Yield the rules as JSON arrays, each within the limits of one document."""
    part: list[bytes] = []
    size = values = 0
    for rule in map(canonicalize, rules):
        most = _count_values_at_most(rule)
        if part and (size + len(rule) >= MAX_BYTES or values + most >= MAX_NODES):
            yield b"[%b]" % b",".join(part)
            part, size, values = [], 0, 0
        part.append(rule)
        size += len(rule) + 1
        values += most + 1
    if part:
        yield b"[%b]" % b",".join(part)


def _count_values_at_most(document: bytes) -> int:
    """Return an upper bound of the number of values in a document."""
    return sum(map(document.count, _VALUE_PREFIXES))


def fits_document(rule: Mapping[str, Any]) -> bool:
    """Return True if a rule is certainly within the limits of a document, so that `matches` accepts it."""
    document = b"[%b]" % canonicalize(rule)
    return len(document) <= MAX_BYTES and _count_values_at_most(document) < MAX_NODES


def validate_policy(document: bytes | str) -> list[Finding]:
    """Return all findings of a policy document; one without errors can be compiled.

    The stages are the strict parser, the JSON Schema and the static checks. Each runs only if the previous
    one found no error.
    """
    try:
        spec = loads(canonicalize_document(document))
    except SpecError as error:
        return list(error.findings)
    return validate_against_schema(schema_document(POLICY_SPEC), spec) or check_policy(spec)


def compile_policy(document: bytes | str) -> Policy:
    """Compile a policy document.

    Raises:
        SpecError: with the findings of `validate_policy`.
    """
    errors = [finding for finding in validate_policy(document) if finding.severity is Severity.ERROR]
    if errors:
        raise SpecError(f"the policy has {len(errors)} error(s); the first: {errors[0].message}", errors)
    accepted = canonicalize_document(document)
    return Policy(accepted, ACTIVE_BACKEND.compile_policy(accepted))


def decide(policy: Policy, request: ToolRequest) -> DecisionResult:
    """Decide a request; see `Policy.decide`."""
    return policy.decide(request)


def decide_many(policy: Policy, requests: Sequence[ToolRequest]) -> list[DecisionResult]:
    """Decide many requests; see `Policy.decide_many`."""
    return policy.decide_many(requests)


def normalize_value(kind: str, text: str) -> str | None:
    """Return the normal form in which matchers of a kind compare a text, or None if it is invalid.

    A path, for example, is compared without `..`.

    Args:
        kind: `path`, `domain`, `email` or `identifier`.
        text: the value of an argument.
    """
    try:
        return NORMALIZERS[kind](text)
    except EngineError:
        return None
