"""What a request and its answer are, whichever API they come and go by.

A wire module reads the bytes of its API into a `Request` and writes a `Reply` or an `ApiError` as its
provider would; everything between the two knows only these types. Texts are Unicode strings, JSON values are
plain Python values, tokens are counted by `peripety.simulator.truth.tokens`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from jiter import from_json

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Api",
    "ApiError",
    "Block",
    "ErrorKind",
    "Frame",
    "Marker",
    "Message",
    "Part",
    "Prompt",
    "Reasoning",
    "Refusal",
    "Reply",
    "Request",
    "RetryForm",
    "RetryHint",
    "Role",
    "Section",
    "Stop",
    "Tag",
    "Text",
    "Tool",
    "ToolCall",
    "ToolResult",
    "ToolUse",
    "Usage",
]


class Api(StrEnum):
    """The APIs a request can come by."""

    IN_PROCESS = "in_process"
    ANTHROPIC = "anthropic"
    OPENAI_CHAT = "openai_chat"
    OPENAI_RESPONSES = "openai_responses"
    DEEPSEEK = "deepseek"
    GEMINI = "gemini"
    OLLAMA = "ollama"


class Role(StrEnum):
    """Who speaks in a message; tool results are a part of what the user's side says."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


# ---- what comes in


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool.

    Attributes:
        name: the tool.
        arguments: a JSON value, usually an object.
        id: the call's id; empty for APIs that have none.
    """

    name: str
    arguments: Any
    id: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool gave back, as text; `call_id` is empty where the API names tools instead of calls."""

    text: str
    call_id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation: what was said, called and given back, without reasoning."""

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that the model may call; `schema` is the JSON Schema of its arguments."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)


class Section(StrEnum):
    """The parts of a prompt, in the order in which they form the cached prefix."""

    TOOLS = "tools"
    SYSTEM = "system"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True)
class Marker:
    """The wish to have the prompt cached up to here; `automatic` ones were placed by no caller."""

    ttl: str
    automatic: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """One piece of a prompt as its provider counts and caches it.

    Attributes:
        section: where in the prefix it stands.
        kind: the provider's name of the block's type, such as `text` or `tool_result`.
        content: canonical JSON of the block, without what does not belong to the cache key (markers).
        tokens: how many input tokens it costs.
        marker: the breakpoint on it, if any.
        message: index of its message in the request; -1 outside the messages.
    """

    section: Section
    kind: str
    content: bytes
    tokens: int
    marker: Marker | None = None
    message: int = -1


@dataclass(frozen=True, slots=True)
class Prompt:
    """Everything a model reads, in the order of the cached prefix.

    Attributes:
        blocks: the pieces.
        settings: for each section, settings whose change makes what was cached from there on useless, as
            canonical JSON.
        controls: cache controls of the request as a whole, in the provider's own words (`prompt_cache_key`,
            `prompt_cache_options`, `user_id`, `cachedContent`, ...).
    """

    blocks: tuple[Block, ...] = ()
    settings: Mapping[Section, bytes] = field(default_factory=dict)
    controls: Mapping[str, Any] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        """How many input tokens the prompt costs, cached or not."""
        return sum(block.tokens for block in self.blocks)


@dataclass(frozen=True, slots=True)
class Request:
    """One request, read and found valid.

    Attributes:
        api: the API it came by.
        model: the model's name, as sent.
        messages: the conversation without the system prompt, oldest first.
        system: the system prompt as one text.
        tools: what may be called.
        prompt: the same as blocks, for counting and caching.
        key: who asks: the credential as sent; state is never shared between keys. It is never written
            anywhere.
        conversation: the conversation's name, where the caller gives one.
        max_tokens: the most output tokens the caller allows.
        stop: texts at which the answer ends.
        stream: whether the answer is streamed.
        reasoning: whether the caller lets the model show its reasoning.
        schema: the JSON Schema the answer has to follow, if any; `{}` where only JSON is asked for.
        options: what else this API's writer needs, in its own words (`include_usage`, ...).
    """

    api: Api
    model: str
    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[Tool, ...] = ()
    prompt: Prompt = field(default_factory=Prompt)
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
class Usage:
    """Tokens as they are billed; each token of the input is in exactly one of `fresh`, `read` and `written`.

    Attributes:
        fresh: input at full price.
        read: input read from the prompt cache.
        written: input written to the prompt cache, by the TTL of its entry (`5m`, `1h`, `30m`, ...).
        output: everything the model wrote, its reasoning included.
        reasoning: the part of the output that is reasoning.
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
class Text:
    """Prose; its pieces, joined, are the text, and each is one chunk of a stream."""

    pieces: tuple[str, ...]

    @property
    def text(self) -> str:
        """The whole of it."""
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What the model thought; `signature` is the opaque proof that some APIs want back."""

    pieces: tuple[str, ...]
    signature: str

    @property
    def text(self) -> str:
        """The whole of it."""
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The model declines, in words."""

    pieces: tuple[str, ...]

    @property
    def text(self) -> str:
        """The whole of it."""
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call as written; `pieces`, joined, are its arguments as JSON, unless a failure spoils them."""

    id: str
    name: str
    pieces: tuple[str, ...]
    signature: str = ""

    @property
    def json(self) -> str:
        """The arguments' JSON text."""
        return "".join(self.pieces)

    @property
    def input(self) -> Any:
        """The arguments' value; what is complete of it, where they are cut off."""
        return from_json(self.json.encode(), partial_mode=True) if self.json else {}


