"""A scripted LLM whose script is written while it is asked: its answers may depend on all that was said."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.llmsim.script.types import Script
from peripety.llmsim.simulator import Simulator

if TYPE_CHECKING:
    from collections.abc import Callable

    from peripety.llmsim.script.types import ScriptResponse
    from peripety.llmsim.script_engine import Exchange
    from peripety.llmsim.types import SimRequest


class Answering(Simulator):
    """A scripted LLM that is told what to say to each request; protocols, tokens and caches are real.

    Args:
        answer: what is said to a request. It is called for one request at a time.

    Attributes:
        requests: everything that was asked, whole.
    """

    def __init__(self, answer: Callable[[SimRequest], ScriptResponse]) -> None:
        super().__init__(Script())
        self.requests: list[SimRequest] = []
        self._answer = answer

    def begin(self, request: SimRequest) -> Exchange:
        with self.transaction():
            self.requests.append(request)
            self.reload(Script(default_response=self._answer(request)))
            return super().begin(request)
