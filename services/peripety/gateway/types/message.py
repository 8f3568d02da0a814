"""Messages, their parts and tools, in provider-neutral form."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping


class ChatRole(Enum):
    """Author of a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"

    def to_provider_string(self, provider: str) -> str:
        """Return the provider's name of the role: "model" for `gemini` (alias `google`)."""
        if self is ChatRole.ASSISTANT and provider in {"gemini", "google"}:
            return "model"
        return self.value


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call requested by the model; the caller runs it and answers with a `ToolResult`.

    Attributes:
        call_id: referenced by the result; unique in a conversation.
        name: the tool's name as offered, regardless of its wire name.
        arguments: one JSON object, as text.
    """

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call.

    Attributes:
        call_id: the call that it answers.
        text: the result for the model.
        is_error: whether the tool failed; the text then describes the failure.
    """

    call_id: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Reasoning:
    """The model's reasoning, or the provider's summary of it: for the client only, never sent again."""

    text: str


@dataclass(frozen=True, slots=True)
class ProviderState:
    """Opaque provider data that must be sent back unchanged: signatures, encrypted reasoning.

    Attributes:
        issuer: the provider that issued it, and the only one that receives it.
        data: opaque; excluded from repr, so that no log or error repeats it.
    """

    issuer: str
    data: bytes = field(repr=False)


Part: TypeAlias = Text | ToolCall | ToolResult | Reasoning | ProviderState
"""A part of a message. Tool results belong to the user; all other parts except text to the assistant."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation."""

    role: ChatRole
    parts: tuple[Part, ...]

    @classmethod
    def system(cls, text: str) -> Self:
        """Create an instruction message between others.

        The instructions of the whole conversation are separate.
        """
        return cls(ChatRole.SYSTEM, (Text(text),))

    @classmethod
    def user(cls, text: str) -> Self:
        """Create a user message."""
        return cls(ChatRole.USER, (Text(text),))

    @classmethod
    def assistant(cls, text: str) -> Self:
        """Create an assistant message; without parts if the text is empty."""
        return cls(ChatRole.ASSISTANT, (Text(text),) if text else ())

    @property
    def text(self) -> str:
        """Return all plain text of the message."""
        return "".join([part.text for part in self.parts if isinstance(part, Text)])

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """Return the requested tool calls, in order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a model may call.

    Attributes:
        name: any text; mapped if a provider forbids its characters.
        description: purpose and use, for the model.
        input_schema: JSON Schema (2020-12) of the arguments, which are one object.
        strict: whether the provider must enforce the schema of the arguments, where it can.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    strict: bool = False


class ToolChoiceMode(Enum):
    """Freedom of a model to call tools."""

    AUTO = "auto"
    """The model decides."""
    NONE = "none"
    """It must not call any."""
    ANY = "any"
    """It must call at least one."""
    NAMED = "named"
    """It must call the named one."""


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Tool choice: the tools that a model may, must or must not call.

    Attributes:
        mode: the freedom of the model.
        name: the tool of `ToolChoiceMode.NAMED`.
        disable_parallel: whether at most one call at a time is allowed.
    """

    mode: ToolChoiceMode = ToolChoiceMode.AUTO
    name: str | None = None
    disable_parallel: bool = False
