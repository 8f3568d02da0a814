"""SessionService: RPC handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.api.session.v1 import session_pb2 as pb
from peripety.api.session.v1.session_pb2_grpc import SessionServiceServicer
from peripety.gateway.streams import following
from peripety.requests import refuse
from peripety.sessions.messages import asked, tables, told
from peripety.sessions.messages.bundled import pieces_of, replayed
from peripety.sessions.messages.watched import watched
from peripety.sessions.seen import Room

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.sessions.odds import OddsTeller
    from peripety.sessions.sessions import Sessions

__all__ = ["SessionServicer", "room"]


def room(max_message_bytes: int) -> Room:
    """Return the size limit of turns for a message size limit."""
    return Room(max_message_bytes, told.turn_bytes)


class SessionServicer(SessionServiceServicer):
    """RPC handlers of sessions.

    Args:
        sessions: the sessions.
        odds: the forecaster.
    """

    def __init__(self, sessions: Sessions, odds: OddsTeller) -> None:
        self._sessions = sessions
        self._odds = odds

    async def CreateSession(  # noqa: N802 - the contract's name
        self, request: pb.CreateSessionRequest, _context: Any
    ) -> pb.CreateSessionResponse:
        """Create a session of a compiled scenario."""
        seen = await self._sessions.create(asked.new_session(request))
        return pb.CreateSessionResponse(session=told.session_message(seen))

    async def GetSession(  # noqa: N802 - the contract's name
        self, request: pb.GetSessionRequest, _context: Any
    ) -> pb.GetSessionResponse:
        """Return a session as seen by one entity."""
        seen = await self._sessions.get(request.session_id, request.pov_entity_id or None)
        return pb.GetSessionResponse(session=told.session_message(seen))

    async def ListSessions(  # noqa: N802 - the contract's name
        self, request: pb.ListSessionsRequest, _context: Any
    ) -> pb.ListSessionsResponse:
        """List sessions, newest first."""
        page = await self._sessions.list(request.scenario_id or None, request.page_size, request.page_token)
        return pb.ListSessionsResponse(
            sessions=map(told.summary, page.items), next_page_token=page.next_page_token
        )

    async def DeleteSession(  # noqa: N802 - the contract's name
        self, request: pb.DeleteSessionRequest, _context: Any
    ) -> pb.DeleteSessionResponse:
        """Delete a session with its turns."""
        await self._sessions.delete(request.session_id, request.request_id)
        return pb.DeleteSessionResponse()

    async def TakeTurn(  # noqa: N802 - the contract's name
        self, request: pb.TakeTurnRequest, _context: Any
    ) -> AsyncIterator[pb.TakeTurnResponse]:
        """Play a turn and stream its events."""
        turn = asked.turn_request(request)
        async with following(self._sessions.take_turn(turn)) as events:
            async for seen in events:
                yield pb.TakeTurnResponse(event=told.turn_event(seen))

    async def ResumeTurn(  # noqa: N802 - the contract's name
        self, request: pb.ResumeTurnRequest, _context: Any
    ) -> AsyncIterator[pb.ResumeTurnResponse]:
        """Stream the recorded events of a committed turn after a given one."""
        which = request.WhichOneof("which")
        if which is None:
            raise refuse(".which", "is required: set turn or request_id")
        for seen in await self._sessions.resume(
            request.session_id,
            getattr(request, which),
            after=request.after_sequence,
            attempt_id=request.attempt_id or None,
            pov=request.pov_entity_id or None,
        ):
            yield pb.ResumeTurnResponse(event=told.turn_event(seen))

    async def ForecastOutcomes(  # noqa: N802 - the contract's name
        self, request: pb.ForecastOutcomesRequest, _context: Any
    ) -> AsyncIterator[pb.ForecastOutcomesResponse]:
        """Simulate runs of a session, and stream the probability of each ending."""
        sequence = 0
        async with following(self._odds.odds(asked.odds_request(request))) as told_odds:
            async for odds in told_odds:
                sequence += 1
                yield told.odds_message(sequence, odds)

    async def SubmitActions(  # noqa: N802 - the contract's name
        self, request: pb.SubmitActionsRequest, _context: Any
    ) -> pb.SubmitActionsResponse:
        """Submit the actions of one seat in a session whose seats act at the same time."""
        waiting = await self._sessions.submit(tables.submission(request))
        return pb.SubmitActionsResponse(waiting_seat_ids=waiting)

    async def WatchSession(  # type: ignore[override]  # noqa: N802 - the contract's name; bytes, encoded once
        self, request: pb.WatchSessionRequest, _context: Any
    ) -> AsyncIterator[bytes]:
        """Watch a session."""
        async with following(self._sessions.watch(asked.watch_request(request))) as events:
            async for event in events:
                yield watched(event)

    async def ListTurns(  # noqa: N802 - the contract's name
        self, request: pb.ListTurnsRequest, _context: Any
    ) -> pb.ListTurnsResponse:
        """List the committed turns of a session, oldest first."""
        page = await self._sessions.turns(
            request.session_id, request.pov_entity_id or None, request.page_size, request.page_token
        )
        return pb.ListTurnsResponse(
            turns=map(told.turn_message, page.items), next_page_token=page.next_page_token
        )

    async def ForkSession(  # noqa: N802 - the contract's name
        self, request: pb.ForkSessionRequest, _context: Any
    ) -> pb.ForkSessionResponse:
        """Create a session that shares the first turns of another."""
        seen = await self._sessions.fork(asked.fork(request))
        return pb.ForkSessionResponse(session=told.session_message(seen))

    async def RewindSession(  # noqa: N802 - the contract's name
        self, request: pb.RewindSessionRequest, _context: Any
    ) -> pb.RewindSessionResponse:
        """Undo the last turns of a session."""
        seen = await self._sessions.rewind(asked.rewinding(request))
        return pb.RewindSessionResponse(session=told.session_message(seen))

    async def CompareBranches(  # noqa: N802 - the contract's name
        self, request: pb.CompareBranchesRequest, _context: Any
    ) -> pb.CompareBranchesResponse:
        """Compare two sessions: their last common turn, and the differences since."""
        compared = await self._sessions.compare(asked.comparison(request))
        return told.comparison(compared)

    async def ReplaySession(  # noqa: N802 - the contract's name
        self, request: pb.ReplaySessionRequest, _context: Any
    ) -> AsyncIterator[pb.ReplaySessionResponse]:
        """Replay every turn of a session and compare it with its record."""
        sequence = 0
        replay = self._sessions.replay(request.session_id, request.first_turn, request.last_turn)
        async with following(replay) as turns:
            async for turn in turns:
                sequence += 1
                yield replayed(sequence, turn)

    async def ExportSession(  # noqa: N802 - the contract's name
        self, request: pb.ExportSessionRequest, _context: Any
    ) -> AsyncIterator[pb.ExportSessionResponse]:
        """Export a session as a bundle that can be verified independently."""
        sequence = 0
        async with following(self._sessions.export(request.session_id, request.last_turn)) as pieces:
            async for piece in pieces:
                sequence += 1
                yield pb.ExportSessionResponse(sequence=sequence, chunk=piece)

    async def ImportSession(  # noqa: N802 - the contract's name
        self, requests: AsyncIterator[pb.ImportSessionRequest], _context: Any
    ) -> pb.ImportSessionResponse:
        """Verify a bundle and store its session."""
        request_id, pieces = await pieces_of(requests)
        seen = await self._sessions.take_in(request_id, pieces)
        return pb.ImportSessionResponse(session=told.session_message(seen))
