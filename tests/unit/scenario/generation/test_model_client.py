"""Feedback to a model: only existing parts, the worst findings first, and parts by known names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.errors import Finding, Severity
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import ReasoningEffort, ResponseSchema
from peripety.gateway.types.response import Completed, Completion, StopReason, Usage, collect_completion
from peripety.scenario.generation.model_client import Feedback, ModelClient, start_document_conversation
from peripety.scenario.types import GenerationLimits, NumberEdit
from support.engine.specs import action, spec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import GatewayEvent

DOCUMENT = spec(actions=[action("one"), action("two")])


def test_a_finding_is_told_with_the_part_by_its_id_where_its_place_does_not_say_it() -> None:
    found = (
        Finding("UNKNOWN_PATH", "/actions/1/effects/0/path", "a"),
        Finding("OUT_OF_RANGE", "/horizon", "b"),
        Finding("NEVER_HEARD_OF", "", "c", Severity.WARNING),
    )
    message = Feedback(found, DOCUMENT).render()
    assert message["findings"] == [
        {"code": "UNKNOWN_PATH", "path": "/actions/1/effects/0/path", "message": "a", "part": "/actions/two"},
        {"code": "OUT_OF_RANGE", "path": "/horizon", "message": "b"},
        {"code": "NEVER_HEARD_OF", "path": "", "message": "c", "severity": "warning"},
    ]
    assert message["fixes"] == {finding.code: finding.remedy for finding in found[:2]}
    assert message.keys() == {"findings", "fixes"}


def test_what_became_of_the_answer_is_told() -> None:
    moved = (NumberEdit("/horizon", 3, 4),)
    message = Feedback((), DOCUMENT, ("/actions/one",), ("",), moved).render()
    assert message == {
        "ignored": ["/actions/one"],
        "undone": [""],
        "moved": [{"path": "/horizon", "before": 3, "after": 4}],
    }


def test_a_long_list_is_cut_and_says_so() -> None:
    message = Feedback(tuple(Finding("A", "", str(number)) for number in range(50)), DOCUMENT).render()
    assert [finding["message"] for finding in message["findings"]] == [str(number) for number in range(20)]
    assert message["more_findings"] == 30


def test_of_many_parts_that_stay_as_they_were_not_all_are_told() -> None:
    paths = tuple(f"/actions/a{number}" for number in range(5_000))
    message = Feedback((), DOCUMENT, ignored=paths, rolled_back=paths).render()
    assert message == {"ignored": list(paths[:20]), "undone": list(paths[:20])}


async def test_after_an_answer_that_thoughts_used_up_there_is_twice_the_room() -> None:
    empty = Completion(ChatMessage.assistant(""), None, Usage(10, 700), StopReason.LENGTH, "m", "p")
    gateway = InTurn([empty, empty, replace(empty, stop_reason=StopReason.END)])
    client = ModelClient(GenerationLimits(), 1)
    conversation = start_document_conversation(gateway, None, GenerationLimits())
    schema = ResponseSchema("scenario_spec", {}, advisory=True)
    for _ in range(3):
        _ = [step async for step in client.request(conversation, {}, schema, answer_tokens=500)]
    assert [request.answer_tokens for request in gateway.requests] == [500, 1_400, 1_400]
    assert {request.reasoning_effort for request in gateway.requests} == {ReasoningEffort.MEDIUM}


class InTurn:
    """Gives completions one after the other."""

    def __init__(self, completions: list[Completion]) -> None:
        self._completions = completions
        self.requests: list[GenerateRequest] = []

    async def stream(self, request: GenerateRequest) -> AsyncIterator[GatewayEvent]:
        self.requests.append(request)
        yield Completed(self._completions[len(self.requests) - 1])

    async def generate(self, request: GenerateRequest) -> Completion:
        return await collect_completion(self.stream(request))
