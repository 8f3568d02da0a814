"""Canaries in every private slot: whatever happens in a session, only their owner ever sees them."""

from __future__ import annotations

import asyncio
import io
import json
import re
import tempfile
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from peripety.api.session.v1 import session_pb2 as pb
from peripety.core import logging_setup
from peripety.core.concurrency import closing
from peripety.core.config import Config
from peripety.errors import PeripetyError
from peripety.session.branch_types import ForkRequest
from peripety.session.pb.responses import encode_watch_event, turn_event_to_proto
from peripety.session.types import PlayerAction
from peripety.session.watch.topic import WatchRequest
from support.engine.spec_generators import specs
from support.engine.specs import action, document
from support.examples import example_count
from support.gateway.fake_gateway import FakeGateway
from support.session.leak_probes import (
    ENTITIES,
    LABELS,
    OWNERS,
    VIEWERS,
    assert_clean,
    canary,
    secret_state,
    writes,
)
from support.session.sessions import new_id, outcome, servicer, table

if TYPE_CHECKING:
    from peripety.gateway.types.request import GenerateRequest
    from peripety.session.service import SessionServicer
    from support.engine.specs import Json
    from support.session.sessions import Table


EXAMPLES = max(10, example_count(150, times=1 / 5))
thorough = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@st.composite
def secret_effects(draw: st.DrawFn) -> list[Json]:
    """Writes of secret values to their places."""
    effects: list[Json] = []
    for _ in range(draw(st.integers(1, 4))):
        path = draw(st.sampled_from(sorted(OWNERS)))
        fresh = canary(OWNERS[path], draw(st.integers(10, 99)))
        effects.append(draw(st.sampled_from(writes(path, fresh))))
    return effects


@st.composite
def stirring(draw: st.DrawFn, name: str) -> Json:
    """An action that does one thing to a secret place."""
    path = draw(st.sampled_from(sorted(OWNERS)))
    effect = draw(st.sampled_from(writes(path, canary(OWNERS[path], draw(st.integers(10, 99))))))
    return action(name, [effect])


@st.composite
def secretive(draw: st.DrawFn) -> Json:
    """A random scenario with secrets in it, and rules that read, write and fail on them."""
    spec = draw(specs())
    spec |= {"state": spec["state"] | secret_state(), "entities": ENTITIES, "visibility": LABELS}
    for number, rule in enumerate([*spec["actions"], *spec["random_events"]]):
        if draw(st.booleans()):
            rule["effects"] = draw(secret_effects())
            path = draw(st.sampled_from(sorted(OWNERS)))
            rule["derives"] = {f"secret{number}": {"cat": [{"var": f"{path}.x"}, "!"]}}
            rule["effects"].append({"op": "set", "path": f"{path}.copy", "value": f"secret{number}"})
        if draw(st.integers(0, 3)) == 0:
            condition = {">": [{"+": [{"var": f"{draw(st.sampled_from(sorted(OWNERS)))}.x"}]}, 0]}
            rule["preconditions" if "preconditions" in rule else "when"] = condition
    spec["actions"] += [draw(stirring(f"stir{number}")) for number in range(4)]
    return spec


_CANARY = re.compile(r"canary-\w+-\d+-")


def repeat_prompt(request: GenerateRequest) -> str:
    """Return an outcome with the end of the prompt, and dice for the secrets in it."""
    said = request.messages[-1].text
    dice = [{"kind": secret, "target": secret, "difficulty": 9} for secret in _CANARY.findall(said)[:4]]
    return outcome(f"I know: {said[-1_400:]}", roll_requests=dice)


async def watch(game: Table, gateway: FakeGateway, plan: list[tuple[str | None, list[PlayerAction]]]) -> None:
    """Play, and check everything that any viewer receives."""
    turn = 1
    for viewer, actions in plan:
        asked = len(gateway.requests)
        try:
            streamed = await game.take(game.request(turn, *actions, pov=viewer, input="words"))
        except PeripetyError as error:
            assert_clean(viewer, [error.message, error.details, error.violations])
            return
        for seen in streamed:
            assert_clean(viewer, turn_event_to_proto(seen).SerializeToString())
        for request in gateway.requests[asked:]:
            assert_clean(viewer, [request.system, request.tools, request.messages])
        turn = (await game.now()).session.turn + 1
    fork = (
        await game.sessions.branches.fork(ForkRequest(new_id(), game.session_id, turn=turn // 2))
    ).session.session_id
    served = servicer(game)
    for viewer in VIEWERS:
        for message in await asked_for(served, game.session_id, fork, viewer or ""):
            assert_clean(viewer, message)
        async with closing(game.sessions.watch_streams.open(WatchRequest(game.session_id, viewer))) as events:
            last = (await game.now()).session.last_sequence
            while last > 0:
                assert_clean(viewer, encode_watch_event(await anext(events)))
                last -= 1


QUESTIONS = (
    "What happened since turn 0?",
    "What is hidden?",
    "How much shared is there?",
    "Where is q?",
    "What can I do?",
)


async def asked_for(served: SessionServicer, session_id: str, fork: str, viewer: str) -> list[bytes]:
    """All that a viewer can read of a session and of a fork of it, as it leaves the server."""
    named: dict[str, Any] = {"session_id": session_id, "pov_entity_id": viewer}
    turns = await served.ListTurns(pb.ListTurnsRequest(**named), None)
    heard = [
        message
        for turn in turns.turns
        async for message in served.ResumeTurn(pb.ResumeTurnRequest(turn=turn.turn, **named), None)
    ]
    compared = pb.CompareBranchesRequest(**named, other_session_id=fork)
    messages = [
        await served.GetSession(pb.GetSessionRequest(**named), None),
        await served.GetSession(pb.GetSessionRequest(session_id=fork, pov_entity_id=viewer), None),
        await served.ListSessions(pb.ListSessionsRequest(), None),
        await served.CompareBranches(compared, None),
        *[await served.AskSession(pb.AskSessionRequest(question=one, **named), None) for one in QUESTIONS],
        turns,
        *heard,
    ]
    return [message.SerializeToString() for message in messages]


async def play(spec: Json, plan: list[tuple[str | None, list[PlayerAction]]]) -> None:
    gateway = FakeGateway(repeat_prompt)
    with tempfile.TemporaryDirectory() as directory:
        async with table(f"sqlite:///{directory}/test.db", json.dumps(spec).encode(), gateway) as game:
            await watch(game, gateway, plan)


@thorough
@given(st.data(), secretive())
@pytest.mark.slow(reason="plays dozens of sessions")
def test_secrets_reach_nobody_but_their_owner(data: st.DataObject, spec: Json) -> None:
    ids = [action["id"] for action in spec["actions"]]
    calls = st.builds(PlayerAction, st.sampled_from(ids), st.just({}))
    plan = data.draw(st.lists(st.tuples(st.sampled_from(VIEWERS), st.lists(calls, max_size=3)), max_size=4))
    asyncio.run(play(spec, plan))


def test_secrets_are_not_logged() -> None:
    written = io.StringIO()
    logging_setup.configure(Config(), written)
    secret = canary("nobody", 7)
    gateway = FakeGateway(RuntimeError(secret))

    async def fail() -> None:
        with tempfile.TemporaryDirectory() as directory:
            async with table(f"sqlite:///{directory}/test.db", document(), gateway) as game:
                await game.play(1, "act", input=secret)

    asyncio.run(fail())
    assert "narrator gave up" in written.getvalue()
    assert secret not in written.getvalue()
