"""What is kept while it is used."""

from __future__ import annotations

from peripety.core.lru import LruCache


def test_what_was_used_last_stays() -> None:
    kept: LruCache[int] = LruCache(2)
    kept.keep("a", 1)
    kept.keep("b", 2)
    assert kept.find("a") == 1
    kept.keep("c", 3)
    assert [kept.find(name) for name in "abc"] == [1, None, 3]


def test_who_comes_second_gets_the_value_of_the_first() -> None:
    kept: LruCache[list[int]] = LruCache(2)
    first = kept.keep("a", [1])
    assert kept.keep("a", [1]) is first
