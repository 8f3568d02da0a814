"""One call of a provider: within its limits, behind its breaker, repeated where that helps."""

from peripety.gateway.calling.caller import Caller

__all__ = ["Caller"]
