"""SessionService: RPC handlers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.api.session.v1 import session_pb2 as pb
from peripety.api.session.v1.session_pb2_grpc import SessionServiceServicer
from peripety.core.concurrency import closing
from peripety.errors import field_error
from peripety.session.pb import requests as pb_requests
from peripety.session.pb import responses
from peripety.session.pb.responses import bundle_chunks_from_proto, encode_watch_event, replay_event_to_proto
from peripety.session.visibility import MessageLimit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.session.forecast import OutcomeForecaster
    from peripety.session.session_manager import SessionManager


def message_limit(max_message_bytes: int) -> MessageLimit:
    """Return the size limit of turns for a message size limit."""
    return MessageLimit(max_message_bytes, responses.max_turn_message_size)


class SessionServicer(SessionServiceServicer):
    """RPC handlers of sessions.

    Args:
        sessions: the sessions.
        forecaster: the forecaster.
    """

    def __init__(self, sessions: SessionManager, forecaster: OutcomeForecaster) -> None:
        self._sessions = sessions
        self._forecaster = forecaster

    async def CreateSession(  # noqa: N802 - the contract's name
        self,
        request: pb.CreateSessionRequest,
        _context: Any,
    ) -> pb.CreateSessionResponse:
        """Create a session of a compiled scenario."""
        seen = await self._sessions.create(pb_requests.new_session_from_proto(request))
        return pb.CreateSessionResponse(session=responses.session_to_proto(seen))

    async def GetSession(  # noqa: N802 - the contract's name
        self,
        request: pb.GetSessionRequest,
        _context: Any,
    ) -> pb.GetSessionResponse:
        """Return a session as seen by one entity."""
        seen = await self._sessions.get(request.session_id, request.pov_entity_id or None)
        return pb.GetSessionResponse(session=responses.session_to_proto(seen))

    async def ListSessions(  # noqa: N802 - the contract's name
        self,
        request: pb.ListSessionsRequest,
        _context: Any,
    ) -> pb.ListSessionsResponse:
        """List sessions, newest first by default."""
        page = await self._sessions.list_sessions(
            pb_requests.session_listing_from_proto(request),
            request.page_size,
            request.page_token,
        )
        return pb.ListSessionsResponse(
            sessions=map(responses.session_summary_to_proto, page.items),
            next_page_token=page.next_page_token,
        )

    async def DeleteSession(  # noqa: N802 - the contract's name
        self,
        request: pb.DeleteSessionRequest,
        _context: Any,
    ) -> pb.DeleteSessionResponse:
        """Delete a session with its turns."""
        await self._sessions.delete(request.session_id, request.request_id)
        return pb.DeleteSessionResponse()

    async def TakeTurn(  # noqa: N802 - the contract's name
        self,
        request: pb.TakeTurnRequest,
        _context: Any,
    ) -> AsyncIterator[pb.TakeTurnResponse]:
        """Play a turn and stream its events."""
        turn = pb_requests.turn_request_from_proto(request)
        async with closing(self._sessions.turn_runner.run(turn)) as events:
            async for seen in events:
                yield pb.TakeTurnResponse(event=responses.turn_event_to_proto(seen))

    async def ResumeTurn(  # noqa: N802 - the contract's name
        self,
        request: pb.ResumeTurnRequest,
        _context: Any,
    ) -> AsyncIterator[pb.ResumeTurnResponse]:
        """Stream the recorded events of a committed turn after a given one."""
        which = request.WhichOneof("which")
        if which is None:
            raise field_error(".which", "is required: set turn or request_id")
        for seen in await self._sessions.resume(
            request.session_id,
            getattr(request, which),
            after=request.after_sequence,
            attempt_id=request.attempt_id or None,
            pov=request.pov_entity_id or None,
        ):
            yield pb.ResumeTurnResponse(event=responses.turn_event_to_proto(seen))

    async def ForecastOutcomes(  # noqa: N802 - the contract's name
        self,
        request: pb.ForecastOutcomesRequest,
        _context: Any,
    ) -> AsyncIterator[pb.ForecastOutcomesResponse]:
        """Simulate runs of a session, and stream the probability of each ending."""
        sequence = 0
        async with closing(
            self._forecaster.forecast(pb_requests.forecast_request_from_proto(request)),
        ) as told_odds:
            async for odds in told_odds:
                sequence += 1
                yield responses.forecast_to_proto(sequence, odds)

    async def SubmitActions(  # noqa: N802 - the contract's name
        self,
        request: pb.SubmitActionsRequest,
        _context: Any,
    ) -> pb.SubmitActionsResponse:
        """Submit the actions of one seat in a session whose seats act at the same time."""
        waiting = await self._sessions.round_scheduler.submit(pb_requests.submission_from_proto(request))
        return pb.SubmitActionsResponse(waiting_seat_ids=waiting)

    async def WatchSession(  # type: ignore[override]  # noqa: N802 - the contract's name; bytes, encoded once
        self,
        request: pb.WatchSessionRequest,
        _context: Any,
    ) -> AsyncIterator[bytes]:
        """Watch a session."""
        async with closing(
            self._sessions.watch_streams.open(pb_requests.watch_request_from_proto(request))
        ) as events:
            async for event in events:
                yield encode_watch_event(event)

    async def ListTurns(  # noqa: N802 - the contract's name
        self,
        request: pb.ListTurnsRequest,
        _context: Any,
    ) -> pb.ListTurnsResponse:
        """List the committed turns of a session, oldest first."""
        page = await self._sessions.list_turns(
            request.session_id,
            request.pov_entity_id or None,
            request.page_size,
            request.page_token,
        )
        return pb.ListTurnsResponse(
            turns=map(responses.turn_to_proto, page.items),
            next_page_token=page.next_page_token,
        )

    async def ForkSession(  # noqa: N802 - the contract's name
        self,
        request: pb.ForkSessionRequest,
        _context: Any,
    ) -> pb.ForkSessionResponse:
        """Create a session that shares the first turns of another."""
        seen = await self._sessions.branches.fork(pb_requests.fork_request_from_proto(request))
        return pb.ForkSessionResponse(session=responses.session_to_proto(seen))

    async def RewindSession(  # noqa: N802 - the contract's name
        self,
        request: pb.RewindSessionRequest,
        _context: Any,
    ) -> pb.RewindSessionResponse:
        """Undo the last turns of a session."""
        seen = await self._sessions.rewind(pb_requests.rewind_request_from_proto(request))
        return pb.RewindSessionResponse(session=responses.session_to_proto(seen))

    async def CompareBranches(  # noqa: N802 - the contract's name
        self,
        request: pb.CompareBranchesRequest,
        _context: Any,
    ) -> pb.CompareBranchesResponse:
        """Compare two sessions: their last common turn, and the differences since."""
        compared = await self._sessions.branches.compare(pb_requests.compare_request_from_proto(request))
        return responses.comparison_to_proto(compared)

    async def AskSession(  # noqa: N802 - the contract's name
        self,
        request: pb.AskSessionRequest,
        _context: Any,
    ) -> pb.AskSessionResponse:
        """Answer a question from the record of a session."""
        answer = await self._sessions.ask(request.session_id, request.question, request.pov_entity_id or None)
        return pb.AskSessionResponse(answer=answer.text, found=answer.is_found, turns=answer.turns)

    async def ReplaySession(  # noqa: N802 - the contract's name
        self,
        request: pb.ReplaySessionRequest,
        _context: Any,
    ) -> AsyncIterator[pb.ReplaySessionResponse]:
        """Replay every turn of a session and compare it with its record."""
        sequence = 0
        replay = self._sessions.exporter.replay(request.session_id, request.first_turn, request.last_turn)
        async with closing(replay) as turns:
            async for turn in turns:
                sequence += 1
                yield replay_event_to_proto(sequence, turn)

    async def ExportSession(  # noqa: N802 - the contract's name
        self,
        request: pb.ExportSessionRequest,
        _context: Any,
    ) -> AsyncIterator[pb.ExportSessionResponse]:
        """Export a session as a bundle that can be verified independently."""
        sequence = 0
        async with closing(self._sessions.exporter.export(request.session_id, request.last_turn)) as pieces:
            async for piece in pieces:
                sequence += 1
                yield pb.ExportSessionResponse(sequence=sequence, chunk=piece)

    async def ImportSession(  # noqa: N802 - the contract's name
        self,
        requests: AsyncIterator[pb.ImportSessionRequest],
        _context: Any,
    ) -> pb.ImportSessionResponse:
        """Verify a bundle and store its session."""
        request_id, pieces = await bundle_chunks_from_proto(requests)
        seen = await self._sessions.import_bundle(request_id, pieces)
        return pb.ImportSessionResponse(session=responses.session_to_proto(seen))
