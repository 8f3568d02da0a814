"""Signs of claims add up: prose that no rule reads is withheld if its signs weigh enough."""

from __future__ import annotations

import math

import pytest

from peripety.session.narration.claims.checker import ClaimChecker
from peripety.session.narration.claims.weighing import _classes, _concepts, _phrases, _topics, _weights
from support.session.claims import cases

KINDS = {"life", "presence", "possession", "ending", "action", "amount"}


def checker_of() -> ClaimChecker:
    return ClaimChecker(next(case.facts for case in cases("honest") if case.kind == "amount"))


@pytest.mark.parametrize(
    ("prose", "kind", "expected"),
    [
        ("Beta does not wake, and her hand is cold.", "life", "Beta is alive"),
    ],
)
def test_signs_that_no_rule_reads_are_withheld_with_the_fact(prose: str, kind: str, expected: str) -> None:
    checker = checker_of()
    _, is_certain = checker.find_candidates(prose)
    assert not is_certain
    assert [(one.kind, one.expected, one.quotation) for one in checker.check(prose)] == [
        (kind, expected, prose)
    ]


@pytest.mark.parametrize(
    "prose",
    [
        "They draw a sheet over the crate and fold the blanket.",
        "If Beta died, they would draw a sheet over her face.",
        "If Beta never wakes, you must close her eyes.",
        "Beta draws the sheet up to her chin and sleeps.",
        "Did they draw a sheet over Beta's face?",
        "You think of the day when it will all be over.",
    ],
)
def test_few_signs_are_no_claim(prose: str) -> None:
    assert checker_of().check(prose) == []


def test_each_kind_has_weights_a_constant_and_a_threshold() -> None:
    assert _weights().keys() == KINDS
    for known in _weights().values():
        assert known.signs[""] < known.least, "a sentence without signs is no claim"
        assert all(math.isfinite(weight) for weight in known.signs.values())


def test_each_sign_of_the_packed_words_has_a_weight_in_some_kind() -> None:
    signs = {sign for known in _weights().values() for sign in known.signs}
    for name in _phrases():
        assert any(f"P{name}" in sign for sign in signs), name
    assert _topics()
    assert _concepts()
    for name in _classes():
        assert any(name in sign or name == "WHOLE" for sign in signs), name


def test_candidates_name_a_fact_of_each_person_and_thing() -> None:
    candidates, _ = checker_of().find_candidates("Beta holds the seal in the west room.")
    found = {(one.kind, one.expected) for one in candidates}
    assert {
        ("life", "Beta is alive"),
        ("presence", "Beta is in east room"),
        ("possession", "you have the seal"),
        ("ending", "the run has not ended"),
    } <= found
    assert all(one.signs for one in candidates)
