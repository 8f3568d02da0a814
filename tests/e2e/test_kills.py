"""A server is killed again and again while many play: nothing acknowledged is lost, nothing happens twice."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from peripety.api.session.v1 import session_pb2
from support.fake_model import serving_fake_model
from support.playable import playable
from support.surviving import Arena, PacedModel

if TYPE_CHECKING:
    from pathlib import Path

    from support.api import Api

POINTS = int(os.environ.get("PERIPETY_KILL_POINTS", "500"))
CLIENTS = 32
LIVES = (0.1, 0.9)
_log = logging.getLogger(__name__)
PIECES = ('{"narrative":"', *("word " for _ in range(12)), '."}')


async def test_no_kill_loses_a_turn_or_plays_it_twice(tmp_path: Path) -> None:
    with serving_fake_model(*PIECES, kind=PacedModel) as model:
        settings = {"MODEL_PROVIDER": "generic", "OPENAI_API_BASE": model.url, "MODEL_NAME": "fake"}
        arena = Arena(tmp_path, settings, playable())
        await arena.survive(CLIENTS, POINTS, LIVES)
        book = arena.book
        assert book.points.total() >= POINTS
        # The moments are everywhere: before the first event, among the mechanics, in the prose.
        assert {"nothing", "world_resolved", "narrative_chunk"} <= book.points.keys()
        async with arena.serving() as (_, api):
            for session_id, requests in book.requests.items():
                session = await api.session(session_id)
                assert session.turn == len(requests)
                assert await _mismatches(api, session_id) == 0
                for request in requests:
                    # Sent again, each is told again as it was told: what was acknowledged is what is kept.
                    assert [event async for event in api.turn(request)] == book.told[request.request_id]
                assert (await api.session(session_id)).chain_hash == session.chain_hash
    _log.info("%d turns broken off: %s", book.points.total(), dict(book.points))
    _log.info("%d acknowledged; ready after seconds: %s", len(book.told), sorted(book.ready))


async def _mismatches(api: Api, session_id: str) -> int:
    request = session_pb2.ReplaySessionRequest(session_id=session_id)
    events = [event async for event in api.sessions.ReplaySession(request)]
    return events[-1].completed.mismatches
