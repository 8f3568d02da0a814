from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.duration_pb2 import Duration

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.session.v1 import session_pb2 as pb
from peripety.errors import InvalidArgumentError
from peripety.session.types import NarratorOptions
from support.engine.specs import action, document, event
from support.gateway.fake_gateway import FakeGateway
from support.session.sessions import new_id, outcome, servicer, table

if TYPE_CHECKING:
    from pathlib import Path

    from support.session.sessions import Table


PARAMS = {
    "amount": {"type": "integer", "minimum": 1, "maximum": 3},
    "choice": {"type": "string", "enum": ["x", "y"]},
    "flag": {"type": "boolean"},
    "text": {"type": "string", "maxLength": 9},
}
RICH = document(
    entities=[{"id": "p", "playable": True}, {"id": "q", "playable": True}],
    state={"a": 1, "list": [], "private": {"p": {"x": 1}}},
    actions=[
        {
            **action(
                "act",
                [{"op": "inc", "path": "state.a", "value": 1}],
                params=PARAMS,
                description="More.",
            ),
            "name": "Act now",
        },
        action(
            "log",
            [{"op": "addlog", "message": "A line."}, {"op": "set", "path": "state.new", "value": [1]}],
        ),
        action("broken", [{"op": "pop", "path": "state.list"}]),
    ],
    random_events=[
        event(f"e{n}", [{"op": "inc", "path": "state.private.p.x", "value": 1}]) for n in range(4)
    ],
    negativity_budget={"min_fail_rate": 0.25, "decay_per_turn": {"state.a": 0.5}},
)


async def take(game: Table, request: pb.TakeTurnRequest) -> list[pb.TurnEvent]:
    service = servicer(game)
    return [response.event async for response in service.TakeTurn(request, None)]


def turn_request(game: Table, turn: int, *calls: engine.ActionCall, **more: Any) -> pb.TakeTurnRequest:
    return pb.TakeTurnRequest(
        session_id=game.session_id,
        request_id=new_id(),
        expected_turn=turn,
        actions=calls,
        **more,
    )


def call(name: str, **params: Any) -> engine.ActionCall:
    given = {key: engine.ParamValue(**value) for key, value in params.items()}
    return engine.ActionCall(action_id=name, params=given)


ACT = call("act", amount={"number": 2}, choice={"text": "y"}, flag={"flag": False}, text={"text": ""})


async def test_a_turn_is_streamed_in_the_words_of_the_contract(database_url: str) -> None:
    dialogue = [{"entity_id": "q", "utterance": "Words."}]
    gateway = FakeGateway(outcome("Told.", visible_dialogue=dialogue))
    async with table(database_url, RICH, gateway) as game:
        events = await take(game, turn_request(game, 1, ACT, call("broken"), call("log"), input="said"))
    assert [event.WhichOneof("event") for event in events] == [
        "accepted",
        "action_resolved",
        "action_resolved",
        "action_resolved",
        "world_resolved",
        "narrative_chunk",
        "narrative_chunk",
        "dialogue",
        "committed",
    ]
    accepted, act, broken, log, world, chunk, happened, spoken, end = events
    assert accepted.accepted.actions[0] == ACT
    assert accepted.accepted.input == "said"
    assert (act.session_id, act.turn, act.sequence) == (game.session_id, 1, 2)
    assert act.action_resolved == pb.TurnEvent.ActionResolved(
        action_id="act",
        accepted=True,
        params=ACT.params,
        changes=[
            engine.Change(
                path="state.a",
                op=engine.EFFECT_OP_INC,
                before=b"1",
                after=b"2",
                cause=engine.Cause(kind=engine.CAUSE_KIND_ACTION, id="act"),
            ),
        ],
    )
    assert not broken.action_resolved.accepted
    assert broken.action_resolved.reasons[0].code == "EMPTY_ARRAY"
    assert log.action_resolved.log[0].message == "A line."
    made = log.action_resolved.changes[0]
    assert (made.HasField("before"), made.after) == (False, b"[1]")
    assert world.world_resolved.event_id.startswith("e")
    assert [change.cause.kind for change in world.world_resolved.changes] == [engine.CAUSE_KIND_DECAY]
    assert world.world_resolved.status.kind == engine.RUN_STATUS_KIND_ONGOING
    narrative = chunk.narrative_chunk.text + happened.narrative_chunk.text
    assert narrative == f"Told.\n\n{world.world_resolved.event_id}."
    assert (spoken.dialogue.entity_id, spoken.dialogue.utterance) == ("q", "Words.")
    committed = end.committed
    assert (committed.narrative, committed.model, committed.resolution) == (
        narrative,
        "fake/scripted",
        pb.RESOLUTION_NARRATED,
    )
    assert committed.usage.calls == 1
    assert committed.usage.tokens.input_tokens == 7
    assert (committed.usage.cost.pico_units, committed.usage.cache_savings.pico_units) == (50, 20)
    assert len(committed.changes) == 3
    assert committed.commit_time.seconds > 0


