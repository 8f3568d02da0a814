"""Parser of tests from a response stream; each test is available as soon as it is complete.

A model with tool support calls a tool for each test; any other model writes a list. Both are parsed alike:
an object ends with its last bracket, regardless of the text after it, and an invalid object does not affect
others. The parser is tolerant, but never guesses the meaning.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.core.concurrency import closing
from peripety.errors import FailedPreconditionError, InvalidArgumentError
from peripety.gateway.budgets.order_budget import remaining_budget
from peripety.gateway.budgets.types import BudgetAmount
from peripety.gateway.structured_output.incremental_json import ObjectReader
from peripety.gateway.structured_output.json_repair import parse_candidates
from peripety.gateway.types.message import ChatMessage, ChatRole, Tool, ToolChoice, ToolChoiceMode, ToolResult
from peripety.gateway.types.request import ResponseSchema
from peripety.gateway.types.response import (
    Completed,
    Completion,
    Repairing,
    StopReason,
    TextDelta,
    ToolCallDelta,
)
from peripety.testgen.types import DraftTest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from peripety.errors import PeripetyError
    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import GatewayEvent, ModelGateway
    from peripety.testgen.types import Category


_NULL_WORDS = frozenset({"null", "none", "nil", "undefined"})
_DEFAULT_CONFIDENCE = 0.5
_EXPECTED_OUTPUT_KEYS = ("expected_output", "expectedOutput")


@dataclass(frozen=True, slots=True)
class UnreadablePart:
    """A part of a response that is not a test.

    Attributes:
        reason: the reason, for display and for the model.
    """

    reason: str


def parse_object(text: str) -> DraftTest | UnreadablePart:
    """Parse the test in the text of one object."""
    last = None
    for reading in parse_candidates(text):
        last = reading
    if last is None or last.document is None:
        found = last.findings[0].message if last and last.findings else "empty text"
        return UnreadablePart(f"it is not JSON: {found}")
    return parse_draft(last.value)


def parse_draft(value: Any) -> DraftTest | UnreadablePart:
    """Parse a test from a JSON value.

    Nulls that are written as words count as null; numbers and objects in place of a text become their JSON; a
    confidence outside of its range becomes the nearest bound.
    """
    if not isinstance(value, dict):
        return UnreadablePart("it is not an object")
    given = _to_text(value.get("input"))
    if given is None or not given.strip():
        return UnreadablePart("it has no input")
    body = _parse_body(value.get("body"))
    if isinstance(body, UnreadablePart):
        return body
    expected = next((value[name] for name in _EXPECTED_OUTPUT_KEYS if name in value), None)
    return DraftTest(
        name=_to_text(value.get("id")) or "",
        input=given,
        expected_output=_parse_expected(expected, unquoted=body is None),
        reasoning=_to_text(value.get("reasoning")) or "",
        confidence=_parse_confidence(value.get("confidence")),
        body=body,
        category=_to_text(value.get("category")),
        replaces=_to_text(value.get("replaces")) or "",
        source=_to_text(value.get("source")) or "",
    )


def _to_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _parse_expected(value: Any, *, unquoted: bool) -> str | None:
    text = _to_text(value)
    if text is None or (isinstance(value, str) and text.strip().lower() in _NULL_WORDS):
        return None
    if not unquoted:
        return text
    try:
        inner = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return inner if isinstance(inner, str) else text


def _parse_confidence(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return _DEFAULT_CONFIDENCE
    return _DEFAULT_CONFIDENCE if math.isnan(number) else min(max(number, 0.0), 1.0)


def _parse_body(value: Any) -> dict[str, Any] | UnreadablePart | None:
    """Parse the body, also if it is an object encoded as a string."""
    if isinstance(value, str):
        if value.strip().lower() in _NULL_WORDS | {""}:
            return None
        documents = [reading.value for reading in parse_candidates(value) if reading.document is not None]
        value = documents[-1] if documents else value
    if value is None or isinstance(value, dict):
        return value
    return UnreadablePart("its body is not an object")


GENERATE_TEST_TOOL = "generate_test"
"""The tool that a model calls once for each test."""

TESTS_KEY = "tests"
"""The key of a list of tests."""

_MAX_TESTS_IN_LIST = 5
_MAX_ITEMS = 6
_MAX_STRING_CHARACTERS = 400
_TOOL_DESCRIPTION = "Adds one test. Call it once for each test; each call counts as soon as it is complete."


class TestForm:
    """The form of a test, equal for tool calls and lists.

    Args:
        body_schema: JSON Schema of the executable body; None for text only.
        categories: the categories from which each test names its own; None if all tests have the same one.
        by_list: True to request a list from the start, for models that do not call tools.
        most: the longest list.

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
        most: int = 0,
    ) -> None:
        self.by_list = by_list
        test = _test_schema(body_schema, categories)
        self.tool = Tool(GENERATE_TEST_TOOL, _TOOL_DESCRIPTION, test)
        tests = {
            "type": "array",
            "items": _bounded_schema(test),
            "minItems": 1,
            "maxItems": max(most, _MAX_TESTS_IN_LIST),
        }
        document = {
            "type": "object",
            "properties": {TESTS_KEY: tests},
            "required": [TESTS_KEY],
            "additionalProperties": False,
        }
        self.schema = ResponseSchema(TESTS_KEY, document, advisory=True)


