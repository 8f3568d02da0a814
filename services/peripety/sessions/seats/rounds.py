"""Scheduler of turns without a request: all seats have acted, or a seat has timed out.

Such a turn is played once, outside the calls that lead to it, in any process. Its due time is also the lease
on it: the process that plays the turn first postpones the due time, so if the process crashes, the turn
becomes due again.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import uuid
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.clock import microseconds_now
from peripety.errors import FailedPreconditionError, PeripetyError
from peripety.gateway.streams import following
from peripety.sessions.checks import check_known_actions, check_next_turn, check_ongoing, check_submission
from peripety.sessions.events import RuleFailed
from peripety.sessions.mechanics import Board
from peripety.sessions.model import SeatOrder, TurnRequest
from peripety.sessions.seats.model import LEASE_MICROSECONDS
from peripety.sessions.seats.seating import acted_by, seat_named
from peripety.tasks import finish

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from typing import Any

    from peripety.sessions.model import ActionCall, Session, Table
    from peripety.sessions.rulesets import Ruleset, Rulesets
    from peripety.sessions.seats.model import Round, Submission
    from peripety.sessions.store import SessionStore
    from peripety.sessions.turns import Turns
    from peripety.sessions.watching.hub import Hub

__all__ = ["Rounds"]

_LOOK_SECONDS = 0.5
_AT_ONCE = 8
_REQUESTS = uuid.UUID("0f1e53a0-6c52-4b0e-8d53-6a1f6f1f3a75")

_log = logging.getLogger(__name__)


class Rounds:
    """Scheduler of turns with several seats.

    Args:
        store: stores the sessions.
        rulesets: the programs of their scenarios.
        turns: plays turns.
        hub: notifies watchers.
    """

    def __init__(self, store: SessionStore, rulesets: Rulesets, turns: Turns, hub: Hub) -> None:
        self._store = store
        self._seats = store.seats
        self._rulesets = rulesets
        self._turns = turns
        self._hub = hub
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, submission: Submission) -> tuple[str, ...]:
        """Submit the actions of a seat.

        Returns:
            The seats that the turn still waits for; none once it is being played.

        Raises:
            InvalidArgumentError: a field is invalid.
            NotFoundError: the session or seat does not exist.
            AlreadyExistsError: the request id was used for a different request.
            ConflictError: `STALE_TURN`: it is not the next turn.
            FailedPreconditionError: `SEATS_TAKE_TURNS`, `SEAT_HAS_ACTED`, `TIME_IS_UP`, or `RUN_ENDED`.
        """
        check_submission(submission)
        session = await self._store.session(submission.session_id)
        ruleset = await self._rulesets.of(session.spec_hash)
        check_known_actions(submission.actions, ruleset.spec)
        if session.turn + 1 == submission.expected_turn:
            await asyncio.to_thread(_try_out, ruleset, session, submission.actions)
        # Shielded: if the last caller disconnects, the others must not wait for another process.
        now = await finish(self._hand_in(submission))
        return () if now.session.turn >= submission.expected_turn else now.waiting

    async def _hand_in(self, submission: Submission) -> Round:
        later = microseconds_now() + LEASE_MICROSECONDS
        now, completed = await self._seats.submit(
            submission, lambda before: _check(submission, before), later
        )
        self._hub.acted(now.session, now.acted)
        if completed:
            self._start(self._play(replace(now.session, due=later)))
        return now

    def look_out(self) -> None:
        """Start polling for turns that are due."""
        self._start(self._look_out())

    async def aclose(self) -> None:
        """Stop playing; turns in progress become due for other processes at once."""
        # A task must have started before it is cancelled, or it could not release its turn.
        await asyncio.sleep(0)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        # Outside the caller's context, which has a deadline.
        task = asyncio.create_task(work, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _look_out(self) -> None:
        while True:
            try:
                for session in await self._seats.due(microseconds_now(), _AT_ONCE):
                    later = microseconds_now() + LEASE_MICROSECONDS
                    if await self._seats.take_over(session, later):
                        self._start(self._play(replace(session, due=later)))
            except PeripetyError as error:
                _log.warning("due turns cannot be played now", extra={"code": error.code})
            await asyncio.sleep(_LOOK_SECONDS)

    async def _play(self, session: Session) -> None:
        """Play the turn after a session with the submissions of its seats."""
        table = session.table
        if table is None:
            return
        try:
            if table.order is SeatOrder.SIMULTANEOUS:
                await self._play_round(session, table)
            else:
                await self._pass(session, table)
        except asyncio.CancelledError:
            with suppress(PeripetyError):
                await self._seats.move(session, microseconds_now())
            raise
        except PeripetyError as error:
            _log.info("scheduled turn was not played", extra={"code": error.code})

    async def _play_round(self, session: Session, table: Table) -> None:
        request = _turn_of(await self._seats.round(session), table)
        async with following(self._turns.take_round(request)) as events:
            last = [event async for event in events][-1].event
        if isinstance(last, RuleFailed) and last.turn_abandoned:
            await self._seats.open_anew(session, session.next_due(microseconds_now()))
            self._hub.acted(session, ())

    async def _pass(self, session: Session, table: Table) -> None:
        seat = table.seats[session.turn % len(table.seats)]
        request = TurnRequest(
            session.session_id, _request_id(session), session.turn + 1, seat_id=seat.seat_id
        )
        async with following(self._turns.take(request)) as events:
            async for _ in events:
                pass


def _check(submission: Submission, before: Round) -> None:
    """Raise an error if a submission is not possible now."""
    session, table = before.session, before.session.table
    if table is None or table.order is not SeatOrder.SIMULTANEOUS:
        raise FailedPreconditionError(
            "session has no simultaneous seats; play its turns with TakeTurn",
            code="SEATS_TAKE_TURNS",
        )
    seat = seat_named(submission.seat_id, table)
    check_next_turn(submission.expected_turn, session)
    check_ongoing(session)
    if seat.seat_id in before.acted:
        raise FailedPreconditionError(
            f".seat_id: '{seat.seat_id}' has acted in turn {submission.expected_turn}; wait for the next",
            code="SEAT_HAS_ACTED",
        )
    is_due = session.due is not None and session.due <= microseconds_now()
    if is_due or seat.seat_id not in before.waiting:
        raise FailedPreconditionError(
            f".seat_id: '{seat.seat_id}' timed out in turn {submission.expected_turn}; act in the next",
            code="TIME_IS_UP",
        )


def _try_out(ruleset: Ruleset, session: Session, actions: Sequence[ActionCall]) -> None:
    """Validate parameters early, as an error in the simultaneous turn itself has no client to report to."""
    board = Board(ruleset.program, session.snapshot)
    for action in actions:
        board.act(action)


def _turn_of(now: Round, table: Table) -> TurnRequest:
    """Return the request for the joint turn of all seats, in seat order."""
    handed_in = {one.seat_id: one for one in now.handed_in}
    acting = [(seat, handed_in[seat.seat_id]) for seat in table.seats if seat.seat_id in handed_in]
    return TurnRequest(
        session_id=now.session.session_id,
        request_id=_request_id(now.session),
        expected_turn=now.session.turn + 1,
        actions=tuple(action for seat, one in acting for action in acted_by(seat, one.actions)),
        input="\n".join(f"{seat.entity_id}: {one.input}" for seat, one in acting if one.input),
    )


def _request_id(session: Session) -> str:
    """Return the id of the request for the next turn, which is the same in every process."""
    return str(uuid.uuid5(_REQUESTS, f"{session.session_id} {session.last_sequence}"))
