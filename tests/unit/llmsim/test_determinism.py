"""Random values of a request, and the signatures of reasoning."""

from __future__ import annotations

import base64

import pytest

from peripety.llmsim.determinism import SeededRng, is_own_signature, make_signature


def test_chance_follows_from_the_seed_the_conversation_the_request_and_the_purpose() -> None:
    chance = SeededRng(1, "scope", 2)
    assert chance.draw("jitter", 3) == SeededRng(1, "scope", 2).draw("jitter", 3)
    others = [SeededRng(2, "scope", 2), SeededRng(1, "other", 2), SeededRng(1, "scope", 3)]
    drawn = {each.draw("jitter", 3) for each in (chance, *others)} | {
        chance.draw("jitter", 4),
        chance.draw("other", 3),
    }
    assert len(drawn) == 6


def test_ids_are_letters_and_digits_and_nobody_elses() -> None:
    chance = SeededRng(1, "scope", 2)
    ids = {chance.id(), chance.id("request"), SeededRng(1, "scope", 3).id(), SeededRng(1, "other", 2).id()}
    assert len(ids) == 4
    assert all(len(each) == 24 and each.isalnum() for each in ids)


def test_a_signature_is_recognised() -> None:
    assert is_own_signature(make_signature("a thought"))
    assert make_signature("a thought") == make_signature("a thought") != make_signature("another")


@pytest.mark.parametrize("value", ["", "no base64!", "c2hvcnQ=", base64.b64encode(bytes(36)).decode(), "é"])
def test_what_was_issued_by_nobody_is_no_signature(value: str) -> None:
    assert not is_own_signature(value)
