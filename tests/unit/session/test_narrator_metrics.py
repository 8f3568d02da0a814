"""Narrator metrics of turns, and detection of numbers in a text that its writer cannot know."""

from __future__ import annotations

from dataclasses import fields

import pytest

from peripety.gateway.types.response import Usage, UsageTotal
from peripety.session.narrator_metrics import (
    NarratorMetrics,
    TurnMetrics,
    find_unsupported_numbers,
    numbers_in,
)
from peripety.session.types import NarratorStats, Resolution

GOOD = TurnMetrics(Resolution.NARRATED)
HARMLESS = {"tool_rounds", "tool_calls", "unchecked_answers"}
REFUSALS = [each.name for each in fields(NarratorStats) if each.name not in HARMLESS]


def figures(*rounds: TurnMetrics) -> dict[str, object]:
    grade = NarratorMetrics()
    for played in rounds:
        grade.add(played)
    return grade.to_figures()


def test_tools_that_are_used_well_leave_a_round_clean() -> None:
    assert TurnMetrics(Resolution.NARRATED, NarratorStats(tool_rounds=2, tool_calls=3)).is_clean


@pytest.mark.parametrize("name", REFUSALS)
def test_any_refusal_spoils_a_round(name: str) -> None:
    assert not TurnMetrics(Resolution.NARRATED, NarratorStats(**{name: 1})).is_clean


@pytest.mark.parametrize(
    "spoiled",
    [
        TurnMetrics(None),
        TurnMetrics(Resolution.REPAIRED),
        TurnMetrics(Resolution.SERVER_RESOLVED),
        TurnMetrics(Resolution.NARRATED, unsupported_numbers=("7",)),
        TurnMetrics(Resolution.NARRATED, has_leak=True),
    ],
)
def test_whatever_else_is_wrong_spoils_a_round(spoiled: TurnMetrics) -> None:
    assert not spoiled.is_clean
    assert figures(GOOD, spoiled)["clean_rounds"] == 1


def test_answers_with_secrets_are_not_counted_as_malformed_as_well() -> None:
    found = figures(TurnMetrics(Resolution.REPAIRED, NarratorStats(refused_answers=3, withheld_secrets=2)))
    assert (found["malformed_answers"], found["withheld_secrets"]) == (1, 2)


def test_only_lost_turns_and_leaks_are_unsafe() -> None:
    for played, is_safe in [
        (TurnMetrics(Resolution.SERVER_RESOLVED, NarratorStats(refused_answers=2, withheld_secrets=2)), True),
        (TurnMetrics(None), False),
        (TurnMetrics(Resolution.NARRATED, has_leak=True), False),
    ]:
        grade = NarratorMetrics()
        grade.add(GOOD)
        grade.add(played)
        assert grade.is_safe is is_safe


def test_what_was_used_is_summed_and_an_unknown_price_stays_unknown() -> None:
    used = UsageTotal(2, Usage(100, 20, 50, 0), 5, 0)
    found = figures(
        TurnMetrics(Resolution.NARRATED, usage=used),
        TurnMetrics(Resolution.NARRATED, usage=used),
    )
    assert (found["model_calls"], found["input_tokens"], found["cost_pico_dollars"]) == (4, 200, 10)
    unknown = figures(TurnMetrics(Resolution.NARRATED, usage=UsageTotal(1, Usage(), None, None)))
    assert unknown["cost_pico_dollars"] is None


def test_reasons_are_counted_by_name() -> None:
    degraded = TurnMetrics(Resolution.SERVER_RESOLVED, degraded="OUTCOME_INVALID")
    assert figures(GOOD, degraded, degraded)["degraded"] == {"OUTCOME_INVALID": 2}


def test_no_rounds_are_no_error() -> None:
    assert figures()["seconds_p95"] == 0


@pytest.mark.parametrize(
    ("prose", "found"),
    [
        ("It is 12, then 9.", ()),
        ("It is 13.", ("13",)),
        ("About 4, or 4.3, or 4.25.", ()),
        ("4.2 is right by half.", ()),
        ("4.1 is not.", ("4.1",)),
        ("1,500 of them, 1.500 of the other", ("1.500",)),
        ("0,5 is a half", ()),
        ("a1b2, c3", ()),
        ("no numbers, but 1.2.3", ()),
        ("9" * 400, ("9" * 400,)),
    ],
)
def test_numbers_nobody_told_are_found(prose: str, found: tuple[str, ...]) -> None:
    assert find_unsupported_numbers(prose, [12.0, 9.0, 4.25, 1500.0, 0.5]) == found


def test_numbers_are_read_from_anywhere_in_a_value() -> None:
    told = {"a": [1, -2.5, {"text": "from 7 to 1,200", "f9": True}], "10": None}
    assert {1.0, 2.5, 7.0, 1200.0, 10.0} <= set(numbers_in(told))
