from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

import pytest

from peripety.author.text_analysis.keywords import analyze_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.author.text_analysis.keywords import TextAnalysis


def reading(text: str, at_least: int = 4, at_most: int = 8) -> TextAnalysis:
    return analyze_text(text, min_terms=at_least, max_terms=at_most)


def test_terms_are_the_words_that_carry_a_subject(made_up: Callable[[int, int], list[str]]) -> None:
    a, b, c, d = made_up(4, 1)
    terms = reading(f"I am with the {a}, and my {b} is going to be near the {c} of our {d}.").terms
    assert {term.lower() for term in terms} == {a, b, c, d}


def test_a_term_is_written_as_in_the_text_with_a_capital_in_front(
    made_up: Callable[[int, int], list[str]],
) -> None:
    (a,) = made_up(1, 2)
    mixed = a[:4] + a[4:].upper()
    assert reading(f"we have the {mixed}", at_least=1).terms == (mixed[0].upper() + mixed[1:],)


def test_two_words_that_belong_together_stay_together(made_up: Callable[[int, int], list[str]]) -> None:
    a, b, c = made_up(3, 3)
    assert f"{a.capitalize()} {b}" in reading(f"there is a {c} and it has the {a} {b} for us").terms


def test_what_a_subject_does_is_no_part_of_its_name(made_up: Callable[[int, int], list[str]]) -> None:
    thing, does, other = made_up(3, 4)
    terms = reading(f"the {thing} {does}, the {other} is here").terms
    assert thing.capitalize() in terms
    assert not any(does in term.lower() for term in terms)


def test_the_word_named_most_often_comes_first(made_up: Callable[[int, int], list[str]]) -> None:
    often, *others = made_up(6, 5)
    text = " and ".join(f"the {word} or the {often}" for word in others)
    assert reading(text).terms[0] == often.capitalize()


def test_no_more_terms_than_asked_for(made_up: Callable[[int, int], list[str]]) -> None:
    assert len(reading(", ".join(made_up(30, 6)), at_least=4, at_most=5).terms) == 5


def test_a_capital_inside_a_sentence_names_somebody(made_up: Callable[[int, int], list[str]]) -> None:
    person, thing, other = made_up(3, 7)
    found = reading(f"The {thing} is ours. We asked {person.capitalize()} about the {other}.")
    assert found.people == (person.capitalize(),)
    assert person.capitalize() not in found.terms


def test_where_every_word_has_a_capital_nobody_is_named(made_up: Callable[[int, int], list[str]]) -> None:
    assert reading(" ".join(word.capitalize() for word in made_up(6, 8))).people == ()


def test_where_nouns_have_capitals_they_are_things(made_up: Callable[[int, int], list[str]]) -> None:
    a, b = (word.capitalize() for word in made_up(2, 9))
    found = reading(f"Wir sind hier und haben nur noch {a} und {b}.", at_least=1)
    assert set(found.terms) == {a, b}
    assert found.people == ()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("we are in the {} and it is {}", "en"),
        ("estamos en la {} y no hay más {}", "es"),
        ("nous sommes dans la {} et il y a {}", "fr"),
        ("wir sind in der {} und es gibt {}", "de"),
        ("nós estamos na {} e não há mais {}", "pt"),
        ("siamo nella {} e non ci sono più {}", "it"),
        ("{} {} {} {} {} {} {} {} {} {}", "symbols"),
        ("{} {}", "en"),
        ("ж{} ж{}", "symbols"),
        ("", "en"),
    ],
)
def test_small_words_tell_the_language(
    text: str,
    code: str,
    made_up: Callable[[int, int], list[str]],
) -> None:
    assert reading(text.format(*made_up(10, 10))).language.code == code


@pytest.mark.parametrize(
    "text",
    ["", "   ", "\n\t", "!!! ... ?", "12 34", "\x00\x07", "\u202e\u202c", "\ufeff"],
)
def test_a_text_without_words_gives_letters(text: str) -> None:
    found = reading(text)
    assert found.terms == ("A", "B", "C", "D")
    assert found.people == ()


def test_a_text_with_too_few_words_lends_them_again(made_up: Callable[[int, int], list[str]]) -> None:
    (a,) = (word.capitalize() for word in made_up(1, 11))
    assert reading(a).terms == (a, f"{a} A", f"{a} B", f"{a} C")


def test_a_text_of_small_words_alone_still_gives_one_of_them() -> None:
    assert reading("the and of to").terms[0] == "The"


@pytest.mark.parametrize(
    "whole",
    [
        "\U0001f469\u200d\U0001f692",
        "\U0001f1eb\U0001f1f7",
        "\U0001f44d\U0001f3fd",
        "\u2764\ufe0f",
        "\U0001f600",
    ],
)
def test_an_emoji_is_one_word(whole: str) -> None:
    assert reading(f"{whole} {whole}").terms[0] == whole


def test_letters_with_marks_of_their_own_are_not_torn_apart() -> None:
    word = "\u0915\u094d\u0937\u0947\u0924\u094d\u0930"
    assert reading(f"{word} {word}").terms[0] == word


def test_scripts_without_spaces_are_cut_where_their_kind_changes() -> None:
    katakana, han = "\u30a2\u30a4\u30a6\u30a8", "\u7532\u4e59\u4e19"
    assert set(reading(f"{katakana}\u304c{han}\u3092", at_least=1).terms) == {katakana, han}


def test_a_number_and_what_hangs_on_it_name_nothing(made_up: Callable[[int, int], list[str]]) -> None:
    a, b = made_up(2, 12)
    assert reading(f"there is a 40-{a} {b}", at_least=1).terms == (b.capitalize(),)


def test_nothing_that_steers_the_display_gets_through() -> None:
    found = reading("\u202ealpha\u202c be\u2066ta\u2069 \x1b[31mgamma\x00 \u200fdelta")
    shown = found.title + "".join(found.terms)
    assert not [char for char in shown if unicodedata.category(char) in {"Cc", "Cf"}]
    assert "Delta" in found.terms


def test_the_title_is_the_first_sentence_cut_between_words(made_up: Callable[[int, int], list[str]]) -> None:
    short, long = made_up(40, 13)[:3], made_up(40, 14)
    assert reading(f"{' '.join(short)}. {' '.join(long)}").title == f"{' '.join(short)}."
    cut = reading(" ".join(long)).title
    assert len(cut) <= 65
    assert cut.endswith("\u2026")
    assert set(cut.removesuffix("\u2026").split()) <= set(long)


def test_a_word_without_end_is_cut_between_drawn_characters() -> None:
    assert len(reading("a" * 100_000).terms[0]) == 32
    accented = reading("e\u0323\u0302\u030c" * 1000).terms[0]
    assert len(accented) <= 32


def test_the_same_text_reads_the_same(made_up: Callable[[int, int], list[str]]) -> None:
    text = " the ".join(made_up(50, 15))
    assert reading(text) == reading(text)
