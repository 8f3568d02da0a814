"""Requests and replies, independent of the API.

A wire module parses the bytes of its API into a `Request`, and writes a `Reply` or an `ApiError` as its
provider would. The code between knows only these types. Texts are Unicode strings, JSON values are plain
Python values, and tokens are counted by `peripety.llmsim.provider_rules.models`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from jiter import from_json

if TYPE_CHECKING:
    from collections.abc import Mapping


class Api(StrEnum):
    """The APIs of requests."""

    IN_PROCESS = "in_process"
    ANTHROPIC = "anthropic"
    OPENAI_CHAT = "openai_chat"
    OPENAI_RESPONSES = "openai_responses"
    DEEPSEEK = "deepseek"
    GEMINI = "gemini"
    OLLAMA = "ollama"


class SimRole(StrEnum):
    """The role of a message. Tool results belong to the user role."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


# ---- what comes in


@dataclass(frozen=True, slots=True)
class SimToolCall:
    """A tool call.

    Attributes:
        name: the tool.
        arguments: a JSON value, usually an object.
        id: the id of the call; empty for APIs without ids.
    """

    name: str
    arguments: Any
    id: str = ""


@dataclass(frozen=True, slots=True)
class SimToolResult:
    """A tool result as text. `call_id` is empty if the API refers to tools instead of calls."""

    text: str
    call_id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class SimMessage:
    """A message: text, tool calls and tool results, without reasoning."""

    role: SimRole
    text: str = ""
    calls: tuple[SimToolCall, ...] = ()
    results: tuple[SimToolResult, ...] = ()


