from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from peripety.session.memory import apply_diff, decode_diff, diff_memories, encode_diff
from peripety.session.types import NarratorMemory, UnchangedMemories

memories = st.lists(
    st.builds(
        NarratorMemory,
        st.integers(1, 4),
        st.just("scope"),
        st.just("p"),
        st.text(max_size=1),
        st.just("public"),
    ),
    max_size=8,
).map(tuple)


def memory(number: int) -> NarratorMemory:
    return NarratorMemory(number, "scope", "p", "content", "private")


def test_runs_that_are_kept_are_named_by_their_place() -> None:
    a, b, c, d, new = map(memory, range(5))
    assert diff_memories((a, b, c, d), (a, b, d, new)) == (
        UnchangedMemories(0, 2),
        UnchangedMemories(3, 4),
        new,
    )


def test_nothing_changed_is_not_everything_forgotten() -> None:
    a = memory(1)
    assert diff_memories((a,), (a,)) is None
    assert diff_memories((a,), ()) == ()
    assert apply_diff((a,), None) == (a,)
    assert apply_diff((a,), ()) == ()


@given(memories, memories)
def test_memories_follow_from_those_before_and_what_changed(
    before: tuple[NarratorMemory, ...],
    now: tuple[NarratorMemory, ...],
) -> None:
    stored = json.loads(json.dumps(encode_diff(diff_memories(before, now))))
    assert apply_diff(before, decode_diff(stored)) == now
