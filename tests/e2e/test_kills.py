"""A server is killed again and again while many play: nothing acknowledged is lost, nothing happens twice."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

import pytest

from support.engine.specs import playable
from support.gateway.fake_server import upstream
from support.session.crash import Arena, PacedModel

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow(reason="kills processes at many points")

POINTS = int(os.environ.get("PERIPETY_KILL_POINTS", "500"))
CLIENTS = 32
LIVES = (0.1, 0.9)
# They are everywhere: before the first event, among the mechanics, in the prose.
MOMENTS = frozenset({"nothing", "world_resolved", "narrative_chunk"})
_log = logging.getLogger(__name__)
PIECES = ('{"narrative":"', *("word " for _ in range(12)), '."}')


@pytest.mark.timeout(max(300, POINTS))
async def test_no_kill_loses_a_turn_or_plays_it_twice(tmp_path: Path) -> None:
    async with upstream(PacedModel(*PIECES)) as provider:
        settings = {"MODEL_PROVIDER": "generic", "OPENAI_API_BASE": provider.base_url, "MODEL_NAME": "fake"}
        arena = Arena(tmp_path, settings, playable())
        await arena.survive(CLIENTS, POINTS, LIVES, MOMENTS)
        book = arena.book
        assert book.points.total() >= POINTS
        async with arena.serving() as (_, api):
            await book.check(api)
    _log.info("%d turns broken off: %s", book.points.total(), dict(book.points))
    _log.info("%d acknowledged; ready after seconds: %s", len(book.events), sorted(book.ready))
