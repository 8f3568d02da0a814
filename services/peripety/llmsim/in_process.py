"""In-process client of the simulator: requests without a server, and answers without waiting.

The events of an answer are planned like the frames of a wire.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from peripety.llmsim.delivery.connection_faults import apply_fault, end_with_frame, error_page
from peripety.llmsim.delivery.plan import DeliveryPlan, DeliveryStep, ResponseEnd, pace_frames
from peripety.llmsim.faults.injection import embedded_error
from peripety.llmsim.provider_rules import models
from peripety.llmsim.provider_rules.models import count_tokens
from peripety.llmsim.types import (
    Api,
    CacheSection,
    FrameTag,
    ReasoningPart,
    RefusalPart,
    SimBlock,
    SimMessage,
    SimPrompt,
    SimRequest,
    SimRole,
    SimToolCall,
    SimToolResult,
    StreamFrame,
    TextPart,
)
from peripety.llmsim.wire.base import compact_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from peripety.llmsim.delivery.plan import DeliverySettings
    from peripety.llmsim.script.types import Fault
    from peripety.llmsim.script_engine import Exchange
    from peripety.llmsim.types import BilledUsage, ReplyPart, SimReply, SimStopReason, SimTool


_END_MESSAGES = {
    ResponseEnd.CLOSED: "the connection was closed before the answer was complete",
    ResponseEnd.RESET: "the connection was reset",
    ResponseEnd.HANG: "the connection stays open without further data",
}


class InterruptedAnswerError(ConnectionError):
    """The connection ended before the answer was complete."""


class UnreadableAnswerError(ValueError):
    """The received bytes are not a valid answer.

    Attributes:
        body: the received bytes.
    """

    def __init__(self, body: str) -> None:
        super().__init__(f"the body is not an answer: {body[:80]!r}")
        self.body = body


@dataclass(frozen=True, slots=True)
class TextDeltaEvent:
    """A piece of prose."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDeltaEvent:
    """A piece of reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class RefusalDeltaEvent:
    """A piece of a refusal."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDeltaEvent:
    """A piece of the arguments of a tool call. The pieces with the same id, joined, are JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class FinishedEvent:
    """The end of an answer: stop reason and usage. A fault may withhold the usage (None)."""

    stop: SimStopReason
    usage: BilledUsage | None


Event = TextDeltaEvent | ReasoningDeltaEvent | RefusalDeltaEvent | ToolCallDeltaEvent | FinishedEvent


@dataclass(frozen=True, slots=True)
class _ErrorEvent:
    """An error in the place of an event."""

    error: Exception


def plan_events(reply: SimReply, settings: DeliverySettings) -> DeliveryPlan[Event | _ErrorEvent]:
    """Return the delivery plan of the events of an answer."""
    failure = settings.fault
    told = failure is None or failure.type != "missing_usage"
    plan = pace_frames(list(_event_frames(reply, reply.usage if told else None)), settings)
    if failure is not None:
        plan = apply_fault(_break_events(plan, failure), failure)
    return DeliveryPlan(
        [DeliveryStep(step.at_ms, step.data.data) for step in plan.steps],
        plan.end,
        plan.ends_ms,
    )


async def play_events(plan: DeliveryPlan[Event | _ErrorEvent]) -> AsyncIterator[Event]:
    """Yield the events of a plan, each at its time.

    Raises:
        ApiError: an error arrives inside the answer.
        UnreadableAnswerError: the received bytes are not a valid answer.
        InterruptedAnswerError: the answer ends before it is complete.
    """
    loop = asyncio.get_running_loop()
    begin = loop.time()
    for at_ms, event in plan.steps:
        await asyncio.sleep(begin + at_ms / 1000 - loop.time())
        yield _unwrap_event(event)
    await asyncio.sleep(begin + plan.ends_ms / 1000 - loop.time())
    if plan.end is ResponseEnd.HANG:
        await asyncio.Event().wait()
    _check_end(plan.end)


def gather_events(plan: DeliveryPlan[Event | _ErrorEvent]) -> list[Event]:
    """Return the events of a plan without waiting. Raises the errors of `play`, and never hangs."""
    events = [_unwrap_event(event) for _, event in plan.steps]
    _check_end(plan.end)
    return events


def _unwrap_event(event: Event | _ErrorEvent) -> Event:
    if isinstance(event, _ErrorEvent):
        raise event.error
    return event


def _check_end(ending: ResponseEnd) -> None:
    if ending is not ResponseEnd.CLEAN:
        raise InterruptedAnswerError(_END_MESSAGES[ending])


def _event_frames(reply: SimReply, usage: BilledUsage | None) -> Iterator[StreamFrame[Event | _ErrorEvent]]:
    for part in reply.parts:
        for piece in part.pieces:
            event, tag = _event(part, piece)
            yield StreamFrame(event, tag, count_tokens(piece))
    yield StreamFrame(FinishedEvent(reply.stop, usage), FrameTag.STOP)


def _event(part: ReplyPart, piece: str) -> tuple[Event, FrameTag]:
    match part:
        case TextPart():
            return TextDeltaEvent(piece), FrameTag.TEXT
        case ReasoningPart():
            return ReasoningDeltaEvent(piece), FrameTag.REASONING
        case RefusalPart():
            return RefusalDeltaEvent(piece), FrameTag.TEXT
        case _:
            return ToolCallDeltaEvent(part.id, part.name, piece), FrameTag.ARGUMENTS


def _break_events(
    plan: DeliveryPlan[StreamFrame[Event | _ErrorEvent]],
    failure: Fault,
) -> DeliveryPlan[StreamFrame[Event | _ErrorEvent]]:
    """Apply byte faults in process: the error that a client would have raised."""
    settings = failure.settings
    match failure.type:
        case "malformed_json":
            return _fail_after(plan, 0, UnreadableAnswerError(settings["raw"]))
        case "empty_body":
            return _fail_after(plan, 0, UnreadableAnswerError(""))
        case "html_error":
            return _fail_after(plan, 0, UnreadableAnswerError(error_page(settings["status"])))
        case "error_in_200":
            return _fail_after(plan, 0, embedded_error(failure))
        case "error_in_stream":
            return _fail_after(plan, settings["after_chunks"], embedded_error(failure))
    return plan


def _fail_after(
    plan: DeliveryPlan[StreamFrame[Event | _ErrorEvent]],
    chunks: int,
    error: Exception,
) -> DeliveryPlan[StreamFrame[Event | _ErrorEvent]]:
    return end_with_frame(plan, chunks, lambda _: _ErrorEvent(error))


DEFAULT_CONVERSATION = "default"
DEFAULT_MODEL = "claude-test"


@dataclass(frozen=True, slots=True)
class SimAnswer:
    """A complete answer.

    Attributes:
        text: the prose; empty without prose or without a match.
        label: the source: `response[i]`, `response[i].turn[j]` or `default`; None without a match.
        reasoning: the reasoning.
        refusal: the text of a refusal, if any.
        tool_calls: the tool calls.
        stop: the stop reason.
        usage: the token usage; None if a fault withholds it.
        delay_ms: the delay that a server would have added.
    """

    text: str
    label: str | None
    reasoning: str
    refusal: str | None
    tool_calls: tuple[SimToolCall, ...]
    stop: SimStopReason
    usage: BilledUsage | None
    delay_ms: int


class PromptOptions(TypedDict, total=False):
    """Options of an in-process request.

    Attributes:
        model: the model name.
        conversation: the conversation name.
        system: the system prompt.
        tools: the available tools.
        tool_results: the results for the tool calls of the last answer.
        max_tokens: maximum number of output tokens.
    """

    model: str
    conversation: str
    system: str
    tools: Sequence[SimTool]
    tool_results: Sequence[str]
    max_tokens: int


def make_request(prompt: str, options: PromptOptions) -> SimRequest:
    """Return a request that did not arrive over a wire."""
    system, tools, tool_results = (
        options.get("system", ""),
        options.get("tools", ()),
        options.get("tool_results", ()),
    )
    results = tuple(SimToolResult(text) for text in tool_results)
    blocks = [_make_block(CacheSection.TOOLS, "tool", compact_json(asdict(tool)).decode()) for tool in tools]
    blocks += [_make_block(CacheSection.SYSTEM, "text", system)] if system else []
    blocks += [_make_block(CacheSection.MESSAGES, "tool_result", text) for text in tool_results]
    blocks += [_make_block(CacheSection.MESSAGES, "text", prompt)] if prompt else []
    return SimRequest(
        api=Api.IN_PROCESS,
        model=options.get("model", DEFAULT_MODEL),
        messages=(SimMessage(SimRole.USER, prompt, results=results),),
        system=system,
        tools=tuple(tools),
        prompt=SimPrompt(tuple(blocks)),
        conversation=options.get("conversation", DEFAULT_CONVERSATION),
        max_tokens=options.get("max_tokens"),
    )


def collect_answer(exchange: Exchange) -> SimAnswer:
    """Return the complete answer, without waiting for it.

    Raises:
        ApiError: the request was rejected, or an error arrived inside the answer.
        InterruptedAnswerError: the answer ends before it is complete.
        UnreadableAnswerError: the received bytes are not a valid answer.
    """
    reply = _require_reply(exchange)
    exchange.on_started()
    try:
        arrived = gather_events(plan_events(reply, exchange.delivery))
    except Exception:
        exchange.on_abandoned()
        raise
    exchange.on_finished(())
    texts: dict[type, list[str]] = {TextDeltaEvent: [], ReasoningDeltaEvent: [], RefusalDeltaEvent: []}
    calls: dict[str, tuple[str, list[str]]] = {}
    stop, usage = reply.stop, None
    for event in arrived:
        match event:
            case FinishedEvent():
                stop, usage = event.stop, event.usage
            case ToolCallDeltaEvent():
                calls.setdefault(event.id, (event.name, []))[1].append(event.arguments)
            case _:
                texts[type(event)].append(event.text)
    return SimAnswer(
        text="".join(texts[TextDeltaEvent]),
        label=exchange.label,
        reasoning="".join(texts[ReasoningDeltaEvent]),
        refusal="".join(texts[RefusalDeltaEvent]) if texts[RefusalDeltaEvent] else None,
        tool_calls=tuple(
            SimToolCall(name, _parse_arguments("".join(text)), id_) for id_, (name, text) in calls.items()
        ),
        stop=stop,
        usage=usage,
        delay_ms=int(exchange.delivery.delay_ms),
    )


async def stream_events(exchange: Exchange) -> AsyncIterator[Event]:
    """Yield the events of an answer, each at its time. Raises the errors of `answer`."""
    reply = _require_reply(exchange)
    exchange.on_started()
    try:
        async for event in play_events(plan_events(reply, exchange.delivery)):
            yield event
    except BaseException:
        exchange.on_abandoned()
        raise
    exchange.on_finished(())


def _require_reply(exchange: Exchange) -> SimReply:
    if exchange.reply is None:
        raise exchange.error or AssertionError("an exchange needs a reply or an error")
    return exchange.reply


def _make_block(section: CacheSection, kind: str, text: str) -> SimBlock:
    return SimBlock(section, kind, text.encode(), models.count_tokens(text))


def _parse_arguments(text: str) -> Any:
    """Return arguments as a JSON value, or as text if a fault made them invalid."""
    try:
        return json.loads(text)
    except ValueError:
        return text
