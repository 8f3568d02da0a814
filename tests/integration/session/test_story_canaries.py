"""A session with clues, statements and promises: none of their texts is anywhere before it is there."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

from peripety.session.types import PlayerAction
from support.engine.specs import as_bytes
from support.engine.story_specs import EVENTS, WORDS, story
from support.gateway.fake_gateway import FakeGateway
from support.session.sessions import outcome, table, verified

if TYPE_CHECKING:
    import pytest

    from support.session.sessions import Table


# The event that reveals the other clue hardly ever happens within these turns.
QUIET = story(random_events=[{**EVENTS[0], "weight": 0.05, "when": {"<": [{"var": "state.a"}, 3]}}])
TURNS = (
    [PlayerAction("wait", {})],
    [PlayerAction("go", {"to": "middle"}), PlayerAction("search", {})],
    [PlayerAction("go", {"to": "far"})],
    [PlayerAction("search", {}), PlayerAction("ask", {})],
)


async def test_no_output_has_a_text_before_it_is_revealed(
    database_url: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    gateway = FakeGateway(outcome("It is told."))
    async with table(database_url, as_bytes(QUIET), gateway) as game:
        for turn, actions in enumerate(TURNS, start=1):
            shown = [str(event.event) for event in await game.play(turn, *actions)]
            shown += [
                str((now := await game.now(pov)).state) + str(now.legal_actions) for pov in (None, "me")
            ]
            shown += [str((asked.system, asked.messages, asked.tools)) for asked in gateway.requests]
            found = {name for name, word in WORDS.items() if any(word in text for text in shown)}
            if turn < len(TURNS):
                assert found == set()
            else:
                dealt = await _dealt(game)
                assert found == {dealt, "claim"}
        assert not [record for record in caplog.records if "canary" in record.getMessage()]
        assert len(await verified(game.store, game.session_id)) == len(TURNS)


async def _dealt(game: Table) -> str:
    """Return what was dealt, which no viewer sees."""
    session = (await game.now()).session
    owner: str = json.loads(session.snapshot)["state"]["hidden"]["owner"]
    return owner
