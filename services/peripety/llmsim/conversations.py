"""Conversations of the scripted LLM: the identity of a conversation, and its position in the script.

Provider APIs are stateless: a client repeats the history in every request. The simulator plays sequences of
turns and counts matches, so it must recognise which conversation a request continues. Two cases exist.

- The caller names the conversation, in process or by the header `x-peripety-conversation`. The state is
  stored under a hash of the API key and the name. This hash is both `scope` and `place`.
- The caller sends only messages. The state is then found by the history. A running hash covers the key and
  all messages up to the last answer. The hash at the last answer is the `place`, under which the position
  in a sequence is stored. The hash of everything before the first answer is the `scope`, under which counts
  are stored.

The two keys differ on purpose. A position belongs to an exact history: a client that goes back and sends an
older history continues from the position that this history had, and two branches do not disturb each other.
A count, such as `max_matches` or the number of a request, belongs to the whole conversation, so it uses the
part that all branches share.

After an answer, the new place is computed from the reply as the client is going to repeat it. The hash
ignores white space and tool call ids, because APIs and SDKs change both when they send a history back.

Invariants:

- No state is shared between API keys: the key is part of every hash.
- The keys of stored state are hashes; prompts and credentials are not stored.
- The table is bounded. A conversation that was evicted starts again, which is also what a reset does.

The header is optional, because provider SDKs do not send it, and a test should run unchanged against the
simulator and a real provider. `ScriptCursor` takes one step of a conversation through the script.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from peripety.engine.patterns.syntax import MatchSubject
from peripety.llmsim.faults.kinds import KINDS, FaultStage
from peripety.llmsim.script_engine import ScriptPosition
from peripety.llmsim.types import Api, RefusalPart, SimMessage, SimRole, SimToolCall, TextPart, ToolUsePart

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.llmsim.script.types import Fault, ScriptResponse
    from peripety.llmsim.script_engine import ScriptEngine
    from peripety.llmsim.state import StateTable
    from peripety.llmsim.types import SimReply, SimRequest


_SHARED_SCOPE = "everybody"


@dataclass(frozen=True, slots=True)
class SimConversation:
    """A conversation as seen by one of its requests.

    Attributes:
        name: the name that the caller set, if any.
        scope: the key of its counts; the same for all its requests.
        position_key: the key of its position before this request.
        history: running hash of all messages, including this request.
        messages: the new messages of this request.
        answers: number of answers before this request.
    """

    name: str | None
    scope: str
    position_key: str
    history: Any
    messages: Sequence[SimMessage]
    answers: int

    def subject(self, model: str) -> MatchSubject:
        """Return the text and the metadata that patterns are matched against."""
        results = [result.text for message in self.messages for result in message.results]
        return MatchSubject(
            text="\n".join(
                message.text for message in self.messages if message.role is SimRole.USER and message.text
            ),
            model=model,
            tool_result="\n".join(results) if results else None,
            message_index=self.answers,
        )

    def position_key_after(self, reply: SimReply) -> str:
        """Return the key of the position once the caller has the answer."""
        if self.name is not None:
            return self.position_key
        history = self.history.copy()
        history.update(_canonical_line(SimRole.ASSISTANT, [_reply_to_message(reply)]))
        return str(history.hexdigest())


class SimConversations:
    """Store of conversation state.

    Args:
        table: the storage.
        shared: True to count matches of all conversations together.
    """

    def __init__(self, table: StateTable, *, shared: bool) -> None:
        self._table = table
        self._shared = shared

    def conversation_of(self, request: SimRequest) -> SimConversation:
        """Return the conversation of a request."""
        messages = request.messages
        last = max((i for i, each in enumerate(messages) if each.role is SimRole.ASSISTANT), default=-1)
        said, new = messages[: last + 1], messages[last + 1 :]
        answers = sum(each.role is SimRole.ASSISTANT for each in said)
        if request.conversation is not None:
            scope = _scope_of_name(request.key, request.conversation)
            if request.api is Api.IN_PROCESS:
                answers = self._table.get(f"answers {scope}") or 0
            return SimConversation(request.conversation, scope, scope, None, new, answers)
        digest = hashlib.sha256(json.dumps(request.key).encode())
        scope = place = ""
        for role, group in groupby(messages, lambda message: message.role):
            if role is SimRole.ASSISTANT and not scope:
                scope = digest.hexdigest()
            digest.update(_canonical_line(role, list(group)))
            if role is SimRole.ASSISTANT:
                place = digest.hexdigest()
        scope = scope or digest.hexdigest()
        return SimConversation(None, scope, place or scope, digest, new, answers)

    # ---- sequences

    def position(self, conversation: SimConversation, script: ScriptEngine) -> ScriptPosition | None:
        """Return the position in a sequence; None if no sequence is active or the script no longer has it."""
        kept = self._table.get(f"position {conversation.position_key}")
        if kept is None or kept[0] not in script.index_by_key:
            return None
        position = ScriptPosition(script.index_by_key[kept[0]], kept[1])
        return position if script.has_position(position) else None

    def store_position(self, key: str, position: ScriptPosition | None, script: ScriptEngine) -> None:
        """Store the position of a conversation."""
        kept = None if position is None else [script.rule_keys[position.rule], position.turn]
        self._table.put(f"position {key}", kept)

    def has_active_sequence(self, name: str, key: str) -> bool:
        """Return True if the named conversation is inside a sequence."""
        return self._table.get(f"position {_scope_of_name(key, name)}") is not None

    # ---- counts

    def rule_counts(self, conversation: SimConversation, script: ScriptEngine) -> Mapping[int, int]:
        """Return how often each rule with `max_matches` was entered."""
        kept: dict[str, int] = self._table.get(f"entered {self._count_scope(conversation)}") or {}
        return {
            script.index_by_key[name]: count for name, count in kept.items() if name in script.index_by_key
        }

    def count_match(self, conversation: SimConversation, name: str) -> None:
        """Count a match of a rule."""
        self._increment("entered", self._count_scope(conversation), name)

    def next_request_number(self, conversation: SimConversation) -> int:
        """Return the number of this request in its conversation, from 0."""
        return self._next_number(f"requests {conversation.scope}")

    def next_fault_occasion(self, conversation: SimConversation, fault: str) -> tuple[str, int]:
        """Return the scope and the ordinal of an occasion for a fault, from 0."""
        scope = self._count_scope(conversation)
        return f"{scope}/{fault}", self._increment("failures", scope, fault)

    def count_answer(self, conversation: SimConversation) -> None:
        """Count an answer, for conversations whose requests do not repeat the history."""
        if conversation.name is not None:
            self._next_number(f"answers {conversation.scope}")

    # ---- forgetting

    def reset_turns(self) -> None:
        """End every sequence."""
        self._delete_prefix("position ")

    def reset_counters(self) -> None:
        """End every sequence and reset all counts."""
        self._delete_prefix("")

    def _delete_prefix(self, prefix: str) -> None:
        for key in [key for key in self._table if key.startswith(prefix)]:
            self._table.put(key, None)

    def _count_scope(self, conversation: SimConversation) -> str:
        return _SHARED_SCOPE if self._shared else conversation.scope

    def _next_number(self, key: str) -> int:
        number: int = self._table.get(key) or 0
        self._table.put(key, number + 1)
        return number

    def _increment(self, what: str, scope: str, name: str) -> int:
        key = f"{what} {scope}"
        kept: dict[str, int] = self._table.get(key) or {}
        number = kept.get(name, 0)
        self._table.put(key, {**kept, name: number + 1})
        return number


def _scope_of_name(key: str, name: str) -> str:
    return hashlib.sha256(json.dumps([key, name]).encode()).hexdigest()


def _reply_to_message(reply: SimReply) -> SimMessage:
    """Return a reply as the message that the caller is going to send back."""
    text = "".join(part.text for part in reply.parts if isinstance(part, TextPart | RefusalPart))
    calls = [SimToolCall(part.name, part.arguments) for part in reply.parts if isinstance(part, ToolUsePart)]
    return SimMessage(SimRole.ASSISTANT, text, tuple(calls))


def _canonical_line(role: SimRole, messages: Sequence[SimMessage]) -> bytes:
    """Return a canonical line for consecutive messages of one role.

    Leaves out white space and ids, which clients and APIs change.
    """
    said = "".join(message.text for message in messages)
    done = [
        [[call.name, call.arguments] for message in messages for call in message.calls],
        ["".join(result.text.split()) for message in messages for result in message.results],
    ]
    line = f"{role.value} {''.join(said.split())}"
    if any(done):
        line += f"\t{json.dumps(done, sort_keys=True)}"
    return f"{line}\n".encode("utf-8", "surrogatepass")


class ScriptedReply(NamedTuple):
    """The scripted answer to a prompt.

    Attributes:
        label: the source: `response[i]`, `response[i].turn[j]`, `default`; None without a match.
        response: the answer.
        fault: its fault, which may occur.
        position: the next position of the conversation.
    """

    label: str | None = None
    response: ScriptResponse | None = None
    fault: Fault | None = None
    position: ScriptPosition | None = None


class ScriptCursor:
    """Mover of conversations through a script.

    Args:
        script: the rules.
        conversations: the position of each conversation.
    """

    def __init__(self, script: ScriptEngine, conversations: SimConversations) -> None:
        self._script = script
        self._conversations = conversations

    def match_prompt(self, subject: MatchSubject, conversation: SimConversation) -> ScriptedReply:
        """Return the scripted answer to a prompt. Counts the entry of a rule with `max_matches`."""
        script, conversations = self._script, self._conversations
        position = conversations.position(conversation, script)
        advance = script.match_prompt(subject, position, conversations.rule_counts(conversation, script))
        if advance.match is None:
            default = script.script.default_response
            return ScriptedReply(None if default is None else "default", default)
        if advance.limited_rule is not None:
            conversations.count_match(conversation, script.rule_keys[advance.limited_rule])
        step = script.rule_or_turn(advance.match)
        return ScriptedReply(advance.match.label, step.response, step.failure, advance.position)

    def store_position(
        self,
        conversation: SimConversation,
        position: ScriptPosition | None,
        reply: SimReply | None,
        fault: Fault | None,
    ) -> None:
        """Store the position of a conversation.

        Covers a client that received the answer, and one that retries.

        Args:
            conversation: the conversation.
            position: the next position.
            reply: the answer, if any.
            failure: the fault.
        """
        arrives = fault is None or KINDS[fault.type].stage is FaultStage.ANSWER
        begins = conversation.position_key == conversation.scope
        if begins or not arrives:
            self._conversations.store_position(
                conversation.position_key,
                None if arrives else position,
                self._script,
            )
        if reply is not None:
            self._conversations.store_position(conversation.position_key_after(reply), position, self._script)
            self._conversations.count_answer(conversation)
