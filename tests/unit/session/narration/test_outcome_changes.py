"""State changes by a narrator, and their validation and results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from peripety.session.events import Degraded, NarrativeChunk, Rolled, WorldResolved
from peripety.session.types import NarratorMemory, PlayerAction, Resolution
from support.gateway.fake_gateway import SPENT, FakeGateway, calling
from support.session.sessions import causes, names, outcome, played, results, scene, told

CHANGE = {"op": "inc", "path": "state.a", "value": 1}


async def test_changes_that_stand_before_the_prose_are_told_before_it() -> None:
    about = scene()
    answer = json.dumps({"state_changes": [CHANGE], "narrative": "Told."})
    events, _ = await played(answer, about=about)
    assert names(events) == ["WorldResolved", "NarrativeChunk", "NarrationResult"]
    assert causes(about) == ["narrator"]


async def test_what_a_strict_mode_leaves_out_with_nulls_holds_no_prose_back() -> None:
    about = scene()
    die = {"kind": "k", "target": None, "difficulty": 3}
    strict = {"state_changes": None, "roll_requests": [die], "narrative": "Told.", "visible_dialogue": None}
    text = json.dumps(strict)
    place = text.index("ld.")
    events, _ = await played([text[:place], text[place:]], about=about)
    assert names(events) == ["Rolled", "WorldResolved", "NarrativeChunk", "NarrativeChunk", "NarrationResult"]
    assert events[-1].resolution is Resolution.NARRATED


async def test_the_schema_says_what_a_value_may_be_where_the_scope_holds_no_objects() -> None:
    plain, free = FakeGateway(outcome()), FakeGateway(outcome())
    await told(plain)
    await told(free, scene(narrator_scope=[{"path": "state.c", "ops": ["set"]}]))
    values = [gateway.requests[0].schema.document["$defs"]["JsonValue"] for gateway in (plain, free)]  # type: ignore[union-attr]
    assert values == [{"type": ["number", "string", "boolean", "null"]}, {}]


async def test_where_all_was_told_already_the_turn_begins_anew() -> None:
    about = scene("")
    events, _ = await played(json.dumps({"state_changes": [CHANGE], "narrative": "Told."}), about=about)
    assert names(events) == ["WorldResolved", "TurnRestarted", "NarrativeChunk", "NarrationResult"]
    assert [type(one) for one in events[1].events] == [WorldResolved]
    assert causes(about) == ["narrator"]


async def test_changes_that_come_after_the_prose_cost_a_new_beginning() -> None:
    about = scene()
    die = {"kind": "k", "difficulty": 3}
    late = outcome("Told.", state_changes=[CHANGE], roll_requests=[die])
    events, _ = await played([late[:25], late[25:]], about=about)
    expected = ["WorldResolved", "NarrativeChunk", "TurnRestarted", "NarrativeChunk", "NarrationResult"]
    assert names(events) == expected
    assert events[3] == NarrativeChunk("Told.")
    assert [type(one) for one in events[2].events] == [Rolled, WorldResolved]
    assert causes(about) == ["narrator"]


@pytest.mark.parametrize(
    "change",
    [
        {"op": "inc", "path": "state.a", "value": 2},
        {"op": "set", "path": "state.c", "value": 1},
        {"op": "set", "path": "state.private.q.x", "value": 1},
        {"op": "set", "path": "state", "value": {}},
        {"op": "set", "path": "nonsense", "value": 1},
        {"op": "inc", "path": "state.a"},
        {"op": "set", "path": "state.__proto__", "value": 1},
    ],
)
async def test_a_change_out_of_scope_refuses_the_outcome_and_holds_its_prose(change: dict[str, Any]) -> None:
    about = scene()
    bad = json.dumps({"state_changes": [CHANGE, change], "narrative": "Bad."})
    events, gateway = await played(bad, outcome("Good."), about=about)
    assert names(events) == ["WorldResolved", "NarrativeChunk", "NarrationResult"]
    assert (events[-1].narrative, events[-1].resolution) == ("Good.", Resolution.REPAIRED)
    assert (events[-1].stats.refused_changes, events[-1].stats.refused_answers) == (1, 1)
    assert causes(about) == []
    assert "/state_changes/1" in gateway.requests[1].messages[-1].text
    assert "77" not in gateway.requests[1].messages[-1].text


async def test_nothing_of_an_outcome_that_was_refused_holds() -> None:
    about = scene()
    bad = json.dumps({"state_changes": [CHANGE], "narrative": "Bad.", "extra": 1})
    events, _ = await played(bad, outcome("Good."), about=about)
    assert names(events) == [
        "WorldResolved",
        "NarrativeChunk",
        "NarrativeRetracted",
        "TurnRestarted",
        "NarrativeChunk",
        "NarrationResult",
    ]
    assert causes(about) == []


async def test_what_the_narrator_did_holds_when_the_server_has_to_tell() -> None:
    about = scene()
    events, _ = await played(
        calling(("action:raise", {})),
        json.dumps({"state_changes": [CHANGE], "narrative": "Bad.", "extra": 1}),
        about=about,
    )
    assert events[-1].resolution is Resolution.SERVER_RESOLVED
    assert causes(about) == ["action:raise"]
    assert "raise" in events[-1].narrative


async def test_changes_may_not_alter_an_end_that_the_narrator_was_told_of() -> None:
    grant = [{"path": "state.b", "ops": ["set"]}]
    change = {"op": "set", "path": "state.b", "value": 0}
    about = scene("", narrator_scope=grant)
    events, gateway = await played(outcome("Bad.", state_changes=[change]), outcome("Good."), about=about)
    assert events[-1].narrative == "Good."
    assert "TURN_DECIDED" in gateway.requests[1].messages[-1].text


# --- what is remembered ---


async def test_what_an_accepted_outcome_remembers_is_kept_and_nothing_else() -> None:
    update = {"scope": "s", "target_id": "q", "content": "C.", "visibility": "private"}
    kept = NarratorMemory(1, "s", "q", "C.", "private")
    events, _ = await played(outcome("Told.", hidden_memory_updates=[update]))
    assert events[-1].memories == (kept,)
    events, _ = await played(outcome("Bad.", hidden_memory_updates=[update], extra=1), outcome("Good."))
    assert events[-1].memories == ()
    about = scene(memories=(kept,))
    events, _ = await played(outcome("Bad.", hidden_memory_updates=[update], extra=1), about=about)
    assert events[-1].memories == (kept,)


# --- what is left ---


async def test_there_is_one_repair_in_a_turn_whatever_is_asked_in_between() -> None:
    events, gateway = await played(
        outcome("Bad.", extra=1),
        calling(("query", {"path": "state.a"})),
        outcome("Bad again.", extra=1),
    )
    assert len(gateway.requests) == 3
    assert [one.reason for one in events if isinstance(one, Degraded)] == ["OUTCOME_INVALID"]
    assert events[-1].stats.refused_answers == 2
    assert events[-1].usage == SPENT + SPENT + SPENT


async def test_a_good_answer_after_a_repair_and_a_call_is_a_repaired_one() -> None:
    events, _ = await played(
        outcome("Bad.", extra=1),
        calling(("query", {"path": "state.a"})),
        outcome("Good."),
    )
    assert (events[-1].narrative, events[-1].resolution) == ("Good.", Resolution.REPAIRED)


async def test_a_narrator_that_never_learned_of_the_end_has_it_told_by_the_server() -> None:
    about = scene("words", chosen=(PlayerAction("end", {}),))
    events, _ = await played(outcome("Told."), about=about)
    assert events[-1].narrative.startswith("Told.\n\n")
    assert "All is over" in events[-1].narrative
    assert "".join(one.text for one in events if isinstance(one, NarrativeChunk)) == events[-1].narrative


async def test_a_narrator_that_acted_knows_the_end_and_tells_it_itself() -> None:
    events, gateway = await played(calling(("action:end", {})), outcome("Told."))
    ((result, _),) = results(gateway)
    assert result["world"]["status"]["message"] == "All is over"
    assert events[-1].narrative == "Told."
