"""Tool calls of a narrator, and their results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from peripety.core.config import ProviderName
from peripety.errors import FailedPreconditionError, InvalidArgumentError
from peripety.gateway.types.message import ToolChoiceMode
from peripety.gateway.types.response import UsageTotal
from peripety.session.events import ActionResolved, Degraded, NarrativeChunk, NarrativeRetracted, Rolled
from peripety.session.narration.turn_narration import NarrationResult
from peripety.session.speculation import TurnRestarted
from peripety.session.types import PlayerAction, Resolution
from support.engine.specs import action
from support.gateway.fake_gateway import SPENT, FakeGateway, calling
from support.session.sessions import names, outcome, played, results, scene, told


async def test_an_action_is_carried_out_at_once_and_the_world_is_told_before_the_prose() -> None:
    about = scene()
    events, gateway = await played(calling(("action:raise", {})), outcome("Told."), about=about)
    assert names(events) == ["ActionResolved", "WorldResolved", "NarrativeChunk", "NarrationResult"]
    assert isinstance(events[0], ActionResolved)
    assert (events[0].action_id, events[0].accepted) == ("raise", True)
    end = events[-1]
    assert (end.resolution, end.usage) == (Resolution.NARRATED, SPENT + SPENT)
    assert (end.stats.tool_rounds, end.stats.tool_calls) == (1, 1)
    ((result, failed),) = results(gateway)
    assert not failed
    assert result["accepted"]
    assert result["changes"][0]["after"] == 2
    assert result["world"]["status"]["kind"] == "ongoing"
    assert about.speculation.result is not None
    assert about.speculation.result.tree["a"] == 2


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
    assert events[-1].stats.refused_calls == 1


async def test_who_chose_an_action_has_chosen() -> None:
    about = scene("", chosen=(PlayerAction("give", {"n": 1}),))
    events, gateway = await played(calling(("action:raise", {})), outcome("Told."), about=about)
    assert names(events) == ["WorldResolved", "NarrativeChunk", "NarrationResult"]
    ((result, failed),) = results(gateway)
    assert failed
    assert "has chosen" in result["error"]


async def test_words_beside_a_chosen_action_may_add_to_it() -> None:
    about = scene("more", chosen=(PlayerAction("give", {"n": 1}),))
    await played(calling(("action:raise", {})), outcome("Told."), about=about)
    assert about.speculation.result is not None
    assert [act.action_id for act in about.speculation.result.actions] == ["give", "raise"]


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
    assert events[-1].stats.rejected_actions == 1
    assert about.speculation.result is not None
    assert not json.loads(about.speculation.result.record)["actions"]


async def test_after_rejected_actions_time_may_pass_so_that_the_world_is_told() -> None:
    _, gateway = await played(calling(("action:never", {})), calling(("no_action", {})), outcome("Told."))
    ((refused, failed),) = results(gateway)
    assert (refused["accepted"], failed, "world" in refused) == (False, True, False)
    ((result, failed),) = results(gateway, 2)
    assert not failed
    assert result["world"]["status"]["kind"] == "ongoing"


async def test_the_epilogue_of_an_ending_is_told_with_the_result_of_the_turn() -> None:
    about = scene(epilogues={"first": "A last text."}, spec_version="1.1")
    _, gateway = await played(calling(("action:end", {})), outcome("Told."), about=about)
    ((result, _),) = results(gateway)
    assert result["world"]["epilogue"] == "A last text."
    assert result["world"]["status"]["condition"] == "first"


async def test_after_a_rejected_action_another_may_be_tried() -> None:
    events, _ = await played(calling(("action:never", {})), calling(("action:raise", {})), outcome("Told."))
    assert [one.action_id for one in events if isinstance(one, ActionResolved)] == ["raise"]
    assert events[-1].stats.rejected_actions == 1


async def test_a_turn_takes_no_more_than_sixteen_actions() -> None:
    about = scene("words", chosen=(PlayerAction("raise", {}),) * 3)
    events, _ = await played(calling(*[("action:raise", {})] * 16), outcome("Told."), about=about)
    assert len([one for one in events if isinstance(one, ActionResolved)]) == 13
    assert events[-1].stats.refused_calls == 3


async def test_words_lead_to_one_action_where_solutions_are_measured_at_one_in_a_turn() -> None:
    steps = [{"action": "raise"}]
    about = scene(spec_version="1.1", solutions=[{"id": "way", "steps": steps}])
    events, gateway = await played(
        calling(("action:raise", {}), ("action:give", {"n": 2})), outcome("Told."), about=about
    )
    assert [one.action_id for one in events if isinstance(one, ActionResolved)] == ["raise"]
    (_, (refused, is_failed)) = results(gateway)
    assert is_failed
    assert "no room for another action" in refused["error"]


async def test_an_action_after_which_the_turn_could_not_end_is_refused() -> None:
    grow = [action("grow", [{"op": "push", "path": "state.list", "value": ["x" * 60_000]}])]
    about = scene(actions=grow, state={"list": ["x" * 60_000] * 12, "b": 2})
    events, gateway = await played(calling(*[("action:grow", {})] * 9), outcome("Told."), about=about)
    assert isinstance(events[-1], NarrationResult)
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
        calling(*[("query", {"path": path}) for path in paths]),
        outcome("Told."),
        about=scene(viewer="p"),
    )
    answers = results(gateway)
    assert len(answers) == len(paths)
    assert len({json.dumps(answer) for answer in answers}) == 1
    assert "77" not in repr([request.messages for request in gateway.requests])


async def test_a_die_is_cast_by_the_engine_and_told_at_once() -> None:
    about = scene("")
    events, gateway = await played(
        calling(("roll", {"kind": "k", "target": "q", "difficulty": 5})),
        outcome("Told."),
        about=about,
    )
    assert names(events) == ["WorldResolved", "Rolled", "TurnRestarted", "NarrativeChunk", "NarrationResult"]
    ((result, _),) = results(gateway)
    assert (result["roll"], result["success"]) == (events[1].roll.roll, events[1].roll.success)
    assert about.speculation.result is not None
    assert json.loads(about.speculation.result.record)["rolls"] == [
        {"kind": "k", "difficulty": 5, "target": "q"},
    ]


async def test_in_a_turn_with_words_a_die_costs_no_second_beginning() -> None:
    events, _ = await played(calling(("roll", {"kind": "k", "difficulty": 5})), outcome("Told."))
    assert names(events) == ["Rolled", "WorldResolved", "NarrativeChunk", "NarrationResult"]


# --- calls that cannot be answered as they were meant ---


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("unknown", {}, "action:raise"),
        ("action:unknown", {}, "unknown tool"),
        ("query", {}, "path"),
        ("query", {"path": 5}, "path"),
        ("query", "not json", "not JSON"),
        ("query", '{"path": "state"', "not JSON"),
        ("query", "[]", "not a JSON object"),
        ("query", '{"path": "%s"}' % ("x" * 20_000), "too long"),
        ("roll", {"kind": "two words", "difficulty": 5}, "kind"),
        ("roll", {"kind": "k", "difficulty": 99}, "difficulty"),
        ("action:raise", "NaN", "not JSON"),
        ("n" * 9_000, "", "unknown tool"),
    ],
)
async def test_a_call_that_is_wrong_is_told_how_to_do_better(name: str, given: Any, says: str) -> None:
    events, gateway = await played(calling((name, given)), outcome("Told."))
    ((result, failed),) = results(gateway)
    assert failed
    assert says in result["error"]
    assert len(json.dumps(result)) < 1_000
    assert events[-1].stats.refused_calls == 1
    assert events[-1].resolution is Resolution.NARRATED


async def test_of_many_calls_in_one_answer_the_first_are_carried_out() -> None:
    events, gateway = await played(
        calling(*[("roll", {"kind": "k", "difficulty": 1})] * 20),
        outcome("Told."),
    )
    assert len([one for one in events if isinstance(one, Rolled)]) == 16
    assert [failed for _, failed in results(gateway)] == [False] * 16 + [True] * 4
    assert events[-1].stats.refused_calls == 4


async def test_a_storm_of_calls_is_not_taken_at_all_and_the_narrator_has_to_tell() -> None:
    events, gateway = await played(
        calling(*[("roll", {"kind": "k", "difficulty": 1})] * 500),
        outcome("Told."),
    )
    assert not any(isinstance(one, Rolled) for one in events)
    assert (events[-1].stats.tool_calls, events[-1].stats.refused_calls) == (500, 500)
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
    assert events[-1].stats.tool_rounds == 4
    assert events[-1].usage == sum([SPENT] * 5, UsageTotal())


async def test_who_calls_for_ever_tells_nothing() -> None:
    events, gateway = await played(calling(("query", {"path": "state.a"})))
    assert len(gateway.requests) == 5
    assert (events[-1].stats.tool_calls, events[-1].stats.refused_calls) == (5, 1)
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
        elif isinstance(one, NarrativeRetracted | TurnRestarted):
            shown = ""
    assert shown == "Told." == events[-1].narrative


# --- models without tools ---


async def test_a_model_that_takes_no_tools_is_asked_without_them() -> None:
    for refusal in (InvalidArgumentError("no"), FailedPreconditionError("no", code="TOOLS_UNSUPPORTED")):
        events, gateway = await played(refusal, outcome("Told."))
        assert events[-1].resolution is Resolution.NARRATED
        assert gateway.requests[0].tools
        assert not gateway.requests[1].tools


async def test_a_question_that_is_refused_without_tools_as_well_is_given_up() -> None:
    events, gateway = await played(InvalidArgumentError("no"))
    assert len(gateway.requests) == 2
    assert [one.reason for one in events if isinstance(one, Degraded)] == ["MODEL_UNAVAILABLE"]


async def test_tools_that_a_provider_would_refuse_are_not_offered() -> None:
    about = scene(actions=[action("give", [], params={"a b": {"type": "boolean"}})])
    gateway = FakeGateway(outcome())
    await told(gateway, about, default_provider=ProviderName.ANTHROPIC)
    await told(gateway, about, default_provider=ProviderName.OPENAI)
    assert [bool(request.tools) for request in gateway.requests] == [False, True]
