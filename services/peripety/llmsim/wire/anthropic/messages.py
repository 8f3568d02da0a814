"""Messages of an Anthropic request: alternation of roles, and tool results that match their calls.

A request can also continue from an answer that the server stored, and send only new messages.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from peripety.llmsim.provider_rules.limits import fingerprint
from peripety.llmsim.types import ApiError, ApiErrorKind, SimMessage, SimRole, SimToolCall, SimToolResult
from peripety.llmsim.wire.anthropic.content_blocks import read_blocks
from peripety.llmsim.wire.anthropic.errors import invalid_request
from peripety.llmsim.wire.request_parser import Fields, JsonType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from peripety.llmsim.provider_rules.models import ModelFeatures
    from peripety.llmsim.wire.anthropic.content_blocks import ContentBlock
    from peripety.llmsim.wire.base import SimService


_TABLE = "anthropic_threads"
# Stored members besides messages, which a continuing request does not send.
_THREAD_MEMBERS = ("system", "tools")


@dataclass(frozen=True, slots=True)
class StoredThread:
    """A conversation to store.

    Attributes:
        members: its messages including this request, its system prompt and its tools.
        previous_answer_id: the id of the answer that the request continues; None for the first request.
    """

    members: Mapping[str, Any]
    previous_answer_id: str | None


def thread_finder(key: str, service: SimService) -> Callable[[str], Mapping[str, Any] | None]:
    """Return a lookup function for stored conversations, by the id of the last answer."""
    return lambda message: service.objects(_TABLE).get(_thread_key(key, message))


def resume_thread(
    body: Fields,
    find: Callable[[str], Mapping[str, Any] | None],
) -> tuple[Fields, StoredThread | None]:
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
        wish.reject_others("type")
        return body, StoredThread(_object_members(body.value), None)
    wish.reject_others("type", "previous_message_id")
    previous = wish.text("previous_message_id")
    before = find(previous)
    if before is None:
        raise ApiError(
            ApiErrorKind.NOT_FOUND,
            f"No usable Thread state was found for `previous_message_id` {previous}.",
            code="thread_not_found",
        )
    if "messages" not in before:
        raise ApiError(
            ApiErrorKind.INVALID_REQUEST,
            f"The response {previous} has already been continued, and can be continued only once.",
            code="thread_already_continued",
        )
    if changed := next(
        (name for name in _THREAD_MEMBERS if name in body and body.value[name] != before.get(name)),
        None,
    ):
        raise ApiError(
            ApiErrorKind.INVALID_REQUEST,
            f"{changed}: differs from the value stored with the Thread.",
            param=changed,
            code="thread_fingerprint_mismatch",
        )
    said = [*before["messages"], *body.get("messages", JsonType.ARRAY)]
    whole = Fields({**body.value, **before, "messages": said}, body.path, body.messages)
    return whole, StoredThread(_object_members(whole.value), previous)


def thread_updates(thread: StoredThread, key: str, message: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the storage updates after an answer: the new id gets the conversation, the old one nothing."""
    content = message["content"]
    answer = [{"role": "assistant", "content": content}] if content else []
    members = {**thread.members, "messages": [*thread.members["messages"], *answer]}
    rows: dict[str, Any] = {_thread_key(key, message["id"]): members}
    if thread.previous_answer_id is not None:
        rows[_thread_key(key, thread.previous_answer_id)] = {"continued": True}
    return {_TABLE: rows}


def _object_members(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value[name] for name in ("messages", *_THREAD_MEMBERS) if name in value}


def _thread_key(key: str, message: str) -> str:
    return f"{fingerprint(key)} {message}"


MAX_MESSAGES = 100_000

_ROLES = tuple(SimRole)


@dataclass(slots=True)
class MessageTurn:
    """Consecutive messages of one role.

    Attributes:
        role: the role.
        first: the index of its first message.
        last: the index of its last message.
        blocks: the content.
    """

    role: SimRole
    first: int
    last: int
    blocks: list[ContentBlock] = field(default_factory=list)

    @property
    def calls(self) -> list[str]:
        """The ids of its tool calls."""
        return [str(block.value["id"]) for block in self.blocks if block.type == "tool_use"]

    @property
    def results(self) -> list[ContentBlock]:
        """Its tool results."""
        return [block for block in self.blocks if block.type == "tool_result"]

    @property
    def to_message(self) -> SimMessage:
        """Return the turn as an API-independent message."""
        return SimMessage(
            self.role,
            "\n".join(block.text for block in self.blocks if block.type == "text"),
            tuple(
                SimToolCall(block.value["name"], block.value["input"], block.value["id"])
                for block in self.blocks
                if block.type == "tool_use"
            ),
            tuple(SimToolResult(block.text, block.value["tool_use_id"]) for block in self.results),
        )


