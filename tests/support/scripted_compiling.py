"""Policies compiled with the scripted LLM: over its real protocol, in front of its real books."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.core.concurrency import closing
from peripety.llmsim.server.runner import serve_in_thread
from peripety.policy.authoring.compiler import PolicyCompiler
from peripety.policy.authoring.run_context import InMemoryArtifactCache
from peripety.policy.events import PolicyCompileFailed
from peripety.policy.types import PolicyCompiled
from support.answering import Answering
from support.providers import PROVIDERS, gateway_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from peripety.llmsim.script.types import ScriptResponse
    from peripety.llmsim.types import SimRequest
    from peripety.policy.events import CompileEvent
    from peripety.policy.types import CompileOrder


@dataclass(frozen=True)
class Workshop:
    """A compiler, and the model that it asks."""

    compiler: PolicyCompiler
    model: Answering

    async def compiled(self, order: CompileOrder) -> list[CompileEvent]:
        """Everything that happens."""
        async with closing(self.compiler.compile(order)) as events:
            return [event async for event in events]

    async def outcome(self, order: CompileOrder) -> PolicyCompiled | PolicyCompileFailed:
        """What comes of it."""
        last = (await self.compiled(order))[-1]
        assert isinstance(last, PolicyCompiled | PolicyCompileFailed), last
        return last


@asynccontextmanager
async def workshop(answer: Callable[[SimRequest], ScriptResponse]) -> AsyncIterator[Workshop]:
    """A compiler that asks a scripted model, until the block ends."""
    model = Answering(answer)
    with serve_in_thread(model) as upstream:
        async with gateway_of(PROVIDERS[0], upstream.url) as gateway:
            yield Workshop(PolicyCompiler(gateway, InMemoryArtifactCache()), model)
    model.close()
