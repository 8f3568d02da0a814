from __future__ import annotations

import pytest

from peripety.author.blueprint import Role
from peripety.author.text_analysis.languages import HINTS, load_languages
from peripety.author.text_analysis.terms import (
    Facts,
    Term,
    extract_facts,
    extract_terms,
    fit_name,
    make_unique_name,
)


def told(text: str, *terms: str, code: str = "en") -> Facts:
    return extract_facts(
        text,
        terms,
        next(language for language in load_languages() if language.code == code),
    )


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("We have six weeks", (1008,)),
        ("in 3 days, or in 12 hours", (72, 12)),
        ("a 2-week wait", (336,)),
        ("an hour is left", (1,)),
        ("it has to be done by Friday", (120,)),
        ("tomorrow, tomorrow", (24,)),
        ("1,000 hours", (1000,)),
        ("it was two weeks ago", ()),
        ("weeks and months", ()),
        ("the weekend is near, the hourglass too", ()),
        ("six", ()),
        ("", ()),
    ],
)
def test_spans_of_time_that_lie_ahead_are_understood(text: str, hours: tuple[float, ...]) -> None:
    assert told(text).spans == hours


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("es", "quedan tres semanas"),
        ("fr", "il reste trois semaines"),
        ("de", "noch drei Wochen"),
        ("pt", "restam três semanas"),
        ("it", "restano tre settimane"),
        ("symbols", "\u8fd8\u6709\u4e09\u5468"),
        ("symbols", "\u0442\u0440\u0438 \u043d\u0435\u0434\u0435\u043b\u0438"),
    ],
)
def test_spans_are_understood_in_other_languages(code: str, text: str) -> None:
    assert told(text, code=code).spans == (504,)


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("there are eighty gauges", 80),
        ("the 3,000 gauges", 3000),
        ("3.000 old gauges", 3000),
        ("a 40-part gauges", 40),
        ("the gauges are at sixty percent", 60),
        ("gauges at 60%", 60),
        ("a row of gauges of 3,000", 3000),
        ("six weeks for the gauges", None),
        ("it is 03:10 and gauges fail", None),
        ("seven alphas. The gauges", None),
        ("a gauges", None),
    ],
)
def test_the_number_beside_a_term_is_how_many_there_are(text: str, amount: float | None) -> None:
    assert told(text, "Gauges").amounts.get("Gauges") == amount


def test_the_nearest_telling_word_hints_at_the_part_of_a_term() -> None:
    found = told("Only the alpha remains, the beta is rising, we protect the gauge, we must reach the delta")
    assert not found.hints
    hints = told(
        "Only the alpha remains, the beta is rising, we protect the gauge, we must reach the delta",
        *("Alpha", "Beta", "Gauge", "Delta"),
    ).hints
    assert hints == dict(zip(("Alpha", "Beta", "Gauge", "Delta"), HINTS, strict=True))


def test_what_is_understood_stands_with_the_terms() -> None:
    read = extract_terms("The beta is rising. There are 90 alphas.", min_terms=2, max_terms=8)
    assert Term("Beta", Role.THREAT) in read.terms
    assert Term("Alphas", amount=90) in read.terms


def test_words_that_count_and_measure_name_nothing() -> None:
    terms = [
        term.text
        for term in extract_terms("Six weeks, ninety percent, the alpha", min_terms=1, max_terms=8).terms
    ]
    assert terms == ["Alpha"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("alpha", "Alpha"),
        ("  alpha\n b ", "Alpha b"),
        ('al"pha\\', "Al pha"),
        ("{{alpha}}", "Alpha"),
        ("\u202ealpha\u0000", "Alpha"),
        ("alpha.", "Alpha"),
        ("\u7532", "\u7532"),
        ("...", ""),
        ("", ""),
        ("alphabets", "Alphabets"),
        ("alphabetic", "Alphabeti"),
    ],
)
def test_a_name_holds_nothing_that_machines_read(text: str, name: str) -> None:
    assert fit_name(text, 9) == name


def test_a_name_that_is_taken_gets_a_number() -> None:
    assert make_unique_name("Alpha", []) == "Alpha"
    assert make_unique_name("Alpha", ["alpha", "Alpha 2"]) == "Alpha 3"
    assert make_unique_name("", ["1"]) == "2"
