"""What goes wrong with a request: what was injected, what may happen to any, and what to one answer."""

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
    """A failure that came from outside of the scenario, and how many requests it might have met."""

    name: str
    failure: Failure
    requests: int = 0


class Failing:
    """Decides which failure occurs, if any does.

    Args:
        scenario: its seed, and what may go wrong with any request.
        conversations: counts the occasions.
        injected: what comes before the scenario's own failures; these count everybody's requests.
    """

    def __init__(self, scenario: Scenario, conversations: Conversations, injected: list[Injected]) -> None:
        self._scenario = scenario
        self._conversations = conversations
        self._injected = injected

    def in_general(self, conversation: Conversation) -> Failure | None:
        """What goes wrong whatever is asked: the first that occurs."""
        for injected in self._injected:
            ordinal, injected.requests = injected.requests, injected.requests + 1
            if occurs(injected.failure, ordinal, partial(self._draw, injected.name)):
                return injected.failure
        for number, failure in enumerate(self._scenario.failures):
            if self.occurs(conversation, f"failures[{number}]", failure):
                return failure
        return None

    def occurs(self, conversation: Conversation, name: str, failure: Failure) -> bool:
        """Whether a failure occurs on this occasion; occasions are counted by its name."""
        stream, ordinal = self._conversations.next_chance(conversation, name)
        return occurs(failure, ordinal, partial(self._draw, stream))

    def _draw(self, stream: str, index: int) -> int:
        return sim.draw(self._scenario.seed, stream, 0, index)
