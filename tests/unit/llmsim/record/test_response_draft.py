from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety.llmsim.faults.injection import embedded_error, fault_error
from peripety.llmsim.faults.kinds import KINDS, FaultStage
from peripety.llmsim.record.response_draft import fault_for_embedded_error, fault_for_error
from peripety.llmsim.script.types import Fault
from peripety.llmsim.types import ApiError, RetryForm
from peripety.llmsim.wire.anthropic.api import AnthropicWire
from peripety.llmsim.wire.deepseek import DeepSeekWire
from peripety.llmsim.wire.gemini.api import GeminiWire
from peripety.llmsim.wire.ollama.api import OllamaWire
from peripety.llmsim.wire.openai.api import OpenAiChat, OpenAiResponses

if TYPE_CHECKING:
    from peripety.llmsim.wire.base import Wire


WIRES = [AnthropicWire(), OpenAiChat(), OpenAiResponses(), DeepSeekWire(), GeminiWire(), OllamaWire()]
ERRORS = [name for name, kind in KINDS.items() if kind.stage is FaultStage.ERROR]
NOW = 1_767_225_600.0


def failing(name: str, **settings: Any) -> tuple[Fault, ApiError]:
    failure = Fault(name, {**KINDS[name].default_settings, **settings})
    error = fault_error(failure, stream=False)
    assert error is not None
    return failure, error


def read(wire: Wire, error: ApiError) -> Fault:
    written = wire.error(error, "r" * 24, NOW)
    status = error.status or written.status
    return fault_for_error(wire, status, dict(written.headers), written.body, NOW)


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: type(wire).__name__)
@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_read_as_one_that_is_written_the_same(wire: Wire, name: str) -> None:
    _, error = failing(name, message="something went wrong")
    again = fault_error(read(wire, error), stream=False)
    assert again is not None
    expected, written = (wire.error(each, "r" * 24, NOW) for each in (error, again))
    assert (written.status, json.loads(written.body)) == (expected.status, json.loads(expected.body))


@pytest.mark.parametrize("name", ERRORS)
def test_what_a_provider_tells_apart_is_read_back_exactly(name: str) -> None:
    failure, error = failing(name, message="something went wrong")
    assert read(AnthropicWire(), error).type == failure.type


@pytest.mark.parametrize("form", RetryForm)
def test_when_to_come_back_is_read_in_each_form(form: RetryForm) -> None:
    failure, error = failing("rate_limit", retry_after=7.0, form=form.value)
    assert read(AnthropicWire(), error) == failure


def test_when_to_come_back_is_read_from_the_body_where_it_stands_there() -> None:
    assert read(GeminiWire(), failing("rate_limit", retry_after=52.0)[1]).settings["retry_after"] == 52


def test_a_rate_limit_that_does_not_say_when_to_come_back_means_at_once() -> None:
    failure = fault_for_error(DeepSeekWire(), 429, {}, b'{"error":{"message":"slow down"}}', NOW)
    assert (failure.type, failure.settings["retry_after"]) == ("rate_limit", 0)


@pytest.mark.parametrize(("status", "name"), [(418, "invalid_request"), (507, "server_error")])
def test_an_unknown_error_is_known_by_whose_fault_it_is(status: int, name: str) -> None:
    failure = fault_for_error(OpenAiChat(), status, {}, b'{"detail": "odd"}', NOW)
    assert failure.type == name
    if name == "server_error":
        assert failure.settings["status"] == 507


def test_a_page_is_a_page() -> None:
    assert fault_for_error(GeminiWire(), 502, {}, b"<html>", NOW) == Fault("html_error", {"status": 502})
    assert fault_for_error(GeminiWire(), 404, {}, b"<html>", NOW).type == "not_found"


@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: type(wire).__name__)
@pytest.mark.parametrize("stream", [False, True])
def test_an_error_inside_an_answer_is_read_back(wire: Wire, stream: bool) -> None:
    name = "error_in_stream" if stream else "error_in_200"
    failure = Fault(name, {**KINDS[name].default_settings, "error": "rate_limit", "message": "slow"})
    value = json.loads(wire.error(embedded_error(failure), "r" * 24, NOW).body)
    read_back = fault_for_embedded_error(wire, value, 3, stream=stream)
    assert read_back.type == name
    assert read_back.settings["message"] == "slow"
    assert read_back.settings.get("after_chunks") == (3 if stream else None)
    if not isinstance(wire, OllamaWire):  # whose errors are nothing but their message
        assert read_back.settings["error"] == "rate_limit"
