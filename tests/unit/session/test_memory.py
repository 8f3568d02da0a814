from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from peripety.session.memory import (
    MAX_BYTES,
    MAX_BYTES_PER_OWNER,
    add_memories,
    apply_diff,
    decode_diff,
    diff_memories,
    encode_diff,
    memories_for,
)
from peripety.session.types import NarratorMemory, UnchangedMemories

if TYPE_CHECKING:
    from support.engine.specs import Json


CAST = {f"e{number}" for number in range(40)}


def update(target: str = "e0", content: str = "c", visibility: str = "private", scope: str = "s") -> Json:
    return {"scope": scope, "target_id": target, "content": content, "visibility": visibility}


def size(*memories: NarratorMemory) -> int:
    return sum(len(memory.scope.encode()) + len(memory.content.encode()) for memory in memories)


def test_what_is_written_is_remembered_with_its_turn_behind_what_was_there() -> None:
    before = (NarratorMemory(1, "old", "e1", "before", "public"),)
    after = add_memories(before, [update(content="now")], 2, CAST)
    assert after == (*before, NarratorMemory(2, "s", "e0", "now", "private"))


def test_without_updates_nothing_changes() -> None:
    before = add_memories((), [update(content=f"{number}") for number in range(9)], 1, CAST)
    assert add_memories(before, [], 2, CAST) == before


def test_what_is_written_again_is_remembered_once_and_anew() -> None:
    before = add_memories((), [update(content="a"), update(content="b")], 1, CAST)
    after = add_memories(before, [update(content="a"), update(content="a")], 2, CAST)
    assert [(memory.turn, memory.content) for memory in after] == [(1, "b"), (2, "a")]


def test_the_same_words_for_other_readers_are_other_memories() -> None:
    written = [update(), update(visibility="hidden"), update("e1"), update(scope="t")]
    assert len(add_memories((), written, 1, CAST)) == 4


def fact(content: str, scope: str = "fact:gate", target: str = "world", visibility: str = "public") -> Json:
    return update(target, content, visibility, scope)


def test_a_fact_replaces_the_earlier_one_about_the_same_subject() -> None:
    before = add_memories((), [fact("The e0 gate.", target="e0"), fact("The gate is red.")], 1, CAST)
    before = add_memories(before, [fact("The wall is high.", "fact")], 2, CAST)
    after = add_memories(before, [fact("The gate is blue.", "fact:Gate")], 3, CAST)
    assert [(memory.turn, memory.content) for memory in after] == [
        (1, "The e0 gate."),
        (2, "The wall is high."),
        (3, "The gate is blue."),
    ]
    assert all(memory.is_fact for memory in after)
    stored = json.loads(json.dumps(encode_diff(diff_memories(before, after))))
    assert apply_diff(before, decode_diff(stored)) == after


def test_facts_without_a_subject_for_other_readers_or_that_are_private_replace_nothing() -> None:
    before = add_memories((), [fact("The gate is red.")], 1, CAST)
    others = [
        fact("The gate is blue.", "fact"),
        fact("The gate is green.", "fact:door"),
        fact("Others.", target="e0", visibility="private"),
    ]
    assert len(add_memories(before, others, 2, CAST)) == 4
    assert len(add_memories(before, [fact("For one.")], 2, CAST, "e0")) == 2
    private = [fact(text, target="e0", visibility="private") for text in ("a", "b")]
    assert len(add_memories((), private, 1, CAST)) == 2


def test_the_oldest_memories_of_an_owner_are_forgotten_first() -> None:
    memories: tuple[NarratorMemory, ...] = ()
    for turn in range(1, 31):
        memories = add_memories(memories, [update(content=f"{turn:03d}" + "é" * 98)], turn, CAST)
        assert size(*memories) <= MAX_BYTES_PER_OWNER
    assert [memory.turn for memory in memories] == list(range(21, 31))
    assert size(*memories) == MAX_BYTES_PER_OWNER - 48


def test_others_are_not_forgotten_because_one_remembers_much() -> None:
    first = add_memories((), [update("e1", "kept")], 1, CAST)
    after = add_memories(first, [update(content=f"{n}" * 900) for n in range(5)], 2, CAST)
    assert [memory.owner for memory in after] == ["e1", "e0", "e0"]


def test_of_all_memories_the_oldest_are_forgotten_first() -> None:
    memories: tuple[NarratorMemory, ...] = ()
    for number in range(40):
        memories = add_memories(memories, [update(f"e{number}", "x" * 1_023)], number, CAST)
    assert [memory.owner for memory in memories] == [f"e{number}" for number in range(24, 40)]
    assert size(*memories) == MAX_BYTES


def test_a_memory_for_nobody_of_the_cast_is_not_kept() -> None:
    written = [update(), update("nobody")]
    assert [memory.owner for memory in add_memories((), written, 1, CAST)] == ["e0"]


def test_what_was_written_for_one_audience_is_for_no_other() -> None:
    written = [update("e1", "a", "public"), update("e1", "b")]
    memories = add_memories((), written, 1, CAST, "e0")
    assert [memory.content for memory in memories_for(memories, "e0")] == ["a"]
    assert memories_for(memories, "e1") == memories_for(memories, None) == ()
    again = add_memories(memories, written, 2, CAST)
    assert [memory.content for memory in memories_for(again, "e1")] == ["a", "b"]
    assert len(again) == 4


def test_a_viewer_recalls_what_is_public_and_its_own() -> None:
    kinds = ("public", "private", "hidden")
    memories = tuple(NarratorMemory(1, "s", owner, kind, kind) for owner in ("p", "q") for kind in kinds)
    assert [(m.owner, m.content) for m in memories_for(memories, "p")] == [
        ("p", "public"),
        ("p", "private"),
        ("q", "public"),
    ]
    assert [(m.owner, m.content) for m in memories_for(memories, None)] == [("p", "public"), ("q", "public")]


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
