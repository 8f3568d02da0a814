from __future__ import annotations

from typing import Any

import pytest

from support.engine.backends import player_of
from support.engine.specs import action, spec

PUSH = {"op": "push", "path": "state.list", "value": 1}


def written(**state: Any) -> dict[str, Any]:
    return spec(state={"list": [], **state}, actions=[action("a0", [PUSH])])


@pytest.mark.parametrize(
    ("state", "capacity"),
    [({}, 256), ({"rest": [0] * 9800}, 64), ({"rest": [0] * 9970}, 16)],
)
def test_arrays_are_held_short_where_the_state_is_nearly_full(state: dict[str, Any], capacity: int) -> None:
    player = player_of(written(**state))
    assert player is not None
    assert f"if len(s0) > {capacity}: raise Deopt" in player.source


def test_a_state_that_leaves_no_room_is_left_to_the_interpreter() -> None:
    assert player_of(written(rest=[0] * 9990)) is None


def test_what_is_pending_counts() -> None:
    effects = [{"op": "inc", "path": "state.n", "value": 1}] * 2000
    document = spec(
        state={"n": 0},
        actions=[
            action(f"a{n}", [{"op": "schedule", "id": "s", "after": n, "effects": effects}]) for n in (1, 2)
        ],
    )
    assert player_of(document) is None
