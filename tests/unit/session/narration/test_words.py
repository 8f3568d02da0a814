"""Words of the player that try no action, that are not understood, or that the narrator fails to narrate."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import UnavailableError
from peripety.session.events import (
    Accepted,
    ActionResolved,
    Committed,
    Degraded,
    NarrativeChunk,
    NarrativeRetracted,
    RuleFailed,
    WorldResolved,
)
from peripety.session.narration.turn_narration import NarrationResult, TurnNotPlayed
from peripety.session.types import TurnOrder, TurnRequest
from support.engine.specs import action, document
from support.gateway.fake_gateway import SPENT, FakeGateway, calling
from support.session.sessions import (
    FATEFUL,
    at_a_table,
    kinds,
    names,
    new_id,
    only,
    outcome,
    played,
    results,
    scene,
    table,
)

if TYPE_CHECKING:
    from peripety.session.narration.turn_context import NarrationContext

OUTAGE = UnavailableError("the provider is down", code="PROVIDER_UNREACHABLE")
NO_ACTION = calling(("no_action", {}))
ASKED = calling(("ask_player", {"question": "Which of the two?"}))
HIDDEN = "Quicksilver Harbour"


def words(**more: Any) -> NarrationContext:
    return replace(scene(**more), words_only=True)


def only_of(happened: list[Any], kind: type) -> list[Any]:
    return [one for one in happened if isinstance(one, kind)]


# --- understood, but no action ---


async def test_without_an_action_the_narrator_learns_what_the_world_does(database_url: str) -> None:
    answers: list[Any] = [NO_ACTION, outcome("Time passes.")] * 12
    gateway = FakeGateway(*answers)
    happened: Counter[str | None] = Counter()
    async with table(database_url, FATEFUL, gateway) as game:
        for turn in range(1, 13):
            events = await game.play(turn, input="I think of nothing.")
            (resolved,) = only(events, WorldResolved)
            (told,) = [content["world"] for content, _ in results(gateway, 2 * turn - 1)]
            assert (told["event"] or {}).get("id") == resolved.event_id
            assert [change["path"] for change in told["changes"]] == [c.path for c in resolved.changes]
            counts = [*told.get("repeated", {}).values()]
            assert counts == (
                [happened[resolved.event_id] + 1] if told["event"] and happened[resolved.event_id] else []
            )
            happened[resolved.event_id] += 1
    assert len(happened.keys() - {None}) > 1
    assert max(happened.values()) > 1


async def test_after_no_action_the_end_of_the_turn_is_not_told_a_second_time() -> None:
    happened, _ = await played(NO_ACTION, outcome("Time passes."))
    assert happened[-1].narrative == "Time passes."


@pytest.mark.parametrize(
    ("calls", "refused"),
    [
        ([("action:raise", {}), ("no_action", {})], 1),
        ([("no_action", {}), ("action:raise", {})], 1),
        ([("no_action", {}), ("no_action", {})], 1),
    ],
)
async def test_no_action_closes_a_turn_without_an_action_only(
    calls: list[tuple[str, Any]],
    refused: int,
) -> None:
    happened, gateway = await played(calling(*calls), outcome("Told."))
    assert [failed for _, failed in results(gateway)] == [False, True][: 1 + refused]
    assert happened[-1].stats.refused_calls == refused


async def test_no_action_is_refused_where_the_player_chose_one() -> None:
    _, gateway = await played(NO_ACTION, outcome("Told."), about=scene(spoken=""))
    assert results(gateway)[0][1]


async def test_rejected_actions_become_part_of_a_turn_without_an_action(database_url: str) -> None:
    locked = action("never", [], preconditions={"<": [{"var": "state.a"}, 0]})
    tries: list[tuple[str, Any]] = [("action:never", {}), ("action:never", {}), ("no_action", {})]
    gateway = FakeGateway(calling(*tries), outcome("It stays shut."), NO_ACTION, outcome("Time passes."))
    rules = document(entities=[{"id": "p", "playable": True}], state={"a": 1}, actions=[locked])
    async with table(database_url, rules, gateway) as game:
        events = await game.play(1, input="I do what never works.")
        (tried,) = only(events, ActionResolved)
        assert (tried.action_id, tried.accepted, len(tried.reasons)) == ("never", False, 1)
        await game.play(2, input="I wait.")
        facts = json.loads(gateway.requests[2].messages[0].text)["facts"]
        assert [rejected["name"] for rejected in facts["rejected"]] == ["never"]


# --- not understood ---


async def test_words_that_are_not_understood_are_asked_about_and_spend_no_turn(database_url: str) -> None:
    gateway = FakeGateway(ASKED, NO_ACTION, outcome("Now it is told."))
    async with table(database_url, FATEFUL, gateway) as game:
        request = game.request(1, input="mumble")
        first = await game.take(request)
        assert kinds(first) == ["Accepted", "RuleFailed"]
        (failure,) = only(first, RuleFailed)
        assert (failure.code, failure.message) == ("NOT_UNDERSTOOD", "Which of the two?")
        assert failure.turn_abandoned
        session = (await game.now()).session
        assert (session.turn, session.last_sequence) == (0, 0)
        again = await game.take(request)
        assert isinstance(again[-1].event, Committed)
        assert (await game.now()).session.usage == SPENT + SPENT + SPENT


async def test_the_question_belongs_to_those_who_hear_the_narration(database_url: str) -> None:
    gateway = FakeGateway(ASKED)
    async with table(database_url, FATEFUL, gateway) as game:
        seen = await game.play(1, input="mumble", pov="p")
        (asked,) = only(seen, RuleFailed)
        view = (await game.sessions._rulesets.get((await game.now()).session.spec_hash)).projector
        for_others = view.for_viewer(None).project_event(asked, "p")
    assert "Which" in asked.message
    assert isinstance(for_others, RuleFailed)
    assert "Which" not in for_others.message


async def test_a_question_that_would_tell_a_secret_is_replaced() -> None:
    asked = calling(("ask_player", {"question": f"Do you mean {HIDDEN}?"}))
    about = words(state={"a": 1, "b": 2, "hidden": {"x": HIDDEN}}, actions=_ACTIONS)
    happened, _ = await played(asked, about=about)
    assert HIDDEN not in happened[-1].failure.message
    assert happened[-1].failure.code == "NOT_UNDERSTOOD"


_ACTIONS: list[dict[str, Any]] = [
    {"id": name, "name": name, "params": {}, "preconditions": {}, "effects": []} for name in ("one", "two")
]


@pytest.mark.parametrize(
    "before",
    [[("action:raise", {})], [("roll", {"kind": "luck", "difficulty": 9})], [("no_action", {})]],
)
async def test_once_the_turn_has_begun_there_is_no_question(before: list[tuple[str, Any]]) -> None:
    asked = ("ask_player", {"question": "Which?"})
    happened, gateway = await played(calling(*before, asked), outcome("Told."), about=words())
    assert results(gateway)[-1][1]
    assert isinstance(happened[-1], NarrationResult)


async def test_after_the_question_nothing_else_happens() -> None:
    asked = ("ask_player", {"question": "Which?"})
    happened, _ = await played(calling(asked, ("action:raise", {})), about=words())
    assert names(happened) == ["TurnNotPlayed"]


async def test_once_prose_was_streamed_there_is_no_question() -> None:
    half = ['{"narrative": "It is told', ' to the end.", "state_changes": 5}']
    happened, _ = await played(half, ASKED, outcome("Told."), about=words())
    assert "NarrativeChunk" in names(happened)
    assert isinstance(happened[-1], NarrationResult)


async def test_after_a_chosen_action_there_is_no_question() -> None:
    happened, gateway = await played(ASKED, outcome("Told."))
    assert results(gateway)[0][1]
    assert isinstance(happened[-1], NarrationResult)


# --- the narrator failed ---


async def test_words_that_are_not_narrated_spend_no_turn_but_their_usage(
    database_url: str,
) -> None:
    gateway = FakeGateway("{", "{", NO_ACTION, outcome("Now it is told."))
    async with table(database_url, FATEFUL, gateway) as game:
        request = game.request(1, input="I try it.")
        first = await game.take(request)
        assert kinds(first) == ["Accepted", "RuleFailed"]
        (failure,) = only(first, RuleFailed)
        assert (failure.code, failure.turn_abandoned) == ("OUTCOME_INVALID", True)
        assert "no turn was spent" in failure.message
        session = (await game.now()).session
        assert (session.turn, session.last_sequence, session.usage) == (0, 0, SPENT + SPENT)
        again = await game.take(request)
        assert isinstance(again[-1].event, Committed)


@pytest.mark.parametrize(("request_", "turn"), [(("act",), 1), ((), 1)])
async def test_a_chosen_action_and_waiting_are_committed_without_a_narrator(
    database_url: str,
    request_: tuple[str, ...],
    turn: int,
) -> None:
    async with table(database_url, FATEFUL, FakeGateway(OUTAGE)) as game:
        events = await game.play(turn, *request_)
        assert isinstance(events[-1].event, Committed)
        assert only(events, Degraded)


async def test_a_chosen_action_with_words_is_committed_without_a_narrator(database_url: str) -> None:
    async with table(database_url, FATEFUL, FakeGateway(OUTAGE)) as game:
        events = await game.play(1, "act", input="I try it.")
        assert isinstance(events[-1].event, Committed)


async def test_a_joint_turn_is_always_committed(database_url: str) -> None:
    gateway = FakeGateway(OUTAGE)
    async with at_a_table(database_url, gateway, order=TurnOrder.SIMULTANEOUS) as game:
        request = TurnRequest(game.session_id, new_id(), 1, (), input="p: Words.")
        async with aclosing(game.sessions.turn_runner.run(request, is_joint=True)) as events:
            assert [type(seen.event) async for seen in events][-1] is Committed


async def test_plain_prose_is_shown_if_nothing_else_happened() -> None:
    happened, _ = await played("You look around.", "You look around again.", about=words())
    assert names(happened) == ["NarrativeChunk", "TurnNotPlayed"]
    assert happened[0].text == "You look around again."


@pytest.mark.parametrize(
    "answers",
    [
        [calling(("query", {"path": "state"})), "You look around.", "You look around."],
        ["{", "{"],
        [f"You see {HIDDEN}.", f"You see {HIDDEN}."],
        ["x" * 2_000, "x" * 2_000],
        ["```\ncode\n```", "```\ncode\n```"],
    ],
    ids=["after a tool", "broken", "a secret", "too long", "code"],
)
async def test_other_answers_are_not_shown(answers: list[Any]) -> None:
    about = words(state={"a": 1, "b": 2, "hidden": {"x": HIDDEN}}, actions=_ACTIONS)
    happened, _ = await played(*answers, about=about)
    assert not only_of(happened, NarrativeChunk)
    assert isinstance(happened[-1], TurnNotPlayed)


async def test_prose_that_was_streamed_is_retracted_when_the_turn_is_left_unplayed() -> None:
    half = ['{"narrative": "It is told', ' to the end.", "state_changes": 5}']
    happened, _ = await played(half, half, about=words())
    assert only_of(happened, NarrativeRetracted)
    assert isinstance(happened[-1], TurnNotPlayed)


async def test_an_action_of_the_narrator_is_not_kept_without_its_narration(
    database_url: str,
) -> None:
    gateway = FakeGateway(calling(("action:act", {})), "{", "{")
    async with table(database_url, FATEFUL, gateway) as game:
        events = await game.play(1, input="I act.")
        assert only(events, ActionResolved)
        assert isinstance(events[-1].event, RuleFailed)
        assert isinstance(events[0].event, Accepted)
        assert (await game.now()).session.turn == 0
