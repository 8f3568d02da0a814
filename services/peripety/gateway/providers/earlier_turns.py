"""What providers have in common when they write earlier turns down."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import jiter

from peripety.errors import FieldViolation, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.gateway.model import ChatMessage, ToolCall

__all__ = ["CallIds", "arguments_of", "as_user_text", "to_call_id", "tools_called"]

_TAKEN_AS_IT_IS = re.compile(r"[A-Za-z0-9_-]+")
_DIGEST = 24


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments of a call as an object, for providers that take no text.

    Raises:
        InvalidArgumentError: they are no JSON object.
    """
    try:
        arguments = jiter.from_json(call.arguments.encode(), allow_inf_nan=False)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        reason = f"has a call '{call.call_id}' whose arguments are no JSON object"
        raise InvalidArgumentError(
            f"The prompt cannot be sent: messages {reason}", violations=[FieldViolation("messages", reason)]
        )
    return arguments


def as_user_text(message: ChatMessage) -> str:
    """Instructions from between the messages, for models that take them only in words of the user's."""
    return f"<system>\n{message.text}\n</system>"


def to_call_id(call_id: str, longest: int) -> str:
    """The id of a call as a provider takes it that did not give it: letters, digits, `_` and `-`.

    An id of other characters, or of more than `longest`, becomes a digest of it, the same every time.
    """
    if len(call_id) <= longest and _TAKEN_AS_IT_IS.fullmatch(call_id):
        return call_id
    return f"call_{sha256(call_id.encode(errors='surrogatepass')).hexdigest()[:_DIGEST]}"


def tools_called(messages: Sequence[ChatMessage]) -> dict[str, str]:
    """The tool of each call, by the call's id, for providers that want it named with the result."""
    return {call.call_id: call.name for message in messages for call in message.tool_calls}


class CallIds:
    """Ids for the calls of an answer, for providers that give them none, or not always.

    An id tells the place in the conversation: asked the same, a model's calls get the same ids again.

    Args:
        messages: the conversation that is answered.
    """

    def __init__(self, messages: Sequence[ChatMessage]) -> None:
        self._used = set(tools_called(messages))
        self._place = len(messages)
        self._number = 0

    def next(self) -> str:
        """An id that no call of the conversation has."""
        while True:
            call_id = f"call_{self._place}_{self._number}"
            self._number += 1
            if call_id not in self._used:
                return call_id

    def unlike(self, call_id: str) -> str:
        """The id that a provider gave, unless it gave none, or one that an earlier answer's call has."""
        return call_id if call_id and call_id not in self._used else self.next()
