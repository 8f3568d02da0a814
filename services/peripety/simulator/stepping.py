"""Script cursor: one step of a conversation through the script."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from peripety.simulator.failures import KINDS, Place

if TYPE_CHECKING:
    from peripety.sim.patterns import Subject
    from peripety.simulator.conversations import Conversation, Conversations
    from peripety.simulator.model import Reply
    from peripety.simulator.scenario.model import Failure, Response
    from peripety.simulator.script import Position, Script

__all__ = ["Scripted", "Stepping"]


class Scripted(NamedTuple):
    """The scripted answer to a prompt.

    Attributes:
        label: the source: `response[i]`, `response[i].turn[j]`, `default`; None without a match.
        response: the answer.
        failure: its fault, which may occur.
        position: the next position of the conversation.
    """

    label: str | None = None
    response: Response | None = None
    failure: Failure | None = None
    position: Position | None = None


class Stepping:
    """Mover of conversations through a script.

    Args:
        script: the rules.
        conversations: the position of each conversation.
    """

    def __init__(self, script: Script, conversations: Conversations) -> None:
        self._script = script
        self._conversations = conversations

    def advance(self, subject: Subject, conversation: Conversation) -> Scripted:
        """Return the scripted answer to a prompt. Counts the entry of a rule with `max_matches`."""
        script, conversations = self._script, self._conversations
        position = conversations.position(conversation, script)
        advance = script.advance(subject, position, conversations.counts(conversation, script))
        if advance.match is None:
            default = script.scenario.default_response
            return Scripted(None if default is None else "default", default)
        if advance.entered is not None:
            conversations.enter(conversation, script.names[advance.entered])
        step = script.step(advance.match)
        return Scripted(advance.match.label, step.response, step.failure, advance.position)

    def move(
        self,
        conversation: Conversation,
        position: Position | None,
        reply: Reply | None,
        failure: Failure | None,
    ) -> None:
        """Store the position of a conversation.

        Covers a client that received the answer, and one that retries.

        Args:
            conversation: the conversation.
            position: the next position.
            reply: the answer, if any.
            failure: the fault.
        """
        arrives = failure is None or KINDS[failure.type].place is Place.ANSWER
        begins = conversation.place == conversation.scope
        if begins or not arrives:
            self._conversations.move(conversation.place, None if arrives else position, self._script)
        if reply is not None:
            self._conversations.move(conversation.place_after(reply), position, self._script)
            self._conversations.answered(conversation)
