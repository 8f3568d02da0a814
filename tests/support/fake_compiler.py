"""A compiler of policies that asks nobody: for tests of what stands around it."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from typing import TYPE_CHECKING

from peripety.policy.events import (
    CompileProgress,
    PolicyCompileFailed,
    RulesWritten,
    ScenariosVerified,
    ScenariosWritten,
)
from peripety.policy.types import CompilePhase
from support.compiled_policies import compiled_policy, policy_document

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.policy.events import CompileEvent
    from peripety.policy.types import CompileOrder, PolicyCompiled


class FakeCompiler:
    """Tells every kind of event, and comes to the same result in the end.

    Args:
        end: what it comes to instead.
        version: of the program that it stands for.
        pause: waited for after the first event.

    Attributes:
        compiled: how often it began.
        left: how often it was left before its end.
        orders: what it was asked for.
        idle: set while it does nothing.
    """

    def __init__(
        self,
        end: PolicyCompiled | PolicyCompileFailed | Exception | None = None,
        version: str = "1",
        pause: asyncio.Event | None = None,
    ) -> None:
        self.compiled = 0
        self.left = 0
        self.orders: list[CompileOrder] = []
        self.idle = asyncio.Event()
        self.idle.set()
        self._end = end or compiled_policy()
        self._version = version
        self._pause = pause

    def fingerprint(self, order: CompileOrder) -> str:
        """What a result depends on."""
        return sha256(f"{self._version}{order}".encode()).hexdigest()

    async def compile(self, order: CompileOrder) -> AsyncIterator[CompileEvent]:
        """Every event that there is."""
        self.compiled += 1
        self.orders.append(order)
        self.idle.clear()
        try:
            async for event in self._events():
                yield event
        except (GeneratorExit, asyncio.CancelledError):
            self.left += 1
            raise
        finally:
            self.idle.set()

    async def _events(self) -> AsyncIterator[CompileEvent]:
        result = compiled_policy()
        yield CompileProgress(CompilePhase.RULES, 0, "rules are written", 0.1)
        if self._pause is not None:
            await self._pause.wait()
        yield RulesWritten(policy_document(), result.findings)
        yield ScenariosWritten(result.scenarios, result.turns[0])
        yield ScenariosVerified(0, result.verification)
        for entry in result.audit:
            yield entry
        if isinstance(self._end, Exception):
            raise self._end
        yield self._end
