"""What a conversation is made of, in terms that every provider can be given."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ChatMessage",
    "ChatRole",
    "Part",
    "ProviderState",
    "Reasoning",
    "Text",
    "Tool",
    "ToolCall",
    "ToolChoice",
    "ToolChoiceMode",
    "ToolResult",
]


class ChatRole(Enum):
    """Who said a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"

    def to_provider_string(self, provider: str) -> str:
        """The name of the role at a provider: `gemini`, which is also called `google`, says "model"."""
        if self is ChatRole.ASSISTANT and provider in {"gemini", "google"}:
            return "model"
        return self.value


@dataclass(frozen=True, slots=True)
class Text:
    """Plain text."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to have a tool called; the caller runs it and answers with a `ToolResult`.

    Attributes:
        call_id: what the result refers to; unique in a conversation.
        name: the tool as it was offered, whatever the provider made of its name on the wire.
        arguments: one JSON object, as text.
    """

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to a tool call.

    Attributes:
        call_id: the call that it answers.
        text: the answer as the model should read it.
        is_error: whether the tool failed; the text then says why.
    """

    call_id: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What a model thought, or its provider's summary of it: for the caller to read, never sent again."""

    text: str


@dataclass(frozen=True, slots=True)
class ProviderState:
    """What a provider wants back unchanged: signatures, encrypted reasoning.

    Attributes:
        issuer: the provider that issued it; nobody else is given it.
        data: opaque to everybody else; never shown, so that no log or error repeats it.
    """

    issuer: str
    data: bytes = field(repr=False)


Part: TypeAlias = Text | ToolCall | ToolResult | Reasoning | ProviderState
"""A piece of a message. Tool results belong to the user, everything but text else to the assistant."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation."""

    role: ChatRole
    parts: tuple[Part, ...]

    @classmethod
    def system(cls, text: str) -> Self:
        """Instructions that come between messages; those of the whole conversation have their own place."""
        return cls(ChatRole.SYSTEM, (Text(text),))

    @classmethod
    def user(cls, text: str) -> Self:
        """What the user says."""
        return cls(ChatRole.USER, (Text(text),))

    @classmethod
    def assistant(cls, text: str) -> Self:
        """What the model says; no part at all when that is nothing."""
        return cls(ChatRole.ASSISTANT, (Text(text),) if text else ())

    @property
    def text(self) -> str:
        """Everything that is said in plain text."""
        return "".join([part.text for part in self.parts if isinstance(part, Text)])

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tools that the model wants called, in its order."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a model may call.

    Attributes:
        name: any text; it is mapped where a provider forbids its characters.
        description: what it does and when to use it, for the model.
        input_schema: JSON Schema (2020-12) of the arguments, which are one object.
        strict: whether the provider must hold the arguments to the schema, where it can.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    strict: bool = False


class ToolChoiceMode(Enum):
    """How free a model is to call tools."""

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
    """Which tools a model may, must or must not call.

    Attributes:
        mode: how free it is.
        name: the tool of `ToolChoiceMode.NAMED`.
        disable_parallel: whether at most one call may come at a time.
    """

    mode: ToolChoiceMode = ToolChoiceMode.AUTO
    name: str | None = None
    disable_parallel: bool = False
