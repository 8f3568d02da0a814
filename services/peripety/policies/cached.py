"""What was compiled before from the same inputs: handed over again, without asking a model."""

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
"""What happens while a policy is compiled, up to the last event, or to where it is stored."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Stored; the last event.

    Attributes:
        policy: as it is stored.
        from_cache: whether it was compiled earlier and no model was asked.
    """

    policy: CompiledPolicy
    from_cache: bool


class Compiles(Protocol):
    """Compiles policies, such as `PolicyCompiler`."""

    def fingerprint(self, order: CompileOrder) -> str:
        """A digest of all that a result depends on, but who is configured to answer."""
        ...

    def compile(self, order: CompileOrder) -> AsyncIterator[CompileEvent]:
        """Compile; `Compiled` or `Failed` is the last event."""
        ...


class CachedCompiler:
    """Compiles policies and stores them; what is stored is not compiled again.

    Equal orders at the same time in this process wait for the first of them.

    Args:
        compiler: compiles what is not there yet.
        store: takes what it compiled.
        artifacts: keep it by what it was compiled from.
    """

    def __init__(self, compiler: Compiles, store: PolicyStore, artifacts: StoredArtifacts) -> None:
        self._compiler = compiler
        self._store = store
        self._artifacts = artifacts
        self._under_way: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def compile(
        self, order: CompileOrder, version_of: str | None = None
    ) -> AsyncIterator[Event | Pending[Kept]]:
        """Compile a policy, or find the one that was compiled from the same order.

        Args:
            order: what to compile.
            version_of: the policy that it becomes a version of; by default one that its content names.

        Yields:
            What the compiler yields, with the storing in the place of `Compiled`; of a policy that was there
            already, the storing alone.

        Raises:
            InvalidArgumentError: the order cannot be carried out.
            NotFoundError: there is no policy `version_of`.
            PeripetyError: what the compiler raises.
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
            # Whoever compiles again with more time is not to get what came of less.
            is_short = any(map(is_of_want_of_time, compiled.findings))
            if not (is_short or from_cache):
                await self._artifacts.put(input_hash, write(compiled), connection)
            return Kept(policy, from_cache)

        return Pending(stored)
