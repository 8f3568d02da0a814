"""Tools by their servers, so many at a time, and work on many batches at once."""

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
    """Tools of one server that are asked about together; each is only itself.

    Attributes:
        tools: the tools, at least one.
        is_all: whether the server has no others.
    """

    tools: tuple[ToolAnnotation, ...]
    is_all: bool

    @property
    def server_name(self) -> str:
        """The server."""
        return self.tools[0].server_name

    @property
    def name(self) -> str:
        """What a person calls it."""
        if self.is_all:
            return self.server_name
        return f"{self.server_name} ({self.tools[0].tool_name} to {self.tools[-1].tool_name})"

    def has(self, request: ToolRequest) -> bool:
        """Whether a request calls one of its tools."""
        names = (tool.tool_name for tool in self.tools)
        return request.server_name == self.server_name and request.tool_name in names

    def halves(self) -> tuple[Batch, Batch]:
        """Two smaller ones."""
        middle = (len(self.tools) + 1) // 2
        return Batch(self.tools[:middle], is_all=False), Batch(self.tools[middle:], is_all=False)


def batches(tools: Iterable[ToolAnnotation], most: int) -> tuple[Batch, ...]:
    """The tools by servers, in the order in which these come first, at most `most` at a time."""
    of_server: dict[str, list[ToolAnnotation]] = {}
    for tool in tools:
        of_server.setdefault(tool.server_name, []).append(tool)
    return tuple(
        Batch(tuple(own[start : start + most]), is_all=len(own) <= most)
        for own in of_server.values()
        for start in range(0, len(own), most)
    )


async def halving(batch: Batch, ask: Callable[[Batch], Awaitable[T]]) -> list[tuple[Batch, T]]:
    """Ask about a batch; when that is too much for one answer, about its halves, and so on.

    Raises:
        PeripetyError: what `ask` raises, but for answers that are cut off about more than one tool.
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
    """Do pieces of work at once; none of them stops another.

    When the iteration ends, however it does, nothing of them is running any more.

    Yields:
        The number of each piece when it is done, with its result, or why there is none.
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
