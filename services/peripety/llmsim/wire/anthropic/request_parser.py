"""Request body parser: the request, and the prompt as it is counted and cached."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety.llmsim.provider_rules import models
from peripety.llmsim.provider_rules.models import load_models
from peripety.llmsim.types import Api, ApiError, ApiErrorKind, CacheSection, SimBlock, SimPrompt, SimRole
from peripety.llmsim.wire.anthropic.content_blocks import KINDS_WITHOUT_BREAKPOINT, read_marker, read_system
from peripety.llmsim.wire.anthropic.errors import AnthropicErrorMessages, invalid_request
from peripety.llmsim.wire.anthropic.messages import read_turns, resume_thread
from peripety.llmsim.wire.anthropic.parameters import (
    check_sampling,
    read_format,
    read_other,
    read_stops,
    read_thinking,
    read_tool_choice,
    read_tools,
    reasoning_defaults,
)
from peripety.llmsim.wire.base import block_cache_key, compact_json
from peripety.llmsim.wire.request_parser import Fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from peripety.llmsim.provider_rules.models import SimModel
    from peripety.llmsim.types import SimMessage, SimTool
    from peripety.llmsim.wire.anthropic.content_blocks import ContentBlock
    from peripety.llmsim.wire.anthropic.messages import MessageTurn, StoredThread
    from peripety.llmsim.wire.anthropic.parameters import DeclaredTool, ReasoningSettings


OLDEST_VERSION = "2023-06-01"
NEWEST_VERSION = "2026-10-21"
VERSIONS = (OLDEST_VERSION, NEWEST_VERSION)

MAX_BODY_BYTES = 32 * 1024 * 1024

_COUNTING_MEMBERS = (
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
_REQUEST_MEMBERS = (
    *_COUNTING_MEMBERS,
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
_BETA_MEMBERS = ("billing_policy", "context_management", "fallback_credit_token", "fallbacks", "mcp_servers")


@dataclass(frozen=True, slots=True)
class DiagnosisRequest:
    """A request for cache diagnostics.

    Attributes:
        previous: the id of the answer to compare with; None for the first request.
    """

    previous: str | None


@dataclass(frozen=True, slots=True)
class MessagesBody:
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
    messages: tuple[SimMessage, ...]
    system: str
    tools: tuple[SimTool, ...]
    prompt: SimPrompt
    max_tokens: int | None
    stop: tuple[str, ...]
    stream: bool
    thinking: ReasoningSettings
    schema: Mapping[str, Any] | None
    speed: str
    diagnosis: DiagnosisRequest | None
    thread: StoredThread | None


def read_body(
    data: bytes,
    version: str,
    find_thread: Callable[[str], Mapping[str, Any] | None],
    *,
    beta: bool = False,
    counting: bool = False,
) -> MessagesBody:
    """Parse a body.

    Args:
        data: the body.
        version: the requested API version.
        find_thread: returns a stored conversation by the id of its last answer.
        beta: True if the request has the beta header.
        counting: True to count tokens only, which allows fewer members.

    Raises:
        ApiError: the body is not valid.
    """
    if len(data) > MAX_BODY_BYTES:
        raise ApiError(ApiErrorKind.TOO_LARGE, "Request exceeds the maximum size")
    body = Fields.parse(data, AnthropicErrorMessages())
    strict = version != OLDEST_VERSION
    model = body.text("model")
    card = load_models().find(model, Api.ANTHROPIC)
    max_tokens = None if counting else _read_max_tokens(body, card)
    _check_members(body, strict=strict, beta=beta, counting=counting)
    body, thread = resume_thread(body, find_thread)
    check_sampling(body, card.takes)
    read_other(body)
    habit = reasoning_defaults(model)
    thinking = read_thinking(body, habit, max_tokens)
    tools = read_tools(body)
    choice = read_tool_choice(body, tools, card.takes, thinking=thinking.is_explicit and thinking.is_enabled)
    effort, schema = read_format(body)
    stream = body.flag("stream", default=None) or False
    system = read_system(body)
    turns = read_turns(body, card.takes, strict=strict)
    if max_tokens == 0:
        _check_warming(stream=stream, thinking=thinking, choice=choice, schema=schema)
    speed = body.text("speed", None) or "standard"
    blocks = (
        *_tool_blocks(tools),
        *_system_blocks(system),
        *_turn_blocks(turns, keep=habit.keeps_earlier_reasoning),
    )
    settings = {
        CacheSection.SYSTEM: compact_json([speed, schema]),
        CacheSection.MESSAGES: compact_json(
            [
                choice,
                any(block.has_image for turn in turns for block in turn.blocks),
                [thinking.mode, thinking.budget],
                effort or habit.effort,
            ],
        ),
    }
    return MessagesBody(
        model=model,
        messages=tuple(turn.to_message for turn in turns),
        system="\n".join(block.text for block in system),
        tools=tuple(tool.sim_tool for tool in tools if tool.sim_tool is not None),
        prompt=SimPrompt(_with_automatic_breakpoint(blocks, body), settings),
        max_tokens=max_tokens,
        stop=read_stops(body),
        stream=stream,
        thinking=thinking,
        schema=schema,
        speed=speed,
        diagnosis=_read_diagnosis(body),
        thread=thread,
    )


def _read_diagnosis(body: Fields) -> DiagnosisRequest | None:
    wanted = body.object("diagnostics", None)
    if wanted is None:
        return None
    wanted.reject_others("previous_message_id")
    return DiagnosisRequest(wanted.text("previous_message_id", None))


def _check_members(body: Fields, *, strict: bool, beta: bool, counting: bool) -> None:
    """Reject members that this operation does not have in this version."""
    if "output_format" in body:
        raise invalid_request(
            "This field is deprecated. Use 'output_config.format' instead.",
            body.path_of("output_format"),
        )
    known = _COUNTING_MEMBERS if counting else _REQUEST_MEMBERS
    body.reject_others(
        *known,
        *(() if strict or counting else _SAMPLING),
        *((*_BETA_MEMBERS, "thread") if beta else ()),
    )


def _read_max_tokens(body: Fields, card: SimModel) -> int:
    most = body.integer("max_tokens")
    if most < 0:
        raise invalid_request("Input should be greater than or equal to 0", body.path_of("max_tokens"))
    if card.output is not None and most > card.output:
        raise invalid_request(
            f"{most} > {card.output}, which is the maximum allowed number of output tokens for {card.name}",
            body.path_of("max_tokens"),
        )
    return most


def _check_warming(
    *,
    stream: bool,
    thinking: ReasoningSettings,
    choice: Mapping[str, Any],
    schema: Mapping[str, Any] | None,
) -> None:
    """Reject settings that are useless with `max_tokens: 0`, which only writes the cache."""
    refused = {
        '"stream": true': stream,
        '"thinking.type": "enabled"': thinking.mode == "enabled",
        "a tool_choice that forces tool use": choice["type"] in ("any", "tool"),
        "output_config.format": schema is not None,
    }
    if found := next((name for name, given in refused.items() if given), None):
        raise invalid_request(f"0 is not compatible with {found}", ("max_tokens",))


# ---- the prompt


def _tool_blocks(tools: Sequence[DeclaredTool]) -> Iterator[SimBlock]:
    for tool in tools:
        text = block_cache_key(tool.value, "cache_control")
        yield SimBlock(CacheSection.TOOLS, "tool", text, models.count_tokens(text.decode()), tool.marker)


def _system_blocks(system: Sequence[ContentBlock]) -> Iterator[SimBlock]:
    for block in system:
        yield SimBlock(
            CacheSection.SYSTEM,
            block.type,
            block.cache_key(SimRole.SYSTEM),
            block.tokens,
            block.marker,
        )


def _turn_blocks(turns: Sequence[MessageTurn], *, keep: bool) -> Iterator[SimBlock]:
    """Yield the blocks of the messages. Some models ignore reasoning before the last plain user turn."""
    plain = [number for number, turn in enumerate(turns) if turn.role is SimRole.USER and not turn.results]
    read_from = 0 if keep or not plain else plain[-1]
    for number, turn in enumerate(turns):
        for block in turn.blocks:
            if block.cacheable or number >= read_from:
                yield SimBlock(
                    CacheSection.MESSAGES,
                    block.type,
                    block.cache_key(turn.role),
                    block.tokens,
                    block.marker,
                    int(block.path[1]),
                )


def _with_automatic_breakpoint(blocks: tuple[SimBlock, ...], body: Fields) -> tuple[SimBlock, ...]:
    """Return the blocks with the request-level breakpoint on the last block that can have one."""
    wanted = read_marker(body)
    places = [place for place, block in enumerate(blocks) if block.kind not in KINDS_WITHOUT_BREAKPOINT]
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
        raise invalid_request(
            f"the last block is marked with ttl='{own.ttl}' already, and cannot be cached automatically with "
            f"ttl='{wanted.ttl}'; give both the same ttl, or remove one of them.",
            body.path_of("cache_control"),
        )
    return blocks
