"""Routes of sessions: create, read, play a turn as a stream, follow.

A turn is played by a task of its own, and its events go to a log. If the connection of the client breaks,
the turn continues; the same request with `Last-Event-ID` continues after the last event that arrived.
Followers of the same session and point of view share one stream of the session service.
"""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Header, Query, WebSocket
from fastapi.responses import JSONResponse, Response
from pydantic import TypeAdapter, ValidationError
from starlette.responses import StreamingResponse
from starlette.websockets import WebSocketDisconnect

from peripety.api.scenario.v1 import scenario_pb2 as scenario_pb
from peripety.api.session.v1 import session_pb2 as pb
from peripety.core.idempotency.store import request_id_reused_error
from peripety.core.logging_setup import describe_error
from peripety.edge.event_stream import (
    EventLog,
    EventStreamResponse,
    ServerEvent,
    collect,
    describe_stream,
    error_event,
    parse_event_id,
)
from peripety.edge.request_models import IdempotencyKey, SessionBody, TurnBody
from peripety.edge.stories import to_story
from peripety.errors import FieldViolation, InvalidArgumentError, NotFoundError
from peripety.rpc.proto_json import message_from_json, to_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

    from peripety.edge.calls import RpcCaller, RpcMethod

_SERVICE = "/peripety.api.session.v1.SessionService/"
_GET_SCENARIO = "/peripety.api.scenario.v1.ScenarioService/GetScenario"
_KEPT_SECONDS = 60.0
"""Time that the events of a finished turn stay in memory for clients that come back."""

_NAMES = {
    "action_resolved": "action",
    "rolled": "roll",
    "world_resolved": "world",
    "committed": "diff",
}
"""Names of events where they differ from the members of `TurnEvent`."""

STREAM: dict[int | str, dict[str, Any]] = {
    200: describe_stream("Server-sent events; the last one of a turn is `diff` or `error`.")
}
"""OpenAPI description of a stream."""

_log = logging.getLogger(__name__)


_TURN_BODY = TypeAdapter(TurnBody)


def to_server_event(event: pb.TurnEvent, attempt_id: str) -> ServerEvent | None:
    """Return the event of a turn; None if nothing of it is visible.

    Args:
        event: the event.
        attempt_id: the attempt that it belongs to.
    """
    kind = event.WhichOneof("event")
    if kind is None:
        return None
    name = _NAMES.get(kind, kind)
    value = to_json(getattr(event, kind)) | {"turn": event.turn}
    if kind == "rule_failed" and event.rule_failed.turn_abandoned:
        name = "error"
        value |= {"status": 409, "detail": event.rule_failed.message}
    return ServerEvent.of(name, value, f"{event.sequence}.{attempt_id}")


def _to_turn(session_id: str, request_id: str, body: TurnBody) -> dict[str, Any]:
    """Return the request of a turn without its number."""
    return {
        "session_id": session_id,
        "request_id": request_id,
        "actions": [action.model_dump() for action in body.actions],
        "input": body.input,
        "pov_entity_id": body.pov,
        "seat_id": body.seat_id,
    }


