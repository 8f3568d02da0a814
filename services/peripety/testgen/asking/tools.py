"""The form in which a model writes a test: a call of a tool, or an element of a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.model import ResponseSchema, Tool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.testgen.model import Category

__all__ = ["GENERATE_TEST", "TESTS", "TestForm"]

GENERATE_TEST = "generate_test"
"""The tool that a model calls once for each test."""

TESTS = "tests"
"""The key of a list of tests."""

_MOST_LISTED = 5
_MOST_ITEMS = 6
_MOST_CHARACTERS = 400
_DESCRIPTION = "Adds one test. Call it once for each test; each call counts as soon as it is complete."


class TestForm:
    """The form of a test, which is the same whether a model calls tools or writes a list.

    Args:
        body_schema: JSON Schema of what makes a test executable; None when tests are text only.
        categories: the categories of which each test names its own; None when all are of the same one.
        by_list: whether to ask for a list from the beginning, of a model from which calls cannot be expected.

    Attributes:
        by_list: as above.
        tool: the tool to call for each test.
        schema: a list of tests. It is advisory: a list that is not valid is not asked for again, since what
            is good of it was taken out already. Nothing in it is without end: a small model that a grammar
            holds to it would go on with the first text until its answer is cut off, and write no test at all.
    """

    __test__ = False  # it is none of pytest's

    def __init__(
        self,
        body_schema: Mapping[str, Any] | None,
        categories: Sequence[Category] | None,
        *,
        by_list: bool = False,
    ) -> None:
        self.by_list = by_list
        test = _test_schema(body_schema, categories)
        self.tool = Tool(GENERATE_TEST, _DESCRIPTION, test)
        tests = {"type": "array", "items": _bounded(test), "minItems": 1, "maxItems": _MOST_LISTED}
        document = {
            "type": "object",
            "properties": {TESTS: tests},
            "required": [TESTS],
            "additionalProperties": False,
        }
        self.schema = ResponseSchema(TESTS, document, advisory=True)


def _test_schema(
    body_schema: Mapping[str, Any] | None, categories: Sequence[Category] | None
) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "id": {"type": "string", "description": "A short name in lower_snake_case."}
    }
    if categories is not None:
        properties["category"] = {"type": "string", "enum": [category.name for category in categories]}
    properties["input"] = {"type": "string", "description": "What is given."}
    if body_schema is not None:
        properties["body"] = body_schema
    properties |= {
        "expected_output": {
            "type": ["string", "null"],
            "description": "What has to come out, exactly; null when only the run itself matters.",
        },
        "reasoning": {"type": "string", "description": "Which mistake it would catch."},
        "confidence": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": "How sure it is that what is expected is right; low where it is a guess.",
        },
    }
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def _bounded(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema in which texts and lists have an end, and what may be an object or its text is a text."""
    bounded = dict(schema)
    types = schema.get("type")
    if isinstance(types, list) and "string" in types:
        bounded["type"] = types = [kind for kind in types if kind != "object"]
    if "properties" in schema:
        bounded["properties"] = {name: _bounded(inner) for name, inner in schema["properties"].items()}
    if "items" in schema:
        bounded["items"] = _bounded(schema["items"])
        bounded.setdefault("maxItems", _MOST_ITEMS)
    if types is not None and "string" in types and "enum" not in schema:
        bounded.setdefault("maxLength", _MOST_CHARACTERS)
    return bounded
