"""A request's conversation while it is read: what was said, and the blocks that are counted and cached."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import Block, Message, Prompt, Role, Section
from peripety.simulator.truth.tokens import count
from peripety.simulator.wire.json_text import content, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.simulator.model import Marker, ToolCall, ToolResult

__all__ = ["Draft", "arguments"]

_MESSAGE_TOKENS = 3  # what OpenAI counts for where a message begins and ends
_BREAKPOINT = "prompt_cache_breakpoint"
_INSTRUCTING = ("system", "developer")


class Draft:
    """A conversation as it grows.

    Instructions before anything else are the system prompt. Results of tools and what the user says next are
    one message, as are what the model says and the tools that it calls then.
    """

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._system: list[str] = []
        self._blocks: list[Block] = []

    @property
    def messages(self) -> tuple[Message, ...]:
        """What was said, the system prompt left out."""
        return tuple(self._messages)

    @property
    def system(self) -> str:
        """The system prompt."""
        return "\n".join(self._system)

    def prompt(self, settings: Mapping[str, Any], controls: Mapping[str, Any]) -> Prompt:
        """All blocks.

        Args:
            settings: what makes all that was cached useless when it changes; what is not set is left out.
            controls: cache controls of the request.
        """
        kept = {name: value for name, value in settings.items() if value is not None}
        return Prompt(tuple(self._blocks), {Section.TOOLS: content(kept)}, controls)

    # ---- what was said

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

    # ---- what is counted

    def add_tool(self, tool: Mapping[str, Any]) -> None:
        """Add a block for a tool."""
        data = content(tool)
        self._blocks.append(Block(Section.TOOLS, "tool", data, count(data.decode())))

    def add_schema(self, schema: Mapping[str, Any]) -> None:
        """Add a block for the schema of the answer; it stands before the system prompt."""
        data = content(schema)
        self._blocks.append(Block(Section.SYSTEM, "json_schema", data, count(data.decode())))

    def add(
        self,
        message: int,
        role: str,
        block: Mapping[str, Any],
        *,
        tokens: int | None = None,
        marker: Marker | None = None,
    ) -> None:
        """Add a block of a message; the first one of each message costs a little more.

        Args:
            message: the index of the message.
            role: who speaks.
            block: what is said, with its type.
            tokens: what it costs; by default what its JSON does.
            marker: the breakpoint on it.
        """
        instructing = role in _INSTRUCTING and not self._messages
        begins = not self._blocks or self._blocks[-1].message != message
        data = content({**block, "role": role}, _BREAKPOINT)
        self._blocks.append(
            Block(
                section=Section.SYSTEM if instructing else Section.MESSAGES,
                kind=block["type"],
                content=data,
                tokens=(count(data.decode()) if tokens is None else tokens) + _MESSAGE_TOKENS * begins,
                marker=marker,
                message=message,
            )
        )


def arguments(text: str) -> Any:
    """The value of a call's arguments; None where they are no JSON, as a model may write them."""
    try:
        return parse(text.encode())
    except ValueError:
        return None
