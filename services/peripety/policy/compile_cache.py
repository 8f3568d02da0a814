"""Compile cache: equal orders return the stored policy without a model call.

Compile results and model output are in the database, keyed by digests of their inputs.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol, TypeAlias
from weakref import WeakValueDictionary

from sqlalchemy import Column, Float, LargeBinary, String, Table, delete, insert, select

from peripety.core.concurrency import closing, run_in_thread_if_large
from peripety.core.idempotency.store import PendingResponse
from peripety.core.storage.database import METADATA
from peripety.policy.authoring.scenario_suite import is_time_limit_finding
from peripety.policy.events import (
    CompileProgress,
    PolicyCompileFailed,
    RulesWritten,
    ScenariosVerified,
    ScenariosWritten,
)
from peripety.policy.store import decode_result, encode_result
from peripety.policy.types import AuditEntry, CompiledPolicy, PolicyCompiled
from peripety.policy.validation import check_order

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.core.storage.database import Database
    from peripety.policy.events import CompileEvent
    from peripety.policy.store import PolicyStore
    from peripety.policy.types import CompileOrder


CacheableEvent: TypeAlias = (
    CompileProgress | RulesWritten | ScenariosWritten | ScenariosVerified | AuditEntry | PolicyCompileFailed
)
"""An event of a compile run, except for the last one of a successful run."""


@dataclass(frozen=True, slots=True)
class CachedResult:
    """The policy is stored; the last event.

    Attributes:
        policy: the stored policy.
        from_cache: True if it was compiled earlier and no model was called.
    """

    policy: CompiledPolicy
    from_cache: bool


class PolicyCompilerProtocol(Protocol):
    """The interface of a policy compiler, such as `PolicyCompiler`."""

    def fingerprint(self, order: CompileOrder) -> str:
        """Return a digest of all inputs, except for the default model."""
        ...

    def compile(self, order: CompileOrder) -> AsyncIterator[CompileEvent]:
        """Compile an order; `Compiled` or `Failed` is the last event."""
        ...


class CachingCompiler:
    """Policy compiler that stores results and reuses them.

    Concurrent equal orders are single-flight within a process: later ones wait for the first.

    Args:
        compiler: compiles orders that are not cached.
        store: stores the results.
        artifacts: the cache of results by the digest of their inputs.
    """

    def __init__(
        self,
        compiler: PolicyCompilerProtocol,
        store: PolicyStore,
        artifacts: ArtifactStore,
    ) -> None:
        self._compiler = compiler
        self._store = store
        self._artifacts = artifacts
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def check(self, order: CompileOrder, version_of: str | None = None) -> None:
        """Raise the first two errors of `compile`."""
        await asyncio.to_thread(check_order, order)
        if version_of is not None:
            await self._store.find_hash(version_of)

    async def compile(
        self,
        order: CompileOrder,
        version_of: str | None = None,
    ) -> AsyncIterator[CacheableEvent | PendingResponse[CachedResult]]:
        """Compile a policy, or return the cached result of an equal order.

        Args:
            order: the order.
            version_of: the policy to add a version to; by default one identified by its content.

        Yields:
            The events of the compiler, with a pending write in place of `Compiled`. A cached result yields
            the pending write only.

        Raises:
            InvalidArgumentError: the order is invalid.
            NotFoundError: the policy `version_of` does not exist.
            PeripetyError: as raised by the compiler.
        """
        await self.check(order, version_of)
        input_hash = self._compiler.fingerprint(order)
        lock = self._locks.setdefault(input_hash, asyncio.Lock())
        async with lock:
            before = await self._artifacts.get(input_hash)
            if before is not None:
                compiled = await run_in_thread_if_large(partial(decode_result, before), len(before))
                yield self._pending_store(compiled, input_hash, version_of, from_cache=True)
                return
            async with closing(self._compiler.compile(order)) as events:
                async for event in events:
                    if isinstance(event, PolicyCompiled):
                        yield self._pending_store(event, input_hash, version_of, from_cache=False)
                    else:
                        yield event

    def _pending_store(
        self,
        compiled: PolicyCompiled,
        input_hash: str,
        version_of: str | None,
        *,
        from_cache: bool,
    ) -> PendingResponse[CachedResult]:
        async def stored(connection: AsyncConnection) -> CachedResult:
            policy = await self._store.save(compiled, input_hash, connection, version_of=version_of)
            # A later run with more time must not receive a result that the time limit cut short.
            is_short = any(map(is_time_limit_finding, compiled.findings))
            if not (is_short or from_cache):
                await self._artifacts.put(input_hash, encode_result(compiled), connection)
            return CachedResult(policy, from_cache)

        return PendingResponse(stored)


_MAX_ARTIFACTS = 2_000

_artifacts = Table(
    "policy_artifacts",
    METADATA,
    Column("key", String(64), primary_key=True),
    Column("content", LargeBinary, nullable=False),
    Column("create_time", Float, nullable=False, index=True),
)
_columns = _artifacts.c


class ArtifactStore:
    """Cache with the newest 2,000 entries, shared by all processes with the same database.

    Args:
        database: the database with the table.
        provider: the configured provider; entries of other providers are separate.
        now: returns the time in seconds since 1970.
    """

    def __init__(self, database: Database, provider: str, now: Callable[[], float] = time.time) -> None:
        self._database = database
        self._provider = provider
        self._now = now

    async def get(self, key: str) -> bytes | None:
        """Return the content of a key; None if it is missing or evicted."""
        query = select(_columns.content).where(_columns.key == self._digest(key))
        async with self._database.read() as connection:
            content: bytes | None = await connection.scalar(query)
        return content

    async def put(self, key: str, content: bytes, connection: AsyncConnection | None = None) -> None:
        """Store content under a key, and evict the oldest entries above the limit.

        Args:
            key: digest of the inputs.
            content: the content.
            connection: the transaction; a new one by default.
        """
        digest = self._digest(key)
        async with self._database.write() if connection is None else nullcontext(connection) as within:
            await within.execute(delete(_artifacts).where(_columns.key == digest))
            await within.execute(
                insert(_artifacts).values(key=digest, content=content, create_time=self._now()),
            )
            times = select(_columns.create_time).order_by(_columns.create_time.desc())
            first_too_many = times.offset(_MAX_ARTIFACTS).limit(1).scalar_subquery()
            await within.execute(delete(_artifacts).where(_columns.create_time <= first_too_many))

    def _digest(self, key: str) -> str:
        return sha256(f"{self._provider}\n{key}".encode()).hexdigest()
