"""Every provider, every kind of request, and every failure: at the scripted LLM.

Each cell ends in time, with the right answer or with the right error. `PERIPETY_WHOLE_MATRIX=1` injects the
failures at more pieces of the answers.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.concurrency import closing
from peripety.core.config import ProviderName
from peripety.engine.schema_validation import validate_against_schema as validated
from peripety.errors import PeripetyError
from peripety.gateway.providers.registry import WIRES
from peripety.gateway.types.message import ChatMessage, Reasoning, Tool
from peripety.gateway.types.request import GenerateRequest, ResponseSchema
from peripety.gateway.types.response import (
    Completed,
    ReasoningDelta,
    Repairing,
    SchemaMethod,
    StopReason,
    TextDelta,
    ToolCallDelta,
)
from peripety.llmsim.faults.kinds import KINDS
from peripety.llmsim.script.files import ScriptBuilder
from support.gateway.providers import KEY, PROVIDERS, gateway_of
from support.llmsim.simulator import served
from support.repo.repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.gateway.local_gateway import LocalModelGateway
    from peripety.gateway.types.response import Completion, GatewayEvent
    from peripety.llmsim.script.types import Script
    from support.gateway.providers import Spoken
    from support.llmsim.simulator import Served


TEXT = "one two three four € five six"
THOUGHT = "hm hm hm"
VALUE = {"a": 1, "b": "x y z"}
CALLS = [{"at": "a b c d"}, {"at": "é f g"}]
RESPONSES: dict[str, dict[str, Any]] = {
    "text": {"text": TEXT},
    "tools": {"text": "calling", "tool_calls": [{"tool": "look", "input": each} for each in CALLS]},
    "structured": {"json": VALUE},
    "reasoning": {"reasoning": THOUGHT, "text": TEXT},
}
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
LOOK = Tool("look", "Looks.", {"type": "object", "properties": {"at": {"type": "string"}}})
OPTIONS: dict[str, dict[str, Any]] = {
    "tools": {"tools": (LOOK,)},
    "structured": {"schema": ResponseSchema("thing", SCHEMA)},
}
METHODS = {ProviderName.GENERIC: SchemaMethod.GRAMMAR, ProviderName.DEEPSEEK: SchemaMethod.EXTRACTION}
"""The way in which providers hold their model to a schema that all can express, if not natively."""

ERRORS = {
    "auth_error": "PROVIDER_REFUSED_KEY",
    "permission_denied": "PROVIDER_REFUSED_KEY",
    "not_found": "MODEL_NOT_FOUND",
    "invalid_request": "PROVIDER_REFUSED_REQUEST",
    "too_large": "PROVIDER_REFUSED_REQUEST",
    "conflict": "PROVIDER_BUSY",
    "rate_limit": "PROVIDER_RATE_LIMITED",
    "out_of_credits": "PROVIDER_QUOTA_EXHAUSTED",
    **dict.fromkeys(
        ("overloaded", "unavailable", "server_error", "timeout", "html_error"),
        "PROVIDER_FAILED",
    ),
    **dict.fromkeys(("error_in_200", "error_in_stream"), "PROVIDER_FAILED"),
    **dict.fromkeys(("network_unreachable", "connection_timeout"), "PROVIDER_UNREACHABLE"),
    **dict.fromkeys(("hang", "stall"), "PROVIDER_TIMEOUT"),
    **dict.fromkeys(("connection_reset", "empty_body"), "STREAM_TRUNCATED"),
    **dict.fromkeys(("partial_response", "stream_cut", "reset_at_token"), "STREAM_TRUNCATED"),
    "malformed_json": "STREAM_MALFORMED",
}
"""Failures that are errors for every task."""
HARMLESS = {"none", "slow_drip", "split_utf8", "late_usage", "missing_usage"}
SPOILT = {"duplicate_chunk", "missing_chunk", "reordered_chunks"}
CHANGED = {"missing_end", "truncated_arguments", "invalid_arguments", "refusal", "content_filter", "length"}

QUICK: dict[str, dict[str, Any]] = {
    "connection_timeout": {"after_ms": 60},
    "slow_drip": {"ms_per_chunk": 5},
    "late_usage": {"delay_ms": 40},
}
SILENT = {"hang", "stall"}
SHORT_TIMEOUTS = {"provider_first_event_seconds": 0.5, "provider_pause_seconds": 0.5}
MOST_SECONDS = 20
WHOLE = "PERIPETY_WHOLE_MATRIX" in os.environ
PLACES: dict[str, tuple[dict[str, Any], ...]] = {
    **{kind: tuple({"chunk": place} for place in range(12 if WHOLE else 1)) for kind in SPOILT},
    **{
        kind: tuple({"after_chunks": place} for place in (range(12) if WHOLE else (1,)))
        for kind in ("stream_cut", "error_in_stream")
    },
    "reset_at_token": tuple({"token": place} for place in (range(5) if WHOLE else (1,))),
    "length": tuple({"tokens": place} for place in (range(5) if WHOLE else (1,))),
}


def test_every_provider_and_every_failure_has_its_place_in_the_matrix() -> None:
    assert {spoken.name for spoken in PROVIDERS} == WIRES.keys()
    assert {"none", *KINDS} == ERRORS.keys() | HARMLESS | SPOILT | CHANGED


def test_the_guide_says_what_becomes_of_every_failure() -> None:
    guide = (ROOT / "docs" / "reference" / "gateway.md").read_text("utf-8")
    table = guide.split("<!-- failures -->")[1].split("\n\n")[0]
    rows = re.findall(r"^\| (`.*?`) \| (.*) \|$", table, re.MULTILINE)
    told = {kind: outcome for kinds, outcome in rows for kind in re.findall(r"`(\w+)`", kinds)}
    assert told.keys() == set(KINDS)
    assert {kind: told[kind] for kind in ERRORS} == {kind: f"`{code}`" for kind, code in ERRORS.items()}
    assert {kind for kind in told if told[kind] == "the answer"} == HARMLESS - {"none"}
    assert all(f"\n| `{spoken}` | several at once" in guide for spoken in PROVIDERS)


# ---- the scenario


def failures(kind: str, task: str) -> list[dict[str, Any] | None]:
    """Return the failures of this kind for a task, one for each position; empty if it does not apply."""
    if kind == "none":
        return [None]
    if KINDS[kind].needs_tool_calls and task != "tools":
        return []
    places = PLACES.get(kind, ({},))
    return [{"type": kind, **QUICK.get(kind, {}), **place} for place in places]


def prompt(kind: str, task: str, place: int) -> str:
    return f"[{kind}/{task}/{place}]"


def scenario() -> Script:
    builder = ScriptBuilder().respond_to("That answer was refused", RESPONSES["structured"])
    for kind, task in product(("none", *KINDS), RESPONSES):
        for place, failure in enumerate(failures(kind, task)):
            spoilt = {} if failure is None else {"failure": failure}
            builder.respond_to(prompt(kind, task, place), RESPONSES[task], **spoilt)
    return builder.build()


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with served(scenario()) as server:
        yield server


# ---- one cell


@dataclass(frozen=True)
class Seen:
    """Result of a call: the events before its end, and the answer or the error."""

    events: tuple[GatewayEvent, ...]
    completion: Completion | None = None
    error: PeripetyError | None = None

    @property
    def outcome(self) -> object:
        """Return the part that has to be the same for every form of the request."""
        if self.completion is None:
            return self.error and self.error.code
        calls = [(call.name, call.arguments) for call in self.completion.tool_calls]
        return self.completion.text, calls, self.completion.stop_reason, self.completion.repaired


async def streamed(gateway: LocalModelGateway, request: GenerateRequest) -> Seen:
    events: list[GatewayEvent] = []
    try:
        async with closing(gateway.stream(request)) as arriving:
            async for event in arriving:
                if isinstance(event, Completed):
                    return Seen(tuple(events), event.completion)
                events.append(event)
    except PeripetyError as error:
        return Seen(tuple(events), error=error)
    raise AssertionError("the stream ended without an answer and without an error")


async def generated(gateway: LocalModelGateway, request: GenerateRequest) -> Seen:
    try:
        return Seen((), await gateway.generate(request))
    except PeripetyError as error:
        return Seen((), error=error)


async def check(gateway: LocalModelGateway, spoken: Spoken, kind: str, task: str, place: int) -> None:
    request = GenerateRequest("s", (ChatMessage.user(prompt(kind, task, place)),), **OPTIONS.get(task, {}))
    async with asyncio.timeout(MOST_SECONDS):
        seen, whole = await asyncio.gather(streamed(gateway, request), generated(gateway, request))
    try:
        assert seen.outcome == whole.outcome
        if seen.completion is None:
            check_error(seen, kind, task)
        else:
            check_deltas(seen.events, seen.completion)
            check_answer(seen.completion, spoken, kind, task)
    except AssertionError as error:
        raise AssertionError(f"{spoken}, {kind}, {task}, place {place}: {error}\n{seen}") from error


def check_error(seen: Seen, kind: str, task: str) -> None:
    error = seen.error
    assert error is not None
    assert KEY not in str(error)
    allowed = {ERRORS[kind]} if kind in ERRORS else set()
    if kind in SPOILT:
        allowed = {"STREAM_MALFORMED", "STREAM_TRUNCATED"}
    elif kind == "missing_end":
        allowed = {"STREAM_TRUNCATED"}
    elif kind in {"refusal", "content_filter"}:
        allowed = {"ANSWER_REFUSED"} if task == "structured" else set()
    assert error.code in allowed


def check_deltas(events: tuple[GatewayEvent, ...], completion: Completion) -> None:
    """Check that the deltas, of the last of two answers, add up to the whole answer."""
    repairs = [place for place, event in enumerate(events) if isinstance(event, Repairing)]
    last = events[repairs[-1] + 1 :] if repairs else events
    assert "".join(event.text for event in last if isinstance(event, TextDelta)) == completion.text
    thoughts = [part.text for part in completion.message.parts if isinstance(part, Reasoning)]
    assert "".join(event.text for event in last if isinstance(event, ReasoningDelta)) == "".join(thoughts)
    pieces = [event for event in last if isinstance(event, ToolCallDelta)]
    for call in completion.tool_calls:
        mine = [piece for piece in pieces if piece.call_id == call.call_id]
        assert [piece.name for piece in mine] == [call.name, *[""] * (len(mine) - 1)]
        assert "".join(piece.arguments_text for piece in mine).strip() in {call.arguments, ""}


def check_answer(completion: Completion, spoken: Spoken, kind: str, task: str) -> None:
    assert kind not in ERRORS
    if task == "structured":
        # With any failure, the returned value is valid: at once, or after another request.
        assert not validated(SCHEMA, completion.value)
        assert completion.value == VALUE or kind in SPOILT
        assert kind not in HARMLESS or not completion.repaired
        assert completion.schema_report is not None
        assert completion.schema_report.method is METHODS.get(spoken.name, SchemaMethod.NATIVE)
    elif kind in HARMLESS | {"missing_end"}:
        check_whole(completion, spoken, kind, task)
    elif kind not in SPOILT:
        check_changed(completion, spoken, kind)
    elif spoken.numbers_chunks:
        check_whole(completion, spoken, kind, task)
    else:
        check_sense(completion, task)


def check_whole(completion: Completion, spoken: Spoken, kind: str, task: str) -> None:
    assert arguments(completion) == (CALLS if task == "tools" else [])
    assert completion.stop_reason is (StopReason.TOOL_USE if task == "tools" else StopReason.END)
    assert completion.text == RESPONSES[task]["text"]
    assert completion.provider == spoken.name.value
    if kind not in {"missing_usage", "missing_end"}:
        assert completion.usage.input_tokens > 0
        assert completion.usage.output_tokens > completion.usage.reasoning_tokens >= 0
    thoughts = [part.text for part in completion.message.parts if isinstance(part, Reasoning)]
    assert thoughts == ([THOUGHT] if task == "reasoning" and spoken.shows_reasoning else [])


def check_sense(completion: Completion, task: str) -> None:
    """Check an answer without chunk numbers: lost, doubled or moved chunks cannot be detected.

    That applies to chunks that the rest of the answer is valid without: pieces of texts and of arguments, and
    whole calls where a chunk holds one. But calls are never invented, and never returned in pieces.
    """
    assert all(isinstance(each, dict) for each in arguments(completion))
    called = [call.name for call in completion.tool_calls]
    assert called == (["look"] * len(called) if task == "tools" else [])
    assert completion.stop_reason is (StopReason.TOOL_USE if called else StopReason.END)


def check_changed(completion: Completion, spoken: Spoken, kind: str) -> None:
    match kind:
        case "truncated_arguments" | "length":
            assert completion.stop_reason is StopReason.LENGTH
        case "invalid_arguments":
            assert completion.stop_reason is StopReason.TOOL_USE
            assert arguments(completion) != CALLS
        case "refusal" if spoken.tells_refusals:
            assert completion.stop_reason is StopReason.REFUSAL
        case "refusal":
            assert completion.text
        case "content_filter" if spoken.tells_filters:
            assert completion.stop_reason is StopReason.REFUSAL


def arguments(completion: Completion) -> list[Any]:
    return [json.loads(call.arguments) for call in completion.tool_calls]


# ---- the matrix


@pytest.mark.slow_after(12, reason="one case for each provider and failure")
@pytest.mark.parametrize("kind", ["none", *KINDS])
@pytest.mark.parametrize("spoken", PROVIDERS, ids=str)
async def test_every_call_ends_in_time_with_the_right_answer_or_the_right_error(
    server: Served,
    spoken: Spoken,
    kind: str,
) -> None:
    timeouts = SHORT_TIMEOUTS if kind in SILENT else {}
    async with gateway_of(spoken, server.url, breaker_failures=10**6, **timeouts) as gateway:
        await asyncio.gather(
            *(
                check(gateway, spoken, kind, task, place)
                for task in RESPONSES
                for place in range(len(failures(kind, task)))
            ),
        )
