"""Chat completion request parser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Api, Request
from peripety.simulator.truth.models import catalogue
from peripety.simulator.wire.openai import schemas
from peripety.simulator.wire.openai.caching import MEMBERS as CACHING_MEMBERS
from peripety.simulator.wire.openai.caching import read_controls
from peripety.simulator.wire.openai.calls import credential
from peripety.simulator.wire.openai.limits import (
    check_caching,
    check_effort,
    check_output,
    check_sampling,
)
from peripety.simulator.wire.openai.messages import Messages
from peripety.simulator.wire.openai.prompt import Draft
from peripety.simulator.wire.openai.tools import NESTED
from peripety.simulator.wire.openai.wording import (
    Wording,
    bounded,
    invalid,
    named,
    sized,
    unsupported,
    unsupported_value,
)
from peripety.simulator.wire.reading import Fields, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.simulator.truth.models import Model
    from peripety.simulator.wire.base import Call

__all__ = ["TIERS", "VERBOSITIES", "mentions_json", "read", "read_metadata", "read_stream", "stops"]

_MEMBERS = (
    "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "messages",
    "metadata", "modalities", "model", "n", "parallel_tool_calls", "prediction", "presence_penalty",
    "reasoning_effort", "response_format", "safety_identifier", "seed", "service_tier", "stop", "store",
    "stream", "stream_options", "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user",
    "verbosity",
)  # fmt: skip
_REPLACED = {"functions": "tools", "function_call": "tool_choice"}
_REFUSED = (*_REPLACED, "audio", "moderation", "web_search_options")
_RARE = frozenset(
    {"logit_bias", "modalities", "n", "prediction", "safety_identifier", "seed", "store", "user"}
)
TIERS = ("auto", "default", "flex", "scale", "priority", "fast")
VERBOSITIES = ("low", "medium", "high")
_FORMATS = ("text", "json_object", "json_schema")
_STOPS = 4
_METADATA = 16


def read(call: Call) -> Request:
    """Parse a chat completion request."""
    body = Fields.parse(call.body, Wording())
    _check_members(body)
    name = body.text("model", call.params.get("deployment"))
    if not name:
        raise body.wording.missing(("model",))
    model = catalogue().find(name, Api.OPENAI_CHAT)
    controls = read_controls(body, ("mode", "ttl"), ("30m",))
    draft = Draft()
    tools = NESTED.tools(body)
    for tool in body.value.get("tools") or ():
        draft.add_tool(tool)
    schema = _read_format(body, draft)
    Messages(draft).read(body)
    if schema == {} and not mentions_json(draft):
        raise invalid(
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type "
            "'json_object'.",
            "messages",
        )
    check_sampling(body, model)
    effort = check_effort(body, "reasoning_effort", model)
    most = _read_limit(body, model)
    stream, options = read_stream(body)
    prompt = draft.prompt(
        {
            "parallel_tool_calls": body.value.get("parallel_tool_calls"),
            "reasoning_effort": effort,
            "response_format": body.value.get("response_format"),
            "verbosity": body.choice("verbosity", VERBOSITIES, None),
        },
        controls,
    )
    check_caching(prompt, model)
    read_metadata(body)
    return Request(
        api=Api.OPENAI_CHAT,
        model=name,
        messages=draft.messages,
        system=draft.system,
        tools=tools,
        prompt=prompt,
        key=credential(call),
        conversation=call.conversation,
        max_tokens=most,
        stop=stops(body, _STOPS),
        stream=stream,
        reasoning=model.takes.reasoning and effort != "none",
        schema=schema,
        options={**options, "service_tier": body.choice("service_tier", TIERS, None)},
    )


def _check_members(body: Fields) -> None:
    """Reject unknown members, and check rarely used ones."""
    for name in _REFUSED:
        if body.value.get(name) is not None:
            raise unsupported(name, _REPLACED.get(name))
    body.only(*_MEMBERS, *CACHING_MEMBERS, *_REFUSED)
    if _RARE.isdisjoint(body.value):
        return
    if body.texts("modalities", None) not in ([], ["text"]):
        raise unsupported_value("modalities", body.value["modalities"], ["text"])
    bounded(body, "n", 1, 128, whole=True)
    if body.value.get("n") not in (None, 1):
        raise unsupported_value("n", body.value["n"], 1)
    body.integer("seed", None)
    body.flag("store", None)
    body.text("user", None)
    body.text("safety_identifier", None)
    body.object("prediction", None)
    body.object("logit_bias", None)


def read_metadata(body: Fields) -> Mapping[str, str] | None:
    """Parse the caller's metadata: up to 16 texts."""
    notes = body.object("metadata", None)
    if notes is None:
        return None
    if len(notes.value) > _METADATA:
        raise invalid(
            f"Invalid 'metadata': too many properties. Expected an object with at most {_METADATA} "
            f"properties, but got an object with {len(notes.value)} properties instead.",
            "metadata",
            "object_above_max_properties",
        )
    return {name: notes.text(name) for name in notes.value}


def _read_format(body: Fields, draft: Draft) -> Mapping[str, Any] | None:
    """Return the JSON Schema of the answer; empty for any JSON."""
    chosen = body.object("response_format", None)
    if chosen is None:
        return None
    kind = chosen.choice("type", _FORMATS)
    if kind != "json_schema":
        chosen.only("type")
        return {} if kind == "json_object" else None
    chosen.only("type", "json_schema")
    inner = chosen.object("json_schema")
    inner.only("name", "description", "schema", "strict")
    name = named(inner)
    inner.text("description", None)
    schema = inner.object("schema", None)
    value = {} if schema is None else schema.value
    fault = schemas.fault(value) if inner.flag("strict", None) else None
    if fault is not None:
        raise invalid(f"Invalid schema for response_format '{name}': {fault}", "response_format")
    draft.add_schema(inner.value)
    return value


def mentions_json(draft: Draft) -> bool:
    """Return True if a message contains the word JSON."""
    return any("json" in text.lower() for text in (draft.system, *(each.text for each in draft.messages)))


def _read_limit(body: Fields, model: Model) -> int | None:
    if body.value.get("max_tokens") is not None:
        if not model.takes.sampling:
            raise unsupported("max_tokens", "max_completion_tokens")
        if body.value.get("max_completion_tokens") is not None:
            raise invalid(
                "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
                "max_tokens",
                "invalid_parameter_combination",
            )
        return check_output(body, "max_tokens", model)
    return check_output(body, "max_completion_tokens", model)


def stops(body: Fields, most: int) -> tuple[str, ...]:
    """Parse the stop sequences."""
    value = body.get("stop", Kind.STRING, Kind.ARRAY, default=None)
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    sized(body.at("stop"), value, 1, most)
    return tuple(body.texts("stop"))


def read_stream(body: Fields) -> tuple[bool, dict[str, Any]]:
    """Return whether the answer is streamed, and the stream options."""
    stream = body.flag("stream", None) or False
    options = body.object("stream_options", None)
    if options is None:
        return stream, {}
    if not stream:
        raise invalid(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options"
        )
    options.only("include_usage", "include_obfuscation")
    return stream, {
        "include_usage": options.flag("include_usage", None) or False,
        "include_obfuscation": options.flag("include_obfuscation", None) or False,
    }
