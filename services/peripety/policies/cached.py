"""Cache of compiled policies: equal orders return the stored result without a model call."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeAlias
from weakref import WeakValueDictionary

from peripety.answering.log import Pending
from peripety.gateway.streams import following
from peripety.policies.compiling.checks import check_order
from peripety.policies.compiling.finishing import is_of_want_of_time
from peripety.policies.model import (
    AuditEntry,
    Compiled,
    CompiledPolicy,
    Failed,
    Progress,
    RulesWritten,
    ScenariosWritten,
    Verified,
)
from peripety.policies.writing import read, write
from peripety.tasks import aside

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.policies.model import CompileEvent, CompileOrder
    from peripety.policies.store import PolicyStore
    from peripety.policies.stored_artifacts import StoredArtifacts

__all__ = ["CachedCompiler", "Compiles", "Event", "Kept"]


Event: TypeAlias = Progress | RulesWritten | ScenariosWritten | Verified | AuditEntry | Failed
"""An event of a compile run, except for the last one of a successful run."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The policy is stored; the last event.

    Attributes:
        policy: the stored policy.
        from_cache: True if it was compiled earlier and no model was called.
    """

    policy: CompiledPolicy
    from_cache: bool


class Compiles(Protocol):
    """The interface of a policy compiler, such as `PolicyCompiler`."""

    def fingerprint(self, order: CompileOrder) -> str:
        """Return a digest of all inputs, except for the default model."""
        ...

    def compile(self, order: CompileOrder) -> AsyncIterator[CompileEvent]:
        """Compile an order; `Compiled` or `Failed` is the last event."""
        ...


class CachedCompiler:
    """Policy compiler that stores results and reuses them.

    Concurrent equal orders are single-flight within a process: later ones wait for the first.

    Args:
        compiler: compiles orders that are not cached.
        store: stores the results.
        artifacts: the cache of results by the digest of their inputs.
    """

    def __init__(self, compiler: Compiles, store: PolicyStore, artifacts: StoredArtifacts) -> None:
        self._compiler = compiler
        self._store = store
        self._artifacts = artifacts
        self._under_way: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def compile(
        self, order: CompileOrder, version_of: str | None = None
    ) -> AsyncIterator[Event | Pending[Kept]]:
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
        await asyncio.to_thread(check_order, order)
        if version_of is not None:
            await self._store.latest_hash(version_of)
        input_hash = self._compiler.fingerprint(order)
        lock = self._under_way.setdefault(input_hash, asyncio.Lock())
        async with lock:
            before = await self._artifacts.get(input_hash)
            if before is not None:
                compiled = await aside(partial(read, before), len(before))
                yield self._stored(compiled, input_hash, version_of, from_cache=True)
                return
            async with following(self._compiler.compile(order)) as events:
                async for event in events:
                    if isinstance(event, Compiled):
                        yield self._stored(event, input_hash, version_of, from_cache=False)
                    else:
                        yield event

    def _stored(
        self, compiled: Compiled, input_hash: str, version_of: str | None, *, from_cache: bool
    ) -> Pending[Kept]:
        async def stored(connection: AsyncConnection) -> Kept:
            policy = await self._store.save(compiled, input_hash, connection, version_of=version_of)
            # A later run with more time must not receive a result that the time limit cut short.
            is_short = any(map(is_of_want_of_time, compiled.findings))
            if not (is_short or from_cache):
                await self._artifacts.put(input_hash, write(compiled), connection)
            return Kept(policy, from_cache)

        return Pending(stored)
