"""One provider call: rate limits, circuit breaker, retries, budgets."""

from peripety.gateway.calling.caller import Caller

__all__ = ["Caller"]
