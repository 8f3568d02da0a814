"""Canaries in every private slot: whatever happens in a session, only their owner ever sees them."""

from __future__ import annotations

import asyncio
import io
import json
import os
import tempfile
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from peripety import logs
from peripety.config import Config
from peripety.errors import PeripetyError
from peripety.sessions.model import ActionCall
from support.sessions import ScriptedGateway, outcome, table
from support.specs import action, document
from support.strategies import specs

if TYPE_CHECKING:
    from peripety.gateway.model import GenerateRequest
    from support.sessions import Table
    from support.specs import Json

EXAMPLES = max(10, int(os.environ.get("PERIPETY_EXAMPLES", "150")) // 5)
thorough = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

PLAYERS = ("p", "q")
VIEWERS = (None, *PLAYERS)
ENTITIES: list[Json] = [{"id": "p", "playable": True}, {"id": "q", "playable": True}, {"id": "r"}]
LABELS: list[Json] = [
    {"path": "state.sealed", "to": "hidden"},
    {"path": "state.sealed.sign", "to": "public"},
    {"path": "state.shared", "to": ["p"]},
    {"path": "state.rows[1]", "to": ["q"]},
]
OWNERS = {
    "state.private.p": "p",
    "state.private.q": "q",
    "state.private.r": "r",
    "state.hidden": "nobody",
    "state.sealed": "nobody",
    "state.shared": "p",
}


def canary(owner: str, number: int) -> str:
    return f"canary-{owner}-{number}-"


def secret_state() -> Json:
    return {
        "private": {
            name: {"x": canary(name, 0), "n": 1, "list": [canary(name, 1)]} for name in ("p", "q", "r")
        },
        "hidden": {"x": canary("nobody", 0), "n": 1, "list": [canary("nobody", 1)]},
        "sealed": {"x": canary("nobody", 2), "n": 1, "list": [], "sign": "seen by all"},
        "shared": {"x": canary("p", 2), "n": 1, "list": []},
        "rows": ["seen by all", canary("q", 2)],
    }


def writes(path: str, fresh: str) -> list[Json]:
    """What rules can do to a secret place, and to what holds it; some of it fails when it is applied."""
    put = {"op": "set", "path": f"{path}.x", "value": fresh}
    return [
        put,
        {"op": "set", "path": f"{path}.made", "value": {"deep": [fresh]}},
        {"op": "patch", "path": path, "value": {"x": fresh, "more": [fresh]}},
        {"op": "push", "path": f"{path}.list", "value": fresh},
        {"op": "pop", "path": f"{path}.list"},
        {"op": "inc", "path": f"{path}.n", "value": 1},
        {"op": "set", "path": "state.private", "value": secret_state()["private"]},
        {"op": "patch", "path": "state.private", "value": {"q": {"x": canary("q", 5), "list": []}}},
        {"op": "patch", "path": "state", "value": {"hidden": {"x": canary("nobody", 6), "list": []}}},
        {"op": "schedule", "id": "s", "after": 1, "effects": [put]},
    ]


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


class Telltale(ScriptedGateway):
    """A narrator that tells everything it was told."""

    async def _ask(self, request: GenerateRequest) -> Any:
        said = request.messages[-1].text
        self.answers = [outcome(f"I know: {said[-1_400:]}")]
        async for event in super()._ask(request):
            yield event


def foreign(viewer: str | None) -> list[str]:
    """How the canaries begin that a viewer must never see."""
    return [f"canary-{owner}-" for owner in ("p", "q", "r", "nobody") if owner != viewer]


def assert_clean(viewer: str | None, seen: Any) -> None:
    text = seen if isinstance(seen, str) else repr(seen)
    for beginning in foreign(viewer):
        assert beginning not in text, (viewer, beginning)


async def watch(game: Table, gateway: Telltale, plan: list[tuple[str | None, list[ActionCall]]]) -> None:
    """Play, and look at everything that anybody can get to see."""
    turn = 1
    for viewer, actions in plan:
        try:
            streamed = await game.take(game.request(turn, *actions, pov=viewer, input="words"))
        except PeripetyError as error:
            assert_clean(viewer, [error.message, error.details, error.violations])
            return
        assert_clean(viewer, [seen.event for seen in streamed])
        for request in gateway.requests[-1:]:
            assert_clean(viewer, [request.system, request.messages])
        turn = (await game.now()).session.turn + 1
        for other in VIEWERS:
            now = await game.now(other)
            assert_clean(other, [now.state, now.legal_actions])
            page = await game.sessions.turns(game.session_id, other, 0, "")
            assert_clean(other, [[seen.event for seen in told.events] for told in page.items])


async def play(spec: Json, plan: list[tuple[str | None, list[ActionCall]]]) -> None:
    gateway = Telltale()
    with tempfile.TemporaryDirectory() as directory:
        async with table(f"sqlite:///{directory}/test.db", json.dumps(spec).encode(), gateway) as game:
            await watch(game, gateway, plan)


@thorough
@given(st.data(), secretive())
def test_secrets_reach_nobody_but_their_owner(data: st.DataObject, spec: Json) -> None:
    ids = [action["id"] for action in spec["actions"]]
    calls = st.builds(ActionCall, st.sampled_from(ids), st.just({}))
    plan = data.draw(st.lists(st.tuples(st.sampled_from(VIEWERS), st.lists(calls, max_size=3)), max_size=4))
    asyncio.run(play(spec, plan))


def test_secrets_are_not_logged() -> None:
    written = io.StringIO()
    logs.configure(Config(), written)
    secret = canary("nobody", 7)
    gateway = ScriptedGateway([RuntimeError(secret)])

    async def fail() -> None:
        with tempfile.TemporaryDirectory() as directory:
            async with table(f"sqlite:///{directory}/test.db", document(), gateway) as game:
                await game.play(1, "act", input=secret)

    asyncio.run(fail())
    assert "narrator gave up" in written.getvalue()
    assert secret not in written.getvalue()
