"""Helpers for converting earlier turns, shared by providers."""

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
    """Return the arguments of a call as an object, for providers that do not accept text.

    Raises:
        InvalidArgumentError: they are not a JSON object.
    """
    try:
        arguments = jiter.from_json(call.arguments.encode(), allow_inf_nan=False)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        reason = f"has a call '{call.call_id}' whose arguments are not a JSON object"
        raise InvalidArgumentError(
            f"prompt invalid: messages {reason}", violations=[FieldViolation("messages", reason)]
        )
    return arguments


def as_user_text(message: ChatMessage) -> str:
    """Return instructions between messages as user text, for models without such messages."""
    return f"<system>\n{message.text}\n</system>"


def to_call_id(call_id: str, longest: int) -> str:
    """Return a call id in the form that another provider accepts: letters, digits, `_` and `-`.

    An id with other characters, or longer than `longest`, is replaced by a deterministic digest.
    """
    if len(call_id) <= longest and _TAKEN_AS_IT_IS.fullmatch(call_id):
        return call_id
    return f"call_{sha256(call_id.encode(errors='surrogatepass')).hexdigest()[:_DIGEST]}"


def tools_called(messages: Sequence[ChatMessage]) -> dict[str, str]:
    """Return the tool name of each call, by call id, for providers that require it with the result."""
    return {call.call_id: call.name for message in messages for call in message.tool_calls}


class CallIds:
    """Generator of call ids, for providers that omit them always or sometimes.

    An id is derived from its position in the conversation, so repeated requests get the same ids.

    Args:
        messages: the conversation that is answered.
    """

    def __init__(self, messages: Sequence[ChatMessage]) -> None:
        self._used = set(tools_called(messages))
        self._place = len(messages)
        self._number = 0

    def next(self) -> str:
        """Return an id that no call of the conversation has."""
        while True:
            call_id = f"call_{self._place}_{self._number}"
            self._number += 1
            if call_id not in self._used:
                return call_id

    def unlike(self, call_id: str) -> str:
        """Return the provider's id, or a generated one if it is missing or used by an earlier answer."""
        return call_id if call_id and call_id not in self._used else self.next()
