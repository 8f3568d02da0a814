"""Templates: what they name, and what becomes of them."""

from __future__ import annotations

import pytest

from peripety.gateway.agents.templates import fill, names_in, phase_named


@pytest.mark.parametrize(
    ("template", "names"),
    [
        ("no place", ()),
        ("{{a}} {{ b }} {{a}}", ("a", "b")),
        ("{{phases.a}}", ("phases.a",)),
        ('{"a": {"b": {}}}', ()),
        ("{{{a}}}", ("a",)),
        ("{{}}", ("",)),
        ("{{a\n}} {a} }}{{", ()),
    ],
)
def test_only_names_in_double_braces_are_places(template: str, names: tuple[str, ...]) -> None:
    assert names_in(template) == names


def test_a_name_stands_for_an_input_or_for_the_answer_of_a_phase() -> None:
    assert (phase_named("a"), phase_named("phases.a")) == (None, "a")
    assert fill("{{a}}-{{ phases.a }}-{a}", {"a": "1"}, {"a": "2"}) == "1-2-{a}"


def test_what_was_filled_in_names_nothing() -> None:
    assert fill("{{a}}{{b}}", {"a": "{{b}}", "b": "{{phases.c}}"}, {}) == "{{b}}{{phases.c}}"
