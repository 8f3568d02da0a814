"""What is kept while it is used."""

from __future__ import annotations

from peripety.core.lru import LruCache


def test_what_was_used_last_stays() -> None:
    kept: LruCache[int] = LruCache(2)
    kept.put("a", 1)
    kept.put("b", 2)
    assert kept.get("a") == 1
    kept.put("c", 3)
    assert [kept.get(name) for name in "abc"] == [1, None, 3]


def test_who_comes_second_gets_the_value_of_the_first() -> None:
    kept: LruCache[list[int]] = LruCache(2)
    first = kept.put("a", [1])
    assert kept.put("a", [1]) is first
