from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.llmsim.types import ApiError, ApiErrorKind, TextPart, ToolUsePart
from peripety.llmsim.wire.anthropic.api import AnthropicWire
from support.llmsim.simulator import FakeService, call, reply

if TYPE_CHECKING:
    from peripety.llmsim.types import ReplyPart, SimRequest


WIRE = AnthropicWire()
HEADERS = {
    "anthropic-version": "2026-10-21",
    "anthropic-beta": "message-threads-2026-08-12",
    "x-api-key": "k",
}
ANSWER = "msg_first"
BEGIN = {"type": "create"}
GO_ON = {"type": "continue", "previous_message_id": ANSWER}
TOOL = {"name": "look", "input_schema": {"type": "object"}}


def ask(service: FakeService, said: Any, headers: dict[str, str] = HEADERS, /, **members: Any) -> SimRequest:
    messages = [{"role": "user", "content": said}] if said else []
    body = {"model": "m", "max_tokens": 9, "messages": messages, **members}
    return WIRE.parse_request(call(WIRE, body, headers), service)


def answer(service: FakeService, request: SimRequest, id_: str, *parts: ReplyPart) -> None:
    for name, rows in WIRE.objects_to_store(request, reply(*parts, id_=id_)).items():
        for key, row in rows.items():
            service.objects(name).put(key, row)


def begun(*parts: ReplyPart, **members: Any) -> FakeService:
    service = FakeService()
    answer(service, ask(service, "a", thread=BEGIN, **members), "first", *parts)
    return service


def refusal(service: FakeService, headers: dict[str, str] = HEADERS, /, **members: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        ask(service, "c", headers, **members)
    return caught.value


def test_a_request_goes_on_from_what_is_held_as_if_it_had_sent_all_of_it() -> None:
    service = begun(TextPart(("b",)), system="Be brief.", tools=[TOOL])
    request = ask(service, "c", thread=GO_ON)
    assert [message.text for message in request.messages] == ["a", "b", "c"]
    assert request.system == "Be brief."
    assert [tool.name for tool in request.tools] == ["look"]
    whole = ask(
        FakeService(),
        "",
        system="Be brief.",
        tools=[TOOL],
        messages=[
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"},
        ],
    )
    assert request.prompt == whole.prompt


def test_calls_are_held_so_that_their_results_can_follow() -> None:
    service = begun(ToolUsePart("x", "look", ("{}",)), tools=[TOOL])
    request = ask(service, [{"type": "tool_result", "tool_use_id": "toolu_x", "content": "d"}], thread=GO_ON)
    assert request.messages[-1].results[0].text == "d"


def test_nothing_is_held_unless_it_is_asked_for() -> None:
    service = FakeService()
    assert WIRE.objects_to_store(ask(service, "a"), reply(TextPart(("b",)))) == {}


def test_what_is_held_is_held_for_its_own_key() -> None:
    error = refusal(begun(TextPart(("b",))), {**HEADERS, "x-api-key": "other"}, thread=GO_ON)
    assert (error.kind, error.code) == (ApiErrorKind.NOT_FOUND, "thread_not_found")


def test_each_answer_is_continued_once() -> None:
    service = begun(TextPart(("b",)))
    request = ask(service, "c", thread=GO_ON)
    assert ask(service, "c", thread=GO_ON) == request  # no answer came yet, so a retry is allowed
    answer(service, request, "second", TextPart(("d",)))
    error = refusal(service, thread=GO_ON)
    assert (error.kind, error.code) == (ApiErrorKind.INVALID_REQUEST, "thread_already_continued")
    further = ask(service, "e", thread={"type": "continue", "previous_message_id": "msg_second"})
    assert [message.text for message in further.messages] == ["a", "b", "c", "d", "e"]


def test_what_a_thread_began_with_does_not_change() -> None:
    service = begun(TextPart(("b",)), system="Be brief.")
    assert ask(service, "c", thread=GO_ON, system="Be brief.").system == "Be brief."
    error = refusal(service, thread=GO_ON, system="Be long.")
    assert (error.param, error.code) == ("system", "thread_fingerprint_mismatch")


def test_what_is_not_held_cannot_be_continued() -> None:
    error = refusal(FakeService(), thread=GO_ON)
    assert (error.kind, error.code) == (ApiErrorKind.NOT_FOUND, "thread_not_found")


def test_threads_are_in_beta() -> None:
    headers = {"anthropic-version": "2026-10-21"}
    assert refusal(FakeService(), headers, thread=BEGIN).message == "thread: Extra inputs are not permitted"
