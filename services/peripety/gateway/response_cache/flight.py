"""One call to a model, shared by all who ask the same while it lasts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from peripety import context
from peripety.errors import InternalError
from peripety.gateway.model import Completed, Completion, FallingBack, Repairing, TextDelta
from peripety.gateway.response_cache.answers import StoredAnswer, at_no_cost, replay

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from peripety.gateway.model import GatewayEvent

__all__ = ["Failed", "Flight", "Found", "HandedOverError", "Landed", "Progress", "ProgressLostError"]


@dataclass(frozen=True, slots=True)
class Landed:
    """The model has answered."""

    completion: Completion


@dataclass(frozen=True, slots=True)
class Found:
    """There was no need for a call: the answer was on the disk."""

    answer: StoredAnswer


@dataclass(frozen=True, slots=True)
class Failed:
    """The call came to nothing."""

    error: BaseException


Outcome: TypeAlias = Landed | Found | Failed


class HandedOverError(Exception):
    """This flight gave a caller no answer, and did not spend its right to a call: let it ask again.

    Attributes:
        cause: what went wrong; None when the answer was one that the caller did not want.
    """

    def __init__(self, cause: BaseException | None) -> None:
        super().__init__()
        self.cause = cause


class Flight:
    """What one call has brought so far, and who follows it.

    It belongs to none of its callers: it goes on while anybody follows it, and is over when the last one
    leaves. The one who has followed it longest is its leader when it ends. The leader bears what the call
    cost, and its failure; the others get the answer for nothing, or try again by themselves.
    """

    def __init__(self) -> None:
        self._events: list[GatewayEvent] = []
        self._callers: dict[object, None] = {}
        self._news = asyncio.Event()
        self._outcome: Outcome | None = None
        self._leader: object = None
        self._task: asyncio.Task[None] | None = None
        self.abandoned = False

    def start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Let `work` fill this flight, in a task that is returned."""
        self._task = asyncio.create_task(work)
        return self._task

    def release(self, event: GatewayEvent) -> None:
        """Hand an event to everybody."""
        self._events.append(event)
        self._wake()

    def end(self, outcome: Outcome) -> None:
        """Say how it ended; nothing comes after this."""
        self._outcome = outcome
        self._leader = next(iter(self._callers), None)
        self._wake()

    async def over(self) -> None:
        """Wait until the call of an abandoned flight is closed."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def cancel(self) -> None:
        """End the call, unless it has ended."""
        # Once only: a second time would interrupt the closing of the call.
        if self._outcome is None and self._task is not None and not self.abandoned:
            self.abandoned = True
            self._task.cancel()

    async def follow(self, *, fresh: bool) -> AsyncIterator[GatewayEvent]:
        """Follow from the first event on.

        Args:
            fresh: do not take an answer that was found on the disk.

        Raises:
            HandedOverError: there is no answer for this caller here.
            BaseException: what the call has raised, for its leader.
        """
        caller = object()
        self._callers[caller] = None
        try:
            seen = 0
            while self._outcome is None or seen < len(self._events):
                if seen < len(self._events):
                    seen += 1
                    yield self._events[seen - 1]
                else:
                    async with context.bounded(None):
                        await self._news.wait()
            for event in self._ending(leads=self._leader is caller, fresh=fresh):
                yield event
        finally:
            del self._callers[caller]
            if not self._callers and self._outcome is None:
                self.cancel()
                await self.over()

    def _ending(self, *, leads: bool, fresh: bool) -> list[GatewayEvent]:
        match self._outcome:
            case Landed(completion):
                return [Completed(completion if leads else at_no_cost(completion))]
            case Found(answer) if not fresh:
                return list(replay(answer))
            case Found():
                raise HandedOverError(None)
            case Failed(error) if leads:
                raise error
            case Failed(error):
                raise HandedOverError(error)
            case None:
                raise InternalError("A call has no outcome after its end")

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class ProgressLostError(Exception):
    """Another answer does not go on from what was given of the one before."""


class Progress:
    """What one caller was given of an answer, so that another call can go on from there."""

    def __init__(self) -> None:
        self._given: list[str] = []
        self._more_given = False
        self._repaired = False
        self._ahead = ""

    def can_start_over(self) -> bool:
        """Expect the answer from its start; False when more than text was given, which is not compared."""
        self._ahead = "".join(self._given)
        return not self._more_given

    def advance(self, event: GatewayEvent) -> GatewayEvent | None:
        """Return what the caller was not given yet of an event; None when it was given all of it.

        Raises:
            ProgressLostError: what it was given cannot be taken back.
        """
        match event:
            case TextDelta(text):
                known = min(len(text), len(self._ahead))
                if text[:known] != self._ahead[:known]:
                    raise ProgressLostError
                self._ahead = self._ahead[known:]
                if known == len(text):
                    return None
                self._given.append(text[known:])
                return TextDelta(text[known:])
            case Repairing():
                if self._repaired:
                    raise ProgressLostError
                self._given, self._ahead, self._repaired, self._more_given = [], "", True, False
            case Completed():
                if self._ahead:
                    raise ProgressLostError
            case FallingBack():
                pass  # of the answer, it gives nothing
            case _:
                self._more_given = True
        return event
