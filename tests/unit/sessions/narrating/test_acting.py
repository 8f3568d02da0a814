"""What a narrator does by tools and by changes of its own, and what becomes of it."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from peripety.config import ProviderName
from peripety.errors import FailedPreconditionError, InvalidArgumentError
from peripety.gateway.model import Budget, Spent, ToolChoiceMode, ToolResult, Usage
from peripety.sessions.events import (
    ActionResolved,
    Degraded,
    NarrativeChunk,
    NarrativeRetracted,
    Rolled,
    WorldResolved,
)
from peripety.sessions.model import ActionCall, Memory, NarratorOptions, Resolution
from peripety.sessions.narrating.narrator import Narrator, Told
from peripety.sessions.stage import Anew
from support.scenes import scene_of
from support.sessions import SPENT, ScriptedGateway, calling, outcome
from support.specs import action, at_most, document, never

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.sessions.narrating.scene import Scene
    from support.sessions import Answer

RAISE = [{"op": "inc", "path": "state.a", "value": 1}]
ENTITIES = [{"id": "p", "playable": True}, {"id": "q"}]
AMOUNT = {"type": "integer", "minimum": 1, "maximum": 5}
ACTIONS = [
    action("raise", RAISE),
    action("never", [], preconditions={"<": [1, 0]}),
    action("give", [], params={"n": AMOUNT}),
    action("end", [{"op": "set", "path": "state.b", "value": 0}]),
]


def scene(spoken: str = "words", *, viewer: str | None = None, **more: Any) -> Scene:
    parts: dict[str, Any] = {
        "entities": ENTITIES,
        "actions": ACTIONS,
        "state": {"a": 1, "b": 2, "c": {"x": [1, 2]}, "private": {"p": {"x": 1}, "q": {"x": 77}}},
        "loss_conditions": [at_most("first", "state.b", 0) | {"message": "All is over"}, never("second")],
    }
    session = {key: more.pop(key) for key in ("narrator", "usage", "memories") if key in more}
    chosen = more.pop("chosen", ())
    return scene_of(document(**parts | more), chosen, viewer=viewer, spoken=spoken, **session)


async def told(gateway: ScriptedGateway, about: Scene | None = None, **options: Any) -> list[Any]:
    narrator = Narrator(gateway, seconds=5.0, **options)
    async with aclosing(narrator.tell(about or scene())) as telling:
        return [happened async for happened in telling]


async def played(*answers: Answer, about: Scene | None = None) -> tuple[list[Any], ScriptedGateway]:
    gateway = ScriptedGateway(list(answers))
    return await told(gateway, about), gateway


def results(gateway: ScriptedGateway, request: int = 1) -> list[tuple[Any, bool]]:
    """The last results that a question holds: what they say, and whether they are errors."""
    parts = gateway.requests[request].messages[-1].parts
    return [(json.loads(part.text), part.is_error) for part in parts if isinstance(part, ToolResult)]


def names(happened: Sequence[Any]) -> list[str]:
    return [type(one).__name__ for one in happened]


# --- actions ---


async def test_an_action_is_carried_out_at_once_and_the_world_is_told_before_the_prose() -> None:
    about = scene()
    events, gateway = await played(calling(("action:raise", {})), outcome("Told."), about=about)
    assert names(events) == ["ActionResolved", "WorldResolved", "NarrativeChunk", "Told"]
    assert isinstance(events[0], ActionResolved)
    assert (events[0].action_id, events[0].accepted) == ("raise", True)
    end = events[-1]
    assert (end.resolution, end.usage) == (Resolution.NARRATED, SPENT + SPENT)
    assert (end.conduct.tool_rounds, end.conduct.tool_calls) == (1, 1)
    ((result, failed),) = results(gateway)
    assert not failed
    assert result["accepted"]
    assert result["changes"][0]["after"] == 2
    assert result["world"]["status"]["kind"] == "ongoing"
    assert about.stage.played is not None
    assert about.stage.played.tree["a"] == 2


async def test_a_turn_with_words_is_open_until_the_narrator_has_acted() -> None:
    _, gateway = await played(calling(("action:raise", {})), outcome("Told."))
    assert "status" not in json.loads(gateway.requests[0].messages[0].text)["facts"]


async def test_all_actions_of_a_turn_come_in_one_answer_so_that_none_is_chosen_knowing_its_end() -> None:
    events, gateway = await played(
        calling(("action:raise", {}), ("action:give", {"n": 2})),
        calling(("action:raise", {}), ("query", {"path": "state.a"})),
        outcome("Told."),
    )
    assert [one.action_id for one in events if isinstance(one, ActionResolved)] == ["raise", "give"]
    first, second = results(gateway)
    assert "world" not in first[0]
    assert "world" in second[0]
    refused, queried = results(gateway, 2)
    assert refused[1]
    assert "one answer" in refused[0]["error"]
    assert queried == ({"value": 2}, False)
    assert events[-1].conduct.refused_calls == 1


async def test_who_chose_an_action_has_chosen() -> None:
    about = scene("", chosen=(ActionCall("give", {"n": 1}),))
    events, gateway = await played(calling(("action:raise", {})), outcome("Told."), about=about)
    assert names(events) == ["WorldResolved", "NarrativeChunk", "Told"]
    ((result, failed),) = results(gateway)
    assert failed
    assert "has chosen" in result["error"]


async def test_words_beside_a_chosen_action_may_add_to_it() -> None:
    about = scene("more", chosen=(ActionCall("give", {"n": 1}),))
    await played(calling(("action:raise", {})), outcome("Told."), about=about)
    assert about.stage.played is not None
    assert [act.action_id for act in about.stage.played.actions] == ["give", "raise"]


@pytest.mark.parametrize("given", [{}, {"n": 9}, {"n": {"x": [1]}}, {"n": 1, "m": 2}, {"n": "1"}])
async def test_an_action_with_illegal_parameters_is_rejected_with_reasons_and_leaves_no_trace(
    given: dict[str, Any],
) -> None:
    about = scene()
    events, gateway = await played(calling(("action:give", given)), outcome("Told."), about=about)
    assert not any(isinstance(one, ActionResolved) for one in events)
    ((result, failed),) = results(gateway)
    assert failed
    assert result["accepted"] is False
    assert result["reasons"]
    assert events[-1].conduct.rejected_actions == 1
    assert about.stage.played is not None
    assert not json.loads(about.stage.played.record)["actions"]


async def test_after_a_rejected_action_another_may_be_tried() -> None:
    events, _ = await played(calling(("action:never", {})), calling(("action:raise", {})), outcome("Told."))
    assert [one.action_id for one in events if isinstance(one, ActionResolved)] == ["raise"]
    assert events[-1].conduct.rejected_actions == 1


async def test_a_turn_takes_no_more_than_sixteen_actions() -> None:
    about = scene("words", chosen=(ActionCall("raise", {}),) * 3)
    events, _ = await played(calling(*[("action:raise", {})] * 16), outcome("Told."), about=about)
    assert len([one for one in events if isinstance(one, ActionResolved)]) == 13
    assert events[-1].conduct.refused_calls == 3


async def test_an_action_after_which_the_turn_could_not_end_is_refused() -> None:
    grow = [action("grow", [{"op": "push", "path": "state.list", "value": ["x" * 60_000]}])]
    about = scene(actions=grow, state={"list": ["x" * 60_000] * 12, "b": 2})
    events, gateway = await played(calling(*[("action:grow", {})] * 9), outcome("Told."), about=about)
    assert isinstance(events[-1], Told)
    assert any(failed for _, failed in results(gateway))
    assert not any(isinstance(one, Degraded) for one in events)


# --- reading and rolling ---


@pytest.mark.parametrize(
    ("path", "value"),
    [("state.a", 1), ("state.c.x[1]", 2), ('state["b"]', 2), ("state.private.p", {"x": 1})],
)
async def test_a_query_reads_what_the_point_of_view_sees(path: str, value: Any) -> None:
    _, gateway = await played(calling(("query", {"path": path})), outcome("Told."), about=scene(viewer="p"))
    assert results(gateway) == [({"value": value}, False)]


async def test_what_is_not_seen_and_what_is_not_there_are_the_same_answer() -> None:
    paths = ["state.private.q", "state.private.q.x", "state.nothing", "state.c.x[9]", "params.a", "no path["]
    _, gateway = await played(
        calling(*[("query", {"path": path}) for path in paths]), outcome("Told."), about=scene(viewer="p")
    )
    answers = results(gateway)
    assert len(answers) == len(paths)
    assert len({json.dumps(answer) for answer in answers}) == 1
    assert "77" not in repr([request.messages for request in gateway.requests])


async def test_a_die_is_cast_by_the_engine_and_told_at_once() -> None:
    about = scene("")
    events, gateway = await played(
        calling(("roll", {"kind": "k", "target": "q", "difficulty": 5})), outcome("Told."), about=about
    )
    assert names(events) == ["WorldResolved", "Rolled", "Anew", "NarrativeChunk", "Told"]
    ((result, _),) = results(gateway)
    assert (result["roll"], result["success"]) == (events[1].roll.roll, events[1].roll.success)
    assert about.stage.played is not None
    assert json.loads(about.stage.played.record)["rolls"] == [{"kind": "k", "difficulty": 5, "target": "q"}]


async def test_in_a_turn_with_words_a_die_costs_no_second_beginning() -> None:
    events, _ = await played(calling(("roll", {"kind": "k", "difficulty": 5})), outcome("Told."))
    assert names(events) == ["Rolled", "WorldResolved", "NarrativeChunk", "Told"]


# --- calls that cannot be answered as they were meant ---


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("unknown", {}, "action:raise"),
        ("action:unknown", {}, "no tool"),
        ("query", {}, "path"),
        ("query", {"path": 5}, "path"),
        ("query", "not json", "not JSON"),
        ("query", '{"path": "state"', "not JSON"),
        ("query", "[]", "no object"),
        ("query", '{"path": "%s"}' % ("x" * 20_000), "too long"),
        ("roll", {"kind": "two words", "difficulty": 5}, "kind"),
        ("roll", {"kind": "k", "difficulty": 99}, "difficulty"),
        ("action:raise", "NaN", "not JSON"),
        ("n" * 9_000, "", "no tool"),
    ],
)
async def test_a_call_that_is_wrong_is_told_how_to_do_better(name: str, given: Any, says: str) -> None:
    events, gateway = await played(calling((name, given)), outcome("Told."))
    ((result, failed),) = results(gateway)
    assert failed
    assert says in result["error"]
    assert len(json.dumps(result)) < 1_000
    assert events[-1].conduct.refused_calls == 1
    assert events[-1].resolution is Resolution.NARRATED


async def test_of_many_calls_in_one_answer_the_first_are_carried_out() -> None:
    events, gateway = await played(
        calling(*[("roll", {"kind": "k", "difficulty": 1})] * 20), outcome("Told.")
    )
    assert len([one for one in events if isinstance(one, Rolled)]) == 16
    assert [failed for _, failed in results(gateway)] == [False] * 16 + [True] * 4
    assert events[-1].conduct.refused_calls == 4


async def test_a_storm_of_calls_is_not_taken_at_all_and_the_narrator_has_to_tell() -> None:
    events, gateway = await played(
        calling(*[("roll", {"kind": "k", "difficulty": 1})] * 500), outcome("Told.")
    )
    assert not any(isinstance(one, Rolled) for one in events)
    assert (events[-1].conduct.tool_calls, events[-1].conduct.refused_calls) == (500, 500)
    asked = gateway.requests[1]
    assert asked.messages == gateway.requests[0].messages
    assert asked.tool_choice is not None
    assert asked.tool_choice.mode is ToolChoiceMode.NONE


async def test_after_four_rounds_the_narrator_has_to_tell() -> None:
    query = calling(("query", {"path": "state.a"}))
    events, gateway = await played(*[query] * 4, outcome("Told."))
    choices = [request.tool_choice for request in gateway.requests]
    assert choices[:4] == [None] * 4
    assert choices[4] is not None
    assert choices[4].mode is ToolChoiceMode.NONE
    assert events[-1].conduct.tool_rounds == 4
    assert events[-1].usage == Spent(5, Usage(35, 15), 250, 100)


async def test_who_calls_for_ever_tells_nothing() -> None:
    events, gateway = await played(calling(("query", {"path": "state.a"})))
    assert len(gateway.requests) == 5
    assert (events[-1].conduct.tool_calls, events[-1].conduct.refused_calls) == (5, 1)
    assert events[-1].resolution is Resolution.SERVER_RESOLVED
    assert [one.reason for one in events if isinstance(one, Degraded)] == ["OUTCOME_INVALID"]


async def test_text_that_comes_with_calls_is_no_prose() -> None:
    events, _ = await played(
        calling(("query", {"path": "state.a"}), text="I look."),
        calling(("query", {"path": "state.b"}), text=outcome("Too early.")),
        outcome("Told."),
    )
    shown = ""
    for one in events:
        if isinstance(one, NarrativeChunk):
            shown += one.text
        elif isinstance(one, NarrativeRetracted | Anew):
            shown = ""
    assert shown == "Told." == events[-1].narrative


# --- models without tools ---


async def test_a_model_that_takes_no_tools_is_asked_without_them() -> None:
    for refusal in (InvalidArgumentError("no"), FailedPreconditionError("no", code="TOOLS_NOT_TAKEN")):
        events, gateway = await played(refusal, outcome("Told."))
        assert events[-1].resolution is Resolution.NARRATED
        assert gateway.requests[0].tools
        assert not gateway.requests[1].tools


async def test_a_question_that_is_refused_without_tools_as_well_is_given_up() -> None:
    events, gateway = await played(InvalidArgumentError("no"))
    assert len(gateway.requests) == 2
    assert [one.reason for one in events if isinstance(one, Degraded)] == ["MODEL_UNAVAILABLE"]


async def test_tools_that_a_provider_would_refuse_are_not_offered() -> None:
    about = scene(actions=[action("give", [], params={"a b": AMOUNT})])
    gateway = ScriptedGateway()
    await told(gateway, about, configured=ProviderName.ANTHROPIC)
    await told(gateway, about, configured=ProviderName.OPENAI)
    assert [bool(request.tools) for request in gateway.requests] == [False, True]


# --- changes of its own ---

CHANGE = {"op": "inc", "path": "state.a", "value": 1}


def causes(about: Scene) -> list[str]:
    assert about.stage.played is not None
    return [change.cause for change in about.stage.played.changes]


async def test_changes_that_stand_before_the_prose_are_told_before_it() -> None:
    about = scene()
    answer = json.dumps({"state_changes": [CHANGE], "narrative": "Told."})
    events, _ = await played(answer, about=about)
    assert names(events) == ["WorldResolved", "NarrativeChunk", "Told"]
    assert causes(about) == ["narrator"]


async def test_what_a_strict_mode_leaves_out_with_nulls_holds_no_prose_back() -> None:
    about = scene()
    die = {"kind": "k", "target": None, "difficulty": 3}
    strict = {"state_changes": None, "roll_requests": [die], "narrative": "Told.", "visible_dialogue": None}
    text = json.dumps(strict)
    place = text.index("ld.")
    events, _ = await played([text[:place], text[place:]], about=about)
    assert names(events) == ["Rolled", "WorldResolved", "NarrativeChunk", "NarrativeChunk", "Told"]
    assert events[-1].resolution is Resolution.NARRATED


async def test_the_schema_says_what_a_value_may_be_where_the_scope_holds_no_objects() -> None:
    plain, free = ScriptedGateway(), ScriptedGateway()
    await told(plain)
    await told(free, scene(narrator_scope=[{"path": "state.c", "ops": ["set"]}]))
    values = [gateway.requests[0].schema.document["$defs"]["JsonValue"] for gateway in (plain, free)]  # type: ignore[union-attr]
    assert values == [{"type": ["number", "string", "boolean", "null"]}, {}]


async def test_where_all_was_told_already_the_turn_begins_anew() -> None:
    about = scene("")
    events, _ = await played(json.dumps({"state_changes": [CHANGE], "narrative": "Told."}), about=about)
    assert names(events) == ["WorldResolved", "Anew", "NarrativeChunk", "Told"]
    assert [type(one) for one in events[1].events] == [WorldResolved]
    assert causes(about) == ["narrator"]


async def test_changes_that_come_after_the_prose_cost_a_new_beginning() -> None:
    about = scene()
    die = {"kind": "k", "difficulty": 3}
    late = outcome("Told.", state_changes=[CHANGE], roll_requests=[die])
    events, _ = await played([late[:25], late[25:]], about=about)
    assert names(events) == ["WorldResolved", "NarrativeChunk", "Anew", "NarrativeChunk", "Told"]
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
    assert names(events) == ["WorldResolved", "NarrativeChunk", "Told"]
    assert (events[-1].narrative, events[-1].resolution) == ("Good.", Resolution.REPAIRED)
    assert (events[-1].conduct.refused_changes, events[-1].conduct.refused_answers) == (1, 1)
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
        "Anew",
        "NarrativeChunk",
        "Told",
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
    kept = Memory(1, "s", "q", "C.", "private")
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
        outcome("Bad.", extra=1), calling(("query", {"path": "state.a"})), outcome("Bad again.", extra=1)
    )
    assert len(gateway.requests) == 3
    assert [one.reason for one in events if isinstance(one, Degraded)] == ["OUTCOME_INVALID"]
    assert events[-1].conduct.refused_answers == 2
    assert events[-1].usage == Spent(3, Usage(21, 9), 150, 60)


async def test_a_good_answer_after_a_repair_and_a_call_is_a_repaired_one() -> None:
    events, _ = await played(
        outcome("Bad.", extra=1), calling(("query", {"path": "state.a"})), outcome("Good.")
    )
    assert (events[-1].narrative, events[-1].resolution) == ("Good.", Resolution.REPAIRED)


async def test_a_narrator_that_never_learned_of_the_end_has_it_told_by_the_server() -> None:
    about = scene("words", chosen=(ActionCall("end", {}),))
    events, _ = await played(outcome("Told."), about=about)
    assert events[-1].narrative.startswith("Told.\n\n")
    assert "All is over" in events[-1].narrative
    assert "".join(one.text for one in events if isinstance(one, NarrativeChunk)) == events[-1].narrative


async def test_a_narrator_that_acted_knows_the_end_and_tells_it_itself() -> None:
    events, gateway = await played(calling(("action:end", {})), outcome("Told."))
    ((result, _),) = results(gateway)
    assert result["world"]["status"]["message"] == "All is over"
    assert events[-1].narrative == "Told."


def options(**more: Any) -> dict[str, Any]:
    return {"narrator": NarratorOptions(**more)}


async def test_the_model_of_the_session_is_asked() -> None:
    _, gateway = await played(outcome("Told."), about=scene(**options(model="anthropic/claude-x")))
    assert gateway.requests[0].model == "anthropic/claude-x"


async def test_each_question_may_use_what_is_left_of_both_budgets() -> None:
    about = scene(
        **options(
            turn_budget=Budget(max_tokens=50, max_seconds=60),
            session_budget=Budget(max_calls=9, max_cost=500),
        ),
        usage=Spent(3, Usage(100, 50), 200, 0),
    )
    _, gateway = await played(calling(("query", {"path": "state"})), outcome("Told."), about=about)
    first, second = (request.budget for request in gateway.requests)
    assert first is not None
    assert second is not None
    assert (first.max_calls, first.max_tokens, first.max_cost) == (6, 50, 300)
    assert (second.max_calls, second.max_tokens, second.max_cost) == (5, 40, 250)
    assert first.max_seconds is not None
    assert first.max_seconds <= 60


async def test_without_budgets_there_is_no_cap() -> None:
    _, gateway = await played(outcome("Told."))
    assert gateway.requests[0].budget is None


@pytest.mark.parametrize(
    ("budgets", "calls"),
    [
        ({"turn_budget": Budget(max_calls=1)}, 1),
        ({"turn_budget": Budget(max_tokens=10)}, 1),
        ({"session_budget": Budget(max_calls=3)}, 0),
        ({"session_budget": Budget(max_cost=200)}, 0),
    ],
)
async def test_once_a_budget_is_used_up_the_server_tells(budgets: dict[str, Any], calls: int) -> None:
    about = scene(**options(**budgets), usage=Spent(3, Usage(100, 50), 200, 0))
    events, gateway = await played(calling(("action:raise", {})), outcome("Told."), about=about)
    assert len(gateway.requests) == calls
    assert [one.reason for one in events if isinstance(one, Degraded)] == ["BUDGET_EXHAUSTED"]
    assert events[-1].usage == (SPENT if calls else Spent())
    assert len(causes(about)) == calls


# --- secrets ---

HIDDEN = "zebra-0815-qx"
OWN = "mine-4711-ab"


def secretive(spoken: str = "", **more: Any) -> Scene:
    state = {"a": 1, "b": 2, "private": {"p": {"x": OWN}, "q": {"x": HIDDEN}}}
    return scene(spoken, viewer="p", state=state, **more)


@pytest.mark.parametrize("told_as", [HIDDEN, HIDDEN[::-1], " ".join(HIDDEN), HIDDEN.encode().hex()])
async def test_what_the_audience_may_not_know_is_never_shown(told_as: str) -> None:
    bad = outcome(f"It is said that {told_as} is so.")
    pieces = [bad[start : start + 3] for start in range(0, len(bad), 3)]
    events, gateway = await played(pieces, outcome("Good."), about=secretive())
    assert told_as not in repr(events)
    shown = "".join(one.text for one in events if isinstance(one, NarrativeChunk))
    assert shown == "It is said that Good."
    assert events[-1].narrative == "Good."
    assert events[-1].conduct.withheld_secrets == 1
    assert "SECRET_TOLD" in gateway.requests[1].messages[-1].text


async def test_what_the_audience_alone_may_know_gets_into_no_parameter_that_others_see() -> None:
    noting = action("note", [], params={"text": {"type": "string", "maxLength": 40}})
    about = secretive("words", actions=[*ACTIONS, noting])
    events, gateway = await played(
        calling(("action:note", {"text": f"it is {OWN}"}), ("action:note", {"text": "a plain text"})),
        outcome("Told."),
        about=about,
    )
    assert [one.params for one in events if isinstance(one, ActionResolved)] == [{"text": "a plain text"}]
    (refusal, failed), (_, other_failed) = results(gateway)
    assert failed
    assert "not everybody may know" in refusal["error"]
    assert not other_failed


async def test_what_the_player_said_aloud_may_be_a_parameter() -> None:
    noting = action("note", [], params={"text": {"type": "string", "maxLength": 40}})
    about = secretive(f"I note {OWN}", actions=[*ACTIONS, noting])
    events, _ = await played(calling(("action:note", {"text": OWN})), outcome("Told."), about=about)
    assert [one.params for one in events if isinstance(one, ActionResolved)] == [{"text": OWN}]


@pytest.mark.parametrize(
    ("path", "resolution"),
    [("state.a", Resolution.REPAIRED), ("state.private.p.x", Resolution.NARRATED)],
)
async def test_what_the_audience_alone_may_know_gets_into_no_state_that_others_see(
    path: str, resolution: Resolution
) -> None:
    about = secretive(narrator_scope=[{"path": path, "ops": ["set"]}])
    change = {"op": "set", "path": path, "value": f"it is {OWN}"}
    events, gateway = await played(outcome("Bad.", state_changes=[change]), outcome("Good."), about=about)
    assert events[-1].resolution is resolution
    assert len(gateway.requests) == (2 if resolution is Resolution.REPAIRED else 1)


async def test_what_somebody_says_is_held_against_secrets_as_well() -> None:
    line = {"entity_id": "q", "utterance": f"I have {HIDDEN}."}
    events, _ = await played(outcome("Bad.", visible_dialogue=[line]), outcome("Good."), about=secretive())
    assert HIDDEN not in repr(events)
    assert events[-1].conduct.withheld_secrets == 1
