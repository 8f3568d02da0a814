"""One request to a provider, and its outcome."""

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
    """Record of one request to a provider.

    Attributes:
        begun: start time.
        used: actual or assumed usage; None while no request was sent.
        released: whether any part of the answer was passed on.
        outcome: success, failure or neither, for the circuit breaker.
        code: `OK`, the error code, or `CANCELLED` if the caller left.
        cost: the cost; None if unknown.
        finished: the last event of the answer, if there is one.
        cache_plan: the predicted effect on the prompt cache.
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
        """Record the end of a complete answer."""
        self.outcome, self.code, self.finished, self.cost = Outcome.WORKED, "OK", finished, cost
        usage = finished.usage
        if usage != Usage():
            self.used = Demand(usage.input_tokens, usage.output_tokens, None if cost is None else cost.total)

    def fail(self, error: PeripetyError) -> None:
        """Record a failure. A request that the provider rejected has used no tokens."""
        self.outcome = Outcome.FAILED if is_provider_fault(error) else Outcome.UNKNOWN
        self.code = error.code
        if not self.released and was_answered(error):
            self.used, self.cost = Demand(0, 0), Cost()

    def report(self, provider: str, call: Call, seconds: float) -> CallReport:
        """Return the call record.

        Args:
            provider: name of the provider.
            call: the request.
            seconds: duration.
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
        """Return the completion.

        Args:
            finished: the last event of the answer.
            provider: name of the provider.
            calls: number of requests, retries included.
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
