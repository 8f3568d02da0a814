"""Message order: alternation of roles, and tool results that match their calls."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from peripety.simulator.model import Message, Role, ToolCall, ToolResult
from peripety.simulator.wire.anthropic.blocks import read_blocks
from peripety.simulator.wire.anthropic.wording import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.simulator.truth.models import Takes
    from peripety.simulator.wire.anthropic.blocks import Content
    from peripety.simulator.wire.reading import Fields

__all__ = ["Turn", "read_turns"]

MOST_MESSAGES = 100_000

_ROLES = tuple(Role)


@dataclass(slots=True)
class Turn:
    """Consecutive messages of one role.

    Attributes:
        role: the role.
        first: the index of its first message.
        last: the index of its last message.
        blocks: the content.
    """

    role: Role
    first: int
    last: int
    blocks: list[Content] = field(default_factory=list)

    @property
    def calls(self) -> list[str]:
        """The ids of its tool calls."""
        return [str(block.value["id"]) for block in self.blocks if block.type == "tool_use"]

    @property
    def results(self) -> list[Content]:
        """Its tool results."""
        return [block for block in self.blocks if block.type == "tool_result"]

    @property
    def message(self) -> Message:
        """Return the turn as an API-independent message."""
        return Message(
            self.role,
            "\n".join(block.text for block in self.blocks if block.type == "text"),
            tuple(
                ToolCall(block.value["name"], block.value["input"], block.value["id"])
                for block in self.blocks
                if block.type == "tool_use"
            ),
            tuple(ToolResult(block.text, block.value["tool_use_id"]) for block in self.results),
        )


def read_turns(body: Fields, takes: Takes, *, strict: bool) -> list[Turn]:
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
        raise invalid("at least one message is required", body.at("messages"))
    if len(messages) > MOST_MESSAGES:
        raise invalid(
            f"List should have at most {MOST_MESSAGES} items after validation, not {len(messages)}",
            body.at("messages"),
        )
    turns: list[Turn] = []
    for index, message in enumerate(messages):
        role = _role(message, takes)
        blocks = _blocks(message, role, strict=strict, final=index == len(messages) - 1)
        if turns and turns[-1].role is role is not Role.SYSTEM:
            turns[-1].last = index
        else:
            turns.append(Turn(role, index, index))
        turns[-1].blocks += blocks
    _check(turns, takes)
    return turns


def _role(message: Fields, takes: Takes) -> Role:
    message.only("role", "content")
    role = message.text("role")
    if role not in _ROLES:
        raise invalid(f'Unexpected role "{role}". Allowed roles are "user" or "assistant".', message.path[:1])
    if role == Role.SYSTEM and not takes.system_messages:
        raise invalid("role 'system' is not supported on this model")
    return Role(role)


def _blocks(message: Fields, role: Role, *, strict: bool, final: bool) -> list[Content]:
    blocks = read_blocks(message, "content", role, strict=strict)
    if not blocks and not (final and role is Role.ASSISTANT):
        raise invalid(
            "all messages must have non-empty content except for the optional final assistant message",
            message.path,
        )
    return blocks


def _check(turns: Sequence[Turn], takes: Takes) -> None:
    if turns[0].role is not Role.USER:
        raise invalid('first message must use the "user" role', ("messages",))
    for before, turn in pairwise(turns):
        if turn.role is Role.SYSTEM:
            _check_before_system(before)
        elif before.role is Role.SYSTEM and turn.role is not Role.ASSISTANT:
            raise invalid(
                "role 'system' must be the last message or be followed by an assistant message",
                ("messages", before.first),
            )
    _check_calls(turns)
    if turns[-1].role is Role.ASSISTANT:
        _check_prefill(turns[-1], takes)


def _check_before_system(before: Turn) -> None:
    after_server_tool = before.role is Role.ASSISTANT and before.blocks[-1].type == "server_tool_use"
    if before.role is not Role.USER and not after_server_tool:
        raise invalid(
            "role 'system' must follow a user message or an assistant message that ends in a server tool use",
            ("messages", before.last + 1),
        )


def _check_prefill(turn: Turn, takes: Takes) -> None:
    if not takes.prefill:
        raise invalid(
            "This model does not support assistant message prefill. The conversation must end with a user "
            "message."
        )
    if turn.blocks and turn.blocks[-1].type == "text":
        text = turn.blocks[-1].text
        if text != text.rstrip():
            raise invalid("final assistant content cannot end with trailing whitespace", ("messages",))


def _check_calls(turns: Sequence[Turn]) -> None:
    ids = [id_ for turn in turns for id_ in turn.calls]
    if len(set(ids)) < len(ids):
        raise invalid("`tool_use` ids must be unique", ("messages",))
    nothing = Turn(Role.ASSISTANT, -1, -1)
    for before, turn, after in zip([nothing, *turns], turns, [*turns[1:], nothing], strict=False):
        asked = before.calls if before.role is Role.ASSISTANT else []
        _check_results(turn, asked)
        answered = set(_leading_results(after)) if after.role is Role.USER else set()
        if missing := [id_ for id_ in turn.calls if id_ not in answered]:
            raise invalid(
                "`tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block "
                "in the next message.",
                ("messages", turn.last),
            )


def _leading_results(turn: Turn) -> Iterator[str]:
    """Yield the call ids of results that precede other content."""
    for block in turn.blocks:
        if block.type != "tool_result":
            return
        yield block.value["tool_use_id"]


def _check_results(turn: Turn, asked: Sequence[str]) -> None:
    seen: Counter[str] = Counter()
    for block in turn.results:
        id_ = block.value["tool_use_id"]
        if id_ not in asked:
            raise invalid(
                f"unexpected `tool_use_id` found in `tool_result` blocks: {id_}. Each `tool_result` block "
                "must have a corresponding `tool_use` block in the previous message.",
                block.place,
            )
        seen[id_] += 1
        if seen[id_] > 1:
            raise invalid(
                "each `tool_use` must have a single result. Found multiple `tool_result` blocks with id: "
                + id_,
                block.place,
            )
