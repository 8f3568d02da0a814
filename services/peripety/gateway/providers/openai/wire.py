"""The protocol Chat Completions, in the dialect of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.gateway.providers.failures import Vocabulary
from peripety.gateway.providers.framing import Framing
from peripety.gateway.providers.openai.body import to_openai_body
from peripety.gateway.providers.openai.stream import ChatCompletionStream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import SecretStr

    from peripety.gateway.providers.base import Call
    from peripety.gateway.providers.failures import Failures
    from peripety.gateway.providers.openai.dialect import Dialect
    from peripety.gateway.providers.wire import Answer, Body

__all__ = ["ChatCompletionsWire"]

_PERMANENT_LIMITS = frozenset(
    {"insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached"}
)
_TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error"})


class ChatCompletionsWire:
    """Implements `Wire`.

    Args:
        dialect: what is particular about the server.
    """

    framing = Framing.EVENTS
    vocabulary = Vocabulary(
        statuses={
            "invalid_request_error": 400,
            "authentication_error": 401,
            "permission_error": 403,
            "not_found_error": 404,
            "rate_limit_exceeded": 429,
            **dict.fromkeys(_PERMANENT_LIMITS, 429),
            **dict.fromkeys(_TOO_LONG, 400),
        },
        permanent_limits=_PERMANENT_LIMITS,
        too_long=_TOO_LONG,
    )

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def path(self, _call: Call) -> str:
        """Where to post a call, behind the base URL."""
        return "/chat/completions"

    def headers(self, _call: Call, key: SecretStr | None) -> Mapping[str, str]:
        """The headers that the protocol wants, with the credentials."""
        return {} if key is None else {"Authorization": f"Bearer {key.get_secret_value()}"}

    def body(self, call: Call) -> Body:
        """Write a call down."""
        return to_openai_body(call, self._dialect)

    def answer(self, call: Call, _body: Body, failures: Failures) -> Answer:
        """Begin to read the answer to a call, which was made with this body."""
        return ChatCompletionStream(failures, call.model)

    def counting(self, _call: Call) -> None:
        """Chat Completions do not count."""
