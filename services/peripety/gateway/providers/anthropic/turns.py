"""Messages as Anthropic takes them: lists of blocks, the user's and the model's by turns."""

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
    """The messages of one call, as they are written.

    Instructions from between the messages come last in their turn, in a message of their own, where the model
    takes that: they have to follow the user and precede the model. Otherwise the user says them.

    Args:
        call: the call. Its messages are merged, so that nothing stands between calls and their results; its
            model alone takes back what it thought.
    """

    def __init__(self, call: Call) -> None:
        self.messages: list[dict[str, Any]] = []
        """What to send."""
        self.blocks: list[list[Block]] = []
        """The blocks that each message became, which are those in what is sent."""
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
        # A message may not be empty, and it cannot be left out: whose turn it is would not be clear.
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
