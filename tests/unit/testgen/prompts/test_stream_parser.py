from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnavailableError,
)
from peripety.gateway.types.message import ToolResult
from peripety.gateway.types.request import Budget
from peripety.gateway.types.response import Completion, Repairing, StopReason, TextDelta, ToolCallDelta
from peripety.testgen.prompts.stream_parser import (
    GENERATE_TEST_TOOL,
    TESTS_KEY,
    TestForm,
    UnreadablePart,
    continuation,
    parse_draft,
    parse_object,
    stream_tests,
)
from peripety.testgen.subjects.command.subject import CommandSubject
from peripety.testgen.subjects.policy import PolicySubject
from peripety.testgen.subjects.scenario.subject import ScenarioSubject
from peripety.testgen.types import Category, DraftTest
from support.gateway.fake_gateway import FakeGateway, call_events, completion, saying
from support.gateway.requests import asking

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.testgen.prompts.stream_parser import StreamItem


FORM = TestForm(None, None)
QUESTION = asking("write tests")


def written(name: str, **fields: Any) -> str:
    return json.dumps({"id": name, "input": f"input of {name}", **fields})


def names(arrivals: list[StreamItem]) -> list[str]:
    return [arrival.name for arrival in arrivals if isinstance(arrival, DraftTest)]


async def followed(
    gateway: FakeGateway,
    form: TestForm = FORM,
    budget: Budget | None = None,
) -> list[StreamItem]:
    return [arrival async for arrival in stream_tests(gateway, replace(QUESTION, budget=budget), form)]


async def test_each_call_of_the_tool_is_a_test_and_the_answer_comes_last() -> None:
    gateway = FakeGateway(call_events((GENERATE_TEST_TOOL, written("a")), (GENERATE_TEST_TOOL, written("b"))))
    arrivals = await followed(gateway)
    assert names(arrivals) == ["a", "b"]
    assert isinstance(arrivals[-1], Completion)
    (request,) = gateway.requests
    assert request.tools == (FORM.tool,)
    assert request.schema is None


async def test_a_test_is_given_out_before_the_next_piece_is_asked_for() -> None:
    text = written("a")
    opening, closing = ToolCallDelta("c", text[:-1], GENERATE_TEST_TOOL), ToolCallDelta("c", "}")
    arrivals = stream_tests(FakeGateway([opening, closing, UnavailableError("gone")]), QUESTION, FORM)
    assert names([await anext(arrivals)]) == ["a"]
    with pytest.raises(UnavailableError):
        await anext(arrivals)


async def test_a_call_that_is_cut_off_or_no_test_spoils_no_other() -> None:
    broken = [
        *call_events((GENERATE_TEST_TOOL, written("a")), (GENERATE_TEST_TOOL, '{"id": "b"}'))[:-1],
        ToolCallDelta("late", '{"id": "c", "inp', GENERATE_TEST_TOOL),
        *call_events()[-1:],
    ]
    arrivals = await followed(FakeGateway(broken))
    assert names(arrivals) == ["a"]
    assert [one for one in arrivals if isinstance(one, UnreadablePart)] == [
        UnreadablePart("it has no input"),
        UnreadablePart("it is incomplete"),
    ]


async def test_a_call_of_another_tool_is_told_as_such() -> None:
    arrivals = await followed(
        FakeGateway(call_events(("remove", written("a")), (GENERATE_TEST_TOOL, written("b")))),
    )
    assert names(arrivals) == ["b"]
    assert UnreadablePart("unknown tool 'remove'; call generate_test") in arrivals


async def test_a_model_that_writes_a_list_instead_of_calling_is_understood() -> None:
    text = f'Here they are: {{"tests": [{written("a")}, {written("b")}]}}'
    assert names(await followed(FakeGateway(saying(*text)))) == ["a", "b"]


async def test_a_list_that_cannot_be_followed_is_read_as_a_whole() -> None:
    text = "{'tests': [{'id': 'a', 'input': 'i]}'}, {'id': 'b', 'input': 'j'}]}"
    assert sorted(names(await followed(FakeGateway(saying(text))))) == ["a", "b"]


async def test_a_list_that_is_cut_off_keeps_what_is_whole() -> None:
    arrivals = await followed(FakeGateway(saying('{"tests": [', written("a"), ', {"id": "b"')))
    assert names(arrivals) == ["a"]
    assert UnreadablePart("it is incomplete") in arrivals


@pytest.mark.parametrize(
    "refusal",
    [InvalidArgumentError("no tools"), FailedPreconditionError("", code="TOOLS_UNSUPPORTED")],
)
async def test_a_model_that_takes_no_tools_is_asked_for_a_list(refusal: Exception) -> None:
    gateway = FakeGateway([refusal], saying(f'{{"tests": [{written("a")}]}}'))
    assert names(await followed(gateway)) == ["a"]
    assert [bool(request.tools) for request in gateway.requests] == [True, False]
    schema = gateway.requests[1].schema
    assert schema is not None
    assert schema.advisory


async def test_a_request_that_a_provider_refused_for_its_tools_counts() -> None:
    refusal = InvalidArgumentError("no tools", code="PROVIDER_REFUSED_REQUEST")
    gateway = FakeGateway([refusal], saying(f'{{"tests": [{written("a")}]}}'))
    *_, completion = await followed(gateway, budget=Budget(max_calls=2))
    assert isinstance(completion, Completion)
    assert completion.calls == 2
    assert [request.budget for request in gateway.requests] == [Budget(max_calls=2), Budget(max_calls=1)]


