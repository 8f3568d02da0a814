"""Literals of rules that read or write what the point of view may not know reach no one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.session.events import RuleFailed, encode_value
from support.engine.specs import action, document, event, never
from support.gateway.fake_gateway import FakeGateway, calling
from support.session.sessions import only, outcome, prompt_bytes, table

if TYPE_CHECKING:
    from peripety.gateway.types.request import GenerateRequest
    from peripety.session.visibility import TurnEventView

_WORDS = iter(range(100))


def canary() -> str:
    return f"canary-{next(_WORDS)}-word"


def read(path: str, literal: Any) -> dict[str, Any]:
    return {"==": [{"var": path}, literal]}


def put(path: str, value: Any) -> dict[str, Any]:
    return {"op": "set", "path": path, "value": value}


STATE = {"a": 1, "note": "", "hidden": {"x": canary()}, "private": {"q": {"y": canary()}, "p": {"z": 1}}}
CHAIN = {
    "first": {"if": [read("state.hidden.x", canary()), 1, 2]},
    "second": {"if": [read("derives.first", 1), canary(), canary()]},
    "third": {"if": [read("derives.second", canary()), canary(), 3]},
}
ACTS = [
    action("chained", [put("state.note", "third")], derives=CHAIN),
    action("written", [put("state.hidden.x", canary()), put("state.private.q.y", canary())]),
    action(
        "later", [{"op": "schedule", "id": "s", "after": 9, "effects": [put("state.hidden.x", canary())]}]
    ),
    action("logged", [{"op": "addlog", "message": canary()}]),
    action("locked", [], preconditions=read("state.hidden.x", canary())),
    action("whole", [], preconditions={"!=": [{"var": "state.private"}, canary()]}),
    action("wait", [{"op": "inc", "path": "state.a", "value": 1}]),
]
DOCUMENT = document(
    spec_version="1.1",
    entities=[{"id": "p", "playable": True}, {"id": "q", "secret": canary(), "knows": canary()}],
    state=STATE,
    actions=ACTS,
    random_events=[
        event("e1", [put("state.hidden.x", canary())], weight=0.05, when=read("state.hidden.x", canary())),
        event("e2", [{"op": "addlog", "message": canary()}], weight=0.05, when={"<": [{"var": "turn"}, 0]}),
        *[event(f"f{n}", [], weight=0.05, when={"<": [{"var": "turn"}, 0]}) for n in range(2)],
    ],
    loss_conditions=[never("first"), {"id": "second", "when": read("state.hidden.x", canary())}],
    win_conditions=[{"id": "won", "when": read("state.private.q.y", canary())}],
)
CANARIES = [f"canary-{number}-word" for number in range(next(_WORDS))]


def found_in(text: str) -> list[str]:
    return [word for word in CANARIES if word in text]


def shown(events: list[TurnEventView]) -> str:
    return json.dumps([encode_value(seen.event) for seen in events], ensure_ascii=False)


def told(requests: list[GenerateRequest]) -> str:
    return "".join(prompt_bytes(request).decode() for request in requests)


@pytest.mark.parametrize("pov", [None, "p"])
async def test_no_prompt_tool_event_or_error_holds_one(database_url: str, pov: str | None) -> None:
    calls = calling(
        ("action:locked", {}),
        ("action:wait", {}),
        ("query", {"path": "state.hidden.x"}),
        ("query", {"path": "state"}),
    )
    gateway = FakeGateway(calls, outcome("Told."), outcome("Told."))
    async with table(database_url, DOCUMENT, gateway) as game:
        events = await game.play(1, input="I wait.", pov=pov)
        events += await game.play(2, "locked", pov=pov)
        events += await game.play(2, "wait", pov=pov)
        now = await game.now(pov)
    assert found_in(told(gateway.requests)) == []
    assert found_in(shown(events)) == []
    assert found_in(now.state.decode()) == []
    assert [one.code for one in only(events, RuleFailed)] == ["ACTIONS_REJECTED"]


async def test_a_line_of_the_log_is_told_once_it_is_written(database_url: str) -> None:
    gateway = FakeGateway(outcome("Told."))
    async with table(database_url, DOCUMENT, gateway) as game:
        events = await game.play(1, "logged", pov="p")
    line = ACTS[3]["effects"][0]["message"]
    assert found_in(shown(events)) == [line]
    assert line in gateway.requests[0].messages[-1].text
    assert line not in (gateway.requests[0].system or "")


async def test_prose_may_quote_a_line_of_the_log_that_was_hidden_before(database_url: str) -> None:
    line = "The seal of Quicksilver Harbour"
    changed = json.loads(DOCUMENT)
    changed["state"]["hidden"]["x"] = line
    changed["actions"][3]["effects"][0]["message"] = line
    gateway = FakeGateway(outcome(f"It reads: {line}."))
    async with table(database_url, json.dumps(changed).encode(), gateway) as game:
        await game.play(1, "logged", pov="p")
    assert len(gateway.requests) == 1
