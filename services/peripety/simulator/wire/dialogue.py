"""A conversation while it is read, for APIs that have a message for each thing that is said."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.simulator.model import Message, Role

if TYPE_CHECKING:
    from peripety.simulator.model import ToolCall, ToolResult

__all__ = ["Dialogue"]


class Dialogue:
    """A conversation as it grows.

    Instructions before anything else are the system prompt. Results of tools and what the user says next are
    one message, as are what the model says and the tools that it calls then.
    """

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._system: list[str] = []

    @property
    def messages(self) -> tuple[Message, ...]:
        """What was said, the system prompt left out."""
        return tuple(self._messages)

    @property
    def system(self) -> str:
        """The system prompt."""
        return "\n".join(self._system)

    def instruct(self, text: str) -> None:
        """Instructions of the developer's, or of the system."""
        if self._messages:
            self._messages.append(Message(Role.SYSTEM, text))
        else:
            self._system.append(text)

    def ask(self, text: str) -> None:
        """The user says something."""
        last = self._messages[-1] if self._messages else None
        if last is not None and last.results and not last.text:
            self._messages[-1] = replace(last, text=text)
        else:
            self._messages.append(Message(Role.USER, text))

    def answer(self, text: str) -> None:
        """The model says something."""
        self._messages.append(Message(Role.ASSISTANT, text))

    def call(self, call: ToolCall) -> None:
        """The model calls a tool, after what it said, if it said something."""
        last = self._messages[-1] if self._messages else None
        if last is not None and last.role is Role.ASSISTANT:
            self._messages[-1] = replace(last, calls=(*last.calls, call))
        else:
            self._messages.append(Message(Role.ASSISTANT, calls=(call,)))

    def result(self, result: ToolResult) -> None:
        """A tool gives something back."""
        last = self._messages[-1] if self._messages else None
        if last is not None and last.results and not last.text:
            self._messages[-1] = replace(last, results=(*last.results, result))
        else:
            self._messages.append(Message(Role.USER, results=(result,)))
