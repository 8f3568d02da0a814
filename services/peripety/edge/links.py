"""Links to a session: unguessable tokens, each bound to one session and one point of view.

A request with the token of a link needs no other token. It reads the session from that point of view, and, if
the link belongs to a seat, plays that seat; it reaches nothing else. The table holds hashes of tokens.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Header, Query
from fastapi.responses import JSONResponse, Response
from sqlalchemy import Column, Float, String, Table, delete, select
from starlette.responses import StreamingResponse

from peripety.core.storage.database import METADATA
from peripety.edge.request_models import LinkBody, TurnBody  # noqa: TC001 - read at run time
from peripety.edge.session_routes import STREAM
from peripety.errors import FailedPreconditionError, FieldViolation, InvalidArgumentError, NotFoundError

if TYPE_CHECKING:
    from peripety.core.storage.database import Database
    from peripety.edge.session_routes import SessionRoutes

KEPT_SECONDS = 90 * 86_400.0
"""Seconds until a link expires."""

_TOKEN_BYTES = 24
_SUBMITTED: dict[int | str, dict[str, Any]] = {
    202: {"description": "Other seats have not submitted their actions; see `waiting_seat_ids`."}
}
_OWN_FIELDS = ("seed", "narrator", "usage")
"""Fields of a session that are of no concern to a guest."""

_table = Table(
    "edge_links",
    METADATA,
    Column("token_hash", String(64), primary_key=True),
    Column("session_id", String(64), nullable=False, index=True),
    Column("pov", String(200), nullable=False),
    Column("seat_id", String(200), nullable=False),
    Column("create_time", Float, nullable=False, index=True),
)


@dataclass(frozen=True, slots=True)
class _Link:
    """The rights of a link.

    Attributes:
        session_id: the session.
        pov: the entity whose point of view it opens; empty for the public part.
        seat_id: the seat that it plays; empty for a spectator.
    """

    session_id: str
    pov: str
    seat_id: str


class LinkRoutes:
    """Handlers of the routes, and the store of links.

    Args:
        sessions: the routes of sessions, which a link opens in part.
        database: the database.
    """

    def __init__(self, sessions: SessionRoutes, database: Database) -> None:
        self._sessions = sessions
        self._database = database
        self.router = APIRouter(tags=["links"])
        add = self.router.add_api_route
        make = "Make a link for a spectator or a seat"
        add("/sessions/{session_id}/links", self.create, methods=["POST"], status_code=201, summary=make)
        add("/links/{token}", self.read, methods=["GET"], summary="Read the session of a link")
        for method, path, handler, summary in (
            ("GET", "events", self.follow, "Follow the session of a link"),
            ("POST", "turns", self.take_turn, "Play a turn for the seat of a link"),
        ):
            add(
                f"/links/{{token}}/{path}",
                handler,
                methods=[method],
                summary=summary,
                response_class=StreamingResponse,
                responses=STREAM | (_SUBMITTED if method == "POST" else {}),
            )

    async def create(self, session_id: str, body: LinkBody) -> JSONResponse:
        """Return a new token. It is stored as a hash, so it is shown only once."""
        session = await self._sessions.get(session_id, body.pov)
        pov = body.pov
        if body.seat_id:
            config = session.get("seat_config", {})
            seats = {seat["seat_id"]: seat["entity_id"] for seat in config.get("seats", ())}
            if body.seat_id not in seats:
                raise _wrong_field_error("seat_id", "is not a seat of the session")
            if pov and pov != seats[body.seat_id]:
                raise _wrong_field_error("pov", "differs from the entity of the seat; leave it out")
            pov = seats[body.seat_id]
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        async with self._database.write() as connection:
            await connection.execute(delete(_table).where(_table.c.create_time < time.time() - KEPT_SECONDS))
            await connection.execute(
                _table.insert().values(
                    token_hash=_hash(token),
                    session_id=session_id,
                    pov=pov,
                    seat_id=body.seat_id,
                    create_time=time.time(),
                )
            )
        return JSONResponse({"token": token, "path": f"/#/watch/{token}"}, 201)

    async def read(self, token: str) -> JSONResponse:
        """Return the session and its story from the point of view of the link."""
        link = await self._find(token)
        session = await self._sessions.get(link.session_id, link.pov)
        story = await self._sessions.get_story(session)
        visible = {name: value for name, value in session.items() if name not in _OWN_FIELDS}
        return JSONResponse({"session": visible, "story": story, "seat_id": link.seat_id})

    async def follow(
        self,
        token: str,
        last_event_id: Annotated[str | None, Header()] = None,
        after: Annotated[str, Query(description="Same as the header, for clients that cannot set it.")] = "",
    ) -> Response:
        """Stream the session from the point of view of the link."""
        link = await self._find(token)
        return await self._sessions.follow(link.session_id, link.pov, 0, last_event_id, after)

    async def take_turn(
        self, token: str, body: TurnBody, last_event_id: Annotated[str | None, Header()] = None
    ) -> Response:
        """Play a turn for the seat of the link; `pov` and `seat_id` of the body are those of the link.

        In a session with simultaneous seats the answer is 202 with `waiting_seat_ids`: the turn is played
        when every seat has submitted.
        """
        link = await self._find(token)
        if not link.seat_id:
            raise FailedPreconditionError(
                "this link is for a spectator; request one for a seat", code="NOT_YOUR_TURN"
            )
        body.pov, body.seat_id = link.pov, link.seat_id
        session = await self._sessions.get(link.session_id, "")
        if session.get("seat_config", {}).get("order") == "simultaneous":
            return JSONResponse(await self._sessions.submit(link.session_id, body), 202)
        return await self._sessions.take_turn(link.session_id, body, last_event_id)

    async def _find(self, token: str) -> _Link:
        query = select(_table.c.session_id, _table.c.pov, _table.c.seat_id).where(
            _table.c.token_hash == _hash(token), _table.c.create_time >= time.time() - KEPT_SECONDS
        )
        async with self._database.read() as connection:
            row = (await connection.execute(query)).first()
        if row is None:
            raise NotFoundError("this link does not exist or has expired; request another")
        return _Link(*row)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _wrong_field_error(field: str, reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"{field} {reason}", violations=[FieldViolation(field, reason)])
