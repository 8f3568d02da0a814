"""Fault injection: selects the fault of a request.

Sources are injected faults, script-wide faults and the faults of one rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from peripety import sim
from peripety.simulator.failures import occurs

if TYPE_CHECKING:
    from peripety.simulator.conversations import Conversation, Conversations
    from peripety.simulator.scenario.model import Failure, Scenario

__all__ = ["Failing", "Injected"]


@dataclass(slots=True)
class Injected:
    """A fault injected at run time, and the number of requests that it has seen."""

    name: str
    failure: Failure
    requests: int = 0


class Failing:
    """Selector of the fault that occurs, if any.

    Args:
        scenario: the seed and the script-wide faults.
        conversations: counts the occasions.
        injected: faults that precede those of the script; they count the requests of all conversations.
    """

    def __init__(self, scenario: Scenario, conversations: Conversations, injected: list[Injected]) -> None:
        self._scenario = scenario
        self._conversations = conversations
        self._injected = injected

    def in_general(self, conversation: Conversation) -> Failure | None:
        """Return the first injected or script-wide fault that occurs; None if none does."""
        for injected in self._injected:
            ordinal, injected.requests = injected.requests, injected.requests + 1
            if occurs(injected.failure, ordinal, partial(self._draw, injected.name)):
                return injected.failure
        for number, failure in enumerate(self._scenario.failures):
            if self.occurs(conversation, f"failures[{number}]", failure):
                return failure
        return None

    def occurs(self, conversation: Conversation, name: str, failure: Failure) -> bool:
        """Return True if a fault occurs on this occasion. Occasions are counted per name."""
        stream, ordinal = self._conversations.next_chance(conversation, name)
        return occurs(failure, ordinal, partial(self._draw, stream))

    def _draw(self, stream: str, index: int) -> int:
        return sim.draw(self._scenario.seed, stream, 0, index)
