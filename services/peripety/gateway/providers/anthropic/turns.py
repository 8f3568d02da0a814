"""Messages in Anthropic's form: lists of blocks, with alternating roles."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.gateway.model import ChatRole, ProviderState, Reasoning, Text, ToolCall, ToolResult
from peripety.gateway.providers.earlier_turns import arguments_of, as_user_text, to_call_id
from peripety.gateway.providers.states import kept
from peripety.gateway.tool_names import to_wire_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.gateway.model import ChatMessage, Part
    from peripety.gateway.providers.base import Call

__all__ = ["Block", "Turns"]

Block: TypeAlias = dict[str, Any]

_NOTHING = "(no text)"
_LONGEST_ID = 64


class Turns:
    """Converter of the messages of one call.

    Instructions between messages come last in their turn, in a separate message, if the model supports that:
    they must follow the user and precede the model. Otherwise they become user text.

    Args:
        call: the call. Its messages are merged, so that nothing separates calls from their results. Reasoning
            is sent back only to the model that issued it.
    """

    def __init__(self, call: Call) -> None:
        self.messages: list[dict[str, Any]] = []
        """The messages to send."""
        self.blocks: list[list[Block]] = []
        """The blocks of each message; the same objects as in the messages to send."""
        self._call = call
        for role, turn in groupby(call.request.messages, key=_speaker):
            blocks: dict[str, list[Block]] = {role: [], "system": []}
            said = list(turn)
            native = call.data.traits.system_messages and any(
                message.role is ChatRole.USER for message in said
            )
            for message in said:
                name = "system" if native and message.role is ChatRole.SYSTEM else role
                self.blocks.append(self._blocks(message, folded=name != message.role.value))
                blocks[name] += self.blocks[-1]
            self.messages += [
                {"role": name, "content": content} for name, content in blocks.items() if content
            ]

    def _blocks(self, message: ChatMessage, *, folded: bool) -> list[Block]:
        if folded:
            return [_text(as_user_text(message))]
        blocks = [block for part in message.parts for block in self._block(part)]
        # An empty message is invalid, but omitting it would break the alternation of roles.
        return blocks or [_text(_NOTHING)]

    def _block(self, part: Part) -> Iterator[Block]:
        match part:
            case Text() if part.text.strip():
                yield _text(part.text)
            case ToolCall():
                name, arguments = to_wire_name(part.name), arguments_of(part)
                yield {"type": "tool_use", "id": _id(part), "name": name, "input": arguments}
            case ToolResult():
                error = {"is_error": True} if part.is_error else {}
                yield {"type": "tool_result", "tool_use_id": _id(part), "content": part.text, **error}
            case ProviderState():
                if isinstance(thought := kept(self._call, part), dict):
                    yield thought
            case Text() | Reasoning():
                pass


def _speaker(message: ChatMessage) -> str:
    return "assistant" if message.role is ChatRole.ASSISTANT else "user"


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _id(part: ToolCall | ToolResult) -> str:
    return to_call_id(part.call_id, _LONGEST_ID)
