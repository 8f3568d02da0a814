"""Form of a test in a response: a tool call, or an element of a list."""

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
    """The form of a test, equal for tool calls and lists.

    Args:
        body_schema: JSON Schema of the executable body; None for text only.
        categories: the categories from which each test names its own; None if all tests have the same one.
        by_list: True to request a list from the start, for models that do not call tools.

    Attributes:
        by_list: as above.
        tool: the tool to call for each test.
        schema: a list of tests. It is advisory: an invalid list is not requested again, because its valid
            tests are already parsed. All its strings and arrays are bounded: a small model that is
            constrained by a grammar might otherwise continue with the first string until the response is
            truncated.
    """

    __test__ = False  # pytest must not collect it

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
    properties["input"] = {"type": "string", "description": "The input."}
    if body_schema is not None:
        properties["body"] = body_schema
    properties |= {
        "expected_output": {
            "type": ["string", "null"],
            "description": "The exact expected output; null if only the execution matters.",
        },
        "reasoning": {"type": "string", "description": "The defect that it would detect."},
        "confidence": {
            "type": "number",
            "minimum": 0,
            "maximum": 1,
            "description": "Confidence that the expectation is right; low for a guess.",
        },
    }
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


def _bounded(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with bounded strings and arrays, and without objects as an alternative to strings."""
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
