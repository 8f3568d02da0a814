from __future__ import annotations

from typing import Any

import pytest

from peripety.engine import ABSENT, Change, Draw, LogLine, RollResult, RuleError, Status
from peripety.errors import InvalidArgumentError, NotFoundError
from peripety.gateway.types.response import UsageTotal
from peripety.session.events import (
    Accepted,
    ActionResolved,
    Committed,
    Degraded,
    DialogueSpoken,
    Event,
    NarrativeChunk,
    NarrativeRetracted,
    Rolled,
    RuleFailed,
    WorldResolved,
)
from peripety.session.types import Resolution
from peripety.session.visibility import Projector, ViewerProjection
from support.engine.specs import Json, spec

ENTITIES: list[Json] = [{"id": "p", "playable": True}, {"id": "q", "playable": True}, {"id": "r"}]


def view(viewer: str | None) -> ViewerProjection:
    return Projector(spec(entities=ENTITIES)).for_viewer(viewer)


def change(path: str, before: Any = ABSENT, after: Any = ABSENT) -> Change:
    return Change(path, "set", before, after, "action:act")


def test_an_unknown_entity_is_no_point_of_view() -> None:
    with pytest.raises(NotFoundError, match="use 'p' or 'q', or leave") as caught:
        view("nobody")
    assert caught.value.code == "UNKNOWN_ENTITY"


def test_an_entity_that_cannot_be_played_is_no_point_of_view() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        view("r")
    assert caught.value.code == "NOT_PLAYABLE"
    assert caught.value.violations[0].field == "pov_entity_id"


ERROR = RuleError("TYPE_MISMATCH", "/actions/0/effects/0", "'state.hidden.y' holds a string, not a number")
ONGOING = Status("ongoing")
DIE = Rolled(RollResult("words", "words", 12, 7, success=False, draw=Draw("roll", 1, 0, "0" * 16)))


def test_of_a_rule_that_failed_only_code_and_place_are_told() -> None:
    (told,) = view("p").project_failures([ERROR])
    assert (told.code, told.rule) == (ERROR.code, ERROR.rule)
    assert "hidden" not in told.message
    assert "string" not in told.message


def test_why_an_action_was_rejected_is_told_in_the_engines_words() -> None:
    reason = RuleError("PRECONDITION_FAILED", "/actions/0/preconditions", "the preconditions do not hold")
    assert view(None).project_failures([reason]) == (reason,)


def test_prose_reaches_those_it_was_narrated_for() -> None:
    prose: list[Event] = [
        NarrativeChunk("text"),
        NarrativeRetracted("why"),
        DialogueSpoken("p", "words"),
        DIE,
    ]
    for event in prose:
        assert view("p").project_event(event, "p") == event
        assert view("q").project_event(event, "p") is None
        assert view(None).project_event(event, "p") is None
        assert view("q").project_event(event, None) == event


def test_what_the_player_said_reaches_those_it_was_narrated_for() -> None:
    accepted = Accepted("attempt", "request", (), "words")
    assert view("p").project_event(accepted, "p") == accepted
    assert view(None).project_event(accepted, "p") == Accepted("attempt", "request", (), "")


def test_mechanics_are_cut_to_the_viewer() -> None:
    changes = (change("state.open", 1, 2), change("state.private.q.x", "a", "b"))
    log = (LogLine(1, "line", "decay"),)
    act = ActionResolved("act", {}, accepted=False, reasons=(ERROR,), changes=changes, log=log)
    seen = view("p").project_event(act, None)
    assert isinstance(seen, ActionResolved)
    assert seen.changes == changes[:1]
    assert seen.log == log
    assert seen.reasons == view("p").project_failures([ERROR])
    world = view("p").project_event(WorldResolved(None, changes, log, (ERROR,), ONGOING), None)
    assert isinstance(world, WorldResolved)
    assert world.changes == changes[:1]
    assert world.errors == view("p").project_failures([ERROR])
    failed = RuleFailed(ERROR.code, ERROR.rule, ERROR.message, turn_abandoned=False)
    assert view("p").project_event(failed, None) == view("p").project_failures([failed])[0]


def test_the_end_of_a_turn_is_cut_like_its_parts() -> None:
    changes = (change("state.hidden.y", 1, 2),)
    end = Committed("h", "c", ONGOING, (), UsageTotal(), changes, "prose", Resolution.NARRATED, "m", 0)
    seen = view("q").project_event(end, "p")
    assert isinstance(seen, Committed)
    assert (seen.changes, seen.narrative) == ((), "")
    heard = view("p").project_event(end, "p")
    assert isinstance(heard, Committed)
    assert heard.narrative == "prose"


def test_that_the_server_tells_the_turn_is_no_secret() -> None:
    degraded = Degraded("MODEL_UNAVAILABLE", "why")
    assert view(None).project_event(degraded, "p") == degraded
