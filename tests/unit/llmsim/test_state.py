"""Tables: bounded, forked, watched."""

from __future__ import annotations

from peripety.llmsim.state import StateTable


def test_a_table_forgets_what_was_unused_longest() -> None:
    table = StateTable(limit=2)
    table.put("a", 1)
    table.put("b", 2)
    table.get("a")
    table.put("c", 3)
    assert list(table) == ["a", "c"]
    assert table.get("b") is None


def test_none_removes() -> None:
    table = StateTable()
    table.put("a", 1)
    table.put("a", None)
    assert len(table) == 0


def test_a_watched_table_tells_each_change_once() -> None:
    table = StateTable(limit=2)
    table.put("unwatched", 0)
    table.load({"a": 1})
    table.put("b", 2)
    assert table.take_changes() == {"b": 2, "unwatched": None}
    assert table.take_changes() == {}
    table.clear()
    assert table.take_changes() == {"a": None, "b": None}


def test_a_fork_is_independent() -> None:
    table = StateTable()
    table.put("a", 1)
    fork = table.fork()
    fork.put("a", 2)
    assert (table.get("a"), fork.get("a")) == (1, 2)
