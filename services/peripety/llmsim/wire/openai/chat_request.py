"""Chat completion request parser, with the message format that many providers share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.llmsim.provider_rules.models import count_tokens, load_models
from peripety.llmsim.types import Api, SimRequest, SimToolCall, SimToolResult
from peripety.llmsim.wire.openai import tools as openai_tools
from peripety.llmsim.wire.openai.error_messages import (
    OpenAiErrorMessages,
    check_bounds,
    check_length,
    invalid_request,
    read_name,
    unsupported_parameter,
    unsupported_value,
)
from peripety.llmsim.wire.openai.prompt import (
    CACHE_MEMBERS,
    PromptDraft,
    check_caching,
    check_effort,
    check_output,
    check_sampling,
    parse_arguments,
    read_controls,
    read_credential,
    read_marker,
)
from peripety.llmsim.wire.openai.tools import NESTED_LAYOUT
from peripety.llmsim.wire.request_parser import Fields, JsonType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.llmsim.provider_rules.models import SimModel
    from peripety.llmsim.types import ApiError
    from peripety.llmsim.wire.base import HttpCall


_TEXT = ("text",)
_ANSWER = ("text", "refusal")
_ANYTHING = ("text", "image_url", "input_audio", "file")
_DETAILS = ("auto", "low", "high", "original")
_IMAGE_TOKENS = {"low": 85}
_USUAL_IMAGE_TOKENS = 765


class ChatMessages:
    """Parser of messages into a draft.

    Args:
        draft: the conversation to extend.
    """

    roles: Sequence[str] = ("system", "assistant", "user", "tool", "developer")
    # The last one is a member of the SDK, which sends back its parsed value; the API accepts it.
    assistant_members: Sequence[str] = (
        "role", "content", "name", "refusal", "tool_calls", "function_call", "audio", "annotations", "parsed",
    )  # fmt: skip

    def __init__(self, draft: PromptDraft) -> None:
        self.draft = draft
        self._tool_by_call_id: dict[str, str] = {}  # tool names by call id, for the last answer
        self._open_call_ids: list[str] = []

    def read_messages(self, body: Fields) -> None:
        """Parse all messages of a request."""
        messages = body.objects("messages")
        check_length(body.path_of("messages"), messages, 1, 2**31)
        for at, message in enumerate(messages):
            role = message.choice("role", self.roles)
            if self._open_call_ids and role != "tool":
                raise self.unanswered_calls_error(self._open_call_ids)
            if role == "assistant":
                self.read_answer(at, message)
            elif role == "tool":
                self._read_result(at, message)
            elif role == "user":
                message.reject_others("role", "content", "name")
                self.draft.add_user_text(self._read_content(at, message, role, _ANYTHING))
            else:
                message.reject_others("role", "content", "name")
                self.draft.add_instructions(self._read_content(at, message, role, _TEXT))
        if self._open_call_ids:
            raise self.unanswered_calls_error(self._open_call_ids)

    # ---- errors and hooks of compatible APIs

    def unanswered_calls_error(self, ids: Sequence[str]) -> ApiError:
        """Return the error for tool calls without results."""
        return invalid_request(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: " + ", ".join(ids),
            "messages",
        )

    def orphaned_result_error(self, at: int) -> ApiError:
        """Return the error for a result without a call."""
        return invalid_request(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
            "'tool_calls'.",
            f"messages.[{at}].role",
        )

    def unknown_call_error(self, at: int, call_id: str) -> ApiError:
        """Return the error for a result of an unknown call."""
        return invalid_request(
            f"Invalid parameter: 'tool_call_id' of '{call_id}' not found in 'tool_calls' of previous "
            "message.",
            f"messages.[{at}].tool_call_id",
        )

    def read_extra_members(self, at: int, message: Fields, *, calling: bool) -> None:
        """Parse members of a model message that only some APIs have, before its content."""

    # ---- the roles

    def read_answer(self, at: int, message: Fields) -> None:
        """Parse a model message."""
        message.reject_others(*self.assistant_members)
        for name in ("function_call", "audio"):
            if message.value.get(name) is not None:
                raise unsupported_parameter(f"messages[{at}].{name}")
        calls = message.objects("tool_calls", None)
        refusal = message.text("refusal", None)
        required = not calls and refusal is None
        self.read_extra_members(at, message, calling=bool(calls))
        text = self._read_content(at, message, "assistant", _ANSWER, required=required)
        if refusal:
            self.draft.add_block(
                at,
                "assistant",
                {"type": "refusal", "refusal": refusal},
                tokens=count_tokens(refusal),
            )
        self.draft.add_model_text(text or refusal or "")
        self._tool_by_call_id = {}
        for call in calls:
            self._read_call(at, call)
        self._open_call_ids = list(self._tool_by_call_id)

    def _read_call(self, at: int, call: Fields) -> None:
        call.reject_others("id", "type", "function", "index")
        call_id = call.text("id")
        call.choice("type", ("function",))
        function = call.object("function")
        function.reject_others("name", "arguments", "parsed_arguments")
        name, written = function.text("name"), function.text("arguments")
        self._tool_by_call_id[call_id] = name
        self.draft.add_call(SimToolCall(name, parse_arguments(written), call_id))
        block = {"type": "function", "name": name, "arguments": written, "id": call_id}
        self.draft.add_block(at, "assistant", block, tokens=count_tokens(name) + count_tokens(written))

    def _read_result(self, at: int, message: Fields) -> None:
        message.reject_others("role", "content", "tool_call_id", "name")
        call_id = message.text("tool_call_id")
        if not self._tool_by_call_id:
            raise self.orphaned_result_error(at)
        if call_id not in self._tool_by_call_id:
            raise self.unknown_call_error(at, call_id)
        if call_id in self._open_call_ids:
            self._open_call_ids.remove(call_id)
        text = self._read_content(at, message, "tool", _TEXT)
        self.draft.add_result(SimToolResult(text, call_id, self._tool_by_call_id[call_id]))

    # ---- content

    def _read_content(
        self,
        at: int,
        message: Fields,
        role: str,
        types: Sequence[str],
        *,
        required: bool = True,
    ) -> str:
        """Add the blocks of a message's content, and return its text."""
        if required:
            value = message.get("content", JsonType.STRING, JsonType.ARRAY)
        else:
            value = message.get("content", JsonType.STRING, JsonType.ARRAY, default=None)
        extra = {"tool_call_id": message.value["tool_call_id"]} if role == "tool" else {}
        if value is None:
            return ""
        if isinstance(value, str):
            if value or role != "assistant":
                self.draft.add_block(
                    at,
                    role,
                    {"type": "text", "text": value, **extra},
                    tokens=count_tokens(value),
                )
            return value
        check_length(message.path_of("content"), value, 1, 2**31)
        texts = []
        for part in message.objects("content"):
            kind = part.choice("type", types)
            part.reject_others("type", kind, "prompt_cache_breakpoint")
            if kind in _ANSWER:
                text = part.text(kind)
                texts.append(text)
                tokens: int | None = count_tokens(text)
            else:
                tokens = _media_tokens(part, kind)
            self.draft.add_block(at, role, {**part.value, **extra}, tokens=tokens, marker=read_marker(part))
        return "\n".join(texts)


