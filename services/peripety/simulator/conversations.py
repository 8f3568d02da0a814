"""Which conversation a request belongs to, and what is remembered of it.

A conversation that the caller names is kept under its name. Without a name its sequence is kept under what
was said so far, so that every request that repeats a history finds the sequence where that history left it;
what is counted is kept under how the conversation began. Keys never share anything.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from peripety.sim.patterns import Subject
from peripety.simulator.model import Api, Message, Refusal, Role, Text, ToolCall, ToolUse
from peripety.simulator.script import Position

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.simulator.model import Reply, Request
    from peripety.simulator.script import Script
    from peripety.simulator.state import Table

__all__ = ["Conversation", "Conversations"]

_EVERYBODY = "everybody"


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation, as one request of it sees it.

    Attributes:
        name: what the caller calls it, if the caller does.
        scope: what is counted under; the same for all its requests.
        place: what its sequence is kept under, before this request.
        history: digest of everything said, this request included.
        messages: what is new in this request.
        answers: how many answers there were before.
    """

    name: str | None
    scope: str
    place: str
    history: Any
    messages: Sequence[Message]
    answers: int

    def subject(self, model: str) -> Subject:
        """What patterns are held against."""
        results = [result.text for message in self.messages for result in message.results]
        return Subject(
            text="\n".join(
                message.text for message in self.messages if message.role is Role.USER and message.text
            ),
            model=model,
            tool_result="\n".join(results) if results else None,
            message_index=self.answers,
        )

    def place_after(self, reply: Reply) -> str:
        """What the sequence is kept under once the caller has the answer."""
        if self.name is not None:
            return self.place
        history = self.history.copy()
        history.update(_line(Role.ASSISTANT, [_as_message(reply)]))
        return str(history.hexdigest())


class Conversations:
    """What is remembered of conversations.

    Args:
        table: where it is kept.
        shared: whether matches are counted for everybody together.
    """

    def __init__(self, table: Table, *, shared: bool) -> None:
        self._table = table
        self._shared = shared

    def find(self, request: Request) -> Conversation:
        """The conversation of a request."""
        messages = request.messages
        last = max((i for i, each in enumerate(messages) if each.role is Role.ASSISTANT), default=-1)
        said, new = messages[: last + 1], messages[last + 1 :]
        answers = sum(each.role is Role.ASSISTANT for each in said)
        if request.conversation is not None:
            scope = _scope_of_name(request.key, request.conversation)
            if request.api is Api.IN_PROCESS:
                answers = self._table.get(f"answers {scope}") or 0
            return Conversation(request.conversation, scope, scope, None, new, answers)
        digest = hashlib.sha256(json.dumps(request.key).encode())
        scope = place = ""
        for role, group in groupby(messages, lambda message: message.role):
            if role is Role.ASSISTANT and not scope:
                scope = digest.hexdigest()
            digest.update(_line(role, list(group)))
            if role is Role.ASSISTANT:
                place = digest.hexdigest()
        scope = scope or digest.hexdigest()
        return Conversation(None, scope, place or scope, digest, new, answers)

    # ---- sequences

    def position(self, conversation: Conversation, script: Script) -> Position | None:
        """Where the conversation is, if a sequence is under way that the script still has."""
        kept = self._table.get(f"position {conversation.place}")
        if kept is None or kept[0] not in script.indices:
            return None
        position = Position(script.indices[kept[0]], kept[1])
        return position if script.holds(position) else None

    def move(self, place: str, position: Position | None, script: Script) -> None:
        """Note where a conversation is."""
        kept = None if position is None else [script.names[position.rule], position.turn]
        self._table.put(f"position {place}", kept)

    def has_active_sequence(self, name: str, key: str) -> bool:
        """Whether a sequence is under way in a conversation with a name."""
        return self._table.get(f"position {_scope_of_name(key, name)}") is not None

    # ---- counts

    def counts(self, conversation: Conversation, script: Script) -> Mapping[int, int]:
        """How often each rule with a `max_matches` was entered."""
        kept: dict[str, int] = self._table.get(f"entered {self._counted_under(conversation)}") or {}
        return {script.indices[name]: count for name, count in kept.items() if name in script.indices}

    def enter(self, conversation: Conversation, name: str) -> None:
        """Count a match of a rule."""
        self._count("entered", self._counted_under(conversation), name)

    def next_request(self, conversation: Conversation) -> int:
        """Number the requests of a conversation, from 0."""
        return self._next(f"requests {conversation.scope}")

    def next_chance(self, conversation: Conversation, failure: str) -> tuple[str, int]:
        """Number the occasions on which a failure might occur, from 0; and name what they have in common."""
        scope = self._counted_under(conversation)
        return f"{scope}/{failure}", self._count("failures", scope, failure)

    def answered(self, conversation: Conversation) -> None:
        """Count an answer, for conversations whose requests need not bring their history along."""
        if conversation.name is not None:
            self._next(f"answers {conversation.scope}")

    # ---- forgetting

    def reset_turns(self) -> None:
        """End every sequence."""
        self._forget("position ")

    def reset_counts(self) -> None:
        """End every sequence and count from the beginning."""
        self._forget("")

    def _forget(self, prefix: str) -> None:
        for key in [key for key in self._table if key.startswith(prefix)]:
            self._table.put(key, None)

    def _counted_under(self, conversation: Conversation) -> str:
        return _EVERYBODY if self._shared else conversation.scope

    def _next(self, key: str) -> int:
        number: int = self._table.get(key) or 0
        self._table.put(key, number + 1)
        return number

    def _count(self, what: str, scope: str, name: str) -> int:
        key = f"{what} {scope}"
        kept: dict[str, int] = self._table.get(key) or {}
        number = kept.get(name, 0)
        self._table.put(key, {**kept, name: number + 1})
        return number


def _scope_of_name(key: str, name: str) -> str:
    return hashlib.sha256(json.dumps([key, name]).encode()).hexdigest()


def _as_message(reply: Reply) -> Message:
    """A reply as the caller will send it back."""
    text = "".join(part.text for part in reply.parts if isinstance(part, Text | Refusal))
    calls = [ToolCall(part.name, part.input) for part in reply.parts if isinstance(part, ToolUse)]
    return Message(Role.ASSISTANT, text, tuple(calls))


def _line(role: Role, messages: Sequence[Message]) -> bytes:
    """What was said in a row by one side, without what APIs and clients write differently: space and ids."""
    said = "".join(message.text for message in messages)
    done = [
        [[call.name, call.arguments] for message in messages for call in message.calls],
        ["".join(result.text.split()) for message in messages for result in message.results],
    ]
    line = f"{role.value} {''.join(said.split())}"
    if any(done):
        line += f"\t{json.dumps(done, sort_keys=True)}"
    return f"{line}\n".encode("utf-8", "surrogatepass")
