from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from jsonschema_rs import is_valid

from peripety import engine
from peripety.llmsim.faults.injection import AnswerDraft, change_answer, embedded_error, fault_error, occurs
from peripety.llmsim.faults.kinds import KINDS, FaultStage
from peripety.llmsim.provider_rules import models
from peripety.llmsim.script.types import Fault
from peripety.llmsim.types import (
    ApiErrorKind,
    ReasoningPart,
    RefusalPart,
    RetryForm,
    RetryHint,
    SimStopReason,
    SimTool,
    TextPart,
    ToolUsePart,
)

SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
CALL = ToolUsePart("a", "weather", ('{"city":"Oslo"', ',"days":3}'))
SAID = AnswerDraft((ReasoningPart(("hmm ", "well"), ""), TextPart(("one two ", "three"))), SimStopReason.END)


def say(
    kind: str,
    said: AnswerDraft = SAID,
    schema: dict[str, Any] | None = None,
    **settings: Any,
) -> AnswerDraft:
    failure = Fault(kind, {**KINDS[kind].default_settings, **settings})
    return change_answer(
        said,
        failure,
        [SimTool("weather", schema=SCHEMA if schema is None else schema)],
        models.split_tokens,
    )


def texts(said: AnswerDraft) -> list[str]:
    return ["".join(part.pieces) for part in said.parts]


@pytest.mark.parametrize(
    "name",
    [name for name, kind in KINDS.items() if kind.stage is not FaultStage.ANSWER],
)
def test_other_kinds_leave_alone_what_is_said(name: str) -> None:
    if name != "partial_response":  # it brings its own text
        assert say(name) == SAID


def test_a_refusal_replaces_the_answer() -> None:
    assert say("refusal", message="Not that.") == AnswerDraft(
        (RefusalPart(("Not ", "that", ".")),),
        SimStopReason.REFUSAL,
    )


def test_a_partial_response_has_its_own_text() -> None:
    assert texts(say("partial_response", partial_text="The first ha")) == ["The first ha"]


@pytest.mark.parametrize(
    ("limit", "left"),
    [
        (0, []),
        (1, ["hmm "]),
        (2, ["hmm well"]),
        (3, ["hmm well", "one "]),
        (99, ["hmm well", "one two three"]),
    ],
)
def test_length_leaves_as_much_as_the_tokens_allow(limit: int, left: list[str]) -> None:
    said = say("length", tokens=limit)
    assert (texts(said), said.stop) == (left, SimStopReason.LENGTH)


def test_length_cuts_the_arguments_of_a_call() -> None:
    said = say("length", AnswerDraft((CALL,), SimStopReason.TOOL_USE), tokens=2)
    assert texts(said) == ['{"city":']


def test_a_content_filter_ends_the_answer_half_way() -> None:
    said = say("content_filter")
    assert (texts(said), said.stop) == (["hmm well", "one "], SimStopReason.CONTENT_FILTER)


def test_a_content_filter_needs_no_answer() -> None:
    assert say("content_filter", AnswerDraft((), SimStopReason.END)) == AnswerDraft(
        (),
        SimStopReason.CONTENT_FILTER,
    )


def test_truncated_arguments_are_the_first_half_of_those_of_the_last_call() -> None:
    said = say("truncated_arguments", AnswerDraft((CALL, CALL, TextPart(("bye",))), SimStopReason.TOOL_USE))
    assert texts(said) == ['{"city":"Oslo","days":3}', '{"city":"Osl']
    assert said.stop is SimStopReason.LENGTH
    last = said.parts[-1]
    assert isinstance(last, ToolUsePart)
    assert last.arguments == {}


def test_truncated_arguments_leave_alone_what_calls_nothing() -> None:
    assert say("truncated_arguments") == SAID


@pytest.mark.parametrize(
    "schema",
    [
        SCHEMA,
        {"type": "object"},
        {"type": "object", "properties": {"city": {}}, "required": ["city"]},
        {"type": "object", "additionalProperties": False, "properties": {"city": {}, "days": {}}},
    ],
)
def test_invalid_arguments_are_json_that_breaks_the_schema(schema: dict[str, Any]) -> None:
    said = say("invalid_arguments", AnswerDraft((CALL,), SimStopReason.TOOL_USE), schema)
    call = said.parts[0]
    assert isinstance(call, ToolUsePart)
    assert not is_valid(schema, call.arguments)
    assert said.stop is SimStopReason.TOOL_USE


@pytest.mark.parametrize("schema", [{}, {"type": "nonsense"}, {"$ref": "http://127.0.0.1:9/schema"}])
def test_invalid_arguments_differ_also_where_no_schema_forbids_anything(schema: dict[str, Any]) -> None:
    call = say("invalid_arguments", AnswerDraft((CALL,), SimStopReason.TOOL_USE), schema).parts[0]
    assert isinstance(call, ToolUsePart)
    assert call.arguments == {"city": 0, "days": 3}


