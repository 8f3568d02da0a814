from __future__ import annotations

import pytest

from peripety.author.text_analysis.noun_forms import find_gender, find_plural, find_singular, is_plural


@pytest.mark.parametrize(
    ("noun", "code", "gender", "plural"),
    [
        ("Vorrat", "de", "m", "Vorräte"),
        ("Notvorrat", "de", "m", "Notvorräte"),
        ("Frage", "de", "f", "Fragen"),
        ("Ziel", "de", "n", "Ziele"),
        ("acción", "es", "f", "acciones"),
        ("problema", "es", "m", "problemas"),
        ("luz", "es", "f", "luces"),
    ],
)
def test_a_noun_has_a_gender_and_a_plural(noun: str, code: str, gender: str, plural: str) -> None:
    assert (find_gender(noun, code), find_plural(noun, code)) == (gender, plural)
    assert is_plural(plural, code)
    assert not is_plural(noun, code)


def test_an_unknown_noun_is_inflected_by_its_ending() -> None:
    assert (find_gender("Kavobung", "de"), find_plural("Kavobe", "de")) == ("f", "Kavoben")
    assert (find_gender("kavoba", "es"), find_plural("kavobión", "es")) == ("f", "kavobiones")


def test_a_plural_has_its_singular() -> None:
    assert find_singular("acciones", "es") == "acción"
    assert find_singular("kavobas", "es") == "kavoba"