async def test_what_the_server_tells_itself_is_marked(database_url: str) -> None:
    async with table(database_url, RICH, FakeGateway(outcome("Bad.", extra=1))) as game:
        events = await take(game, turn_request(game, 1))
    assert [event.WhichOneof("event") for event in events[2:]] == [
        "narrative_chunk",
        "narrative_retracted",
        "narrative_chunk",
        "narrative_retracted",
        "degraded",
        "narrative_chunk",
        "committed",
    ]
    assert events[-3].degraded.reason == "OUTCOME_INVALID"
    assert events[-1].committed.resolution == pb.RESOLUTION_SERVER_RESOLVED


async def test_a_turn_that_is_not_taken_ends_with_the_rule_that_forbade_it(database_url: str) -> None:
    async with table(database_url, RICH) as game:
        events = await take(game, turn_request(game, 1, call("act")))
    last = events[-1].rule_failed
    assert (last.code, last.rule, last.turn_abandoned) == ("ACTIONS_REJECTED", "/actions/0/params", True)


async def test_an_event_that_holds_nothing_for_the_viewer_is_empty_but_counted(database_url: str) -> None:
    async with table(database_url, RICH) as game:
        await take(game, turn_request(game, 1, pov_entity_id="p", input="said"))
        request = pb.ResumeTurnRequest(session_id=game.session_id, turn=1)
        service = servicer(game)
        events = [response.event async for response in service.ResumeTurn(request, None)]
    assert [event.sequence for event in events] == [1, 2, 3, 4, 5]
    assert events[2].WhichOneof("event") is None
    assert events[0].accepted.input == events[-1].committed.narrative == ""


async def test_a_session_is_told_in_the_words_of_the_contract(database_url: str) -> None:
    async with table(database_url, RICH) as game:
        service = servicer(game)
        request = pb.CreateSessionRequest(
            request_id=new_id(),
            scenario_id="scenario",
            seed=0,
            pov_entity_id="p",
        )
        session = (await service.CreateSession(request, None)).session
        again = pb.GetSessionRequest(session_id=session.session_id, pov_entity_id="p")
        assert (await service.GetSession(again, None)).session == session
    assert (session.seed, session.turn, session.pov_entity_id) == (0, 0, "p")
    assert json.loads(session.state) == {"a": 1, "list": [], "private": {"p": {"x": 1}}}
    act = session.legal_actions[0]
    assert (act.action_id, act.name, act.description) == ("act", "Act now", "More.")
    amount, choice, flag, text = act.params
    assert (amount.name, amount.type, amount.minimum, amount.maximum) == (
        "amount",
        engine.PARAM_TYPE_INTEGER,
        1,
        3,
    )
    assert [value.text for value in choice.choices] == ["x", "y"]
    assert flag.type == engine.PARAM_TYPE_BOOLEAN
    assert (text.max_length, text.HasField("minimum")) == (9, False)
    assert session.legal_actions[1].name == "log"


async def test_a_seed_that_is_not_given_is_the_scenario_s(database_url: str) -> None:
    async with table(database_url, RICH) as game:
        request = pb.CreateSessionRequest(request_id=new_id(), scenario_id="scenario")
        assert (await servicer(game).CreateSession(request, None)).session.seed == 7


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.ListSessionsRequest(statuses=[engine.RUN_STATUS_KIND_UNSPECIFIED]), "statuses[0]"),
        (pb.ListSessionsRequest(statuses=[engine.RUN_STATUS_KIND_WON] * 11), "statuses"),
        (pb.ListSessionsRequest(order=pb.SessionOrder.ValueType(9)), "order"),
    ],
)
async def test_an_unknown_filter_or_order_is_refused(
    database_url: str,
    request_: pb.ListSessionsRequest,
    field: str,
) -> None:
    async with table(database_url, RICH) as game:
        with pytest.raises(InvalidArgumentError) as caught:
            await servicer(game).ListSessions(request_, None)
    assert caught.value.violations[0].field == field


