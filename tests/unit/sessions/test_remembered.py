from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from peripety.sessions.model import Kept, Memory
from peripety.sessions.remembered import after, decode_changes, encode_changes, since

memories = st.lists(
    st.builds(
        Memory, st.integers(1, 4), st.just("scope"), st.just("p"), st.text(max_size=1), st.just("public")
    ),
    max_size=8,
).map(tuple)


def memory(number: int) -> Memory:
    return Memory(number, "scope", "p", "content", "private")


def test_runs_that_are_kept_are_named_by_their_place() -> None:
    a, b, c, d, new = map(memory, range(5))
    assert since((a, b, c, d), (a, b, d, new)) == (Kept(0, 2), Kept(3, 4), new)


def test_nothing_changed_is_not_everything_forgotten() -> None:
    a = memory(1)
    assert since((a,), (a,)) is None
    assert since((a,), ()) == ()
    assert after((a,), None) == (a,)
    assert after((a,), ()) == ()


@given(memories, memories)
def test_memories_follow_from_those_before_and_what_changed(
    before: tuple[Memory, ...], now: tuple[Memory, ...]
) -> None:
    stored = json.loads(json.dumps(encode_changes(since(before, now))))
    assert after(before, decode_changes(stored)) == now
