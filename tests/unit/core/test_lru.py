"""LRU cache."""

from __future__ import annotations

from peripety.core.lru import LruCache


def test_what_was_used_last_stays() -> None:
    kept: LruCache[str, int] = LruCache(2)
    kept.put("a", 1)
    kept.put("b", 2)
    assert kept.get("a") == 1
    kept.put("c", 3)
    assert [kept.get(name) for name in "abc"] == [1, None, 3]


def test_who_comes_second_gets_the_value_of_the_first() -> None:
    kept: LruCache[str, list[int]] = LruCache(2)
    first = kept.put_if_absent("a", [1])
    assert kept.put_if_absent("a", [1]) is first


def test_values_are_evicted_by_their_total_size() -> None:
    cache: LruCache[str, bytes] = LruCache(4, len)
    cache.put("a", b"12")
    cache.put("b", b"34")
    cache.put("a", b"5")
    assert cache.size == 3
    cache.put("c", b"67")
    assert [cache.get(name) for name in "abc"] == [b"5", None, b"67"]
    cache.put("c", b"too long")
    assert cache.get("c") is None