class SessionRoutes:
    """Handlers of the routes.

    Args:
        caller: calls the session service.
    """

    def __init__(self, caller: RpcCaller) -> None:
        self._caller = caller
        self._turns: dict[tuple[str, str, str], _PlayedTurn] = {}
        self._feeds: dict[tuple[str, str], _Feed] = {}
        self._checks: dict[tuple[str, str], asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.router = APIRouter(tags=["sessions"])
        add = self.router.add_api_route
        add("/sessions", self.create, methods=["POST"], status_code=201, summary="Start a session")
        add("/sessions/{session_id}", self.read, methods=["GET"], summary="Read a session")
        story = "Read the names and texts of its scenario"
        add("/sessions/{session_id}/story", self.read_story, methods=["GET"], summary=story)
        add(
            "/sessions/{session_id}/turns",
            self.take_turn,
            methods=["POST"],
            summary="Play a turn and stream it",
            response_class=StreamingResponse,
            responses=STREAM,
        )
        add(
            "/sessions/{session_id}/events",
            self.follow,
            methods=["GET"],
            summary="Follow a session",
            response_class=StreamingResponse,
            responses=STREAM,
        )
        self.router.add_api_websocket_route("/sessions/{session_id}/socket", self.serve_socket)

    async def aclose(self) -> None:
        """Cancel the turns and streams in progress."""
        tasks = [*self._tasks, *self._checks.values(), *(feed.task for feed in self._feeds.values())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _method(self, name: str) -> RpcMethod:
        return self._caller.methods[_SERVICE + name]

    async def create(self, body: SessionBody, idempotency_key: IdempotencyKey = None) -> JSONResponse:
        """Start a session of a compiled scenario, and return it from the point of view."""
        value: dict[str, Any] = {
            "request_id": str(idempotency_key or uuid.uuid4()),
            "scenario_id": body.scenario_id,
            "pov_entity_id": body.pov,
        }
        if body.seed is not None:
            value["seed"] = body.seed
        if body.seats is not None:
            value["seat_config"] = body.seats
        if body.narrator is not None:
            value["narrator"] = body.narrator
        request = message_from_json(pb.CreateSessionRequest, value, "body")
        created = await self._caller.call(self._method("CreateSession"), request)
        location = f"/sessions/{created.session.session_id}"
        return JSONResponse(to_json(created.session), 201, {"location": location})

    async def read(self, session_id: str, pov: Annotated[str, Query()] = "") -> JSONResponse:
        """Return a session after its last turn, from the point of view of one entity."""
        return JSONResponse(await self.get(session_id, pov))

    async def read_story(self, session_id: str, pov: Annotated[str, Query()] = "") -> JSONResponse:
        """Return names and texts for display, limited to what the point of view may know.

        They are `name`, `premise`, `opening`, `turn_length`, `horizon`, `entities`, `places`, `labels`,
        `bounds`, `actions`, `events`, `endings` and, after the end, `ending` with its epilogue and the paths
        that decided it.
        """
        return JSONResponse(await self.get_story(await self.get(session_id, pov)))

    async def get(self, session_id: str, pov: str) -> dict[str, Any]:
        """Return a session from the point of view of one entity."""
        request = pb.GetSessionRequest(session_id=session_id, pov_entity_id=pov)
        got = await self._caller.call(self._method("GetSession"), request)
        return to_json(got.session)

    async def get_story(self, session: Mapping[str, Any]) -> dict[str, Any]:
        """Return the story of a session, from the point of view that it was read from."""
        request = scenario_pb.GetScenarioRequest(
            scenario_id=session["scenario_id"], spec_hash=session["spec_hash"]
        )
        got = await self._caller.call(self._caller.methods[_GET_SCENARIO], request)
        spec = json.loads(got.scenario.spec)
        return to_story(spec, session.get("pov_entity_id", ""), session["status"])

    async def submit(self, session_id: str, body: TurnBody) -> dict[str, Any]:
        """Submit the actions of a seat, and return the seats that have not submitted yet."""
        request_id = str(body.request_id or uuid.uuid4())
        value = _to_turn(session_id, request_id, body)
        value["expected_turn"] = body.expected_turn or (await self.get(session_id, "")).get("turn", 0) + 1
        del value["pov_entity_id"]
        request = message_from_json(pb.SubmitActionsRequest, value, "body")
        return to_json(await self._caller.call(self._method("SubmitActions"), request))

    async def take_turn(
        self, session_id: str, body: TurnBody, last_event_id: Annotated[str | None, Header()] = None
    ) -> Response:
        """Play a turn; the last event is `diff`, or `error` if nothing was applied.

        The events are `accepted`, `action`, `roll`, `world`, `narrative_chunk`, `narrative_retracted`,
        `dialogue`, `degraded`, `diff` and `error`. An `accepted` event restarts the turn: discard what
        arrived before it.
        """
        log = await self._turn_log(session_id, body, last_event_id)
        # A failure before the first event still decides the status of the response.
        first = await log.first()
        if first is not None and first.name == "error" and not first.event_id and log.is_complete:
            problem = json.loads(first.data)
            return JSONResponse(problem, problem["status"], media_type="application/problem+json")
        position = log.find(last_event_id) if last_event_id else None
        return EventStreamResponse(log.follow(position or 0))

    async def _turn_log(self, session_id: str, body: TurnBody, last_event_id: str | None) -> EventLog:
        """Return the events of a turn: of the one in memory, else of its record, else of a new one."""
        request_id = str(body.request_id or uuid.uuid4())
        key = (session_id, request_id, body.pov)
        if key not in self._turns and last_event_id:
            recorded = EventLog()
            self._start(collect(recorded, self._recorded_events(key, last_event_id)), _do_nothing)
            first = await recorded.first()
            if first is None or first.name != "error" or json.loads(first.data)["code"] != "UNKNOWN_TURN":
                return recorded
        if key not in self._turns:
            turn = self._turns[key] = _PlayedTurn(_to_turn(*key[:2], body))
            self._start(self._play(key, turn.log, body), lambda: self._forget(key, turn))
        elif self._turns[key].request != _to_turn(*key[:2], body):
            raise request_id_reused_error()
        return self._turns[key].log

    def _forget(self, key: tuple[str, str, str], turn: _PlayedTurn) -> None:
        def remove() -> None:
            if self._turns.get(key) is turn:
                del self._turns[key]

        asyncio.get_running_loop().call_later(_KEPT_SECONDS, remove)

    def _recorded_events(self, key: tuple[str, str, str], last_event_id: str) -> AsyncIterator[ServerEvent]:
        session_id, request_id, pov = key
        sequence, attempt = parse_event_id(last_event_id)
        request = pb.ResumeTurnRequest(
            session_id=session_id,
            request_id=request_id,
            after_sequence=sequence,
            attempt_id=attempt,
            pov_entity_id=pov,
        )
        return self._convert("ResumeTurn", request, attempt)

    async def _play(self, key: tuple[str, str, str], log: EventLog, body: TurnBody) -> None:
        failed = False

        async def events() -> AsyncIterator[ServerEvent]:
            nonlocal failed
            try:
                async for event in self._turn_events(key, body):
                    yield event
            except Exception:
                failed = True
                raise

        await collect(log, events())
        if failed:
            # The same request may be sent again, and is then played again.
            self._turns.pop(key, None)

    async def _turn_events(self, key: tuple[str, str, str], body: TurnBody) -> AsyncIterator[ServerEvent]:
        session_id, request_id, _ = key
        value = _to_turn(session_id, request_id, body)
        value["expected_turn"] = body.expected_turn or await self._next_turn(session_id, request_id)
        request = message_from_json(pb.TakeTurnRequest, value, "body")
        async for event in self._convert("TakeTurn", request, ""):
            yield event

    async def _next_turn(self, session_id: str, request_id: str) -> int:
        """Return the number of the turn of a request: the recorded one, else the next."""
        recorded = pb.ResumeTurnRequest(session_id=session_id, request_id=request_id)
        try:
            async for response in self._caller.stream(self._method("ResumeTurn"), recorded):
                turn: int = response.event.turn
                return turn
        except NotFoundError:
            pass
        got = await self._caller.call(self._method("GetSession"), pb.GetSessionRequest(session_id=session_id))
        return int(got.session.turn) + 1

    async def _convert(self, name: str, request: Any, attempt: str) -> AsyncIterator[ServerEvent]:
        async for response in self._caller.stream(self._method(name), request):
            if response.event.HasField("accepted"):
                attempt = response.event.accepted.attempt_id
            event = to_server_event(response.event, attempt)
            if event is not None:
                yield event

    async def follow(
        self,
        session_id: str,
        pov: Annotated[str, Query()] = "",
        delay_turns: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
        last_event_id: Annotated[str | None, Header()] = None,
        after: Annotated[str, Query(description="Same as the header, for clients that cannot set it.")] = "",
    ) -> Response:
        """Stream a session: recorded events first, then live ones, and `closed` as the last one."""
        # A stream sends its status at once, so what can be wrong is found before.
        await self._check_readable(session_id, pov)
        return EventStreamResponse(self._watch(session_id, pov, delay_turns, last_event_id or after))

    async def _check_readable(self, session_id: str, pov: str) -> None:
        """Raise if a session cannot be read. Followers that come at once share one call."""
        key = (session_id, pov)
        if key not in self._checks:
            check = asyncio.ensure_future(self.get(session_id, pov))
            self._checks[key] = check

            def remove(ended: asyncio.Future[Any]) -> None:
                del self._checks[key]
                if not ended.cancelled():
                    ended.exception()  # every follower may have gone

            check.add_done_callback(remove)
        await asyncio.shield(self._checks[key])

    async def _watch(
        self, session_id: str, pov: str, delay_turns: int, last_event_id: str
    ) -> AsyncIterator[ServerEvent | None]:
        key = (session_id, pov)
        feed = self._feeds.get(key) if delay_turns == 0 else None
        position = feed.position_after(last_event_id) if feed else None
        if feed is None or position is None:
            sequence, attempt = parse_event_id(last_event_id)
            request = pb.WatchSessionRequest(
                session_id=session_id,
                pov_entity_id=pov,
                after_sequence=sequence,
                attempt_id=attempt,
                delay_turns=delay_turns,
            )
            feed, position = _Feed(self._watch_events(request), last_event_id), 0
            if delay_turns == 0:
                self._feeds[key] = feed
        feed.readers += 1
        try:
            async for event in feed.log.follow(position):
                yield event
        finally:
            feed.readers -= 1
            if not feed.readers:
                feed.task.cancel()
                if self._feeds.get(key) is feed:
                    del self._feeds[key]

    async def _watch_events(self, request: pb.WatchSessionRequest) -> AsyncIterator[ServerEvent]:
        attempt = request.attempt_id
        async for response in self._caller.stream(self._method("WatchSession"), request):
            kind = response.WhichOneof("event")
            if kind == "turn_event":
                if response.turn_event.HasField("accepted"):
                    attempt = response.turn_event.accepted.attempt_id
                event = to_server_event(response.turn_event, attempt)
                if event is not None:
                    yield event
            elif kind == "rewound":
                yield ServerEvent.of(kind, to_json(response.rewound), f"{response.rewound.sequence}.")
            elif kind not in {None, "heartbeat"}:
                yield ServerEvent.of(kind, to_json(getattr(response, kind)))

    async def serve_socket(self, socket: WebSocket, session_id: str, pov: str = "", after: str = "") -> None:
        """Follow a session over a WebSocket; each frame of the client is the body of a turn.

        Frames of the server are `{"event", "id", "data"}`. The turn that a frame starts arrives with the
        other events of the session; if it fails, a frame `error` has the problem document.
        """
        await socket.accept()
        writer = self._start(self._send_events(socket, session_id, pov, after), _do_nothing)
        try:
            while True:
                text = await socket.receive_text()
                self._start(self._turn_of_frame(socket, session_id, pov, text), _do_nothing)
        except WebSocketDisconnect:
            pass
        finally:
            writer.cancel()

    async def _send_events(self, socket: WebSocket, session_id: str, pov: str, after: str) -> None:
        async for event in self._watch(session_id, pov, 0, after):
            if event is not None:
                await socket.send_text(event.to_frame())
        await socket.close()

    async def _turn_of_frame(self, socket: WebSocket, session_id: str, pov: str, text: str) -> None:
        try:
            body = _TURN_BODY.validate_json(text)
        except ValidationError as error:
            violations = [
                FieldViolation(".".join(map(str, one["loc"])), one["msg"]) for one in error.errors()
            ]
            invalid = InvalidArgumentError("frame is not the body of a turn", violations=violations)
            await socket.send_text(error_event(invalid).to_frame())
            return
        body.pov = pov
        log = await self._turn_log(session_id, body, None)
        async for event in log.follow():
            if event is not None and event.name == "error":
                await socket.send_text(event.to_frame())

    def _start(self, work: Coroutine[Any, Any, None], done: Callable[[], None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)

        def finish(ended: asyncio.Task[None]) -> None:
            self._tasks.discard(ended)
            if ended.cancelled():
                return
            if error := ended.exception():
                _log.error("unexpected error", extra=describe_error(error))
            done()

        task.add_done_callback(finish)
        return task


def _do_nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True)
class _PlayedTurn:
    """A turn whose events are in memory, with the request that started it."""

    request: Mapping[str, Any]
    log: EventLog = field(default_factory=EventLog)


class _Feed:
    """One stream of a session that several readers share.

    Args:
        events: its source.
        after: the id of the last event before it.
    """

    def __init__(self, events: AsyncIterator[ServerEvent], after: str) -> None:
        self.log = EventLog()
        self.readers = 0
        self.task = asyncio.ensure_future(collect(self.log, events))
        self._after = after

    def position_after(self, event_id: str) -> int | None:
        """Return the position after an event; None if this stream cannot continue there."""
        if self.log.is_closed:
            return None
        if event_id == self._after:
            return 0 if self.log.is_complete else None
        return self.log.find(event_id) if event_id else None
