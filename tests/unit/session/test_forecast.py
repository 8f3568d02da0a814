from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.concurrency import WorkerPool
from peripety.errors import FailedPreconditionError, InvalidArgumentError
from peripety.scenario.registry import ProgramCache
from peripety.session.forecast import OutcomeForecaster
from peripety.session.session_view import RulesetCache
from peripety.session.types import ForecastRequest, PlayerAction
from support.engine.specs import action, at_most, document, event, never
from support.session.sessions import table

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from peripety.session.forecast import OutcomeForecast
    from support.session.sessions import Table


FALL = {"op": "dec", "path": "state.b", "value": 4}
RISE = {"op": "inc", "path": "state.b", "value": 4}
DICE: dict[str, Any] = {
    "state": {"b": 14},
    "actions": [
        action("rise", [RISE]),
        action("fall", [FALL]),
        action("no", [RISE], preconditions={"<": [1, 0]}),
    ],
    "random_events": [event("e", [FALL], weight=0.3)],
    "loss_conditions": [at_most("low", "state.b", 2), never("other")],
    "win_conditions": [{"id": "high", "when": {">=": [{"var": "state.b"}, 30]}}],
    "horizon": 20,
}


def game(tmp_path: Path, **parts: Any) -> AbstractAsyncContextManager[Table]:
    return table(f"sqlite:///{tmp_path}/test.db", document(**(DICE | parts)))


async def odds(playing: Table, **asked: Any) -> list[OutcomeForecast]:
    workers = WorkerPool()
    try:
        teller = OutcomeForecaster(
            playing.store,
            RulesetCache(playing.store.get_document, ProgramCache()),
            workers,
        )
        return [told async for told in teller.forecast(ForecastRequest(playing.session_id, **asked))]
    finally:
        workers.close()


async def test_the_odds_say_how_often_each_end_came_about(tmp_path: Path) -> None:
    async with game(tmp_path) as playing:
        *before, last = await odds(playing, runs=500)
    assert before
    assert not any(told.final for told in before)
    assert (last.final, last.runs, last.turn) == (True, 500, 0)
    assert [(end.condition, end.kind) for end in last.endings] == [
        ("low", "lost"),
        ("other", "lost"),
        ("high", "won"),
    ]
    assert sum(end.rate.count for end in last.endings) + last.survived.count == 500
    assert 0 < last.endings[0].rate.low < last.endings[0].rate.value < last.endings[0].rate.high < 1
    assert last.endings[1].rate.count == 0


async def test_the_same_question_in_the_same_turn_has_the_same_answer(tmp_path: Path) -> None:
    async with game(tmp_path) as playing:
        assert (await odds(playing))[-1] == (await odds(playing))[-1]
        assert (await odds(playing, seed=1))[-1] != (await odds(playing, seed=2))[-1]


async def test_the_futures_start_from_the_present_and_change_nothing(tmp_path: Path) -> None:
    async with game(tmp_path) as playing:
        at_first = (await odds(playing))[-1]
        for turn in (1, 2):
            await playing.play(turn, "rise")
        before = (await playing.now()).session
        later = (await odds(playing))[-1]
        assert (await playing.now()).session == before
    assert later.turn == 2
    assert later.endings[0].rate.value < at_first.endings[0].rate.value


async def test_what_is_done_first_moves_the_odds(tmp_path: Path) -> None:
    async with game(tmp_path) as playing:
        fallen = (await odds(playing, actions=(PlayerAction("fall", {}),) * 3))[-1]
        risen = (await odds(playing, actions=(PlayerAction("rise", {}),)))[-1]
    assert fallen.endings[0].rate.value == 1
    assert risen.endings[0].rate.value < 1


async def test_a_persona_and_a_horizon_can_be_asked_for(tmp_path: Path) -> None:
    async with game(tmp_path) as playing:
        idle = (await odds(playing, persona="idle", horizon=1))[-1]
    assert idle.survived.count == idle.runs


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"runs": 100_001}, "runs"),
        ({"runs": -1}, "runs"),
        ({"horizon": 1_001}, "horizon"),
        ({"seed": -1}, "seed"),
        ({"actions": (PlayerAction("unknown", {}),)}, "actions[0].action_id"),
        ({"actions": (PlayerAction("rise", {}),) * 17}, "actions"),
    ],
)
async def test_a_wrong_field_is_named(tmp_path: Path, asked: dict[str, Any], field: str) -> None:
    async with game(tmp_path) as playing:
        with pytest.raises(InvalidArgumentError) as refused:
            await odds(playing, **asked)
    assert refused.value.violations[0].field == field


async def test_what_cannot_be_taken_has_no_odds(tmp_path: Path) -> None:
    async with game(tmp_path) as playing:
        with pytest.raises(FailedPreconditionError, match="none of them is legal") as refused:
            await odds(playing, actions=(PlayerAction("no", {}),))
    assert refused.value.code == "ACTIONS_REJECTED"


