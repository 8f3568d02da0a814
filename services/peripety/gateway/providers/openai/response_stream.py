"""OpenAI response stream of a Chat Completions call: tool calls, `<think>` tags and the wire protocol.

Some servers leave reasoning in the text of an answer, between tags at its start. Later tags are content,
such as those in generated code. A closing tag quoted inside the reasoning ends it too early.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from peripety.gateway.message_normalization import ToolNames
from peripety.gateway.models.model_data import Capability
from peripety.gateway.providers.completion_builder import (
    CompletionBuilder,
    get_count,
    get_list,
    get_object,
    get_text,
    malformed_stream_error,
    parse_object,
    truncated_stream_error,
)
from peripety.gateway.providers.history_compat import CallIdGenerator
from peripety.gateway.providers.openai.dialect import VOCABULARY, Dialect
from peripety.gateway.providers.openai.request_body import to_openai_body
from peripety.gateway.providers.provider import AnswerFinished
from peripety.gateway.providers.stream_framing import StreamFraming
from peripety.gateway.types.message import ProviderState, Reasoning, Text
from peripety.gateway.types.response import SchemaMethod, StopReason, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import SecretStr

    from peripety.gateway.providers.completion_builder import PartialToolCall
    from peripety.gateway.providers.error_mapping import ErrorMapper
    from peripety.gateway.providers.provider import Delta, ProviderCall
    from peripety.gateway.providers.wire_protocol import AnswerDecoder, RequestBody


class ToolCallAssembler:
    """Assembler of streamed tool calls.

    The first piece of a call has its name and id, later ones only its index. Some servers send whole calls,
    without an index or all with the same one, or without an id.

    Args:
        builder: the answer that the calls belong to.
        names: the offered tools.
        ids: generator of ids for calls without a unique one.
    """

    def __init__(self, builder: CompletionBuilder, names: ToolNames, ids: CallIdGenerator) -> None:
        self._builder = builder
        self._names = names
        self._ids = ids
        self._by_index: dict[int, PartialToolCall] = {}
        self._by_id: dict[str, PartialToolCall] = {}
        self._last_call: PartialToolCall | None = None

    def feed(self, piece: Mapping[str, Any]) -> list[Delta]:
        """Add one piece; return the deltas.

        Raises:
            UnavailableError: it neither belongs to a call nor starts one (code STREAM_MALFORMED).
        """
        index = piece.get("index")
        if index is not None and not isinstance(index, int):
            raise malformed_stream_error("the index of a tool call is not a number")
        function = get_object(piece.get("function"))
        call = self._find_or_open_call(index, get_text(piece.get("id")), get_text(function.get("name")))
        return self._builder.add_arguments(call, get_text(function.get("arguments")))

    def _find_or_open_call(self, index: int | None, call_id: str, name: str) -> PartialToolCall:
        begun = self._find_open_call(index, call_id, name)
        if begun is not None:
            return begun
        if not name:
            raise malformed_stream_error("a piece of a tool call belongs to none")
        call = self._builder.open_call(self._ids.make_unique(call_id), self._names.from_wire(name))
        self._last_call = call
        if index is not None:
            self._by_index[index] = call
        if call_id:
            self._by_id[call_id] = call
        return call

    def _find_open_call(self, index: int | None, call_id: str, name: str) -> PartialToolCall | None:
        """Return the call that a piece continues; None if it starts one."""
        if call_id:
            # With an index in use, another id starts another call.
            return self._by_id.get(call_id)
        if index is not None:
            return self._by_index.get(index)
        return None if name else self._last_call


_CLOSING_TAGS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<mm:think>": "</mm:think>",
    "[THINK]": "[/THINK]",
}


class _TagParserState(Enum):
    """Position within an answer."""

    BEFORE = "before"
    """Nothing is known yet."""
    UNMARKED = "unmarked"
    """It started without a tag, and may be reasoning."""
    THINKING = "thinking"
    AFTER = "after"
    """Only whitespace has followed the reasoning."""
    ANSWER = "answer"


class ThinkTagParser:
    """Incremental splitter of an answer into reasoning and text.

    The template of some models opens the reasoning, so that only its closing tag is in the answer. For a
    model known to reason, everything is therefore held back until a closing tag or the end resolves it.

    Args:
        is_reasoning_model: whether the model is known to reason before it answers.
    """

    def __init__(self, *, is_reasoning_model: bool) -> None:
        self._is_reasoning_model = is_reasoning_model
        self._state = _TagParserState.BEFORE
        self._closing: Sequence[str] = ()
        self._aside: list[str] = []
        self._buffer = ""

    def feed(self, text: str) -> list[Text | Reasoning]:
        """Add a piece of text; return the parts that are resolved."""
        self._buffer += text
        found: list[Text | Reasoning] = []
        while self._buffer and (piece := self._step()) is not None:
            found.append(piece)
        return [piece for piece in found if piece.text]

    def disable(self) -> None:
        """Treat all further input as text: the server separates the reasoning itself."""
        self._buffer = "".join([*self._aside, self._buffer])
        self._aside, self._state = [], _TagParserState.ANSWER

    def finish(self, *, truncated: bool) -> list[Text | Reasoning]:
        """Return the text that was held back.

        Args:
            truncated: whether the answer ended at its limit; an answer that started without a tag is then
                reasoning.
        """
        held = "".join([*self._aside, self._buffer])
        self._aside, self._buffer = [], ""
        if not held:
            return []
        thought = self._state is _TagParserState.THINKING or (
            self._state is _TagParserState.UNMARKED and truncated
        )
        return [Reasoning(held) if thought else Text(held)]

    def _step(self) -> Text | Reasoning | None:
        """Take one step through the buffer; return None if more input is needed."""
        match self._state:
            case _TagParserState.BEFORE:
                return self._begin()
            case _TagParserState.UNMARKED | _TagParserState.THINKING:
                return self._find_end()
            case _TagParserState.AFTER:
                self._buffer = self._buffer.lstrip()
                self._state = _TagParserState.ANSWER if self._buffer else _TagParserState.AFTER
                return Text("")
            case _TagParserState.ANSWER:
                said, self._buffer = self._buffer, ""
                return Text(said)

    def _begin(self) -> Text | None:
        start = self._buffer.lstrip()
        for opening, closing in _CLOSING_TAGS.items():
            if start.startswith(opening):
                self._state, self._closing = _TagParserState.THINKING, (closing,)
                self._buffer = start.removeprefix(opening)
                return Text("")
        if any(opening.startswith(start) for opening in _CLOSING_TAGS):
            return None
        self._state = _TagParserState.UNMARKED if self._is_reasoning_model else _TagParserState.ANSWER
        self._closing = tuple(_CLOSING_TAGS.values())
        return Text("")

    def _find_end(self) -> Reasoning | None:
        """Find the end of the reasoning."""
        ends = [(self._buffer.find(tag), tag) for tag in self._closing if tag in self._buffer]
        if ends:
            place, tag = min(ends)
            thought = "".join([*self._aside, self._buffer[:place]])
            self._aside, self._buffer = [], self._buffer[place + len(tag) :]
            self._state = _TagParserState.AFTER
            return Reasoning(thought)
        certain = len(self._buffer) - max(_partial_tag_length(tag, self._buffer) for tag in self._closing)
        piece, self._buffer = self._buffer[:certain], self._buffer[certain:]
        if self._state is _TagParserState.THINKING:
            return Reasoning(piece) if piece else None
        self._aside.append(piece)
        return None


def _partial_tag_length(tag: str, text: str) -> int:
    """Return the length of the longest suffix of a text that is a prefix of a tag."""
    sizes = range(min(len(tag) - 1, len(text)), 0, -1)
    return next((size for size in sizes if text.endswith(tag[:size])), 0)


_STOP_REASONS = {
    "stop": StopReason.END,
    **dict.fromkeys(("tool_calls", "function_call"), StopReason.TOOL_USE),
    "length": StopReason.LENGTH,
    "content_filter": StopReason.REFUSAL,
}
# DeepSeek's machines could not continue.
_OUT_OF_CAPACITY = "insufficient_system_resource"
_REASONING_FIELDS = ("reasoning_content", "reasoning")


class ChatCompletionStream:
    """State of one answer.

    Only the first choice is read. Unknown fields are ignored; a known one of the wrong type is an error, and
    so is an unannounced end.

    Args:
        error_mapper: converts errors inside the stream.
        call: the call that is answered.
        method: how the answer is made to match its schema, if it has one.
        dialect: the dialect of the server.
    """

    def __init__(
        self,
        error_mapper: ErrorMapper,
        call: ProviderCall,
        method: SchemaMethod | None,
        dialect: Dialect,
    ) -> None:
        self._error_mapper = error_mapper
        self._call = call
        self._model = call.model
        self._builder = CompletionBuilder(method)
        self._calls = ToolCallAssembler(
            self._builder,
            ToolNames.from_request(call.request),
            CallIdGenerator(call.request.messages),
        )
        self._tag_parser = (
            ThinkTagParser(is_reasoning_model=_may_start_with_reasoning(call, method, dialect))
            if dialect.has_inline_reasoning
            else None
        )
        self._reasoning_texts: list[str] = []
        self._finish_reason: str | None = None
        self._refusal_texts = False
        self._usage = Usage()
        self.done = False

    @property
    def complete(self) -> bool:
        """Return True if the whole text has arrived; the usage may follow."""
        return self.done or self._finish_reason is not None

    def feed(self, data: str) -> Sequence[Delta]:
        """Decode the data of one event; return the deltas.

        Raises:
            PeripetyError: the server reports an error.
            UnavailableError: the event is not a chunk of an answer.
        """
        if self.done:
            return ()
        if data.strip() == "[DONE]":
            self.done = True
            return self._release(truncated=False)
        chunk = parse_object(data)
        if chunk.get("error"):
            raise self._error_mapper.from_stream(chunk["error"])
        self._model = get_text(chunk.get("model")) or self._model
        if usage := get_object(chunk.get("usage")):
            # The counts of a stream that reports them with every chunk are totals: the last one is final.
            self._usage = _to_usage(usage)
        return self._read_choices(chunk.get("choices"))

    def finish(self) -> AnswerFinished:
        """Return the end of the answer.

        Raises:
            UnavailableError: the stream was truncated.
        """
        if not self.complete:
            raise truncated_stream_error("without a finish_reason")
        parts, reason = self._builder.finish(self._stop_reason())
        if self._reasoning_texts and self._call.data.traits.replays_reasoning:
            parts += (ProviderState(self._call.data.provider, "".join(self._reasoning_texts).encode()),)
        return AnswerFinished(parts, reason, self._usage, self._model)

    def _stop_reason(self) -> StopReason:
        if self._refusal_texts:
            return StopReason.REFUSAL
        # Some servers send no finish reason.
        return _STOP_REASONS.get(self._finish_reason or "stop", StopReason.OTHER)

    def _read_choices(self, choices: Any) -> Sequence[Delta]:
        deltas: list[Delta] = []
        for choice in map(get_object, get_list(choices)):
            if choice.get("index", 0) == 0:
                deltas += self._read_delta(get_object(choice.get("delta")))
                if reason := get_text(choice.get("finish_reason")):
                    deltas += self._end(reason)
        return deltas

    def _read_delta(self, delta: Mapping[str, Any]) -> list[Delta]:
        deltas: list[Delta] = []
        if thought := next(filter(None, (get_text(delta.get(field)) for field in _REASONING_FIELDS)), ""):
            deltas += self._emit(Reasoning(thought))
            if self._tag_parser is not None:
                self._tag_parser.disable()
        deltas += self._read_text(get_text(delta.get("content")))
        if refusal := get_text(delta.get("refusal")):
            self._refusal_texts = True
            deltas += self._emit(Text(refusal))
        pieces = get_list(delta.get("tool_calls"))
        if pieces:
            deltas += self._release(truncated=False)
        return deltas + [each for piece in pieces for each in self._calls.feed(get_object(piece))]

    def _read_text(self, text: str) -> list[Delta]:
        parted = [Text(text)] if self._tag_parser is None else self._tag_parser.feed(text)
        return [delta for part in parted for delta in self._emit(part)]

    def _release(self, *, truncated: bool) -> list[Delta]:
        """Release the text that was held back until it was known whether it is reasoning."""
        held = [] if self._tag_parser is None else self._tag_parser.finish(truncated=truncated)
        return [delta for part in held for delta in self._emit(part)]

    def _emit(self, part: Text | Reasoning) -> list[Delta]:
        if isinstance(part, Text):
            return self._builder.add_text(part.text)
        self._reasoning_texts.append(part.text)
        return self._builder.add_reasoning(part.text)

    def _end(self, reason: str) -> list[Delta]:
        if reason == _OUT_OF_CAPACITY:
            raise self._error_mapper.from_stream({"message": "out of capacity", "code": 503})
        self._finish_reason = reason
        return self._release(truncated=reason == "length")


def _may_start_with_reasoning(call: ProviderCall, method: SchemaMethod | None, dialect: Dialect) -> bool:
    """Return True if an answer may start with reasoning without an opening tag."""
    if method not in {None, SchemaMethod.EXTRACTION}:
        # A schema is enforced from the first character on, so the text contains no reasoning.
        return False
    opened = dialect.opens_reasoning
    known = opened is not None and opened.search(call.model) is not None
    return known or Capability.REASONING in call.data.capabilities


def _to_usage(usage: Mapping[str, Any]) -> Usage:
    read = get_object(usage.get("prompt_tokens_details"))
    written = get_object(usage.get("completion_tokens_details"))
    # DeepSeek's own field name is the older one.
    cached = get_count(read.get("cached_tokens")) or get_count(usage.get("prompt_cache_hit_tokens"))
    return Usage(
        input_tokens=get_count(usage.get("prompt_tokens")),
        output_tokens=get_count(usage.get("completion_tokens")),
        cache_read_tokens=cached,
        cache_write_tokens=get_count(read.get("cache_write_tokens")),
        reasoning_tokens=get_count(written.get("reasoning_tokens")),
    )


class ChatCompletionsWire:
    """Implements `Wire`.

    Args:
        dialect: the dialect of the server.
    """

    framing = StreamFraming.EVENTS
    vocabulary = VOCABULARY

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def path(self, call: ProviderCall) -> str:
        """Return the path of a call, relative to the base URL."""
        version = call.data.traits.api_version
        if self._dialect.deployment_path is None or not version:
            return self._dialect.path
        return self._dialect.deployment_path.format(
            model=quote(call.model, safe=""),
            api_version=quote(version, safe=""),
        )

    def headers(self, _call: ProviderCall, key: SecretStr | None) -> Mapping[str, str]:
        """Return the required headers, with the credentials."""
        if key is None:
            return {}
        return {self._dialect.key_header: self._dialect.key_prefix + key.get_secret_value()}

    def body(self, call: ProviderCall) -> RequestBody:
        """Return the body of a call.

        Raises:
            InvalidArgumentError: the model does not support the request.
        """
        return to_openai_body(call, self._dialect)

    def answer(self, call: ProviderCall, body: RequestBody, error_mapper: ErrorMapper) -> AnswerDecoder:
        """Return the decoder of the answer to a call with this body."""
        return ChatCompletionStream(error_mapper, call, body.schema_method, self._dialect)

    def token_count_request(self, _call: ProviderCall) -> None:
        """Return None: Chat Completions do not count tokens."""