Part = Text | Reasoning | Refusal | ToolUse


class Stop(StrEnum):
    """Why the model stopped."""

    END = "end"
    TOOL_USE = "tool_use"
    LENGTH = "length"
    STOP_SEQUENCE = "stop_sequence"
    REFUSAL = "refusal"
    CONTENT_FILTER = "content_filter"


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer, before it is written in an API's words.

    Attributes:
        id: 24 letters and digits that identify the answer; each API puts its own prefix before them.
        created: when, in seconds since 1970, by the simulator's clock.
        model: the model's name, as asked for.
        parts: reasoning first, then prose and tool calls, in order.
        stop: why it ends.
        usage: what it cost.
        stop_sequence: the text that ended it, with `Stop.STOP_SEQUENCE`.
    """

    id: str
    created: float
    model: str
    parts: tuple[Part, ...]
    stop: Stop
    usage: Usage
    stop_sequence: str | None = None


class Tag(StrEnum):
    """What a frame of a stream carries, so that a failure can find what it breaks."""

    START = "start"
    PART = "part"  # a part begins or ends
    TEXT = "text"
    REASONING = "reasoning"
    ARGUMENTS = "arguments"
    USAGE = "usage"  # nothing but the usage
    STOP = "stop"
    END = "end"  # the mark after which nothing follows
    NOISE = "noise"  # pings and comments


T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Frame(Generic[T_co]):
    """One chunk of a stream: bytes on a wire, an event in process; `tokens` of output leave with it."""

    data: T_co
    tag: Tag
    tokens: int = 0


# ---- what goes wrong


class ErrorKind(StrEnum):
    """Errors that every provider knows, each with a status, a type and a shape of its own."""

    INVALID_REQUEST = "invalid_request"
    AUTHENTICATION = "authentication"
    BILLING = "billing"  # out of credits: permanent until somebody pays
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
    """How a header says when to come back."""

    SECONDS = "seconds"
    DATE = "date"
    MILLISECONDS = "milliseconds"


@dataclass(frozen=True, slots=True)
class RetryHint:
    """When to come back; providers that say so in the body do so whatever the form.

    Attributes:
        seconds: after how many seconds.
        form: how a header says so.
    """

    seconds: float
    form: RetryForm = RetryForm.SECONDS


class ApiError(Exception):
    """An error a provider would answer with.

    Attributes:
        kind: which one.
        message: what the caller is told.
        param: the field at fault, as a path of the request's body, if there is one.
        retry: when to come back, if the provider says so.
        code: the provider's own finer code, where one is wanted that does not follow from the kind.
        status: the HTTP status, where one is wanted that does not follow from the kind.
    """

    def __init__(
        self,
        kind: ErrorKind,
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
