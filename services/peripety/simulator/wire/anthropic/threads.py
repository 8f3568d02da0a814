"""Server-side conversations: a request continues from an answer and sends only new messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.simulator.model import ApiError, ErrorKind
from peripety.simulator.truth.keys import fingerprint
from peripety.simulator.wire.reading import Fields, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from peripety.simulator.wire.base import Service

__all__ = ["Thread", "holding", "kept", "resume"]

_TABLE = "anthropic_threads"
# Stored members besides messages, which a continuing request does not send.
_FIXED = ("system", "tools")


@dataclass(frozen=True, slots=True)
class Thread:
    """A conversation to store.

    Attributes:
        members: its messages including this request, its system prompt and its tools.
        continues: the id of the answer that the request continues; None for the first request.
    """

    members: Mapping[str, Any]
    continues: str | None


def holding(key: str, service: Service) -> Callable[[str], Mapping[str, Any] | None]:
    """Return a lookup function for stored conversations, by the id of the last answer."""
    return lambda message: service.objects(_TABLE).get(_name(key, message))


def resume(body: Fields, find: Callable[[str], Mapping[str, Any] | None]) -> tuple[Fields, Thread | None]:
    """Return the request with the whole conversation, and the conversation to store, if any.

    Args:
        body: the request.
        find: the lookup function, by the id of an answer.

    Raises:
        ApiError: the answer is not stored, or was continued already.
    """
    wish = body.object("thread", None)
    if wish is None:
        return body, None
    if wish.choice("type", ("create", "continue")) == "create":
        wish.only("type")
        return body, Thread(_members(body.value), None)
    wish.only("type", "previous_message_id")
    previous = wish.text("previous_message_id")
    before = find(previous)
    if before is None:
        raise ApiError(
            ErrorKind.NOT_FOUND,
            f"No usable Thread state was found for `previous_message_id` {previous}.",
            code="thread_not_found",
        )
    if "messages" not in before:
        raise ApiError(
            ErrorKind.INVALID_REQUEST,
            f"The response {previous} has already been continued, and can be continued only once.",
            code="thread_already_continued",
        )
    if changed := next(
        (name for name in _FIXED if name in body and body.value[name] != before.get(name)), None
    ):
        raise ApiError(
            ErrorKind.INVALID_REQUEST,
            f"{changed}: differs from the value stored with the Thread.",
            param=changed,
            code="thread_fingerprint_mismatch",
        )
    said = [*before["messages"], *body.get("messages", Kind.ARRAY)]
    whole = Fields({**body.value, **before, "messages": said}, body.path, body.wording)
    return whole, Thread(_members(whole.value), previous)


def kept(thread: Thread, key: str, message: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the storage updates after an answer: the new id gets the conversation, the old one nothing."""
    content = message["content"]
    answer = [{"role": "assistant", "content": content}] if content else []
    members = {**thread.members, "messages": [*thread.members["messages"], *answer]}
    rows: dict[str, Any] = {_name(key, message["id"]): members}
    if thread.continues is not None:
        rows[_name(key, thread.continues)] = {"continued": True}
    return {_TABLE: rows}


def _members(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value[name] for name in ("messages", *_FIXED) if name in value}


def _name(key: str, message: str) -> str:
    return f"{fingerprint(key)} {message}"
