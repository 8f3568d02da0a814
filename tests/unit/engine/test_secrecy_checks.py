"""Tests of `peripety.engine.checks.secrecy_checks`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from peripety import engine
from peripety.errors import Severity
from support.engine.specs import action, spec

Json = dict[str, Any]

IS_ME = {"==": [{"var": "state.hidden.owner"}, "me"]}
IS_CHOSEN = {"==": [{"var": "state.hidden.said[params.who]"}, 1]}
IS_OPEN = {">": [{"var": "state.a"}, 0]}
CLUES: Json = {"k": {"text": {"deal": "owner", "texts": {"me": "x", "b": "y"}}}}


def warnings(document: Json) -> list[tuple[str, str]]:
    """The findings about what is hidden, all of which are warnings."""
    found = [one for one in engine.validate(json.dumps(document).encode()) if "PRECONDITION" in one.code]
    assert all(one.severity is Severity.WARNING for one in found)
    return [(one.code, one.path) for one in found]


@pytest.mark.parametrize(
    ("condition", "changes", "found"),
    [
        (IS_ME, {}, ["DEAL_IN_PRECONDITION"]),
        ({"==": [{"var": "state.hidden"}, 1]}, {}, ["DEAL_IN_PRECONDITION"]),
        ({"and": [{"known": "k"}, IS_ME]}, {"clues": CLUES}, []),
        ({"or": [{"known": "k"}, IS_ME]}, {"clues": CLUES}, ["DEAL_IN_PRECONDITION"]),
        ({"and": [{"known": "k"}, IS_ME]}, {"clues": {"k": {"text": "x"}}}, ["DEAL_IN_PRECONDITION"]),
        (IS_ME, {"visibility": [{"path": "state.hidden.owner", "to": "public"}]}, []),
        ({">": [{"var": "state.hidden.n"}, 0]}, {}, ["HIDDEN_PRECONDITION"]),
        (IS_CHOSEN, {}, ["HIDDEN_PRECONDITION"]),
        ({">": [{"var": "state.private.me.n"}, 0]}, {}, []),
        ({">": [{"var": "state.private.b.n"}, 0]}, {}, ["HIDDEN_PRECONDITION"]),
        (IS_OPEN, {"visibility": [{"path": "state.a", "to": ["b"]}]}, ["HIDDEN_PRECONDITION"]),
        (IS_OPEN, {}, []),
        ({"!": [{"var": "state.hidden.once.actions.a"}]}, {}, []),
        ({"==": [{"var": "state.clues.k"}, ""]}, {"clues": CLUES}, []),
    ],
)
def test_no_precondition_reads_what_no_player_sees(condition: Json, changes: Json, found: list[str]) -> None:
    document = spec(
        spec_version="1.1",
        state={
            "a": 1,
            "hidden": {"owner": "me", "n": 1, "said": {"me": 0, "b": 0}},
            "private": {"me": {"n": 1}, "b": {"n": 1}},
        },
        entities=[{"id": "me", "name": "Me", "playable": True}, {"id": "b", "name": "B"}],
        deal=[{"id": "owner", "path": "state.hidden.owner", "values": ["me", "b"]}],
        actions=[action("a", [], preconditions=condition)],
        **changes,
    )
    assert warnings(document) == [(code, "/actions/0/preconditions") for code in found]


@pytest.mark.parametrize(
    ("effect", "found"),
    [
        ({"op": "inc", "path": "state.hidden.n", "value": 1}, []),
        ({"op": "set", "path": "state.hidden.n", "value": False}, []),
        ({"op": "inc", "path": "state.a", "value": 1}, ["HIDDEN_PRECONDITION"]),
        ({"op": "inc", "path": "state.hidden.n", "value": "amount"}, ["HIDDEN_PRECONDITION"]),
    ],
)
def test_an_action_may_read_the_mark_that_it_leaves(effect: Json, found: list[str]) -> None:
    condition = {"==": [{"var": "state.hidden.n"}, 0]}
    document = spec(
        spec_version="1.1",
        state={"a": 1, "hidden": {"n": 0, "owner": 2}},
        entities=[{"id": "me", "name": "Me", "playable": True}],
        actions=[
            action("a", [effect], preconditions=condition, derives={"amount": {"var": "state.hidden.owner"}})
        ],
    )
    assert [code for code, _ in warnings(document)] == found
