"""Request body parser: the request, and the prompt as it is counted and cached."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Api, ApiError, Block, ErrorKind, Prompt, Role, Section
from peripety.simulator.truth import tokens
from peripety.simulator.truth.models import catalogue
from peripety.simulator.wire.anthropic.blocks import UNMARKABLE, marker, read_system
from peripety.simulator.wire.anthropic.parameters import (
    check_sampling,
    read_format,
    read_other,
    read_stops,
    read_tool_choice,
    read_tools,
)
from peripety.simulator.wire.anthropic.thinking import habits, read_thinking
from peripety.simulator.wire.anthropic.threads import resume
from peripety.simulator.wire.anthropic.turns import read_turns
from peripety.simulator.wire.anthropic.wording import Wording, invalid
from peripety.simulator.wire.json_text import compact, content
from peripety.simulator.wire.reading import Fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from peripety.simulator.model import Message, Tool
    from peripety.simulator.truth.models import Model
    from peripety.simulator.wire.anthropic.blocks import Content
    from peripety.simulator.wire.anthropic.parameters import Declared
    from peripety.simulator.wire.anthropic.thinking import Thinking
    from peripety.simulator.wire.anthropic.threads import Thread
    from peripety.simulator.wire.anthropic.turns import Turn

__all__ = ["NEWEST", "VERSIONS", "Body", "read_body"]

OLDEST = "2023-06-01"
NEWEST = "2026-10-21"
VERSIONS = (OLDEST, NEWEST)

LARGEST_BODY = 32 * 1024 * 1024

_COUNTED = (
    "model",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "cache_control",
    "speed",
)
_ASKED = (
    *_COUNTED,
    "max_tokens",
    "stream",
    "stop_sequences",
    "metadata",
    "service_tier",
    "inference_geo",
    "container",
    "diagnostics",
)
_SAMPLING = ("temperature", "top_p", "top_k")
# Members allowed with the header `anthropic-beta`; a scripted answer does not use them.
_BETA = ("billing_policy", "context_management", "fallback_credit_token", "fallbacks", "mcp_servers")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A request for cache diagnostics.

    Attributes:
        previous: the id of the answer to compare with; None for the first request.
    """

    previous: str | None


@dataclass(frozen=True, slots=True)
class Body:
    """A parsed body.

    Attributes:
        model: the model name.
        messages: the conversation.
        system: the system prompt.
        tools: the tools of the caller.
        prompt: the complete model input.
        max_tokens: maximum number of output tokens; None if no answer is requested.
        stop: the stop sequences.
        stream: True if the answer is streamed.
        thinking: the reasoning settings.
        schema: the JSON Schema of the answer.
        speed: the requested speed.
        diagnosis: the request for cache diagnostics.
        thread: the conversation, if the provider stores it.
    """

    model: str
    messages: tuple[Message, ...]
    system: str
    tools: tuple[Tool, ...]
    prompt: Prompt
    max_tokens: int | None
    stop: tuple[str, ...]
    stream: bool
    thinking: Thinking
    schema: Mapping[str, Any] | None
    speed: str
    diagnosis: Diagnosis | None
    thread: Thread | None


def read_body(
    data: bytes,
    version: str,
    held: Callable[[str], Mapping[str, Any] | None],
    *,
    beta: bool = False,
    counting: bool = False,
) -> Body:
    """Parse a body.

    Args:
        data: the body.
        version: the requested API version.
        held: returns a stored conversation by the id of its last answer.
        beta: True if the request has the beta header.
        counting: True to count tokens only, which allows fewer members.

    Raises:
        ApiError: the body is not valid.
    """
    if len(data) > LARGEST_BODY:
        raise ApiError(ErrorKind.TOO_LARGE, "Request exceeds the maximum size")
    body = Fields.parse(data, Wording())
    strict = version != OLDEST
    model = body.text("model")
    card = catalogue().find(model, Api.ANTHROPIC)
    max_tokens = None if counting else _max_tokens(body, card)
    _check_members(body, strict=strict, beta=beta, counting=counting)
    body, thread = resume(body, held)
    check_sampling(body, card.takes)
    read_other(body)
    habit = habits(model)
    thinking = read_thinking(body, habit, max_tokens)
    tools = read_tools(body)
    choice = read_tool_choice(body, tools, card.takes, thinking=thinking.asked and thinking.on)
    effort, schema = read_format(body)
    stream = body.flag("stream", default=None) or False
    system = read_system(body)
    turns = read_turns(body, card.takes, strict=strict)
    if max_tokens == 0:
        _check_warming(stream=stream, thinking=thinking, choice=choice, schema=schema)
    speed = body.text("speed", None) or "standard"
    blocks = (*_tool_blocks(tools), *_system_blocks(system), *_turn_blocks(turns, keep=habit.keeps))
    settings = {
        Section.SYSTEM: compact([speed, schema]),
        Section.MESSAGES: compact(
            [
                choice,
                any(block.has_image for turn in turns for block in turn.blocks),
                [thinking.mode, thinking.budget],
                effort or habit.effort,
            ]
        ),
    }
    return Body(
        model=model,
        messages=tuple(turn.message for turn in turns),
        system="\n".join(block.text for block in system),
        tools=tuple(tool.custom for tool in tools if tool.custom is not None),
        prompt=Prompt(_marked(blocks, body), settings),
        max_tokens=max_tokens,
        stop=read_stops(body),
        stream=stream,
        thinking=thinking,
        schema=schema,
        speed=speed,
        diagnosis=_diagnosis(body),
        thread=thread,
    )


