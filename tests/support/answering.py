"""A scripted LLM whose script is written while it is asked: its answers may depend on all that was said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.simulator.scenario.model import Scenario
from peripety.simulator.simulator import Simulator

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.simulator.exchange import Exchange
    from peripety.simulator.model import Request
    from peripety.simulator.scenario.model import Response

__all__ = ["Answering"]


class Answering(Simulator):
    """A scripted LLM that is told what to say to each request; protocols, tokens and caches are real.

    Args:
        answer: what is said to a request. It is called for one request at a time.

    Attributes:
        requests: everything that was asked, whole.
    """

    def __init__(self, answer: Callable[[Request], Response]) -> None:
        super().__init__(Scenario())
        self.requests: list[Request] = []
        self._answer = answer

    def begin(self, request: Request) -> Exchange:
        with self.step():
            self.requests.append(request)
            self.reload(Scenario(default_response=self._answer(request)))
            return super().begin(request)
