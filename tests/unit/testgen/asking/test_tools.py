from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.testgen.prompts.stream_parser import TESTS_KEY, TestForm
from peripety.testgen.subjects.command.subject import CommandSubject
from peripety.testgen.subjects.policy import PolicySubject
from peripety.testgen.subjects.scenario.subject import ScenarioSubject
from peripety.testgen.types import Category

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


SUBJECTS = (ScenarioSubject, PolicySubject, CommandSubject)


def parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A schema, and those in it."""
    yield schema
    for inner in (*schema.get("properties", {}).values(), *filter(None, [schema.get("items")])):
        yield from parts(inner)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_nothing_in_a_list_of_tests_is_without_end(subject: type[Any]) -> None:
    form = TestForm(subject.body_schema, [Category("one")])
    texts = lists = 0
    for part in parts(form.schema.document):
        if "string" in part.get("type", ()):
            texts += 1
            assert "maxLength" in part or "enum" in part
            assert "object" not in part["type"]
        if "array" in part.get("type", ()):
            lists += 1
            assert part["maxItems"] > 0
    assert texts > 3
    assert lists > 1


def test_a_list_has_a_test_and_each_has_the_fields_of_a_call() -> None:
    form = TestForm(ScenarioSubject.body_schema, None)
    tests = form.schema.document["properties"][TESTS_KEY]
    assert tests["minItems"] == 1
    assert tests["items"]["required"] == form.tool.input_schema["required"]


def test_a_call_may_be_as_long_as_it_has_to_be() -> None:
    form = TestForm(CommandSubject.body_schema, None)
    assert not any("maxLength" in part for part in parts(form.tool.input_schema))
