"""Conversion of earlier turns for a provider: opaque state, instructions, and ids of tool calls.

Opaque provider state is stored with the model that issued it; no other model can read it.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import jiter

from peripety.errors import FieldViolation, InvalidArgumentError
from peripety.gateway.types.message import ProviderState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.gateway.providers.provider import ProviderCall
    from peripety.gateway.types.message import ChatMessage, ToolCall


_VALID_CALL_ID = re.compile(r"[A-Za-z0-9_-]+")
_CALL_ID_DIGEST_LENGTH = 24


def parse_arguments(call: ToolCall) -> dict[str, Any]:
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
            f"prompt invalid: messages {reason}",
            violations=[FieldViolation("messages", reason)],
        )
    return arguments


def instructions_to_user_text(message: ChatMessage) -> str:
    """Return instructions between messages as user text, for models without such messages."""
    return f"<system>\n{message.text}\n</system>"


def to_call_id(call_id: str, max_length: int) -> str:
    """Return a call id in the form that another provider accepts: letters, digits, `_` and `-`.

    An id with other characters, or longer than `max_length`, is replaced by a deterministic digest.
    """
    if len(call_id) <= max_length and _VALID_CALL_ID.fullmatch(call_id):
        return call_id
    return f"call_{sha256(call_id.encode(errors='surrogatepass')).hexdigest()[:_CALL_ID_DIGEST_LENGTH]}"


def tool_names_by_call(messages: Sequence[ChatMessage]) -> dict[str, str]:
    """Return the tool name of each call, by call id, for providers that require it with the result."""
    return {call.call_id: call.name for message in messages for call in message.tool_calls}


class CallIdGenerator:
    """Generator of call ids, for providers that omit them always or sometimes.

    An id is derived from its position in the conversation, so repeated requests get the same ids.

    Args:
        messages: the conversation that is answered.
    """

    def __init__(self, messages: Sequence[ChatMessage]) -> None:
        self._used = set(tool_names_by_call(messages))
        self._position = len(messages)
        self._number = 0

    def next(self) -> str:
        """Return an id that no call of the conversation has."""
        while True:
            call_id = f"call_{self._position}_{self._number}"
            self._number += 1
            if call_id not in self._used:
                return call_id

    def make_unique(self, call_id: str) -> str:
        """Return the provider's id, or a generated one if it is missing or used by an earlier answer."""
        return call_id if call_id and call_id not in self._used else self.next()


def wrap_state(call: ProviderCall, value: Any) -> ProviderState:
    """Wrap a JSON value that came with the answer to a call."""
    return ProviderState(call.data.provider, json.dumps({"model": call.model, "kept": value}).encode())


def unwrap_state(call: ProviderCall, state: ProviderState) -> Any:
    """Unwrap a value for a call to the model that issued it; None for any other model."""
    if state.issuer != call.data.provider:
        return None
    try:
        found = jiter.from_json(state.data)
    except ValueError:
        return None
    return found.get("kept") if isinstance(found, dict) and found.get("model") == call.model else None
