"""Work that tells how far it is: a bar for a person, the result for whoever asked."""

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
    """What some work comes to, after it has been shown to its end.

    Args:
        events: how far it is, now and then, and the result as the last of them.
        doing: what to call the work.
        kinds: what the result may be.

    Whoever interrupts it from the keyboard ends the process.
    """
    try:
        return asyncio.run(_last(events, doing, kinds))
    except (KeyboardInterrupt, asyncio.CancelledError):
        errors().print("interrupted")
        # The runs under way cannot be stopped, and Python would wait for their thread, for hours perhaps.
        os._exit(INTERRUPTED)


async def _last(events: AsyncIterator[object], doing: str, kinds: tuple[type[_Result], ...]) -> _Result:
    task = cast("asyncio.Task[_Result]", asyncio.current_task())
    # A signal that another thread gets wakes an event loop only if the loop itself waits for it.
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