def _test_schema(
    body_schema: Mapping[str, Any] | None,
    categories: Sequence[Category] | None,
) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "id": {"type": "string", "description": "A short name in lower_snake_case."},
    }
    if categories is not None:
        properties["category"] = {"type": "string", "enum": [category.name for category in categories]}
    properties["input"] = {"type": "string", "description": "The input."}
    if body_schema is not None:
        properties["body"] = body_schema
        properties["replaces"] = {
            "type": ["string", "null"],
            "description": "The id of a test in `not_met` that this one corrects; null for a new test.",
        }
    properties |= {
        "expected_output": {
            "type": ["string", "null"],
            "description": "The exact expected output; null if only the execution matters.",
        },
        "source": {
            "type": ["string", "null"],
            "description": "The sentence of the task or docstring that requires it, quoted; else null.",
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


def _bounded_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with bounded strings and arrays, and without objects as an alternative to strings."""
    bounded = dict(schema)
    types = schema.get("type")
    if isinstance(types, list) and "string" in types:
        bounded["type"] = types = [kind for kind in types if kind != "object"]
    if "properties" in schema:
        bounded["properties"] = {name: _bounded_schema(inner) for name, inner in schema["properties"].items()}
    if "items" in schema:
        bounded["items"] = _bounded_schema(schema["items"])
        bounded.setdefault("maxItems", _MAX_ITEMS)
    if types is not None and "string" in types and "enum" not in schema:
        bounded.setdefault("maxLength", _MAX_STRING_CHARACTERS)
    return bounded


StreamItem: TypeAlias = DraftTest | UnreadablePart | Completion

_TOOL_RESULT = "Accepted. Continue with the next test, or stop if there are no more."
_INCOMPLETE_REASON = "it is incomplete"
_TOOLS_UNSUPPORTED_CODE = "TOOLS_UNSUPPORTED"
_PROVIDER_REFUSED_CODE = "PROVIDER_REFUSED_REQUEST"


async def stream_tests(
    gateway: ModelGateway,
    request: GenerateRequest,
    form: TestForm,
) -> AsyncIterator[StreamItem]:
    """Request tests, and yield each one as soon as it is complete.

    A model without tool support receives a request for a list instead.

    Args:
        gateway: the model gateway.
        request: the request, without tools and schema.
        form: the form of a test, and whether to request a list from the start.

    Yields:
        Tests and unreadable parts, in order of completion; at the end, the complete response.

    Raises:
        PeripetyError: as raised by `ModelGateway.stream`, after the tests before the error.
    """
    listed = replace(request, schema=form.schema)
    called = replace(request, tools=(form.tool,), tool_choice=ToolChoice(ToolChoiceMode.AUTO))
    refused = 0
    for question in (listed,) if form.by_list else (called, listed):
        has_come = False
        try:
            async with closing(_stream_once(gateway, _with_remaining_budget(question, refused))) as arrivals:
                async for arrival in arrivals:
                    has_come = True
                    if isinstance(arrival, Completion):
                        yield replace(arrival, calls=arrival.calls + refused)
                    else:
                        yield arrival
        except (InvalidArgumentError, FailedPreconditionError) as error:
            if has_come or question is listed or not _may_lack_tool_support(error):
                raise
            refused = int(error.code == _PROVIDER_REFUSED_CODE)
        else:
            return


def continuation(request: GenerateRequest, completion: Completion) -> GenerateRequest | None:
    """Return a continuation request for a model that calls one tool at a time.

    Args:
        request: the previous request.
        completion: its response.

    Returns:
        The request with the tool calls and their results; None if the model does not wait for results.
    """
    calls = completion.tool_calls
    if completion.stop_reason is not StopReason.TOOL_USE or not calls:
        return None
    results = tuple(ToolResult(call.call_id, _TOOL_RESULT) for call in calls)
    said = (completion.message, ChatMessage(ChatRole.USER, results))
    return replace(request, messages=(*request.messages, *said))


class DraftStreamParser:
    """Parser of the tests of one response.

    Parts that are incomplete in the stream are searched once more in the complete text.
    """

    def __init__(self) -> None:
        self._calls: dict[str, ObjectReader] = {}
        self._completed_calls: set[str] = set()
        self._start_list()

    def feed(self, event: GatewayEvent) -> Iterator[DraftTest | UnreadablePart]:
        """Yield the tests that the next event completes."""
        match event:
            case ToolCallDelta():
                if event.name == GENERATE_TEST_TOOL:
                    self._calls[event.call_id] = ObjectReader(in_array=False)
                elif event.name:
                    yield UnreadablePart(f"unknown tool '{event.name[:64]}'; call {GENERATE_TEST_TOOL}")
                call = self._calls.get(event.call_id)
                for text in call.feed(event.arguments_text) if call else ():
                    self._completed_calls.add(event.call_id)
                    yield parse_object(text)
            case TextDelta():
                for draft in map(parse_object, self._list.feed(event.text)):
                    if isinstance(draft, DraftTest):
                        self._list_drafts.append(draft)
                        yield draft
                    else:
                        # It may be readable as part of the complete text.
                        self._unreadable.append(draft)
            case Repairing():
                # The response is written again. Tests that were already yielded are recognized as duplicates.
                self._start_list()

    def finish(self, completion: Completion) -> Iterator[DraftTest | UnreadablePart]:
        """Yield tests that only the complete response shows, and truncated parts."""
        yield from (
            UnreadablePart(_INCOMPLETE_REASON)
            for call_id in self._calls
            if call_id not in self._completed_calls
        )
        tests = _last_valid_list(completion.text)
        if tests is None:
            yield from self._unreadable
            if self._list.incomplete_object:
                yield UnreadablePart(_INCOMPLETE_REASON)
        else:
            yield from (draft for draft in map(parse_draft, tests) if draft not in self._list_drafts)

    def _start_list(self) -> None:
        self._list = ObjectReader(in_array=True)
        self._list_drafts: list[DraftTest] = []
        self._unreadable: list[UnreadablePart] = []


async def _stream_once(gateway: ModelGateway, request: GenerateRequest) -> AsyncIterator[StreamItem]:
    arrivals = DraftStreamParser()
    async with closing(gateway.stream(request)) as events:
        async for event in events:
            if isinstance(event, Completed):
                for arrival in arrivals.finish(event.completion):
                    yield arrival
                yield event.completion
            else:
                for arrival in arrivals.feed(event):
                    yield arrival


def _with_remaining_budget(question: GenerateRequest, refused: int) -> GenerateRequest:
    """Return a request with the budget that remains after requests that a provider rejected."""
    if not refused or question.budget is None:
        return question
    return replace(question, budget=remaining_budget(question.budget, BudgetAmount(calls=refused), 0.0))


def _last_valid_list(text: str) -> list[Any] | None:
    """Return the tests of the last list that is valid as a whole; None without one."""
    documents = [reading.value for reading in parse_candidates(text) if reading.document is not None]
    for document in reversed(documents):
        tests = document.get(TESTS_KEY) if isinstance(document, dict) else document
        if isinstance(tests, list):
            return tests
    return None


def _may_lack_tool_support(error: PeripetyError) -> bool:
    """Return True if the request may have been rejected only because of its tools."""
    return isinstance(error, InvalidArgumentError) or error.code == _TOOLS_UNSUPPORTED_CODE
