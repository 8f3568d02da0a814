"""A session played again from its log gives the same records and hashes, on either core."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections import Counter
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from peripety import engine
from peripety.session.branch_types import ForkRequest, RewindRequest
from peripety.session.events import Committed
from peripety.session.turn_transaction import replay_turn
from peripety.session.types import CommittedTurn, PlayerAction, Session, TurnRequest
from support.engine.backends import BACKEND_NAMES, backend_named, program_on
from support.engine.seeded_specs import random_calls, random_spec
from support.engine.spec_generators import specs
from support.examples import example_count
from support.session.bundles import verified
from support.session.leak_probes import HostileGateway
from support.session.sessions import new_id, only, table

if TYPE_CHECKING:
    from support.engine.specs import Json


EXAMPLES = max(10, example_count(150, times=1 / 5))
thorough = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])


async def recorded(spec: Json, plan: list[list[PlayerAction]]) -> tuple[Session, list[CommittedTurn]]:
    """A session and its log after as much of a plan as can be played."""
    with tempfile.TemporaryDirectory() as directory:
        async with table(f"sqlite:///{directory}/test.db", json.dumps(spec).encode()) as game:
            turn = 1
            for actions in plan:
                if (await game.now()).session.status.kind == "ongoing":
                    turn += len(only(await game.play(turn, *actions), Committed))
            session = (await game.now()).session
            return session, await game.store.list_turns(session.session_id, 0, 100)


def params(schemas: Json) -> st.SearchStrategy[dict[str, Any]]:
    """Values for the parameters of an action, not all of them legal."""
    values = st.sampled_from([-3.0, -1.0, 0.0, 0.5, 1.0, 3.0, True, False, "", "x", "é", "too long"])
    return st.fixed_dictionaries(dict.fromkeys(schemas, values))


def calls(spec: Json) -> st.SearchStrategy[PlayerAction]:
    """Actions of a scenario."""
    return st.one_of(
        [
            st.builds(PlayerAction, st.just(action["id"]), params(action["params"]))
            for action in spec["actions"]
        ],
    )


@pytest.mark.slow(reason="plays many sessions")
@pytest.mark.parametrize("name", sorted(BACKEND_NAMES))
def test_a_log_gives_its_hashes_back(name: str) -> None:
    core = backend_named(name)

    @thorough
    @given(st.data(), specs())
    def replay(data: st.DataObject, spec: Json) -> None:
        plan = data.draw(st.lists(st.lists(calls(spec), max_size=2), max_size=6))
        session, turns = asyncio.run(recorded(spec, plan))
        program = program_on(core, json.dumps(spec).encode())
        snapshot = program.new_state(session.seed).to_json()
        chain = engine.start_hash_chain(session.seed, program.spec_hash)
        for turn in turns:
            again = replay_turn(program, snapshot, json.loads(turn.record))
            assert again.record == turn.record
            snapshot, chain = again.snapshot, engine.extend_hash_chain(chain, again.record)
            committed = turn.events[-1]
            assert isinstance(committed, Committed)
            assert (committed.chain_hash, committed.state_hash) == (chain, again.state_hash)
        assert (session.chain_hash, session.snapshot) == (chain, snapshot)

    replay()


GAMES = int(os.environ.get("PERIPETY_GAMES", "8"))


@pytest.mark.slow(reason="plays many sessions on both cores")
def test_whatever_narrators_forks_and_rewinds_do_a_session_is_right_on_both_cores() -> None:
    cores = [backend_named(name) for name in BACKEND_NAMES]
    seen: Counter[str] = Counter()
    for seed in range(GAMES):
        for bundle in asyncio.run(bundles_of_a_game(Random(seed))):
            for core in cores:
                turns, verdict = verified(bundle, partial(program_on, core, is_canonical=True))
                assert verdict.is_valid, (seed, verdict.issues)
                seen["turns"] += len(turns)
            for line in bundle.splitlines():
                seen.update(list(json.loads(line).get("record", ())))
    assert seen.keys() >= {"turns", "rolls", "seed"}


async def bundles_of_a_game(random: Random) -> list[bytes]:
    """Sessions that were played with a hostile narrator, forked and rewound at random, as bundles."""
    spec = random_spec(random)
    gateway = HostileGateway(random, spec)
    legal = [action["id"] for action in spec["actions"]]
    with tempfile.TemporaryDirectory() as directory:
        async with table(
            f"sqlite:///{directory}/test.db",
            json.dumps(spec).encode(),
            gateway,
            seconds=0.1,
        ) as game:
            names = [game.session_id]
            for _ in range(12):
                session_id = random.choice(names)
                session = (await game.sessions.get(session_id, None)).session
                turn = random.randint(0, session.turn)
                step = random.random()
                if step < 0.15:
                    seed = random.choice([None, random.randrange(2**53)])
                    fork = await game.sessions.branches.fork(ForkRequest(new_id(), session_id, turn, seed))
                    names.append(fork.session.session_id)
                elif step < 0.25 and turn < session.turn:
                    back = RewindRequest(new_id(), session_id, turn, expected_turn=session.turn)
                    await game.sessions.rewind(back)
                elif session.status.kind == "ongoing":
                    calls = tuple(
                        PlayerAction(call["act"], call["params"])
                        for call in random_calls(random, spec, legal)
                        if call.get("act") in legal
                    )
                    words = random.choice(["", "I try it."])
                    request = TurnRequest(session_id, new_id(), session.turn + 1, calls, words)
                    await game.take(request)
            return [
                b"".join([piece async for piece in game.sessions.exporter.export(session_id, 0)])
                for session_id in names
            ]
