"""Message normalization: one canonical form of messages, and portable tool names.

Invalid messages are rejected.
"""

from __future__ import annotations

import re
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING

from peripety.errors import FieldViolation, InvalidArgumentError
from peripety.gateway.types.message import (
    ChatMessage,
    ChatRole,
    Part,
    ProviderState,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peripety.gateway.types.request import GenerateRequest


EMPTY_ANSWER = ChatMessage.assistant("(no answer)")
"""Placeholder text of an empty answer: providers reject empty messages."""

_PART_ROLES: dict[type[Part], ChatRole] = {
    ToolCall: ChatRole.ASSISTANT,
    Reasoning: ChatRole.ASSISTANT,
    ProviderState: ChatRole.ASSISTANT,
    ToolResult: ChatRole.USER,
}


def normalize_messages(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Return messages in the canonical form that every provider accepts.

    Neighbouring messages of one role are merged, as are neighbouring texts; tool results come first in their
    message. The form of a message depends on no later message of another role. A history that is only
    appended to therefore stays a prefix of itself.

    Raises:
        InvalidArgumentError: messages are missing; one is empty or has a part of another role; the first or
            last is not the user's; a call has no result in the next message, or a result no call before it.
    """
    violations = list(_message_violations(messages))
    merged: tuple[ChatMessage, ...] = ()
    if not violations:
        merged = tuple(_merge_neighbours(messages))
        violations = list(_unmatched_calls(merged))
    if violations:
        reasons = "; ".join(f"{violation.field} {violation.reason}" for violation in violations)
        raise InvalidArgumentError(f"prompt invalid: {reasons}", violations=violations)
    return merged


def replace_empty_answer(answer: ChatMessage) -> ChatMessage:
    """Return the answer for the history; an empty answer gets a placeholder text.

    A model may use all its tokens for hidden reasoning.
    """
    return EMPTY_ANSWER if _is_empty(answer) else answer


def _is_empty(message: ChatMessage) -> bool:
    return all(isinstance(part, Text) and not part.text for part in message.parts)


def _message_violations(messages: Sequence[ChatMessage]) -> Iterator[FieldViolation]:
    for index, message in enumerate(messages):
        if _is_empty(message):
            yield FieldViolation(f"messages[{index}].parts", "is empty; remove the message")
        for place, part in enumerate(message.parts):
            owner = _PART_ROLES.get(type(part), message.role)
            if owner is not message.role:
                yield FieldViolation(
                    f"messages[{index}].parts[{place}]",
                    f"is only for the role {owner.value}",
                )
    if not messages:
        yield FieldViolation("messages", "is empty; add a user message")
    elif messages[0].role is not ChatRole.USER:
        yield FieldViolation("messages[0].role", "must be user; instructions go into system")
    elif messages[-1].role is not ChatRole.USER:
        yield FieldViolation(
            f"messages[{len(messages) - 1}].role",
            "must be user: the last message requests the answer",
        )


def _merge_neighbours(messages: Iterable[ChatMessage]) -> Iterator[ChatMessage]:
    for role, group in groupby(messages, key=lambda message: message.role):
        results: list[Part] = []
        others: list[Part] = []
        for message in group:
            said = [part for part in message.parts if not isinstance(part, ToolResult)]
            results += [part for part in message.parts if isinstance(part, ToolResult)]
            _append_parts(others, _join_texts(said))
        yield ChatMessage(role, (*results, *others))


def _append_parts(parts: list[Part], more: list[Part]) -> None:
    """Append the parts of another message; two texts are separated by a paragraph."""
    match parts[-1:] + more[:1]:
        case [Text(before), Text(after)]:
            parts[-1:] = [Text(f"{before}\n\n{after}"), *more[1:]]
        case _:
            parts += more


def _join_texts(parts: Iterable[Part]) -> list[Part]:
    """Return the parts of one message, with neighbouring texts merged and empty ones removed."""
    joined: list[Part] = []
    for part in parts:
        last = joined[-1] if joined else None
        if isinstance(part, Text) and isinstance(last, Text):
            joined[-1] = Text(last.text + part.text)
        elif part != Text(""):
            joined.append(part)
    return joined


def _unmatched_calls(messages: Sequence[ChatMessage]) -> Iterator[FieldViolation]:
    """Yield calls without a result and results without a call, by id, in each pair of messages."""
    seen: set[str] = set()
    waiting: list[str] = []
    for index, message in enumerate(messages):
        results = [part.call_id for part in message.parts if isinstance(part, ToolResult)]
        for missing in [call_id for call_id in waiting if call_id not in results]:
            yield FieldViolation(
                f"messages[{index}]",
                f"must contain the result of the tool call '{missing}'",
            )
        for position, stray in enumerate(results):
            if stray in waiting and stray not in results[:position]:
                continue
            yield FieldViolation(
                f"messages[{index}]",
                f"has a result for '{stray}', which matches no earlier call",
            )
        waiting = [call.call_id for call in message.tool_calls]
        for repeated in [call_id for call_id in waiting if call_id in seen]:
            yield FieldViolation(f"messages[{index}]", f"uses the call id '{repeated}' again")
        seen.update(waiting)


_VALID_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_NAME_LENGTH = 64
_DIGEST_LENGTH = 8


class ToolNames:
    """Mapping between the tools of one request and their wire names.

    Args:
        names: the offered tools, and those that were called before.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._offered = {to_wire_name(name): name for name in names}

    @classmethod
    def from_request(cls, request: GenerateRequest) -> ToolNames:
        """Return the names in a request; a model may also call a tool that is no longer offered."""
        called = (call.name for message in request.messages for call in message.tool_calls)
        return cls([*called, *(tool.name for tool in request.tools)])

    def from_wire(self, name: str) -> str:
        """Return the tool with a wire name; an unknown name is returned unchanged."""
        return self._offered.get(name, name)


def to_wire_name(name: str) -> str:
    """Return a tool's name in characters that every provider accepts.

    A valid name is returned unchanged. Any other becomes a readable form with a digest appended. The result
    depends only on the name, not on other tools, so cached prompt prefixes stay valid.
    """
    if _VALID_NAME.fullmatch(name):
        return name
    readable = _FORBIDDEN.sub("_", name).strip("_-")
    digest = sha256(name.encode(errors="surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
    return f"{('t_' + readable)[: _MAX_NAME_LENGTH - _DIGEST_LENGTH - 1]}_{digest}"
