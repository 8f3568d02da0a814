"""Which policy a caller means: one that is stored, or one that comes along."""

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
    """A policy document that comes with the request."""

    document: bytes


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored policy, in its latest version."""

    policy_id: str


PolicySource: TypeAlias = Brought | Stored


class Sources:
    """Finds and compiles policies; those that were used last are kept compiled.

    Args:
        store: has those that are stored.
    """

    def __init__(self, store: PolicyStore) -> None:
        self._store = store
        self._compiled: Kept[Policy] = Kept(_MOST)

    async def policy(self, source: PolicySource, field: str = ".policy") -> Policy:
        """The compiled policy of a source.

        Args:
            source: which policy.
            field: where that is said in the request.

        Raises:
            InvalidArgumentError: there is no document, or too much of it.
            NotFoundError: there is no such policy.
            SpecError: the document has errors; `findings` says which.
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
        """The scenarios that are stored with a policy; none of one that comes along.

        Raises:
            NotFoundError: there is no such policy.
        """
        if isinstance(source, Brought):
            return ()
        return (await self._store.get(source.policy_id)).compiled.scenarios

    async def _brought(self, document: bytes, field: str) -> Policy:
        require(document, field, "is empty; send one JSON document")
        reason = f"has {len(document)} bytes; at most {MAX_DOCUMENT_BYTES} are accepted, so shorten it"
        require(len(document) <= MAX_DOCUMENT_BYTES, field, reason)
        # Not by the hash of its canonical form, which would have to be made first.
        return await self._kept(sha256(document).hexdigest(), document)

    async def _kept(self, name: str, document: bytes) -> Policy:
        return self._compiled.find(name) or self._compiled.keep(
            name, await aside(partial(compile_policy, document), len(document))
        )