def read_turns(body: Fields, takes: ModelFeatures, *, strict: bool) -> list[MessageTurn]:
    """Parse the messages of a request.

    Args:
        body: the request.
        takes: the features of the model.
        strict: True to apply the rules of the newer API version.

    Raises:
        ApiError: a message is not valid, or in the wrong place.
    """
    messages = body.objects("messages")
    if not messages:
        raise invalid_request("at least one message is required", body.path_of("messages"))
    if len(messages) > MAX_MESSAGES:
        raise invalid_request(
            f"List should have at most {MAX_MESSAGES} items after validation, not {len(messages)}",
            body.path_of("messages"),
        )
    turns: list[MessageTurn] = []
    for index, message in enumerate(messages):
        role = _role(message, takes)
        blocks = _blocks(message, role, strict=strict, final=index == len(messages) - 1)
        if turns and turns[-1].role is role is not SimRole.SYSTEM:
            turns[-1].last = index
        else:
            turns.append(MessageTurn(role, index, index))
        turns[-1].blocks += blocks
    _check_turns(turns, takes)
    return turns


def _role(message: Fields, takes: ModelFeatures) -> SimRole:
    message.reject_others("role", "content")
    role = message.text("role")
    if role not in _ROLES:
        raise invalid_request(
            f'Unexpected role "{role}". Allowed roles are "user" or "assistant".',
            message.path[:1],
        )
    if role == SimRole.SYSTEM and not takes.system_messages:
        raise invalid_request("role 'system' is not supported on this model")
    return SimRole(role)


def _blocks(message: Fields, role: SimRole, *, strict: bool, final: bool) -> list[ContentBlock]:
    blocks = read_blocks(message, "content", role, strict=strict)
    if not blocks and not (final and role is SimRole.ASSISTANT):
        raise invalid_request(
            "all messages must have non-empty content except for the optional final assistant message",
            message.path,
        )
    return blocks


def _check_turns(turns: Sequence[MessageTurn], takes: ModelFeatures) -> None:
    if turns[0].role is not SimRole.USER:
        raise invalid_request('first message must use the "user" role', ("messages",))
    for before, turn in pairwise(turns):
        if turn.role is SimRole.SYSTEM:
            _check_before_system(before)
        elif before.role is SimRole.SYSTEM and turn.role is not SimRole.ASSISTANT:
            raise invalid_request(
                "role 'system' must be the last message or be followed by an assistant message",
                ("messages", before.first),
            )
    _check_calls(turns)
    if turns[-1].role is SimRole.ASSISTANT:
        _check_prefill(turns[-1], takes)


def _check_before_system(before: MessageTurn) -> None:
    after_server_tool = before.role is SimRole.ASSISTANT and before.blocks[-1].type == "server_tool_use"
    if before.role is not SimRole.USER and not after_server_tool:
        raise invalid_request(
            "role 'system' must follow a user message or an assistant message that ends in a server tool use",
            ("messages", before.last + 1),
        )


def _check_prefill(turn: MessageTurn, takes: ModelFeatures) -> None:
    if not takes.prefill:
        raise invalid_request(
            "This model does not support assistant message prefill. The conversation must end with a user "
            "message.",
        )
    if turn.blocks and turn.blocks[-1].type == "text":
        text = turn.blocks[-1].text
        if text != text.rstrip():
            raise invalid_request(
                "final assistant content cannot end with trailing whitespace",
                ("messages",),
            )


def _check_calls(turns: Sequence[MessageTurn]) -> None:
    ids = [id_ for turn in turns for id_ in turn.calls]
    if len(set(ids)) < len(ids):
        raise invalid_request("`tool_use` ids must be unique", ("messages",))
    nothing = MessageTurn(SimRole.ASSISTANT, -1, -1)
    for before, turn, after in zip([nothing, *turns], turns, [*turns[1:], nothing], strict=False):
        asked = before.calls if before.role is SimRole.ASSISTANT else []
        _check_results(turn, asked)
        answered = set(_leading_result_ids(after)) if after.role is SimRole.USER else set()
        if missing := [id_ for id_ in turn.calls if id_ not in answered]:
            raise invalid_request(
                "`tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block "
                "in the next message.",
                ("messages", turn.last),
            )


def _leading_result_ids(turn: MessageTurn) -> Iterator[str]:
    """Yield the call ids of results that precede other content."""
    for block in turn.blocks:
        if block.type != "tool_result":
            return
        yield block.value["tool_use_id"]


def _check_results(turn: MessageTurn, call_ids: Sequence[str]) -> None:
    seen: Counter[str] = Counter()
    for block in turn.results:
        id_ = block.value["tool_use_id"]
        if id_ not in call_ids:
            raise invalid_request(
                f"unexpected `tool_use_id` found in `tool_result` blocks: {id_}. Each `tool_result` block "
                "must have a corresponding `tool_use` block in the previous message.",
                block.path,
            )
        seen[id_] += 1
        if seen[id_] > 1:
            raise invalid_request(
                "each `tool_use` must have a single result. Found multiple `tool_result` blocks with id: "
                + id_,
                block.path,
            )
