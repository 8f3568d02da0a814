"""Batch decisions of a policy, stored or in the request, with an error per invalid request."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

from peripety.core.concurrency import run_in_thread_if_large
from peripety.core.lru import LruCache
from peripety.engine import DecisionResult, Policy, ToolRequest, compile_policy
from peripety.errors import FieldViolation, InvalidArgumentError, PeripetyError, require_field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.policy.store import PolicyStore
    from peripety.policy.types import TestScenario


_INDEX_PATTERN = re.compile(r"^requests\[(\d+)\]")

DecisionOutcome: TypeAlias = DecisionResult | PeripetyError
"""A decision, or the error that prevented it, which clients must treat as a denial."""


async def decide_batch(
    policy: Policy,
    requests: Sequence[ToolRequest | PeripetyError],
    size: int,
) -> list[DecisionOutcome]:
    """Return the decision of a policy for each request.

    Args:
        policy: the policy.
        requests: the requests; errors from parsing are returned in their place.
        size: the size of the requests in bytes.
    """
    return await run_in_thread_if_large(partial(_decide_batch, policy, requests), size + len(policy.document))


def _decide_batch(policy: Policy, requests: Sequence[ToolRequest | PeripetyError]) -> list[DecisionOutcome]:
    sound = [request for request in requests if isinstance(request, ToolRequest)]
    decided = iter(_decide_valid(policy, sound))
    return [one if isinstance(one, PeripetyError) else next(decided) for one in requests]


def _decide_valid(policy: Policy, requests: Sequence[ToolRequest]) -> Sequence[DecisionOutcome]:
    try:
        return policy.decide_many(requests)
    except InvalidArgumentError as error:
        if len(requests) == 1:
            return [with_request_fields(error, ".request")]
        # Few requests are invalid, if any: bisection decides valid halves in one batch.
        middle = len(requests) // 2
        return [*_decide_valid(policy, requests[:middle]), *_decide_valid(policy, requests[middle:])]


def with_request_fields(error: InvalidArgumentError, field: str) -> InvalidArgumentError:
    """Translate the field paths of an engine error to those of a request message.

    Args:
        error: the error.
        field: path of a request in the message, with `{}` for its index.
    """
    violations = [
        FieldViolation(_INDEX_PATTERN.sub(lambda found: field.format(found[1]), wrong.field), wrong.reason)
        for wrong in error.violations
    ]
    return InvalidArgumentError(error.message, code=error.code, violations=violations)


MAX_DOCUMENT_BYTES = 1024 * 1024

_MAX_COMPILED_POLICIES = 64


@dataclass(frozen=True, slots=True)
class InlinePolicy:
    """A policy document in the request."""

    document: bytes


@dataclass(frozen=True, slots=True)
class StoredPolicyRef:
    """A stored policy.

    Attributes:
        policy_id: the id.
        policy_hash: the version; None for the latest.
    """

    policy_id: str
    policy_hash: str | None = None


PolicySource: TypeAlias = InlinePolicy | StoredPolicyRef


class PolicyResolver:
    """Resolver and compiler of policies, with an LRU cache of compiled ones.

    Args:
        store: the store of policies.
    """

    def __init__(self, store: PolicyStore) -> None:
        self._store = store
        self._compiled: LruCache[str, Policy] = LruCache(_MAX_COMPILED_POLICIES)

    async def policy(self, source: PolicySource, field: str = ".policy") -> Policy:
        """Return the compiled policy of a source.

        Args:
            source: the source.
            field: path of the source in the request, for errors.

        Raises:
            InvalidArgumentError: the document is empty or too large.
            NotFoundError: the policy or version does not exist.
            SpecError: the document is invalid; see its `findings`.
        """
        if isinstance(source, InlinePolicy):
            return await self._compile_inline(source.document, f"{field}.document")
        require_field(source.policy_id, f"{field}.policy_id", "is empty; name a stored policy")
        policy_hash = await self._store.find_hash(source.policy_id, source.policy_hash)
        kept = self._compiled.get(policy_hash)
        if kept is not None:
            return kept
        stored = await self._store.get(source.policy_id, policy_hash)
        return await self._compile_cached(policy_hash, stored.compiled.document)

    async def suite(self, source: PolicySource) -> tuple[TestScenario, ...]:
        """Return the scenarios that are stored with a policy; empty for a document in the request.

        Raises:
            NotFoundError: the policy or version does not exist.
        """
        if isinstance(source, InlinePolicy):
            return ()
        return (await self._store.get(source.policy_id, source.policy_hash)).compiled.scenarios

    async def _compile_inline(self, document: bytes, field: str) -> Policy:
        require_field(document, field, "is empty; send one JSON document")
        reason = f"has {len(document)} bytes; at most {MAX_DOCUMENT_BYTES} are accepted, so shorten it"
        require_field(len(document) <= MAX_DOCUMENT_BYTES, field, reason)
        # The cache key is the hash of the raw text, because the canonical form would require parsing.
        return await self._compile_cached(sha256(document).hexdigest(), document)

    async def _compile_cached(self, name: str, document: bytes) -> Policy:
        return self._compiled.get(name) or self._compiled.put_if_absent(
            name,
            await run_in_thread_if_large(partial(compile_policy, document), len(document)),
        )
