"""Batches of tools by server, and parallel work on batches."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from peripety.errors import PeripetyError
from peripety.gateway.objects.structured import was_cut_off
from peripety.tasks import finish

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
    from typing import Any

    from peripety.policies.model import ToolAnnotation, ToolRequest

__all__ = ["Batch", "batches", "halving", "in_parallel"]

T = TypeVar("T")

_TOO_LONG = frozenset({"CONTEXT_LENGTH_EXCEEDED"})


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Tools of one server that share a prompt. Batches compare by identity.

    Attributes:
        tools: the tools, at least one.
        is_all: True if the server has no other tools.
    """

    tools: tuple[ToolAnnotation, ...]
    is_all: bool

    @property
    def server_name(self) -> str:
        """The server."""
        return self.tools[0].server_name

    @property
    def name(self) -> str:
        """The display name."""
        if self.is_all:
            return self.server_name
        return f"{self.server_name} ({self.tools[0].tool_name} to {self.tools[-1].tool_name})"

    def has(self, request: ToolRequest) -> bool:
        """Return True if a request calls one of the tools."""
        names = (tool.tool_name for tool in self.tools)
        return request.server_name == self.server_name and request.tool_name in names

    def halves(self) -> tuple[Batch, Batch]:
        """Split the batch in two."""
        middle = (len(self.tools) + 1) // 2
        return Batch(self.tools[:middle], is_all=False), Batch(self.tools[middle:], is_all=False)


def batches(tools: Iterable[ToolAnnotation], most: int) -> tuple[Batch, ...]:
    """Group tools by server, in order of first appearance, into batches of at most `most` tools."""
    of_server: dict[str, list[ToolAnnotation]] = {}
    for tool in tools:
        of_server.setdefault(tool.server_name, []).append(tool)
    return tuple(
        Batch(tuple(own[start : start + most]), is_all=len(own) <= most)
        for own in of_server.values()
        for start in range(0, len(own), most)
    )


async def halving(batch: Batch, ask: Callable[[Batch], Awaitable[T]]) -> list[tuple[Batch, T]]:
    """Request a response for a batch; if it does not fit, split the batch in halves and repeat.

    Raises:
        PeripetyError: as raised by `ask`, except for truncated responses about more than one tool.
    """
    try:
        return [(batch, await ask(batch))]
    except PeripetyError as error:
        if len(batch.tools) == 1 or not (was_cut_off(error) or error.code in _TOO_LONG):
            raise
    return [one for half in batch.halves() for one in await halving(half, ask)]


async def in_parallel(
    work: Sequence[Coroutine[Any, Any, T]],
) -> AsyncIterator[tuple[int, T | PeripetyError]]:
    """Run coroutines concurrently; a failure does not cancel the others.

    When the iteration ends for any reason, all of them are finished or cancelled.

    Yields:
        The index of each coroutine when it is done, with its result or its error.
    """
    done: asyncio.Queue[asyncio.Task[T]] = asyncio.Queue()
    numbers = {asyncio.ensure_future(piece): number for number, piece in enumerate(work)}
    for task in numbers:
        task.add_done_callback(done.put_nowait)
    try:
        for _ in work:
            task = await done.get()
            try:
                result: T | PeripetyError = task.result()
            except PeripetyError as error:
                result = error
            yield numbers[task], result
    finally:
        for task in numbers:
            task.cancel()
        await finish(asyncio.gather(*numbers, return_exceptions=True))