async def test_a_run_that_has_ended_has_no_odds(tmp_path: Path) -> None:
    async with game(tmp_path) as playing:
        await playing.play(1, *["fall"] * 3)
        with pytest.raises(FailedPreconditionError) as refused:
            await odds(playing)
    assert refused.value.code == "RUN_ENDED"


VALUES = ["p", "q", "r", "s"]


def mystery(**parts: Any) -> dict[str, Any]:
    """A guess that is right for one of four hidden values, and an action that gives a clue about them."""
    right = {"==": [{"var": "params.who"}, {"var": "state.hidden.k"}]}
    who = {"who": {"type": "string", "enum": VALUES}}
    guess = action(
        "guess",
        [{"op": "set", "path": "state.found", "value": "result"}],
        params=who,
        derives={"result": {"if": [right, 1, -1]}},
    )
    look = action(
        "look",
        [{"op": "set", "path": "state.clue", "value": "seen"}],
        derives={"seen": {"if": [{"in": [{"var": "state.hidden.k"}, VALUES[:2]]}, 1, 2]}},
    )
    return {
        "spec_version": "1.1",
        "state": {"found": 0, "clue": 0, "hidden": {"k": "p"}},
        "deal": [{"id": "k", "path": "state.hidden.k", "values": VALUES}],
        "entities": [{"id": "e", "playable": True}],
        "actions": [guess, look],
        "random_events": [],
        "loss_conditions": [{"id": "wrong", "when": {"<": [{"var": "state.found"}, 0]}}, never("other")],
        "win_conditions": [{"id": "right", "when": {">": [{"var": "state.found"}, 0]}}],
        "horizon": 20,
        **parts,
    }


async def guessing(tmp_path: Path, seed: int, *looks: int, **parts: Any) -> tuple[str, dict[str, float]]:
    """The hidden value of a session, and how often each guess would be right after some looks."""
    (tmp_path / f"{seed}").mkdir()
    url = f"sqlite:///{tmp_path}/{seed}/test.db"
    async with table(url, document(**mystery(**parts), seed=seed)) as playing:
        for turn in looks:
            await playing.play(turn, "look")
        told = {}
        for value in VALUES:
            call = (PlayerAction("guess", {"who": value}),)
            last = (await odds(playing, seed=5, runs=320, actions=call))[-1]
            told[value] = next(end.rate.value for end in last.endings if end.condition == "right")
        tree = json.loads((await playing.now()).session.snapshot)["state"]
    return tree["hidden"]["k"], told


async def test_the_odds_do_not_name_what_was_dealt(tmp_path: Path) -> None:
    found = [await guessing(tmp_path, seed) for seed in range(8)]
    assert len({hidden for hidden, _ in found}) > 2
    assert [told for _, told in found] == [dict.fromkeys(VALUES, 0.25)] * 8


async def test_a_clue_that_was_seen_excludes_what_it_refutes(tmp_path: Path) -> None:
    for seed in range(4):
        hidden, told = await guessing(tmp_path, seed, 1, 2)
        same = VALUES[:2] if hidden in VALUES[:2] else VALUES[2:]
        assert told == {value: 0.5 if value in same else 0.0 for value in VALUES}


async def test_a_value_that_is_visible_is_used_as_it_is(tmp_path: Path) -> None:
    label = [{"path": "state.hidden.k", "to": "public"}]
    hidden, told = await guessing(tmp_path, 3, visibility=label)
    assert told == {value: float(value == hidden) for value in VALUES}


async def test_an_entity_is_told_by_what_it_sees(tmp_path: Path) -> None:
    label = [{"path": "state.hidden.k", "to": ["e"]}]
    async with table(f"sqlite:///{tmp_path}/t.db", document(**mystery(visibility=label), seed=4)) as playing:
        tree = json.loads((await playing.now()).session.snapshot)["state"]
        call = (PlayerAction("guess", {"who": tree["hidden"]["k"]}),)
        for pov, expected in ((None, 0.25), ("e", 1.0)):
            last = (await odds(playing, seed=5, runs=320, actions=call, pov=pov))[-1]
            assert last.endings[-1].rate.value == expected


async def test_more_deals_than_can_be_tried_are_sampled(tmp_path: Path) -> None:
    deals = [{"id": f"d{n}", "path": f"state.hidden.d{n}", "values": [*range(20)]} for n in range(3)]
    state = {"found": 0, "clue": 0, "hidden": {"k": "p", "d0": 0, "d1": 0, "d2": 0}}
    async with table(f"sqlite:///{tmp_path}/t.db", document(**mystery(deal=deals, state=state))) as playing:
        (*_, last) = await odds(playing, runs=64)
    assert last.runs == 64
