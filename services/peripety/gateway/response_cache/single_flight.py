"""Single-flight: one model call shared by all concurrent callers of an equal request.

Model calls are slow and cost money, and equal requests can arrive together. The first caller starts a task;
later callers join it and get its events from the first one on. The result goes to the response cache.

Invariants:

- The call belongs to no caller. It runs in its own task without a deadline; each follower applies its own
  deadline. It is cancelled when its last follower leaves, and a new equal call starts only after the
  cancelled one is closed.
- Usage is counted once. The leader, the longest-standing follower at the end, gets usage and cost in its
  completion. The others get zero usage and `from_response_cache`.
- One error is raised once. The leader gets the error of the call. The others get `FollowerRetryError` and
  retry, and the first of them starts a new call. Raising the error in all followers was rejected: one
  failed call would then fail every equal request, although each of them may make a call of its own.
- A stream is never contradicted. A caller that has already received text follows a retry only if the new
  answer starts with that text (`Progress`); otherwise it gets the original error. Reasoning and tool-call
  deltas are not compared, so after them a caller cannot continue.

Limits of sharing: requests share a call only if they have equal cache keys, budgets and conversations. A
smaller budget could truncate the answer for all. Requests with a caller's own check never share: two
functions cannot be compared, and the stream of an answer would show deltas that the other check rejects.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from peripety.core import call_context
from peripety.errors import InternalError
from peripety.gateway.response_cache.tiers import StoredAnswer, replay_answer, without_usage
from peripety.gateway.types.response import Completed, Completion, FallingBack, Repairing, TextDelta

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from peripety.gateway.types.response import GatewayEvent


@dataclass(frozen=True, slots=True)
class CallCompleted:
    """The model has answered."""

    completion: Completion


@dataclass(frozen=True, slots=True)
class CacheHit:
    """The answer was in the cache; no call was needed."""

    answer: StoredAnswer


@dataclass(frozen=True, slots=True)
class CallFailed:
    """The call failed."""

    error: BaseException


SharedCallOutcome: TypeAlias = CallCompleted | CacheHit | CallFailed


class FollowerRetryError(Exception):
    """Raised to a follower that got no answer and has not caused a call: the follower may retry.

    Attributes:
        cause: the error of the call; None if the follower declined a cached answer.
    """

    def __init__(self, cause: BaseException | None) -> None:
        super().__init__()
        self.cause = cause


class SharedCall:
    """A shared call: its events so far, and its followers.

    No caller owns it. It runs while it has a follower, and is cancelled when the last one leaves. When it
    ends, its longest-standing follower is the leader. The leader gets the usage, the cost and the error of
    the call. The others get the answer free of charge, or retry by themselves.
    """

    def __init__(self) -> None:
        self._events: list[GatewayEvent] = []
        self._followers: dict[object, None] = {}
        self._changed = asyncio.Event()
        self._outcome: SharedCallOutcome | None = None
        self._leader: object = None
        self._task: asyncio.Task[None] | None = None
        self.is_abandoned = False

    def start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Start `work`, which fills this call, in a task; return the task."""
        self._task = asyncio.create_task(work)
        return self._task

    def publish(self, event: GatewayEvent) -> None:
        """Publish an event to all followers."""
        self._events.append(event)
        self._notify()

    def set_outcome(self, outcome: SharedCallOutcome) -> None:
        """Set the outcome; no event follows."""
        self._outcome = outcome
        self._leader = next(iter(self._followers), None)
        self._notify()

    async def wait_closed(self) -> None:
        """Wait until an abandoned call is closed."""
        if self._task is not None:
            await asyncio.wait([self._task])

    def cancel(self) -> None:
        """Cancel the call, unless it has ended."""
        # Only once: a second cancellation would interrupt the closing of the call.
        if self._outcome is None and self._task is not None and not self.is_abandoned:
            self.is_abandoned = True
            self._task.cancel()

    async def follow(self, *, fresh: bool) -> AsyncIterator[GatewayEvent]:
        """Follow the call from its first event.

        Args:
            fresh: whether to decline an answer from the cache.

        Raises:
            FollowerRetryError: this caller gets no answer from the call.
            BaseException: the error of the call, for its leader.
        """
        caller = object()
        self._followers[caller] = None
        try:
            seen = 0
            while self._outcome is None or seen < len(self._events):
                if seen < len(self._events):
                    seen += 1
                    yield self._events[seen - 1]
                else:
                    async with call_context.timeout_at_deadline(None):
                        await self._changed.wait()
            for event in self._final_events(is_leader=self._leader is caller, fresh=fresh):
                yield event
        finally:
            del self._followers[caller]
            if not self._followers and self._outcome is None:
                self.cancel()
                await self.wait_closed()

    def _final_events(self, *, is_leader: bool, fresh: bool) -> list[GatewayEvent]:
        match self._outcome:
            case CallCompleted(completion):
                return [Completed(completion if is_leader else without_usage(completion))]
            case CacheHit(answer) if not fresh:
                return list(replay_answer(answer))
            case CacheHit():
                raise FollowerRetryError(None)
            case CallFailed(error) if is_leader:
                raise error
            case CallFailed(error):
                raise FollowerRetryError(error)
            case None:
                raise InternalError("shared call has no outcome after its end")

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class AnswerDivergedError(Exception):
    """Raised when another answer does not continue the part that was already released."""


class DeliveredAnswer:
    """The part of an answer that one caller has received, so that another call can continue it."""

    def __init__(self) -> None:
        self._delivered: list[str] = []
        self._delivered_other = False
        self._repaired = False
        self._expected = ""

    def try_restart(self) -> bool:
        """Restart the comparison from the start of the answer.

        Return False if more than text was released.
        """
        self._expected = "".join(self._delivered)
        return not self._delivered_other

    def advance(self, event: GatewayEvent) -> GatewayEvent | None:
        """Return the new part of an event; None if the caller already has all of it.

        Raises:
            AnswerDivergedError: the answer differs from the part already released.
        """
        match event:
            case TextDelta(text):
                known = min(len(text), len(self._expected))
                if text[:known] != self._expected[:known]:
                    raise AnswerDivergedError
                self._expected = self._expected[known:]
                if known == len(text):
                    return None
                self._delivered.append(text[known:])
                return TextDelta(text[known:])
            case Repairing():
                if self._repaired:
                    raise AnswerDivergedError
                self._delivered, self._expected, self._repaired, self._delivered_other = [], "", True, False
            case Completed():
                if self._expected:
                    raise AnswerDivergedError
            case FallingBack():
                pass  # not a part of the answer
            case _:
                self._delivered_other = True
        return event
