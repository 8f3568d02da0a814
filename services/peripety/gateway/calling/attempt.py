"""One request to a provider, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.gateway.calling.breaker import Outcome
from peripety.gateway.calling.counters import Demand
from peripety.gateway.calling.faults import is_provider_fault, was_answered
from peripety.gateway.calling.reports import CallReport
from peripety.gateway.catalogue import Cost
from peripety.gateway.model import ChatMessage, ChatRole, Completion, Usage

if TYPE_CHECKING:
    from datetime import datetime

    from peripety.errors import PeripetyError
    from peripety.gateway.model import CachePlan
    from peripety.gateway.providers.base import Call, Finished

__all__ = ["Attempt"]


@dataclass(slots=True)
class Attempt:
    """One request to a provider.

    Attributes:
        begun: when it was begun.
        used: what it used, or may have used; None while no request was sent.
        released: whether anything of the answer was passed on.
        outcome: what it says about its provider.
        code: how it ended: `OK`, the code of the error, or `CANCELLED` when its caller left.
        cost: what it cost; None when that is not known.
        finished: the end of the answer, if there is one.
        cache_plan: what the prompt cache is expected to do.
    """

    begun: datetime
    used: Demand | None = None
    released: bool = False
    outcome: Outcome = Outcome.UNKNOWN
    code: str = "CANCELLED"
    cost: Cost | None = None
    finished: Finished | None = None
    cache_plan: CachePlan | None = None

    def end(self, finished: Finished, cost: Cost | None) -> None:
        """Note the end of a whole answer."""
        self.outcome, self.code, self.finished, self.cost = Outcome.WORKED, "OK", finished, cost
        usage = finished.usage
        if usage != Usage():
            self.used = Demand(usage.input_tokens, usage.output_tokens, None if cost is None else cost.total)

    def fail(self, error: PeripetyError) -> None:
        """Note a failure. A request that the provider refused has used no tokens."""
        self.outcome = Outcome.FAILED if is_provider_fault(error) else Outcome.UNKNOWN
        self.code = error.code
        if not self.released and was_answered(error):
            self.used, self.cost = Demand(0, 0), Cost()

    def report(self, provider: str, call: Call, seconds: float) -> CallReport:
        """Return what became of it.

        Args:
            provider: who was asked.
            call: what.
            seconds: how long it took.
        """
        return CallReport(
            provider=provider,
            model=call.model if self.finished is None else self.finished.model,
            conversation_id=call.request.conversation_id,
            outcome=self.code,
            begun=self.begun,
            seconds=seconds,
            counted=self.used or Demand(0, 0),
            usage=Usage() if self.finished is None else self.finished.usage,
            cost=self.cost,
        )

    def completion(self, finished: Finished, provider: str, calls: int) -> Completion:
        """Return the answer.

        Args:
            finished: its end.
            provider: who answered.
            calls: how many requests it took.
        """
        return Completion(
            ChatMessage(ChatRole.ASSISTANT, finished.parts),
            None,
            finished.usage,
            finished.stop_reason,
            finished.model,
            provider,
            calls=calls,
            schema_report=finished.schema_report,
            cost=None if self.cost is None else self.cost.total,
            cache_savings=None if self.cost is None else self.cost.cache_savings,
            cache_plan=self.cache_plan,
        )
