from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.simulator.failures import KINDS, Place, embedded, refusal
from peripety.simulator.model import ApiError, RetryForm
from peripety.simulator.record.errors import inside_answer, instead_of_answer
from peripety.simulator.scenario.model import Failure
from peripety.simulator.wire.anthropic import Anthropic
from peripety.simulator.wire.deepseek import DeepSeek
from peripety.simulator.wire.gemini import Gemini
from peripety.simulator.wire.ollama import Ollama
from peripety.simulator.wire.openai_chat import OpenAiChat
from peripety.simulator.wire.openai_responses import OpenAiResponses

if TYPE_CHECKING:
    from peripety.simulator.wire.base import Wire

WIRES = [Anthropic(), OpenAiChat(), OpenAiResponses(), DeepSeek(), Gemini(), Ollama()]
ERRORS = [name for name, kind in KINDS.items() if kind.place is Place.ERROR]
NOW = 1_767_225_600.0


def failing(name: str, **settings: Any) -> tuple[Failure, ApiError]:
    failure = Failure(name, {**KINDS[name].defaults, **settings})
    error = refusal(failure, stream=False)
    assert error is not None
    return failure, error


def read(wire: Wire, error: ApiError) -> Failure:
    written = wire.error(error, "r" * 24, NOW)
    status = error.status or written.status
    return instead_of_answer(wire, status, dict(written.headers), written.body, NOW)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: type(wire).__name__)
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_read_as_one_that_is_written_the_same(wire: Wire, name: str) -> None:
    _, error = failing(name, message="something went wrong")
    again = refusal(read(wire, error), stream=False)
    assert again is not None
    expected, written = (wire.error(each, "r" * 24, NOW) for each in (error, again))
    assert (written.status, json.loads(written.body)) == (expected.status, json.loads(expected.body))


@pytest.mark.parametrize("name", ERRORS)
def test_what_a_provider_tells_apart_is_read_back_exactly(name: str) -> None:
    failure, error = failing(name, message="something went wrong")
    assert read(Anthropic(), error).type == failure.type


@pytest.mark.parametrize("form", RetryForm)
def test_when_to_come_back_is_read_in_each_form(form: RetryForm) -> None:
    failure, error = failing("rate_limit", retry_after=7.0, form=form.value)
    assert read(Anthropic(), error) == failure


def test_when_to_come_back_is_read_from_the_body_where_it_stands_there() -> None:
    assert read(Gemini(), failing("rate_limit", retry_after=52.0)[1]).settings["retry_after"] == 52


def test_a_rate_limit_that_does_not_say_when_to_come_back_means_at_once() -> None:
    failure = instead_of_answer(DeepSeek(), 429, {}, b'{"error":{"message":"slow down"}}', NOW)
    assert (failure.type, failure.settings["retry_after"]) == ("rate_limit", 0)


@pytest.mark.parametrize(("status", "name"), [(418, "invalid_request"), (507, "server_error")])
def test_an_unknown_error_is_known_by_whose_fault_it_is(status: int, name: str) -> None:
    failure = instead_of_answer(OpenAiChat(), status, {}, b'{"detail": "odd"}', NOW)
    assert failure.type == name
    if name == "server_error":
        assert failure.settings["status"] == 507


def test_a_page_is_a_page() -> None:
    assert instead_of_answer(Gemini(), 502, {}, b"<html>", NOW) == Failure("html_error", {"status": 502})
    assert instead_of_answer(Gemini(), 404, {}, b"<html>", NOW).type == "not_found"


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: type(wire).__name__)
@pytest.mark.parametrize("stream", [False, True])
def test_an_error_inside_an_answer_is_read_back(wire: Wire, stream: bool) -> None:
    name = "error_in_stream" if stream else "error_in_200"
    failure = Failure(name, {**KINDS[name].defaults, "error": "rate_limit", "message": "slow"})
    value = json.loads(wire.error(embedded(failure), "r" * 24, NOW).body)
    read_back = inside_answer(wire, value, 3, stream=stream)
    assert read_back.type == name
    assert read_back.settings["message"] == "slow"
    assert read_back.settings.get("after_chunks") == (3 if stream else None)
    if not isinstance(wire, Ollama):  # whose errors are nothing but their message
        assert read_back.settings["error"] == "rate_limit"