async def test_no_list_is_asked_for_when_the_refused_request_was_the_last_one() -> None:
    gateway = FakeGateway([InvalidArgumentError("no tools", code="PROVIDER_REFUSED_REQUEST")])
    with pytest.raises(ResourceExhaustedError):
        await followed(gateway, budget=Budget(max_calls=1))
    assert len(gateway.requests) == 1


async def test_who_is_asked_for_a_list_from_the_beginning_is_offered_no_tools() -> None:
    gateway = FakeGateway(saying(f'{{"tests": [{written("a")}]}}'))
    assert names(await followed(gateway, TestForm(None, None, by_list=True))) == ["a"]
    assert [request.tools for request in gateway.requests] == [()]


async def test_a_question_that_is_refused_in_both_forms_fails() -> None:
    with pytest.raises(InvalidArgumentError, match="too long"):
        await followed(FakeGateway([InvalidArgumentError("too long")]))


async def test_a_failure_after_the_first_test_is_not_asked_again() -> None:
    script = [*call_events((GENERATE_TEST_TOOL, written("a")))[:-1], InvalidArgumentError("late")]
    gateway = FakeGateway(script)
    with pytest.raises(InvalidArgumentError):
        await followed(gateway)
    assert len(gateway.requests) == 1


async def test_an_answer_that_is_written_anew_gives_out_both() -> None:
    script = [TextDelta(f"[{written('a')}"), Repairing(()), *saying(f"[{written('b')}]")]
    assert names(await followed(FakeGateway(script))) == ["a", "b"]


def test_a_model_that_calls_one_tool_at_a_time_is_told_to_go_on() -> None:
    answered = call_events((GENERATE_TEST_TOOL, written("a")))[-1]
    more = continuation(QUESTION, answered.completion)
    assert more is not None
    assert more.messages[0] == QUESTION.messages[0]
    (result,) = more.messages[-1].parts
    assert isinstance(result, ToolResult)
    assert result.call_id == "c0"


def test_a_model_that_has_ended_is_not_asked_on() -> None:
    assert continuation(QUESTION, completion(stop=StopReason.END)) is None


def test_a_test_is_asked_for_with_what_is_told_of_it() -> None:
    assert [*FORM.tool.input_schema["properties"]] == [
        "id",
        "input",
        "expected_output",
        "source",
        "reasoning",
        "confidence",
    ]
    assert FORM.tool.name == "generate_test"


def test_only_where_tests_differ_in_it_each_names_its_category() -> None:
    assert "category" not in FORM.tool.input_schema["properties"]
    form = TestForm({"type": "object"}, (Category("alpha"), Category("beta")))
    properties = form.tool.input_schema["properties"]
    assert properties["category"]["enum"] == ["alpha", "beta"]
    assert properties["body"] == {"type": "object"}
    assert properties["expected_output"]["type"] == ["string", "null"]
    assert form.tool.input_schema["required"] == [*properties]


def draft(**fields: Any) -> DraftTest:
    found = parse_draft({"id": "a", "input": "i", **fields})
    assert isinstance(found, DraftTest)
    return found


@pytest.mark.parametrize("text", ["null", "None", " NULL ", None])
def test_a_null_that_is_written_as_a_word_is_null(text: str | None) -> None:
    assert draft(expected_output=text).expected_output is None


def test_an_expectation_in_quotes_of_its_own_is_meant_without_them() -> None:
    assert draft(expected_output='"4 \\"and\\" 5"').expected_output == '4 "and" 5'
    assert draft(expected_output='say "4"').expected_output == 'say "4"'


def test_quotes_stay_where_output_is_compared_exactly() -> None:
    assert draft(expected_output='"4"', body={"stdin": ""}).expected_output == '"4"'


def test_numbers_and_objects_become_their_json() -> None:
    found = draft(input={"b": [1, "é"]}, expected_output=4, reasoning=None)
    assert (found.input, found.expected_output, found.reasoning) == ('{"b":[1,"é"]}', "4", "")


@pytest.mark.parametrize(
    ("given", "read"),
    [(0.25, 0.25), ("0.25", 0.25), (7, 1), (-1, 0), ("high", 0.5), (None, 0.5)],
)
def test_a_confidence_is_kept_within_its_bounds(given: Any, read: float) -> None:
    assert draft(confidence=given).confidence == read


def test_both_spellings_of_the_expectation_are_read() -> None:
    assert draft(expectedOutput="x").expected_output == "x"


def test_a_body_may_come_as_text() -> None:
    assert draft(body='{"arguments": ["a"]}').body == {"arguments": ["a"]}
    assert draft(body="null").body is None
    assert draft(body="").body is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "it is not an object"),
        ({}, "it has no input"),
        ({"input": "  "}, "it has no input"),
        ({"input": "i", "body": "run it"}, "its body is not an object"),
        ({"input": "i", "body": [1]}, "its body is not an object"),
    ],
)
def test_what_is_no_test_says_why(value: Any, reason: str) -> None:
    assert parse_draft(value) == UnreadablePart(reason)


def test_slips_of_json_are_put_right_and_nothing_is_guessed() -> None:
    found = parse_object('{\'id\': \'a\', "input": "i", "expected_output": None,}')
    assert found == DraftTest("a", "i")
    broken = parse_object('{"id": "a", "input": }')
    assert isinstance(broken, UnreadablePart)
    assert broken.reason.startswith("it is not JSON")


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
