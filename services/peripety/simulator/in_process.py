"""In-process client of the simulator: requests without a server, and answers without waiting."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from peripety.simulator.delivery.events import (
    Finished,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
    ToolCallDelta,
    gather,
    planned,
    play,
)
from peripety.simulator.model import (
    Api,
    Block,
    Message,
    Prompt,
    Request,
    Role,
    Section,
    ToolCall,
    ToolResult,
)
from peripety.simulator.truth import tokens
from peripety.simulator.wire.json_text import compact

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from peripety.simulator.delivery.events import Event
    from peripety.simulator.exchange import Exchange
    from peripety.simulator.model import Reply, Stop, Tool, Usage

__all__ = ["CONVERSATION", "Answer", "How", "answer", "events", "request"]

CONVERSATION = "default"
MODEL = "claude-test"


@dataclass(frozen=True, slots=True)
class Answer:
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
    tool_calls: tuple[ToolCall, ...]
    stop: Stop
    usage: Usage | None
    delay_ms: int


class How(TypedDict, total=False):
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
    tools: Sequence[Tool]
    tool_results: Sequence[str]
    max_tokens: int


def request(prompt: str, how: How) -> Request:
    """Return a request that did not arrive over a wire."""
    system, tools, tool_results = how.get("system", ""), how.get("tools", ()), how.get("tool_results", ())
    results = tuple(ToolResult(text) for text in tool_results)
    blocks = [_block(Section.TOOLS, "tool", compact(asdict(tool)).decode()) for tool in tools]
    blocks += [_block(Section.SYSTEM, "text", system)] if system else []
    blocks += [_block(Section.MESSAGES, "tool_result", text) for text in tool_results]
    blocks += [_block(Section.MESSAGES, "text", prompt)] if prompt else []
    return Request(
        api=Api.IN_PROCESS,
        model=how.get("model", MODEL),
        messages=(Message(Role.USER, prompt, results=results),),
        system=system,
        tools=tuple(tools),
        prompt=Prompt(tuple(blocks)),
        conversation=how.get("conversation", CONVERSATION),
        max_tokens=how.get("max_tokens"),
    )


def answer(exchange: Exchange) -> Answer:
    """Return the complete answer, without waiting for it.

    Raises:
        ApiError: the request was rejected, or an error arrived inside the answer.
        InterruptedAnswerError: the answer ends before it is complete.
        UnreadableAnswerError: the received bytes are not a valid answer.
    """
    reply = _reply(exchange)
    exchange.started()
    try:
        arrived = gather(planned(reply, exchange.manner))
    except Exception:
        exchange.abandoned()
        raise
    exchange.finished(())
    texts: dict[type, list[str]] = {TextDelta: [], ReasoningDelta: [], RefusalDelta: []}
    calls: dict[str, tuple[str, list[str]]] = {}
    stop, usage = reply.stop, None
    for event in arrived:
        match event:
            case Finished():
                stop, usage = event.stop, event.usage
            case ToolCallDelta():
                calls.setdefault(event.id, (event.name, []))[1].append(event.arguments)
            case _:
                texts[type(event)].append(event.text)
    return Answer(
        text="".join(texts[TextDelta]),
        label=exchange.label,
        reasoning="".join(texts[ReasoningDelta]),
        refusal="".join(texts[RefusalDelta]) if texts[RefusalDelta] else None,
        tool_calls=tuple(ToolCall(name, _value("".join(text)), id_) for id_, (name, text) in calls.items()),
        stop=stop,
        usage=usage,
        delay_ms=int(exchange.manner.delay_ms),
    )


async def events(exchange: Exchange) -> AsyncIterator[Event]:
    """Yield the events of an answer, each at its time. Raises the errors of `answer`."""
    reply = _reply(exchange)
    exchange.started()
    try:
        async for event in play(planned(reply, exchange.manner)):
            yield event
    except BaseException:
        exchange.abandoned()
        raise
    exchange.finished(())


def _reply(exchange: Exchange) -> Reply:
    if exchange.reply is None:
        raise exchange.error or AssertionError("an exchange needs a reply or an error")
    return exchange.reply


def _block(section: Section, kind: str, text: str) -> Block:
    return Block(section, kind, text.encode(), tokens.count(text))


def _value(text: str) -> Any:
    """Return arguments as a JSON value, or as text if a fault made them invalid."""
    try:
        return json.loads(text)
    except ValueError:
        return text
