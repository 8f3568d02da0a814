"""Event loop with a virtual clock: it advances only when all tasks wait, so that hours pass in no time."""

from __future__ import annotations

import asyncio
import selectors
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from peripety.core.call_context import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


T = TypeVar("T")

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
"""When scenes begin: a Wednesday, outside of peak hours."""


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._moment = 0.0
        super().__init__(_Selector(self))

    def time(self) -> float:
        return self._moment

    def move_on(self, seconds: float) -> None:
        self._moment += seconds


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop: _Loop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        assert timeout is not None, "everybody waits, and nothing will ever happen"
        self._loop.move_on(timeout)
        return super().select(0)


def in_virtual_time(scene: Callable[[Clock], Coroutine[Any, Any, T]], patience: float | None = None) -> T:
    """Run a scene by a clock that starts at 0; its caller stops waiting after `patience` seconds."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        now = runner.get_loop().time
        clock = Clock(now, asyncio.sleep, lambda: patience, lambda: NOON + timedelta(seconds=now()))
        return runner.run(scene(clock))
