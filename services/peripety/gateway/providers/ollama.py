"""Ollama's `/api/chat`: request body, stream decoder and wire protocol."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.gateway.message_normalization import ToolNames, to_wire_name
from peripety.gateway.providers.completion_builder import (
    CompletionBuilder,
    get_count,
    get_list,
    get_object,
    get_text,
    parse_object,
    truncated_stream_error,
)
from peripety.gateway.providers.error_mapping import ErrorVocabulary
from peripety.gateway.providers.history_compat import (
    CallIdGenerator,
    instructions_to_user_text,
    parse_arguments,
    tool_names_by_call,
)
from peripety.gateway.providers.provider import AnswerFinished
from peripety.gateway.providers.schema_dialect import adapt_call
from peripety.gateway.providers.stream_framing import StreamFraming
from peripety.gateway.providers.wire_protocol import RequestBody
from peripety.gateway.request_checks import (
    parallel_call_violations,
    reject_unsupported,
    required_tool_violations,
)
from peripety.gateway.token_estimate import estimate_prompt_tokens
from peripety.gateway.types.message import (
    ChatRole,
    ProviderState,
    Reasoning,
    Text,
    ToolChoiceMode,
    ToolResult,
)
from peripety.gateway.types.response import StopReason, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pydantic import SecretStr

    from peripety.gateway.providers.error_mapping import ErrorMapper
    from peripety.gateway.providers.provider import Delta, ProviderCall
    from peripety.gateway.providers.wire_protocol import AnswerDecoder
    from peripety.gateway.types.message import ChatMessage, Part, Tool
    from peripety.gateway.types.request import GenerateRequest


OLLAMA_ISSUER = "ollama"

_Json = dict[str, Any]


def to_messages(messages: Sequence[ChatMessage], *, system_messages: bool) -> list[_Json]:
    """Convert the turns; a turn without any supported part is omitted.

    Args:
        messages: merged.
        system_messages: whether instructions between messages are supported.
    """
    called = tool_names_by_call(messages)
    return [
        written
        for message in messages
        for written in _convert_message(message, called, system_messages=system_messages)
    ]


def _convert_message(
    message: ChatMessage,
    called: Mapping[str, str],
    *,
    system_messages: bool,
) -> Iterator[_Json]:
    match message.role:
        case ChatRole.SYSTEM if system_messages:
            yield {"role": "system", "content": message.text}
        case ChatRole.SYSTEM:
            yield {"role": "user", "content": instructions_to_user_text(message)}
        case ChatRole.USER:
            yield from _convert_results(message, called)
            texts = [part.text for part in message.parts if isinstance(part, Text)]
            if texts:
                yield {"role": "user", "content": "".join(texts)}
        case ChatRole.ASSISTANT:
            said = _assistant_fields(message)
            if said:
                yield {"role": "assistant", "content": "", **said}


def _convert_results(message: ChatMessage, called: Mapping[str, str]) -> Iterator[_Json]:
    """Yield results in the order of their calls: they are matched by order and tool name."""
    order = {call_id: place for place, call_id in enumerate(called)}
    results = [part for part in message.parts if isinstance(part, ToolResult)]
    for result in sorted(results, key=lambda each: order[each.call_id]):
        text = f"Error: {result.text}" if result.is_error else result.text
        yield {"role": "tool", "tool_name": to_wire_name(called[result.call_id]), "content": text}


def _assistant_fields(message: ChatMessage) -> _Json:
    thoughts = [
        part.data.decode(errors="replace")
        for part in message.parts
        if isinstance(part, ProviderState) and part.issuer == OLLAMA_ISSUER
    ]
    calls = [
        {"function": {"name": to_wire_name(call.name), "arguments": parse_arguments(call)}}
        for call in message.tool_calls
    ]
    said = {"content": message.text, "thinking": "".join(thoughts), "tool_calls": calls}
    return {name: value for name, value in said.items() if value}


_MIN_CONTEXT = 4096


def to_ollama_body(call: ProviderCall) -> RequestBody:
    """Return the body of a streaming call; unset options are omitted.

    Raises:
        InvalidArgumentError: the model does not support an option; the message names it.
    """
    reject_unsupported(call, [*required_tool_violations(call), *parallel_call_violations(call.request)])
    tools = _allowed_tools(call.request)
    # A format applies from the first token on, which would prevent tool calls.
    asked = adapt_call(call, lambda schema: (None if tools else schema.document, ()))
    request = asked.call.request
    system = [{"role": "system", "content": request.system}] if request.system else []
    turns = to_messages(request.messages, system_messages=call.data.traits.system_messages)
    optional = {"tools": tools, "format": asked.native_schema}
    document = {
        "model": call.model,
        "messages": system + turns,
        "stream": True,
        **{name: value for name, value in optional.items() if value},
        "options": _to_options(call, request),
    }
    return RequestBody(document, asked.report)


def _allowed_tools(request: GenerateRequest) -> list[dict[str, Any]]:
    """Return the tools; empty if calls are forbidden, because the API has no other way to forbid them."""
    if request.tool_choice is not None and request.tool_choice.mode is ToolChoiceMode.NONE:
        return []
    return [{"type": "function", "function": _to_function(tool)} for tool in request.tools]


def _to_function(tool: Tool) -> dict[str, Any]:
    name = to_wire_name(tool.name)
    return {"name": name, "description": tool.description, "parameters": tool.input_schema}


def _to_options(call: ProviderCall, request: GenerateRequest) -> dict[str, Any]:
    answer = request.max_output_tokens or call.data.default_output_tokens
    options = {
        "num_ctx": _context_size(call, estimate_prompt_tokens(request) + answer),
        "num_predict": answer,
        "temperature": request.temperature if call.data.traits.sampling else None,
        "seed": request.seed,
        "stop": list(request.stop_sequences) or None,
    }
    return {name: value for name, value in options.items() if value is not None}


def _context_size(call: ProviderCall, needed: int) -> int:
    """Return a context size for prompt and answer; the server silently drops the start of a longer prompt.

    It grows by doubling, because the server reloads the model for each new size.
    """
    size = _MIN_CONTEXT
    while size < needed:
        size *= 2
    return min(size, call.data.context_tokens or size)


_STOP_REASONS = {"stop": StopReason.END, "length": StopReason.LENGTH}


class OllamaStream:
    """State of one answer, which ends with a line marked as done.

    Unknown fields are ignored; a known one of the wrong type is an error.

    Args:
        error_mapper: converts errors inside the stream.
        call: the call that is answered.
    """

    def __init__(self, error_mapper: ErrorMapper, call: ProviderCall) -> None:
        self._error_mapper = error_mapper
        self._model = call.model
        self._names = ToolNames.from_request(call.request)
        self._ids = CallIdGenerator(call.request.messages)
        self._builder = CompletionBuilder()
        self._stop_reason = StopReason.OTHER
        self._usage = Usage()
        self.done = False

    @property
    def complete(self) -> bool:
        """Return True if the whole answer has arrived."""
        return self.done

    def feed(self, data: str) -> Sequence[Delta]:
        """Decode a line; return the deltas.

        Raises:
            PeripetyError: the server reports an error.
            UnavailableError: the line is invalid.
        """
        if self.done:
            return ()
        line = parse_object(data)
        if line.get("error"):
            raise self._error_mapper.from_stream(line["error"])
        self._model = get_text(line.get("model")) or self._model
        if line.get("done") is True:
            self._end(line)
        return self._read(get_object(line.get("message")))

    def finish(self) -> AnswerFinished:
        """Return the end of the answer.

        Raises:
            UnavailableError: the stream was truncated.
        """
        if not self.done:
            raise truncated_stream_error("before its last line")
        parts, reason = self._builder.finish(self._stop_reason)
        return AnswerFinished((*parts, *_reasoning_states(parts)), reason, self._usage, self._model)

    def _end(self, line: Mapping[str, Any]) -> None:
        self.done = True
        self._stop_reason = _STOP_REASONS.get(get_text(line.get("done_reason")), StopReason.OTHER)
        self._usage = Usage(get_count(line.get("prompt_eval_count")), get_count(line.get("eval_count")))

    def _read(self, message: Mapping[str, Any]) -> list[Delta]:
        deltas = self._builder.add_reasoning(get_text(message.get("thinking")))
        deltas += self._builder.add_text(get_text(message.get("content")))
        for call in get_list(message.get("tool_calls")):
            deltas += self._read_call(get_object(get_object(call).get("function")))
        return deltas

    def _read_call(self, function: Mapping[str, Any]) -> list[Delta]:
        name = self._names.from_wire(get_text(function.get("name")))
        growing = self._builder.open_call(self._ids.next(), name)
        arguments = get_object(function.get("arguments"))
        written = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
        return self._builder.add_arguments(growing, written)


def _reasoning_states(parts: Sequence[Part]) -> list[ProviderState]:
    """Return the model's reasoning in the form that it requires back."""
    thoughts = "".join(part.text for part in parts if isinstance(part, Reasoning))
    return [ProviderState(OLLAMA_ISSUER, thoughts.encode())] if thoughts else []


class OllamaWire:
    """Implements `Wire`."""

    framing = StreamFraming.LINES
    vocabulary = ErrorVocabulary()

    def path(self, _call: ProviderCall) -> str:
        """Return the path of a call, relative to the base URL."""
        return "/api/chat"

    def headers(self, _call: ProviderCall, key: SecretStr | None) -> Mapping[str, str]:
        """Return the credentials, for a server behind an authenticating proxy."""
        return {} if key is None else {"Authorization": f"Bearer {key.get_secret_value()}"}

    def body(self, call: ProviderCall) -> RequestBody:
        """Return the body of a call."""
        return to_ollama_body(call)

    def answer(self, call: ProviderCall, _body: RequestBody, error_mapper: ErrorMapper) -> AnswerDecoder:
        """Return the decoder of the answer to a call with this body."""
        return OllamaStream(error_mapper, call)

    def token_count_request(self, _call: ProviderCall) -> None:
        """Return None: Ollama does not count tokens."""