def _media_tokens(part: Fields, kind: str) -> int | None:
    inner = part.object(kind)
    if kind != "image_url":
        return None
    inner.text("url")
    return _IMAGE_TOKENS.get(inner.choice("detail", _DETAILS, "auto"), _USUAL_IMAGE_TOKENS)


_MEMBERS = (
    "frequency_penalty", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "messages",
    "metadata", "modalities", "model", "n", "parallel_tool_calls", "prediction", "presence_penalty",
    "reasoning_effort", "response_format", "safety_identifier", "seed", "service_tier", "stop", "store",
    "stream", "stream_options", "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user",
    "verbosity",
)  # fmt: skip
_REPLACED_MEMBERS = {"functions": "tools", "function_call": "tool_choice"}
_REJECTED_MEMBERS = (*_REPLACED_MEMBERS, "audio", "moderation", "web_search_options")
_RARE_MEMBERS = frozenset(
    {"logit_bias", "modalities", "n", "prediction", "safety_identifier", "seed", "store", "user"},
)
TIERS = ("auto", "default", "flex", "scale", "priority", "fast")
VERBOSITIES = ("low", "medium", "high")
_FORMATS = ("text", "json_object", "json_schema")
_STOPS = 4
_METADATA = 16


def read_chat_request(call: HttpCall) -> SimRequest:
    """Parse a chat completion request."""
    body = Fields.parse(call.body, OpenAiErrorMessages())
    _check_members(body)
    name = body.text("model", call.params.get("deployment"))
    if not name:
        raise body.messages.missing_member(("model",))
    model = load_models().find(name, Api.OPENAI_CHAT)
    controls = read_controls(body, ("mode", "ttl"), ("30m",))
    draft = PromptDraft()
    tools = NESTED_LAYOUT.read_tools(body)
    for tool in body.value.get("tools") or ():
        draft.add_tool(tool)
    schema = _read_format(body, draft)
    ChatMessages(draft).read_messages(body)
    if schema == {} and not mentions_json(draft):
        raise invalid_request(
            "'messages' must contain the word 'json' in some form, to use 'response_format' of type "
            "'json_object'.",
            "messages",
        )
    check_sampling(body, model)
    effort = check_effort(body, "reasoning_effort", model)
    most = _read_limit(body, model)
    stream, options = read_stream(body)
    prompt = draft.to_prompt(
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
    return SimRequest(
        api=Api.OPENAI_CHAT,
        model=name,
        messages=draft.messages,
        system=draft.system,
        tools=tools,
        prompt=prompt,
        key=read_credential(call),
        conversation=call.conversation,
        max_tokens=most,
        stop=read_stops(body, _STOPS),
        stream=stream,
        reasoning=model.takes.reasoning and effort != "none",
        schema=schema,
        options={**options, "service_tier": body.choice("service_tier", TIERS, None)},
    )


def _check_members(body: Fields) -> None:
    """Reject unknown members, and check rarely used ones."""
    for name in _REJECTED_MEMBERS:
        if body.value.get(name) is not None:
            raise unsupported_parameter(name, _REPLACED_MEMBERS.get(name))
    body.reject_others(*_MEMBERS, *CACHE_MEMBERS, *_REJECTED_MEMBERS)
    if _RARE_MEMBERS.isdisjoint(body.value):
        return
    if body.texts("modalities", None) not in ([], ["text"]):
        raise unsupported_value("modalities", body.value["modalities"], ["text"])
    check_bounds(body, "n", 1, 128, whole=True)
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
        raise invalid_request(
            f"Invalid 'metadata': too many properties. Expected an object with at most {_METADATA} "
            f"properties, but got an object with {len(notes.value)} properties instead.",
            "metadata",
            "object_above_max_properties",
        )
    return {name: notes.text(name) for name in notes.value}


def _read_format(body: Fields, draft: PromptDraft) -> Mapping[str, Any] | None:
    """Return the JSON Schema of the answer; empty for any JSON."""
    chosen = body.object("response_format", None)
    if chosen is None:
        return None
    kind = chosen.choice("type", _FORMATS)
    if kind != "json_schema":
        chosen.reject_others("type")
        return {} if kind == "json_object" else None
    chosen.reject_others("type", "json_schema")
    inner = chosen.object("json_schema")
    inner.reject_others("name", "description", "schema", "strict")
    name = read_name(inner)
    inner.text("description", None)
    schema = inner.object("schema", None)
    value = {} if schema is None else schema.value
    fault = openai_tools.schema_fault(value) if inner.flag("strict", None) else None
    if fault is not None:
        raise invalid_request(f"Invalid schema for response_format '{name}': {fault}", "response_format")
    draft.add_schema(inner.value)
    return value


def mentions_json(draft: PromptDraft) -> bool:
    """Return True if a message contains the word JSON."""
    return any("json" in text.lower() for text in (draft.system, *(each.text for each in draft.messages)))


def _read_limit(body: Fields, model: SimModel) -> int | None:
    if body.value.get("max_tokens") is not None:
        if not model.takes.sampling:
            raise unsupported_parameter("max_tokens", "max_completion_tokens")
        if body.value.get("max_completion_tokens") is not None:
            raise invalid_request(
                "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
                "max_tokens",
                "invalid_parameter_combination",
            )
        return check_output(body, "max_tokens", model)
    return check_output(body, "max_completion_tokens", model)


def read_stops(body: Fields, max_count: int) -> tuple[str, ...]:
    """Parse the stop sequences."""
    value = body.get("stop", JsonType.STRING, JsonType.ARRAY, default=None)
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    check_length(body.path_of("stop"), value, 1, max_count)
    return tuple(body.texts("stop"))


def read_stream(body: Fields) -> tuple[bool, dict[str, Any]]:
    """Return whether the answer is streamed, and the stream options."""
    stream = body.flag("stream", None) or False
    options = body.object("stream_options", None)
    if options is None:
        return stream, {}
    if not stream:
        raise invalid_request(
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
            "stream_options",
        )
    options.reject_others("include_usage", "include_obfuscation")
    return stream, {
        "include_usage": options.flag("include_usage", None) or False,
        "include_obfuscation": options.flag("include_obfuscation", None) or False,
    }
