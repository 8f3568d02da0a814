"""Conversation as messages of Chat Completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.gateway.catalogue import CacheKind
from peripety.gateway.model import ChatRole, ProviderState, ToolResult
from peripety.gateway.providers.earlier_turns import as_user_text, to_call_id
from peripety.gateway.providers.openai.caching import cache_marks
from peripety.gateway.tool_names import to_wire_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.gateway.model import ChatMessage, ToolCall
    from peripety.gateway.providers.base import Call

__all__ = ["to_messages"]

_Message = dict[str, Any]
_MAX_CALL_ID = 40


def to_messages(call: Call) -> list[_Message]:
    """Return the system text and the messages of a call, with breakpoints on their last texts."""
    marks = cache_marks(call)
    writing = _Writing(call)
    written: list[_Message] = []
    if call.request.system is not None:
        written += writing.marked([writing.instructions(call.request.system)], marks.system)
    for index, message in enumerate(call.request.messages):
        written += writing.marked(writing.message(message), marks.messages.get(index, {}))
    return written


class _Writing:
    """Converter of the messages of one call."""

    def __init__(self, call: Call) -> None:
        self._issuer = call.data.provider
        self._traits = call.data.traits
        # A text with a breakpoint must be a part. All texts are then parts, so that prefixes never change.
        self._in_parts = call.data.cache.kind is CacheKind.AUTOMATIC_BREAKPOINTS

    def instructions(self, text: str) -> _Message:
        """Return instructions in the model's role for them."""
        return {"role": self._traits.instructions_role, "content": self._content(text)}

    def message(self, message: ChatMessage) -> list[_Message]:
        """Convert one message: each tool result becomes its own message, and an empty message is omitted."""
        match message.role:
            case ChatRole.SYSTEM if self._traits.system_messages:
                return [self.instructions(message.text)]
            case ChatRole.SYSTEM:
                return [{"role": "user", "content": self._content(as_user_text(message))}]
            case ChatRole.USER:
                return self._users(message)
            case ChatRole.ASSISTANT:
                return self._models(message)

    def marked(self, messages: list[_Message], mark: Mapping[str, Any]) -> list[_Message]:
        """Return the messages with a breakpoint after the last text, if there is one."""
        if mark and messages and isinstance(messages[-1]["content"], list):
            messages[-1]["content"][-1] |= mark
        return messages

    def _users(self, message: ChatMessage) -> list[_Message]:
        written = [
            {
                "role": "tool",
                "tool_call_id": to_call_id(part.call_id, _MAX_CALL_ID),
                # The API has no field for a failed tool.
                "content": self._content(f"Error: {part.text}" if part.is_error else part.text),
            }
            for part in message.parts
            if isinstance(part, ToolResult)
        ]
        return (
            [*written, {"role": "user", "content": self._content(message.text)}] if message.text else written
        )

    def _models(self, message: ChatMessage) -> list[_Message]:
        calls = message.tool_calls
        if not calls and not message.text:
            return []
        # Templates of open models fail on a missing or null content.
        said: _Message = {"role": "assistant", "content": self._content(message.text)}
        if calls:
            said["tool_calls"] = [_call(call) for call in calls]
        if self._traits.replays_reasoning and (thoughts := self._thoughts(message)):
            said["reasoning_content"] = thoughts
        return [said]

    def _thoughts(self, message: ChatMessage) -> str:
        """Return the model's reasoning, if it has to be sent back."""
        states = [part for part in message.parts if isinstance(part, ProviderState)]
        own = "".join(state.data.decode() for state in states if state.issuer == self._issuer)
        if own or not message.tool_calls:
            return own
        # Calls without reasoning are rejected, and so is empty reasoning. The text differs between turns,
        # because a model that reads the same thought repeatedly starts to repeat it.
        return "Tools to call now: " + ", ".join(call.name for call in message.tool_calls)

    def _content(self, text: str) -> str | list[_Message]:
        return [{"type": "text", "text": text}] if text and self._in_parts else text


def _call(call: ToolCall) -> _Message:
    return {
        "id": to_call_id(call.call_id, _MAX_CALL_ID),
        "type": "function",
        "function": {"name": to_wire_name(call.name), "arguments": call.arguments},
    }
