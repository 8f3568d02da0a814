from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.engine import draw
from peripety.errors import FailedPreconditionError, InvalidArgumentError, ResourceExhaustedError
from support.engine.backends import program_on
from support.engine.specs import document, never

if TYPE_CHECKING:
    from peripety.engine import Program
    from peripety.engine.backend_protocol import Backend


SEED = 5


def quiet(core: Backend) -> Program:
    return program_on(core, document())


def test_a_roll_is_the_keyed_draw_of_its_kind_and_target(core: Backend) -> None:
    program = quiet(core)
    result = program.roll(program.new_state(SEED), "k", "x", difficulty=11)
    value = draw(SEED, "roll:k:x", 1, 0)
    assert result.draw.value == f"{value:016x}"
    assert result.roll == (((value >> 32) * 20) >> 32) + 1
    assert result.success == (result.roll >= 11)
    assert (result.kind, result.target, result.difficulty) == ("k", "x", 11)


def test_every_face_can_come_up_and_no_other(core: Backend) -> None:
    program = quiet(core)
    faces = {program.roll(program.new_state(seed), "k", difficulty=1).roll for seed in range(400)}
    assert faces == set(range(1, 21))


def test_a_face_that_equals_the_difficulty_is_a_success_and_one_below_is_none(core: Backend) -> None:
    program = quiet(core)
    face = program.roll(program.new_state(SEED), "k", difficulty=1).roll
    assert program.roll(program.new_state(SEED), "k", difficulty=face).success
    assert not program.roll(program.new_state(SEED), "k", difficulty=face + 1).success


def test_equal_rolls_in_one_turn_have_draws_of_their_own(core: Backend) -> None:
    program = quiet(core)
    state = program.new_state(SEED)
    draws = [program.roll(state, "k", "x", difficulty=5).draw for _ in range(3)]
    assert [drawn.index for drawn in draws] == [0, 1, 2]
    assert len({drawn.value for drawn in draws}) == 3


def test_rolls_of_another_kind_or_target_do_not_disturb(core: Backend) -> None:
    program = quiet(core)
    alone, among = program.new_state(SEED), program.new_state(SEED)
    program.roll(among, "m", "x", difficulty=5)
    program.roll(among, "k", difficulty=5)
    assert program.roll(among, "k", "x", difficulty=5) == program.roll(alone, "k", "x", difficulty=5)


def test_the_next_turn_counts_from_the_start(core: Backend) -> None:
    program = quiet(core)
    state = program.new_state(SEED)
    program.roll(state, "k", difficulty=5)
    program.step(state)
    drawn = program.roll(state, "k", difficulty=5).draw
    assert (drawn.turn, drawn.index) == (2, 0)


def test_a_copy_and_a_reloaded_state_go_on_where_the_first_was(core: Backend) -> None:
    program = quiet(core)
    state = program.new_state(SEED)
    program.roll(state, "k", difficulty=5)
    copy, reloaded = state.fork(), program.load_state(state.to_json())
    expected = program.roll(state, "k", difficulty=5)
    assert expected.draw.index == 1
    assert program.roll(copy, "k", difficulty=5) == expected
    assert program.roll(reloaded, "k", difficulty=5) == expected


def test_a_roll_changes_nothing_of_the_scenario_and_opens_no_turn(core: Backend) -> None:
    program = quiet(core)
    state = program.new_state(SEED)
    before = json.loads(state.to_json())
    program.roll(state, "k", difficulty=5)
    after = json.loads(state.to_json())
    assert after.pop("rolls") == {"roll:k:": 1}
    assert after == before


def test_a_snapshot_without_rolls_is_that_of_a_turn_without_any(core: Backend) -> None:
    program = quiet(core)
    state = program.new_state(SEED)
    assert "rolls" not in json.loads(state.to_json())
    assert program.roll(program.load_state(state.to_json()), "k", difficulty=5).draw.index == 0


@pytest.mark.parametrize("rolls", [[], {"k": 0}, {"k": 257}, {"k": 1.5}, {"k": "1"}, {"k": -1}, None])
def test_a_snapshot_with_rolls_that_cannot_be_is_refused(core: Backend, rolls: Any) -> None:
    program = quiet(core)
    snapshot = json.loads(program.new_state(SEED).to_json()) | {"rolls": rolls}
    with pytest.raises(InvalidArgumentError) as refused:
        program.load_state(json.dumps(snapshot).encode())
    assert refused.value.code == "SNAPSHOT_INVALID"


def test_rolls_of_a_turn_are_bounded(core: Backend) -> None:
    program = quiet(core)
    state = program.new_state(SEED)
    for number in range(256):
        program.roll(state, f"k{number % 3}", difficulty=5)
    before = state.to_json()
    with pytest.raises(ResourceExhaustedError, match="more than 256 rolls") as refused:
        program.roll(state, "k", difficulty=5)
    assert refused.value.code == "STATE_LIMIT"
    assert state.to_json() == before
    program.step(state)
    assert program.roll(state, "k", difficulty=5).draw.index == 0


@pytest.mark.parametrize(
    ("kind", "target", "difficulty"),
    [
        ("", None, 5),
        ("two words", None, 5),
        ("k" * 65, None, 5),
        ("k", "", 5),
        ("k", None, 0),
        ("k", "x", 31),
    ],
)
def test_what_cannot_be_rolled_is_refused(
    core: Backend,
    kind: str,
    target: str | None,
    difficulty: int,
) -> None:
    program = quiet(core)
    state = program.new_state(SEED)
    with pytest.raises(InvalidArgumentError) as refused:
        program.roll(state, kind, target, difficulty=difficulty)
    assert refused.value.code == "ROLL_INVALID"
    assert state.to_json() == program.new_state(SEED).to_json()


def test_a_run_that_has_ended_rolls_no_more(core: Backend) -> None:
    program = program_on(core, document(loss_conditions=[{"id": "now", "when": {}}, never("b")]))
    state = program.new_state(SEED)
    program.step(state)
    with pytest.raises(FailedPreconditionError) as refused:
        program.roll(state, "k", difficulty=5)
    assert refused.value.code == "RUN_ENDED"
