"""Prompt templates: placeholders and their substitution."""

from __future__ import annotations

import pytest

from peripety.agent.manifest import phase_id_of, placeholder_names, render_template


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
    assert placeholder_names(template) == names


def test_a_name_stands_for_an_input_or_for_the_answer_of_a_phase() -> None:
    assert (phase_id_of("a"), phase_id_of("phases.a")) == (None, "a")
    assert render_template("{{a}}-{{ phases.a }}-{a}", {"a": "1"}, {"a": "2"}) == "1-2-{a}"


def test_what_was_filled_in_names_nothing() -> None:
    assert render_template("{{a}}{{b}}", {"a": "{{b}}", "b": "{{phases.c}}"}, {}) == "{{b}}{{phases.c}}"