def _diagnosis(body: Fields) -> Diagnosis | None:
    wanted = body.object("diagnostics", None)
    if wanted is None:
        return None
    wanted.only("previous_message_id")
    return Diagnosis(wanted.text("previous_message_id", None))


def _check_members(body: Fields, *, strict: bool, beta: bool, counting: bool) -> None:
    """Reject members that this operation does not have in this version."""
    if "output_format" in body:
        raise invalid(
            "This field is deprecated. Use 'output_config.format' instead.", body.at("output_format")
        )
    known = _COUNTED if counting else _ASKED
    body.only(*known, *(() if strict or counting else _SAMPLING), *((*_BETA, "thread") if beta else ()))


def _max_tokens(body: Fields, card: Model) -> int:
    most = body.integer("max_tokens")
    if most < 0:
        raise invalid("Input should be greater than or equal to 0", body.at("max_tokens"))
    if card.output is not None and most > card.output:
        raise invalid(
            f"{most} > {card.output}, which is the maximum allowed number of output tokens for {card.name}",
            body.at("max_tokens"),
        )
    return most


def _check_warming(
    *, stream: bool, thinking: Thinking, choice: Mapping[str, Any], schema: Mapping[str, Any] | None
) -> None:
    """Reject settings that are useless with `max_tokens: 0`, which only writes the cache."""
    refused = {
        '"stream": true': stream,
        '"thinking.type": "enabled"': thinking.mode == "enabled",
        "a tool_choice that forces tool use": choice["type"] in ("any", "tool"),
        "output_config.format": schema is not None,
    }
    if found := next((name for name, given in refused.items() if given), None):
        raise invalid(f"0 is not compatible with {found}", ("max_tokens",))


# ---- the prompt


def _tool_blocks(tools: Sequence[Declared]) -> Iterator[Block]:
    for tool in tools:
        text = content(tool.value, "cache_control")
        yield Block(Section.TOOLS, "tool", text, tokens.count(text.decode()), tool.marker)


def _system_blocks(system: Sequence[Content]) -> Iterator[Block]:
    for block in system:
        yield Block(Section.SYSTEM, block.type, block.bytes(Role.SYSTEM), block.tokens, block.marker)


def _turn_blocks(turns: Sequence[Turn], *, keep: bool) -> Iterator[Block]:
    """Yield the blocks of the messages. Some models ignore reasoning before the last plain user turn."""
    plain = [number for number, turn in enumerate(turns) if turn.role is Role.USER and not turn.results]
    read_from = 0 if keep or not plain else plain[-1]
    for number, turn in enumerate(turns):
        for block in turn.blocks:
            if block.cacheable or number >= read_from:
                yield Block(
                    Section.MESSAGES,
                    block.type,
                    block.bytes(turn.role),
                    block.tokens,
                    block.marker,
                    int(block.place[1]),
                )


def _marked(blocks: tuple[Block, ...], body: Fields) -> tuple[Block, ...]:
    """Return the blocks with the request-level breakpoint on the last block that can have one."""
    wanted = marker(body)
    places = [place for place, block in enumerate(blocks) if block.kind not in UNMARKABLE]
    if wanted is None or not places:
        return blocks
    last = places[-1]
    own = blocks[last].marker
    if own is None:
        return (
            *blocks[:last],
            replace(blocks[last], marker=replace(wanted, automatic=True)),
            *blocks[last + 1 :],
        )
    if own.ttl != wanted.ttl:
        raise invalid(
            f"the last block is marked with ttl='{own.ttl}' already, and cannot be cached automatically with "
            f"ttl='{wanted.ttl}'; give both the same ttl, or remove one of them.",
            body.at("cache_control"),
        )
    return blocks
