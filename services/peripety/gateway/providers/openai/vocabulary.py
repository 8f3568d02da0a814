"""Error vocabulary of OpenAI and compatible servers."""

from __future__ import annotations

from peripety.gateway.providers.failures import Vocabulary

__all__ = ["VOCABULARY"]

_PERMANENT_LIMITS = frozenset(
    {"insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached", "billing_not_active"}
)
_TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error"})

VOCABULARY = Vocabulary(
    statuses={
        "invalid_request_error": 400,
        "authentication_error": 401,
        "permission_error": 403,
        "not_found_error": 404,
        "rate_limit_error": 429,
        "rate_limit_exceeded": 429,
        "internal_error": 500,
        "server_error": 500,
        "service_unavailable_error": 503,
        **dict.fromkeys(_PERMANENT_LIMITS, 429),
        **dict.fromkeys(_TOO_LONG, 400),
    },
    permanent_limits=_PERMANENT_LIMITS,
    too_long=_TOO_LONG,
)
