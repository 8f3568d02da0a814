"""Responses request parser: messages, tool calls, tool results and reasoning as items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.llmsim.determinism import is_own_signature
from peripety.llmsim.provider_rules.models import count_tokens, load_models
from peripety.llmsim.types import Api, ApiError, ApiErrorKind, SimRequest, SimToolCall, SimToolResult
from peripety.llmsim.wire.openai import prompt as openai_prompt
from peripety.llmsim.wire.openai import tools as openai_tools
from peripety.llmsim.wire.openai.chat_request import TIERS, VERBOSITIES, mentions_json, read_metadata
from peripety.llmsim.wire.openai.error_messages import (
    OpenAiErrorMessages,
    check_bounds,
    invalid_request,
    read_name,
    unsupported_parameter,
)
from peripety.llmsim.wire.openai.prompt import (
    CACHE_MEMBERS,
    PromptDraft,
    check_caching,
    check_effort,
    check_output,
    parse_arguments,
    read_controls,
    read_credential,
    read_marker,
)
from peripety.llmsim.wire.openai.tools import FLAT_LAYOUT
from peripety.llmsim.wire.request_parser import Fields, JsonType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from peripety.llmsim.provider_rules.models import SimModel
    from peripety.llmsim.wire.base import HttpCall, SimService


_ROLES = ("user", "assistant", "system", "developer")
_STATUSES = ("in_progress", "completed", "incomplete")
_INPUT = ("input_text", "input_image", "input_file")
_OUTPUT = ("output_text", "refusal")
_IMAGE_TOKENS = 765
# Items of hosted tools in a history are not checked.
_OPAQUE = (
    "apply_patch_call", "apply_patch_call_output", "code_interpreter_call", "compaction", "computer_call",
    "computer_call_output", "custom_tool_call", "custom_tool_call_output", "file_search_call",
    "image_generation_call", "local_shell_call", "local_shell_call_output", "mcp_approval_request",
    "mcp_approval_response", "mcp_call", "mcp_list_tools", "shell_call", "shell_call_output",
    "tool_search_call", "tool_search_output", "web_search_call",
)  # fmt: skip


class ResponseItems:
    """Parser of items into a draft.

    Args:
        draft: the conversation to extend.
    """

    def __init__(self, draft: PromptDraft) -> None:
        self._draft = draft
        self._tool_by_call_id: dict[str, str] = {}  # tool names by call id
        self._answered_call_ids: set[str] = set()
        self._readers: dict[str, Callable[[int, Fields], None]] = {
            "message": self._read_message,
            "function_call": self._read_call,
            "function_call_output": self._read_output,
            "reasoning": self._read_reasoning,
            "item_reference": self._read_reference,
            **dict.fromkeys(_OPAQUE, self._read_opaque),
        }

    def read_items(self, items: Sequence[Fields]) -> None:
        """Parse all items of a conversation, oldest first."""
        thought: Fields | None = None
        for at, item in enumerate(items):
            kind = _item_kind(item, self._readers)
            if thought is not None and not _is_model_item(item, kind):
                raise _without_following(thought)
            thought = item if kind == "reasoning" else None
            self._readers[kind](at, item)
        if thought is not None:
            raise _without_following(thought)
        for call_id in self._tool_by_call_id:
            if call_id not in self._answered_call_ids:
                raise invalid_request(f"No tool output found for function call {call_id}.", "input")

    def _read_message(self, at: int, item: Fields) -> None:
        item.reject_others("type", "role", "content", "status", "id", "phase")
        role = item.choice("role", _ROLES)
        item.choice("status", _STATUSES, None)
        item.text("id", None)
        assistant = role == "assistant"
        text = self._read_content(at, item, role, _OUTPUT if assistant else _INPUT)
        if assistant:
            self._draft.add_model_text(text)
        elif role == "user":
            self._draft.add_user_text(text)
        else:
            self._draft.add_instructions(text)

    def _read_content(self, at: int, item: Fields, role: str, types: Sequence[str]) -> str:
        value = item.get("content", JsonType.STRING, JsonType.ARRAY)
        if isinstance(value, str):
            self._draft.add_block(at, role, {"type": types[0], "text": value}, tokens=count_tokens(value))
            return value
        texts = []
        for part in item.objects("content"):
            kind = part.choice("type", types)
            if kind in ("input_text", "output_text", "refusal"):
                member = "refusal" if kind == "refusal" else "text"
                extra = ("annotations", "logprobs") if kind == "output_text" else ()
                part.reject_others("type", member, "prompt_cache_breakpoint", *extra)
                text = part.text(member)
                texts.append(text)
                block = {"type": kind, member: text}
                self._draft.add_block(at, role, block, tokens=count_tokens(text), marker=read_marker(part))
            else:
                tokens = _IMAGE_TOKENS if kind == "input_image" else None
                self._draft.add_block(at, role, part.value, tokens=tokens, marker=read_marker(part))
        return "\n".join(texts)

    def _read_call(self, at: int, item: Fields) -> None:
        item.reject_others(
            "type",
            "id",
            "call_id",
            "name",
            "arguments",
            "status",
            "namespace",
            "async",
            "caller",
        )
        item.choice("status", _STATUSES, None)
        call_id, name, written = item.text("call_id"), item.text("name"), item.text("arguments")
        self._tool_by_call_id[call_id] = name
        self._draft.add_call(SimToolCall(name, parse_arguments(written), call_id))
        block = {"type": "function_call", "call_id": call_id, "name": name, "arguments": written}
        self._draft.add_block(at, "assistant", block, tokens=count_tokens(name) + count_tokens(written))

    def _read_output(self, at: int, item: Fields) -> None:
        item.reject_others("type", "id", "call_id", "output", "status", "name", "namespace", "caller")
        item.choice("status", _STATUSES, None)
        call_id = item.text("call_id")
        if call_id not in self._tool_by_call_id:
            raise invalid_request(
                f"No tool call found for function call output with call_id {call_id}.",
                "input",
            )
        self._answered_call_ids.add(call_id)
        output = item.get("output", JsonType.STRING, JsonType.ARRAY)
        if isinstance(output, str):
            texts = [output]
        else:
            texts = [
                part.text("text")
                for part in item.objects("output")
                if part.choice("type", _INPUT) == _INPUT[0]
            ]
        text = "\n".join(texts)
        self._draft.add_result(SimToolResult(text, call_id, self._tool_by_call_id[call_id]))
        block = {"type": "function_call_output", "call_id": call_id, "output": output}
        tokens = count_tokens(text) if isinstance(output, str) else None
        self._draft.add_block(at, "tool", block, tokens=tokens)

    def _read_reasoning(self, at: int, item: Fields) -> None:
        item.reject_others("type", "id", "summary", "content", "encrypted_content", "status")
        item.choice("status", _STATUSES, None)
        thoughts = item.text("encrypted_content", None)
        if thoughts is not None and not is_own_signature(thoughts):
            raise invalid_request(
                f"The encrypted content {thoughts[:4]}...{thoughts[-4:]} could not be verified. Reason: "
                f"Encrypted "
                "content could not be decrypted or parsed.",
                code="invalid_encrypted_content",
            )
        summaries = [part.text("text") for part in item.objects("summary")]
        block = {"type": "reasoning", "id": item.text("id", None), "summary": summaries}
        self._draft.add_block(at, "assistant", block, tokens=sum(map(count_tokens, summaries)))

    def _read_reference(self, at: int, item: Fields) -> None:  # noqa: ARG002
        reference = item.text("id")
        raise ApiError(
            ApiErrorKind.NOT_FOUND,
            f"Item with id '{reference}' not found. Send the item itself: whole responses are kept, not "
            "single items.",
            param="input",
        )

    def _read_opaque(self, at: int, item: Fields) -> None:
        self._draft.add_block(at, "assistant", item.value)


def _item_kind(item: Fields, readers: dict[str, Any]) -> str:
    if "type" not in item and "role" in item:
        return "message"
    return item.choice("type", tuple(readers))


def _is_model_item(item: Fields, kind: str) -> bool:
    return item.value.get("role") == "assistant" if kind == "message" else not kind.endswith("_output")


def _without_following(item: Fields) -> ApiError:
    return invalid_request(
        f"Item '{item.value.get('id')}' of type 'reasoning' was provided without its required following "
        "item.",
        "input",
    )


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
_MIN_OUTPUT_TOKENS = 16


@dataclass(frozen=True, slots=True)
class _ResponsesReasoning:
    """Reasoning settings."""

    effort: str | None
    summary: str | None


def read_responses_request(call: HttpCall, service: SimService) -> SimRequest:
    """Parse a request for a response, or for its number of input tokens."""
    body = Fields.parse(call.body, OpenAiErrorMessages())
    _check_members(body)
    name = body.text("model", None) or call.params.get("deployment")
    if not name:
        raise body.messages.missing_member(("model",))
    model = load_models().find(name, Api.OPENAI_RESPONSES)
    key = read_credential(call)
    controls = read_controls(body, _CACHING, _TTLS)
    draft = PromptDraft()
    tools = FLAT_LAYOUT.read_tools(body)
    for tool in body.value.get("tools") or ():
        draft.add_tool(tool)
    form, schema, verbosity = _read_text(body, draft)
    own = _read_input(body, draft, key, service)
    if schema == {} and not mentions_json(draft):
        raise invalid_request(
            "Response input messages must contain the word 'json' in some form to use 'text.format' of type "
            "'json_object'.",
            "input",
        )
    thinking = _read_reasoning(body, model)
    _check_sampling(body, model)
    stream = body.flag("stream", None) or False
    prompt = draft.to_prompt(
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
    return SimRequest(
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
            "response": _echo_request(body, form, verbosity, thinking),
        },
    )


def _check_members(body: Fields) -> None:
    for name in _UNSUPPORTED:
        if body.value.get(name) not in (None, False):
            raise unsupported_parameter(name)
    body.reject_others(*_MEMBERS, *CACHE_MEMBERS, *_UNSUPPORTED)
    for name in ("user", "safety_identifier"):
        body.text(name, None)
    body.texts("include", None)
    body.objects("context_management", None)
    check_bounds(body, "max_tool_calls", 1, whole=True)


def _read_text(
    body: Fields,
    draft: PromptDraft,
) -> tuple[dict[str, Any], Mapping[str, Any] | None, str | None]:
    """Return the format of the answer, its JSON Schema (empty for any JSON), and its verbosity."""
    text = body.object("text", None)
    if text is None:
        return {"type": "text"}, None, None
    text.reject_others("format", "verbosity")
    verbosity = text.choice("verbosity", VERBOSITIES, None)
    form = text.object("format", None)
    kind = "text" if form is None else form.choice("type", _FORMATS)
    if form is None or kind != "json_schema":
        return {"type": kind}, {} if kind == "json_object" else None, verbosity
    form.reject_others("type", "name", "description", "schema", "strict")
    name = read_name(form)
    schema = form.object("schema").value
    strict = form.flag("strict", None) or False
    fault = openai_tools.schema_fault(schema) if strict else None
    if fault is not None:
        message = f"Invalid schema for response_format '{name}': {fault}"
        raise invalid_request(message, "text.format.schema", "invalid_json_schema")
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


def _read_input(body: Fields, draft: PromptDraft, key: str, service: SimService) -> list[dict[str, Any]]:
    """Parse instructions, earlier and new items; return the items of the request itself."""
    instructions = body.text("instructions", None)
    if instructions:
        draft.add_instructions(instructions)
        block = {"type": "instructions", "text": instructions}
        draft.add_block(-1, "developer", block, tokens=count_tokens(instructions))
    given = body.get("input", JsonType.STRING, JsonType.ARRAY)
    if isinstance(given, str):
        given = [{"type": "message", "role": "user", "content": given}]
    own = [Fields.from_value(item, ("input", at), body.messages) for at, item in enumerate(given)]
    previous = body.text("previous_response_id", None)
    before = [] if previous is None else openai_prompt.conversation_items(service, key, previous)
    # Earlier items are valid, so errors only refer to new ones.
    ResponseItems(draft).read_items([*(Fields(item, (), body.messages) for item in before), *own])
    return [item.value for item in own]


def _read_reasoning(body: Fields, model: SimModel) -> _ResponsesReasoning:
    fields = body.object("reasoning", None)
    if fields is None:
        return _ResponsesReasoning(None, None)
    fields.reject_others("effort", "summary", "generate_summary", "context", "mode")
    summary = fields.choice("summary", _SUMMARIES, None) or fields.choice(
        "generate_summary",
        _SUMMARIES,
        None,
    )
    return _ResponsesReasoning(check_effort(fields, "effort", model), summary)


def _check_sampling(body: Fields, model: SimModel) -> None:
    for name, most in (("temperature", 2), ("top_p", 1)):
        check_bounds(body, name, 0, most)
        if body.value.get(name) not in (None, 1) and not model.takes.sampling:
            raise unsupported_parameter(name)
    check_bounds(body, "top_logprobs", 0, 20, whole=True)
    if body.value.get("top_logprobs"):
        # Scripted answers have no log probabilities; reasoning models reject them with the same message.
        raise unsupported_parameter("top_logprobs")


def _read_limit(body: Fields, model: SimModel) -> int | None:
    check_bounds(body, "max_output_tokens", _MIN_OUTPUT_TOKENS, whole=True)
    return check_output(body, "max_output_tokens", model)


def _read_obfuscation(body: Fields, *, stream: bool) -> bool:
    options = body.object("stream_options", None)
    if options is None:
        return False
    if not stream:
        message = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        raise invalid_request(message, "stream_options")
    options.reject_others("include_obfuscation")
    return options.flag("include_obfuscation", None) or False


def _echo_request(
    body: Fields,
    form: Mapping[str, Any],
    verbosity: str | None,
    thinking: _ResponsesReasoning,
) -> dict[str, Any]:
    """Return the request members that a response repeats."""
    sent = body.value
    tools = [_tool_to_echo(tool) for tool in sent.get("tools") or ()]
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


def _tool_to_echo(tool: Mapping[str, Any]) -> dict[str, Any]:
    if tool["type"] != "function":
        return dict(tool)
    return {"description": None, "parameters": None, **tool, "strict": tool.get("strict") is not False}
