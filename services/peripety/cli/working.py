"""Long-running work with a progress bar."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, TypeVar, cast

from peripety.cli.failure import INTERRUPTED
from peripety.cli.output import errors, progress
from peripety.errors import InternalError
from peripety.gateway.streams import following
from peripety.scenarios.model import Progress

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["result_of"]

_Result = TypeVar("_Result")


def result_of(events: AsyncIterator[object], doing: str, *kinds: type[_Result]) -> _Result:
    """Show the progress of some work to its end, and return its result.

    Ctrl-C ends the process.

    Args:
        events: progress events, and the result as the last one.
        doing: the name of the work.
        kinds: the types of the result.
    """
    try:
        return asyncio.run(_last(events, doing, kinds))
    except (KeyboardInterrupt, asyncio.CancelledError):
        errors().print("interrupted")
        # A simulation in progress cannot be stopped, and Python would wait for its thread, perhaps for hours.
        os._exit(INTERRUPTED)


async def _last(events: AsyncIterator[object], doing: str, kinds: tuple[type[_Result], ...]) -> _Result:
    task = cast("asyncio.Task[_Result]", asyncio.current_task())
    # A signal delivered to another thread wakes the event loop only if the loop itself handles it.
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
    done = 0.0
    with progress(doing, total=1.0) as advance:
        async with following(events):
            async for event in events:
                if isinstance(event, Progress):
                    advance(event.fraction - done)
                    done = event.fraction
                elif isinstance(event, kinds):
                    return event
    raise InternalError("the operation ended without a result")