def hit(failure: Fault, matches: int, seed: int = 7) -> list[int]:
    draw = partial(engine.draw, seed, "failure", 0)
    return [ordinal for ordinal in range(matches) if occurs(failure, ordinal, draw)]


def test_without_a_count_every_match_fails() -> None:
    assert hit(Fault("overloaded"), 5) == [0, 1, 2, 3, 4]


def test_a_count_alone_takes_the_first_matches() -> None:
    assert hit(Fault("overloaded", times=3), 20) == [0, 1, 2]


@pytest.mark.parametrize("seed", range(50))
def test_a_count_among_the_next_takes_exactly_that_many_of_them_and_none_later(seed: int) -> None:
    chosen = hit(Fault("overloaded", times=3, of=10), 40, seed)
    assert len(chosen) == 3
    assert max(chosen) < 10


def test_the_seed_chooses_which_matches_fail() -> None:
    failure = Fault("overloaded", times=3, of=10)
    assert hit(failure, 10, seed=1) == hit(failure, 10, seed=1)
    assert len({tuple(hit(failure, 10, seed)) for seed in range(50)}) > 20


def test_every_match_of_the_window_is_as_likely_as_any_other() -> None:
    failure = Fault("overloaded", times=3, of=10)
    counts = [0] * 10
    for seed in range(2000):
        for ordinal in hit(failure, 10, seed):
            counts[ordinal] += 1
    assert all(500 < count < 700 for count in counts)


@pytest.mark.parametrize(("times", "of"), [(1, 1), (1, 2), (2, 3), (7, 16), (9, 17), (100, 1000)])
def test_the_count_is_exact_whatever_the_window(times: int, of: int) -> None:
    assert len(hit(Fault("overloaded", times=times, of=of), 2 * of)) == times


def test_a_late_match_of_a_large_window_costs_no_more_than_an_early_one() -> None:
    failure = Fault("overloaded", times=2**31, of=2**32 - 1)
    draws: list[int] = []

    def draw(index: int) -> int:
        draws.append(index)
        return engine.draw(7, "failure", 0, index)

    for ordinal in range(2**31, 2**31 + 100):
        occurs(failure, ordinal, draw)
    assert len(draws) < 100 * 20


def test_as_many_as_there_are_means_all_of_them() -> None:
    assert hit(Fault("overloaded", times=10, of=10), 12) == list(range(10))


def test_probability_is_the_share_of_matches_that_fail() -> None:
    assert 2800 < len(hit(Fault("overloaded", probability=0.3), 10_000)) < 3200
    assert hit(Fault("overloaded", probability=0.0), 100) == []
    assert len(hit(Fault("overloaded", probability=1.0), 100)) == 100


def failure(kind: str, **settings: object) -> Fault:
    return Fault(kind, {**KINDS[kind].default_settings, **settings})


@pytest.mark.parametrize("name", KINDS)
def test_exactly_the_kinds_that_are_errors_refuse_a_request(name: str) -> None:
    refused = fault_error(failure(name), stream=True) is not None
    assert refused == (KINDS[name].stage is FaultStage.ERROR)


def test_each_error_is_one_of_its_own() -> None:
    errors = [fault_error(failure(name), stream=True) for name in KINDS]
    kinds = [error.kind for error in errors if error]
    assert len(kinds) == len(set(kinds)) == 12


def test_an_error_says_what_the_scenario_says() -> None:
    error = fault_error(failure("invalid_request", message="no such field", param="top_k"), stream=False)
    assert error is not None
    assert (error.message, error.param) == ("no such field", "top_k")


@pytest.mark.parametrize("form", RetryForm)
def test_a_rate_limit_says_when_to_come_back_in_the_wanted_form(form: RetryForm) -> None:
    error = fault_error(failure("rate_limit", retry_after=2.5, form=form.value), stream=False)
    assert error is not None
    assert error.retry == RetryHint(2.5, form)


def test_an_overloaded_provider_need_not_say_when_to_come_back() -> None:
    error = fault_error(failure("overloaded"), stream=False)
    assert error is not None
    assert error.retry is None


def test_a_server_error_has_the_wanted_status() -> None:
    error = fault_error(failure("server_error", status=599), stream=False)
    assert error is not None
    assert error.status == 599


def test_an_error_in_a_stream_refuses_what_is_not_streamed() -> None:
    error = fault_error(failure("error_in_stream", error="timeout"), stream=False)
    assert error is not None
    assert error.kind is ApiErrorKind.TIMEOUT


def test_an_error_inside_an_answer_has_its_own_words_unless_told_otherwise() -> None:
    assert embedded_error(failure("error_in_200", error="rate_limit")).message == "Rate limit exceeded"
    assert (
        embedded_error(failure("error_in_200", error="rate_limit", message="slow down")).message
        == "slow down"
    )
