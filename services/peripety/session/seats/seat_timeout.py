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

from peripety.core.call_context import now_micros
from peripety.core.concurrency import closing, shield_until_done
from peripety.errors import FailedPreconditionError, PeripetyError
from peripety.session.events import RuleFailed
from peripety.session.seats.turn_order import find_seat, with_actor
from peripety.session.turn_transaction import TurnTransaction
from peripety.session.types import TurnOrder, TurnRequest
from peripety.session.validation import check_known_actions, check_next_turn, check_ongoing, check_submission

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from typing import Any

    from peripety.session.seats.turn_order import SimultaneousTurn, SubmitActionsRequest
    from peripety.session.session_view import Ruleset, RulesetCache
    from peripety.session.store.session_store import SessionStore
    from peripety.session.turn_runner import TurnRunner
    from peripety.session.types import PlayerAction, SeatConfig, Session
    from peripety.session.watch.broadcaster import SessionBroadcaster


_POLL_SECONDS = 0.5
_MAX_CLAIMS_PER_POLL = 8
_REQUEST_NAMESPACE = uuid.UUID("0f1e53a0-6c52-4b0e-8d53-6a1f6f1f3a75")

_log = logging.getLogger(__name__)


class RoundScheduler:
    """Scheduler of turns with several seats.

    Args:
        store: stores the sessions.
        rulesets: the programs of their scenarios.
        turn_runner: plays turns.
        broadcaster: notifies watchers.
    """

    def __init__(
        self,
        store: SessionStore,
        rulesets: RulesetCache,
        turn_runner: TurnRunner,
        broadcaster: SessionBroadcaster,
    ) -> None:
        self._store = store
        self._seat_store = store.seats
        self._rulesets = rulesets
        self._turn_runner = turn_runner
        self._broadcaster = broadcaster
        self._tasks: set[asyncio.Task[None]] = set()

    async def submit(self, submission: SubmitActionsRequest) -> tuple[str, ...]:
        """Submit the actions of a seat.

        Returns:
            The seats that the turn still waits for; none once it is being played.

        Raises:
            InvalidArgumentError: a field is invalid.
            NotFoundError: the session or seat does not exist.
            AlreadyExistsError: the request id was used for a different request.
            ConflictError: `STALE_TURN`: it is not the next turn.
            FailedPreconditionError: `SEATS_TAKE_TURNS`, `SEAT_HAS_ACTED`, `SEAT_TIMEOUT`, or `RUN_ENDED`.
        """
        check_submission(submission)
        session = await self._store.get_session(submission.session_id)
        ruleset = await self._rulesets.get(session.spec_hash)
        check_known_actions(submission.actions, ruleset.spec)
        if session.turn + 1 == submission.expected_turn:
            await asyncio.to_thread(_check_parameters, ruleset, session, submission.actions)
        # Shielded: if the last caller disconnects, the others must not wait for another process.
        now = await shield_until_done(self._store_submission(submission))
        return () if now.session.turn >= submission.expected_turn else now.waiting_seats

    async def _store_submission(self, submission: SubmitActionsRequest) -> SimultaneousTurn:
        later = now_micros() + self._turn_runner.lease_micros
        now, completed = await self._seat_store.submit(
            submission,
            lambda before: _check_submission_allowed(submission, before),
            later,
        )
        self._broadcaster.publish_seats(now.session, now.acted_seats)
        if completed:
            self._start_task(self._play(replace(now.session, due=later)))
        return now

    def start_polling(self) -> None:
        """Start polling for turns that are due."""
        self._start_task(self._poll())

    async def aclose(self) -> None:
        """Stop playing; turns in progress become due for other processes at once."""
        # A task must have started before it is cancelled, or it could not release its turn.
        await asyncio.sleep(0)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> None:
        # Outside the caller's context, which has a deadline.
        task = asyncio.create_task(work, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _poll(self) -> None:
        while True:
            try:
                for session in await self._seat_store.list_due(now_micros(), _MAX_CLAIMS_PER_POLL):
                    later = now_micros() + self._turn_runner.lease_micros
                    if await self._seat_store.claim(session, later):
                        self._start_task(self._play(replace(session, due=later)))
            except PeripetyError as error:
                _log.warning("due turns cannot be played now", extra={"code": error.code})
            await asyncio.sleep(_POLL_SECONDS)

    async def _play(self, session: Session) -> None:
        """Play the turn after a session with the submissions of its seats."""
        table = session.table
        if table is None:
            return
        try:
            if table.order is TurnOrder.SIMULTANEOUS:
                await self._play_round(session, table)
            else:
                await self._play_timeout(session, table)
        except asyncio.CancelledError:
            with suppress(PeripetyError):
                await self._seat_store.set_deadline(session, now_micros())
            raise
        except PeripetyError as error:
            _log.info("scheduled turn was not played", extra={"code": error.code})

    async def _play_round(self, session: Session, table: SeatConfig) -> None:
        request = _joint_turn_request(await self._seat_store.load_turn(session), table)
        async with closing(self._turn_runner.run(request, is_joint=True)) as events:
            last = [event async for event in events][-1].event
        if isinstance(last, RuleFailed) and last.turn_abandoned:
            await self._seat_store.reopen(session, session.next_deadline(now_micros()))
            self._broadcaster.publish_seats(session, ())

    async def _play_timeout(self, session: Session, table: SeatConfig) -> None:
        seat = table.seats[session.turn % len(table.seats)]
        request = TurnRequest(
            session.session_id,
            _derive_request_id(session),
            session.turn + 1,
            seat_id=seat.seat_id,
        )
        async with closing(self._turn_runner.run(request)) as events:
            async for _ in events:
                pass


def _check_submission_allowed(submission: SubmitActionsRequest, before: SimultaneousTurn) -> None:
    """Raise an error if a submission is not possible now."""
    session, table = before.session, before.session.table
    if table is None or table.order is not TurnOrder.SIMULTANEOUS:
        raise FailedPreconditionError(
            "session has no simultaneous seats; play its turns with TakeTurn",
            code="SEATS_TAKE_TURNS",
        )
    seat = find_seat(submission.seat_id, table)
    check_next_turn(submission.expected_turn, session)
    check_ongoing(session)
    if seat.seat_id in before.acted_seats:
        raise FailedPreconditionError(
            f"seat_id: '{seat.seat_id}' has acted in turn {submission.expected_turn}; wait for the next",
            code="SEAT_HAS_ACTED",
        )
    is_due = session.due is not None and session.due <= now_micros()
    if is_due or seat.seat_id not in before.waiting_seats:
        raise FailedPreconditionError(
            f"seat_id: '{seat.seat_id}' timed out in turn {submission.expected_turn}; act in the next",
            code="SEAT_TIMEOUT",
        )


def _check_parameters(ruleset: Ruleset, session: Session, actions: Sequence[PlayerAction]) -> None:
    """Validate parameters early, as an error in the simultaneous turn itself has no client to report to."""
    board = TurnTransaction(ruleset.program, session.snapshot)
    for action in actions:
        board.act(action)


def _joint_turn_request(now: SimultaneousTurn, table: SeatConfig) -> TurnRequest:
    """Return the request for the joint turn of all seats, in seat order."""
    handed_in = {one.seat_id: one for one in now.submissions}
    acting = [(seat, handed_in[seat.seat_id]) for seat in table.seats if seat.seat_id in handed_in]
    return TurnRequest(
        session_id=now.session.session_id,
        request_id=_derive_request_id(now.session),
        expected_turn=now.session.turn + 1,
        actions=tuple(action for seat, one in acting for action in with_actor(seat, one.actions)),
        input="\n".join(f"{seat.entity_id}: {one.input}" for seat, one in acting if one.input),
    )


def _derive_request_id(session: Session) -> str:
    """Return the id of the request for the next turn, which is the same in every process."""
    return str(uuid.uuid5(_REQUEST_NAMESPACE, f"{session.session_id} {session.last_sequence}"))