@dataclass(frozen=True, slots=True)
class SimTool:
    """A tool available to the model. `schema` is the JSON Schema of its arguments."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)


class CacheSection(StrEnum):
    """The sections of a prompt, in the order of the cached prefix."""

    TOOLS = "tools"
    SYSTEM = "system"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True)
class CacheBreakpoint:
    """A cache breakpoint. `automatic` breakpoints were not set by the caller."""

    ttl: str
    automatic: bool = False


@dataclass(frozen=True, slots=True)
class SimBlock:
    """A piece of a prompt as the provider counts and caches it.

    Attributes:
        section: its section of the prefix.
        kind: the provider's name of the block type, such as `text` or `tool_result`.
        content: canonical JSON of the block, without parts outside the cache key (markers).
        tokens: its number of input tokens.
        marker: the breakpoint on it, if any.
        message: index of its message in the request; -1 outside the messages.
    """

    section: CacheSection
    kind: str
    content: bytes
    tokens: int
    marker: CacheBreakpoint | None = None
    message: int = -1


@dataclass(frozen=True, slots=True)
class SimPrompt:
    """The complete model input, in the order of the cached prefix.

    Attributes:
        blocks: the pieces.
        settings: for each section, settings whose change invalidates the cache from that section on, as
            canonical JSON.
        controls: cache controls of the whole request, in the terms of the provider (`prompt_cache_key`,
            `prompt_cache_options`, `user_id`, `cachedContent`, ...).
    """

    blocks: tuple[SimBlock, ...] = ()
    settings: Mapping[CacheSection, bytes] = field(default_factory=dict)
    controls: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """Number of input tokens, cached or not."""
        return sum(block.tokens for block in self.blocks)


@dataclass(frozen=True, slots=True)
class SimRequest:
    """A parsed and valid request.

    Attributes:
        api: the API of the request.
        model: the model name, as sent.
        messages: the conversation without the system prompt, oldest first.
        system: the system prompt as one text.
        tools: the available tools.
        prompt: the same input as blocks, for counting and caching.
        key: the credential as sent. State is never shared between keys, and the key is never written
            anywhere.
        conversation: the conversation name, if the caller sets one.
        max_tokens: maximum number of output tokens.
        stop: the stop sequences.
        stream: True if the answer is streamed.
        reasoning: True if the caller allows visible reasoning.
        schema: the JSON Schema of the answer, if any; `{}` if only JSON is required.
        options: other data for the writer of this API, in its own terms (`include_usage`, ...).
    """

    api: Api
    model: str
    messages: tuple[SimMessage, ...]
    system: str = ""
    tools: tuple[SimTool, ...] = ()
    prompt: SimPrompt = field(default_factory=SimPrompt)
    key: str = ""
    conversation: str | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    stream: bool = False
    reasoning: bool = True
    schema: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


# ---- what goes out


@dataclass(frozen=True, slots=True)
class BilledUsage:
    """Billed tokens. Each input token is in exactly one of `fresh`, `read` and `written`.

    Attributes:
        fresh: input at full price.
        read: input read from the prompt cache.
        written: input written to the prompt cache, by the TTL of its entry (`5m`, `1h`, `30m`, ...).
        output: all output tokens, including reasoning.
        reasoning: the reasoning part of the output.
    """

    fresh: int = 0
    read: int = 0
    written: Mapping[str, int] = field(default_factory=dict)
    output: int = 0
    reasoning: int = 0

    @property
    def input(self) -> int:
        """All input tokens."""
        return self.fresh + self.read + sum(self.written.values())


@dataclass(frozen=True, slots=True)
class TextPart:
    """Prose. Each piece is one stream chunk; joined, the pieces are the text."""

    pieces: tuple[str, ...]

    @property
    def text(self) -> str:
        """The complete text."""
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class ReasoningPart:
    """Reasoning. `signature` is an opaque signature that some APIs require back."""

    pieces: tuple[str, ...]
    signature: str

    @property
    def text(self) -> str:
        """The complete text."""
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class RefusalPart:
    """A refusal of the model."""

    pieces: tuple[str, ...]

    @property
    def text(self) -> str:
        """The complete text."""
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class ToolUsePart:
    """A written tool call.

    Joined, `pieces` are its arguments as JSON, unless a fault makes them invalid.
    """

    id: str
    name: str
    pieces: tuple[str, ...]
    signature: str = ""

    @property
    def arguments_json(self) -> str:
        """The JSON text of the arguments."""
        return "".join(self.pieces)

    @property
    def arguments(self) -> Any:
        """The value of the arguments; the complete part of it if they are truncated."""
        return from_json(self.arguments_json.encode(), partial_mode=True) if self.arguments_json else {}


ReplyPart = TextPart | ReasoningPart | RefusalPart | ToolUsePart


class SimStopReason(StrEnum):
    """Stop reasons."""

    END = "end"
    TOOL_USE = "tool_use"
    LENGTH = "length"
    STOP_SEQUENCE = "stop_sequence"
    REFUSAL = "refusal"
    CONTENT_FILTER = "content_filter"


@dataclass(frozen=True, slots=True)
class SimReply:
    """A complete answer, before it is written in the format of an API.

    Attributes:
        id: 24 letters and digits that identify the answer; each API adds its own prefix.
        created: the time in seconds since 1970, by the simulator's clock.
        model: the model name, as requested.
        parts: reasoning first, then prose and tool calls, in order.
        stop: the stop reason.
        usage: the token usage.
        stop_sequence: the matched stop sequence, with `SimStopReason.STOP_SEQUENCE`.
    """

    id: str
    created: float
    model: str
    parts: tuple[ReplyPart, ...]
    stop: SimStopReason
    usage: BilledUsage
    stop_sequence: str | None = None


class FrameTag(StrEnum):
    """The content of a stream frame, so that a fault can find the frames that it affects."""

    START = "start"
    PART = "part"  # a part begins or ends
    TEXT = "text"
    REASONING = "reasoning"
    ARGUMENTS = "arguments"
    USAGE = "usage"  # only the usage
    STOP = "stop"
    END = "end"  # the end marker
    NOISE = "noise"  # pings and comments


T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class StreamFrame(Generic[T_co]):
    """A stream chunk with its number of output tokens: bytes on a wire, an event in process."""

    data: T_co
    tag: FrameTag
    tokens: int = 0


# ---- what goes wrong


class ApiErrorKind(StrEnum):
    """Errors common to all providers; each provider has its own status, type and format for them."""

    INVALID_REQUEST = "invalid_request"
    AUTHENTICATION = "authentication"
    BILLING = "billing"  # out of credit: not retryable
    PERMISSION = "permission"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    CONFLICT = "conflict"
    TOO_LARGE = "too_large"
    RATE_LIMIT = "rate_limit"
    SERVER = "server"
    UNAVAILABLE = "unavailable"
    OVERLOADED = "overloaded"
    TIMEOUT = "timeout"


class RetryForm(StrEnum):
    """Formats of a retry header."""

    SECONDS = "seconds"
    DATE = "date"
    MILLISECONDS = "milliseconds"


@dataclass(frozen=True, slots=True)
class RetryHint:
    """A retry delay. Providers that state it in the body do so for any form.

    Attributes:
        seconds: the delay in seconds.
        form: the format of the header.
    """

    seconds: float
    form: RetryForm = RetryForm.SECONDS


class ApiError(Exception):
    """An error response of a provider.

    Attributes:
        kind: the kind of error.
        message: the error message.
        param: the invalid field, as a path of the request body, if any.
        retry: the retry delay, if the provider states one.
        code: a provider-specific code, if it does not follow from the kind.
        status: the HTTP status, if it does not follow from the kind.
    """

    def __init__(
        self,
        kind: ApiErrorKind,
        message: str,
        *,
        param: str | None = None,
        retry: RetryHint | None = None,
        code: str | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.param = param
        self.retry = retry
        self.code = code
        self.status = status
