"""Policy of a request: a stored one, or a document in the request."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, TypeAlias

from peripety.kept import Kept
from peripety.requests import require
from peripety.sim import Policy, compile_policy
from peripety.tasks import aside

if TYPE_CHECKING:
    from peripety.policies.model import TestScenario
    from peripety.policies.store import PolicyStore

__all__ = ["MAX_DOCUMENT_BYTES", "Brought", "PolicySource", "Sources", "Stored"]

MAX_DOCUMENT_BYTES = 1024 * 1024

_MOST = 64


@dataclass(frozen=True, slots=True)
class Brought:
    """A policy document in the request."""

    document: bytes


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored policy, in its latest version."""

    policy_id: str


PolicySource: TypeAlias = Brought | Stored


class Sources:
    """Resolver and compiler of policies, with an LRU cache of compiled ones.

    Args:
        store: the store of policies.
    """

    def __init__(self, store: PolicyStore) -> None:
        self._store = store
        self._compiled: Kept[Policy] = Kept(_MOST)

    async def policy(self, source: PolicySource, field: str = ".policy") -> Policy:
        """Return the compiled policy of a source.

        Args:
            source: the source.
            field: path of the source in the request, for errors.

        Raises:
            InvalidArgumentError: the document is empty or too large.
            NotFoundError: the policy does not exist.
            SpecError: the document is invalid; see its `findings`.
        """
        if isinstance(source, Brought):
            return await self._brought(source.document, f"{field}.document")
        require(source.policy_id, f"{field}.policy_id", "is empty; name a stored policy")
        policy_hash = await self._store.latest_hash(source.policy_id)
        kept = self._compiled.find(policy_hash)
        if kept is not None:
            return kept
        stored = await self._store.get(source.policy_id)
        return await self._kept(stored.policy_hash, stored.compiled.document)

    async def suite(self, source: PolicySource) -> tuple[TestScenario, ...]:
        """Return the scenarios that are stored with a policy; empty for a document in the request.

        Raises:
            NotFoundError: the policy does not exist.
        """
        if isinstance(source, Brought):
            return ()
        return (await self._store.get(source.policy_id)).compiled.scenarios

    async def _brought(self, document: bytes, field: str) -> Policy:
        require(document, field, "is empty; send one JSON document")
        reason = f"has {len(document)} bytes; at most {MAX_DOCUMENT_BYTES} are accepted, so shorten it"
        require(len(document) <= MAX_DOCUMENT_BYTES, field, reason)
        # The cache key is the hash of the raw text, because the canonical form would require parsing.
        return await self._kept(sha256(document).hexdigest(), document)

    async def _kept(self, name: str, document: bytes) -> Policy:
        return self._compiled.find(name) or self._compiled.keep(
            name, await aside(partial(compile_policy, document), len(document))
        )