async def test_lists_tell_sessions_and_turns_in_short(database_url: str) -> None:
    dialogue = [{"entity_id": "p", "utterance": "Words."}]
    gateway = FakeGateway(outcome("Bad.", extra=1), outcome("Good.", visible_dialogue=dialogue))
    async with table(database_url, RICH, gateway) as game:
        events = await take(game, turn_request(game, 1, ACT, call("log"), input="said"))
        service = servicer(game)
        ongoing = pb.ListSessionsRequest(statuses=[engine.RUN_STATUS_KIND_ONGOING])
        (summary,) = (await service.ListSessions(ongoing, None)).sessions
        request = pb.ListTurnsRequest(session_id=game.session_id)
        (turn,) = (await service.ListTurns(request, None)).turns
        await service.DeleteSession(
            pb.DeleteSessionRequest(session_id=game.session_id, request_id=new_id()),
            None,
        )
        assert (await service.ListSessions(pb.ListSessionsRequest(), None)).sessions == []
    assert (summary.session_id, summary.turn) == (game.session_id, 1)
    end = events[-1].committed
    assert (turn.turn, turn.first_sequence, turn.last_sequence) == (1, 1, len(events))
    assert [call.action_id for call in turn.actions] == ["act", "log"]
    assert (turn.input, turn.narrative, turn.resolution) == ("said", end.narrative, pb.RESOLUTION_REPAIRED)
    assert turn.narrative.startswith("Good.\n\n")
    assert [spoken.utterance for spoken in turn.dialogue] == ["Words."]
    assert list(turn.changes) == list(end.changes)
    assert [line.message for line in turn.log] == ["A line."]
    assert turn.event_id == events[3].world_resolved.event_id
    assert (turn.state_hash, turn.chain_hash, turn.usage) == (end.state_hash, end.chain_hash, end.usage)


async def test_a_session_says_how_it_is_narrated(database_url: str) -> None:
    options = pb.NarratorOptions(
        model="fake/scripted",
        language="pt-BR",
        turn_budget=common.Budget(max_calls=3),
        session_budget=common.Budget(max_tokens=9_000),
    )
    async with table(database_url, RICH) as game:
        request = pb.CreateSessionRequest(request_id=new_id(), scenario_id="scenario", narrator=options)
        made = (await servicer(game).CreateSession(request, None)).session
        again = pb.GetSessionRequest(session_id=made.session_id)
        read = (await servicer(game).GetSession(again, None)).session
        plain = (await game.now()).session
    assert made.narrator == read.narrator == options
    assert plain.narrator == NarratorOptions()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (pb.NarratorOptions(language="no such tag"), "narrator.language"),
        (pb.NarratorOptions(model="m" * 257), "narrator.model"),
        (
            pb.NarratorOptions(session_budget=common.Budget(max_time=Duration(seconds=1))),
            "narrator.session_budget.max_time",
        ),
    ],
)
async def test_a_wrong_way_to_narrate_is_refused(
    database_url: str,
    options: pb.NarratorOptions,
    field: str,
) -> None:
    async with table(database_url, RICH) as game:
        request = pb.CreateSessionRequest(request_id=new_id(), scenario_id="scenario", narrator=options)
        with pytest.raises(InvalidArgumentError) as refused:
            await servicer(game).CreateSession(request, None)
    assert [violation.field for violation in refused.value.violations] == [field]


async def test_a_parameter_without_a_value_is_refused(database_url: str) -> None:
    async with table(database_url, RICH) as game:
        with pytest.raises(InvalidArgumentError) as caught:
            await take(game, turn_request(game, 1, call("act", amount={})))
    assert caught.value.violations[0].field == "actions[0].params[amount]"


async def test_a_turn_to_hear_again_must_be_named(database_url: str) -> None:
    async with table(database_url, RICH) as game:
        request = pb.ResumeTurnRequest(session_id=game.session_id)
        with pytest.raises(InvalidArgumentError, match=r"which"):
            [_ async for _ in servicer(game).ResumeTurn(request, None)]


async def test_the_odds_of_a_session_are_streamed(tmp_path: Path) -> None:
    async with table(f"sqlite:///{tmp_path}/test.db", document()) as game:
        request = pb.ForecastOutcomesRequest(
            session_id=game.session_id,
            runs=300,
            persona=engine.PERSONA_IDLE,
        )
        answers = [answer async for answer in servicer(game).ForecastOutcomes(request, None)]
    assert [answer.sequence for answer in answers] == list(range(1, len(answers) + 1))
    assert [answer.final for answer in answers] == [False] * (len(answers) - 1) + [True]
    last = answers[-1]
    assert (last.turn, last.runs, last.survived.total) == (0, 300, 300)
    assert [(end.condition, end.kind) for end in last.outcomes] == [
        (loss["id"], engine.RUN_STATUS_KIND_LOST) for loss in json.loads(document())["loss_conditions"]
    ]


async def test_a_persona_that_nobody_is_called_is_refused(tmp_path: Path) -> None:
    async with table(f"sqlite:///{tmp_path}/test.db", document()) as game:
        request = pb.ForecastOutcomesRequest(session_id=game.session_id, persona=99)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match=r"persona"):
            [_ async for _ in servicer(game).ForecastOutcomes(request, None)]
