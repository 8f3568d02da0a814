"""Message list builder, for APIs with one message per part of a conversation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.simulator.model import Message, Role

if TYPE_CHECKING:
    from peripety.simulator.model import ToolCall, ToolResult

__all__ = ["Dialogue"]


class Dialogue:
    """Builder of a conversation.

    Leading instructions are the system prompt. Tool results and the user text after them are one message, as
    are a model text and the tool calls after it.
    """

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._system: list[str] = []

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages without the system prompt."""
        return tuple(self._messages)

    @property
    def system(self) -> str:
        """The system prompt."""
        return "\n".join(self._system)

    def instruct(self, text: str) -> None:
        """Add instructions of the developer or system role."""
        if self._messages:
            self._messages.append(Message(Role.SYSTEM, text))
        else:
            self._system.append(text)

    def ask(self, text: str) -> None:
        """Add a user text."""
        last = self._messages[-1] if self._messages else None
        if last is not None and last.results and not last.text:
            self._messages[-1] = replace(last, text=text)
        else:
            self._messages.append(Message(Role.USER, text))

    def answer(self, text: str) -> None:
        """Add a model text."""
        self._messages.append(Message(Role.ASSISTANT, text))

    def call(self, call: ToolCall) -> None:
        """Add a tool call, after the model text of the same message."""
        last = self._messages[-1] if self._messages else None
        if last is not None and last.role is Role.ASSISTANT:
            self._messages[-1] = replace(last, calls=(*last.calls, call))
        else:
            self._messages.append(Message(Role.ASSISTANT, calls=(call,)))

    def result(self, result: ToolResult) -> None:
        """Add a tool result."""
        last = self._messages[-1] if self._messages else None
        if last is not None and last.results and not last.text:
            self._messages[-1] = replace(last, results=(*last.results, result))
        else:
            self._messages.append(Message(Role.USER, results=(result,)))
