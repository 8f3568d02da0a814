"""Responses request parser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Api, Request
from peripety.simulator.truth.models import catalogue
from peripety.simulator.truth.tokens import count
from peripety.simulator.wire.openai import schemas, store
from peripety.simulator.wire.openai.caching import MEMBERS as CACHING_MEMBERS
from peripety.simulator.wire.openai.caching import read_controls
from peripety.simulator.wire.openai.calls import credential
from peripety.simulator.wire.openai.chat_reading import TIERS, VERBOSITIES, mentions_json, read_metadata
from peripety.simulator.wire.openai.items import Items
from peripety.simulator.wire.openai.limits import check_caching, check_effort, check_output
from peripety.simulator.wire.openai.prompt import Draft
from peripety.simulator.wire.openai.tools import FLAT
from peripety.simulator.wire.openai.wording import Wording, bounded, invalid, named, unsupported
from peripety.simulator.wire.reading import Fields, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.simulator.truth.models import Model
    from peripety.simulator.wire.base import Call, Service

__all__ = ["read"]

_MEMBERS = (
    "context_management", "include", "input", "instructions", "max_output_tokens", "max_tool_calls",
    "metadata", "model", "parallel_tool_calls", "previous_response_id", "reasoning", "safety_identifier",
    "service_tier", "store", "stream", "stream_options", "temperature", "text", "tool_choice", "tools",
    "top_logprobs", "top_p", "truncation", "user",
)  # fmt: skip
_UNSUPPORTED = (
    "access_programs", "background", "background_options", "conversation", "image", "moderation", "prompt",
)  # fmt: skip
_CACHING = ("mode", "ttl", "prewarm", "comparison_response_id")
_TTLS = ("30m", "12h")
_FORMATS = ("text", "json_object", "json_schema")
_SUMMARIES = ("auto", "concise", "detailed")
_LEAST_OUTPUT = 16


@dataclass(frozen=True, slots=True)
class _Thinking:
    """Reasoning settings."""

    effort: str | None
    summary: str | None


def read(call: Call, service: Service) -> Request:
    """Parse a request for a response, or for its number of input tokens."""
    body = Fields.parse(call.body, Wording())
    _check_members(body)
    name = body.text("model", None) or call.params.get("deployment")
    if not name:
        raise body.wording.missing(("model",))
    model = catalogue().find(name, Api.OPENAI_RESPONSES)
    key = credential(call)
    controls = read_controls(body, _CACHING, _TTLS)
    draft = Draft()
    tools = FLAT.tools(body)
    for tool in body.value.get("tools") or ():
        draft.add_tool(tool)
    form, schema, verbosity = _read_text(body, draft)
    own = _read_input(body, draft, key, service)
    if schema == {} and not mentions_json(draft):
        raise invalid(
            "Response input messages must contain the word 'json' in some form to use 'text.format' of type "
            "'json_object'.",
            "input",
        )
    thinking = _read_reasoning(body, model)
    _check_sampling(body, model)
    stream = body.flag("stream", None) or False
    prompt = draft.prompt(
        {
            "context_management": body.value.get("context_management"),
            "format": form if form["type"] != "text" else None,
            "parallel_tool_calls": body.value.get("parallel_tool_calls"),
            "reasoning_effort": thinking.effort,
            "verbosity": verbosity,
        },
        controls,
    )
    check_caching(prompt, model)
    prewarm = bool(controls.get("prompt_cache_options", {}).get("prewarm"))
    most = _read_limit(body, model)
    return Request(
        api=Api.OPENAI_RESPONSES,
        model=name,
        messages=draft.messages,
        system=draft.system,
        tools=tools,
        prompt=prompt,
        key=key,
        conversation=call.conversation,
        max_tokens=0 if prewarm else most,
        stream=stream,
        reasoning=model.takes.reasoning and thinking.effort != "none",
        schema=schema,
        options={
            "input": own,
            "prewarm": prewarm,
            "include_obfuscation": _read_obfuscation(body, stream=stream),
            "response": _echo(body, form, verbosity, thinking),
        },
    )


def _check_members(body: Fields) -> None:
    for name in _UNSUPPORTED:
        if body.value.get(name) not in (None, False):
            raise unsupported(name)
    body.only(*_MEMBERS, *CACHING_MEMBERS, *_UNSUPPORTED)
    for name in ("user", "safety_identifier"):
        body.text(name, None)
    body.texts("include", None)
    body.objects("context_management", None)
    bounded(body, "max_tool_calls", 1, whole=True)


def _read_text(body: Fields, draft: Draft) -> tuple[dict[str, Any], Mapping[str, Any] | None, str | None]:
    """Return the format of the answer, its JSON Schema (empty for any JSON), and its verbosity."""
    text = body.object("text", None)
    if text is None:
        return {"type": "text"}, None, None
    text.only("format", "verbosity")
    verbosity = text.choice("verbosity", VERBOSITIES, None)
    form = text.object("format", None)
    kind = "text" if form is None else form.choice("type", _FORMATS)
    if form is None or kind != "json_schema":
        return {"type": kind}, {} if kind == "json_object" else None, verbosity
    form.only("type", "name", "description", "schema", "strict")
    name = named(form)
    schema = form.object("schema").value
    strict = form.flag("strict", None) or False
    fault = schemas.fault(schema) if strict else None
    if fault is not None:
        message = f"Invalid schema for response_format '{name}': {fault}"
        raise invalid(message, "text.format.schema", "invalid_json_schema")
    draft.add_schema(form.value)
    description = form.text("description", None)
    shown = {
        "type": kind,
        "description": description,
        "name": name,
        "schema": schema,
        "strict": strict,
    }
    return shown, schema, verbosity


def _read_input(body: Fields, draft: Draft, key: str, service: Service) -> list[dict[str, Any]]:
    """Parse instructions, earlier and new items; return the items of the request itself."""
    instructions = body.text("instructions", None)
    if instructions:
        draft.instruct(instructions)
        block = {"type": "instructions", "text": instructions}
        draft.add(-1, "developer", block, tokens=count(instructions))
    given = body.get("input", Kind.STRING, Kind.ARRAY)
    if isinstance(given, str):
        given = [{"type": "message", "role": "user", "content": given}]
    own = [Fields.of(item, ("input", at), body.wording) for at, item in enumerate(given)]
    previous = body.text("previous_response_id", None)
    before = [] if previous is None else store.history(service, key, previous)
    # Earlier items are valid, so errors only refer to new ones.
    Items(draft).read([*(Fields(item, (), body.wording) for item in before), *own])
    return [item.value for item in own]


def _read_reasoning(body: Fields, model: Model) -> _Thinking:
    fields = body.object("reasoning", None)
    if fields is None:
        return _Thinking(None, None)
    fields.only("effort", "summary", "generate_summary", "context", "mode")
    summary = fields.choice("summary", _SUMMARIES, None) or fields.choice(
        "generate_summary", _SUMMARIES, None
    )
    return _Thinking(check_effort(fields, "effort", model), summary)


def _check_sampling(body: Fields, model: Model) -> None:
    for name, most in (("temperature", 2), ("top_p", 1)):
        bounded(body, name, 0, most)
        if body.value.get(name) not in (None, 1) and not model.takes.sampling:
            raise unsupported(name)
    bounded(body, "top_logprobs", 0, 20, whole=True)
    if body.value.get("top_logprobs"):
        # Scripted answers have no log probabilities; reasoning models reject them with the same message.
        raise unsupported("top_logprobs")


def _read_limit(body: Fields, model: Model) -> int | None:
    bounded(body, "max_output_tokens", _LEAST_OUTPUT, whole=True)
    return check_output(body, "max_output_tokens", model)


def _read_obfuscation(body: Fields, *, stream: bool) -> bool:
    options = body.object("stream_options", None)
    if options is None:
        return False
    if not stream:
        message = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        raise invalid(message, "stream_options")
    options.only("include_obfuscation")
    return options.flag("include_obfuscation", None) or False


def _echo(
    body: Fields, form: Mapping[str, Any], verbosity: str | None, thinking: _Thinking
) -> dict[str, Any]:
    """Return the request members that a response repeats."""
    sent = body.value
    tools = [_shown(tool) for tool in sent.get("tools") or ()]
    parallel = body.flag("parallel_tool_calls", None)
    stored = body.flag("store", None)
    echo = {
        "background": False,
        "instructions": sent.get("instructions"),
        "max_output_tokens": sent.get("max_output_tokens"),
        "max_tool_calls": sent.get("max_tool_calls"),
        "metadata": read_metadata(body) or {},
        "parallel_tool_calls": True if parallel is None else parallel,
        "previous_response_id": sent.get("previous_response_id"),
        "prompt_cache_key": sent.get("prompt_cache_key"),
        "prompt_cache_retention": sent.get("prompt_cache_retention"),
        "reasoning": {"effort": thinking.effort, "summary": thinking.summary},
        "safety_identifier": sent.get("safety_identifier"),
        "service_tier": body.choice("service_tier", TIERS, None) or "auto",
        "store": True if stored is None else stored,
        "temperature": 1.0 if sent.get("temperature") is None else sent["temperature"],
        "text": {"format": form, "verbosity": verbosity or "medium"},
        "tool_choice": sent.get("tool_choice") or "auto",
        "tools": tools,
        "top_logprobs": 0,
        "top_p": 1.0 if sent.get("top_p") is None else sent["top_p"],
        "truncation": body.choice("truncation", ("auto", "disabled"), None) or "disabled",
        "user": sent.get("user"),
    }
    options = sent.get("prompt_cache_options")
    if options is not None:
        echo["prompt_cache_options"] = {
            "mode": options.get("mode") or "implicit",
            "ttl": options.get("ttl") or "30m",
            "comparison_response_id": options.get("comparison_response_id"),
        }
        if options.get("comparison_response_id") is not None:
            echo["prompt_cache_diagnostics"] = {"type": "unavailable"}
    return echo


def _shown(tool: Mapping[str, Any]) -> dict[str, Any]:
    if tool["type"] != "function":
        return dict(tool)
    return {"description": None, "parameters": None, **tool, "strict": tool.get("strict") is not False}
