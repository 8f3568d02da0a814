"""Wire protocol of the Messages API."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety.gateway.providers.anthropic.body import to_anthropic_body, to_counting_body
from peripety.gateway.providers.anthropic.stream import MessageStream
from peripety.gateway.providers.failures import Vocabulary
from peripety.gateway.providers.framing import Framing
from peripety.gateway.providers.wire import Counting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import SecretStr

    from peripety.gateway.providers.base import Call
    from peripety.gateway.providers.failures import Failures
    from peripety.gateway.providers.wire import Answer, Body

__all__ = ["MessagesWire"]

_PATH = "/v1/messages"


class MessagesWire:
    """Implements `Wire`."""

    framing = Framing.EVENTS
    vocabulary = Vocabulary(
        statuses={
            "invalid_request_error": 400,
            "authentication_error": 401,
            "billing_error": 402,
            "permission_error": 403,
            "not_found_error": 404,
            "conflict_error": 409,
            "request_too_large": 413,
            "rate_limit_error": 429,
            "api_error": 500,
            "timeout_error": 504,
            "overloaded_error": 529,
        },
        permanent_limits=frozenset({"enforced_spend_limit_reached"}),
        too_long_words=re.compile(
            r"prompt is too long|exceeds? (the )?context (limit|window)", re.IGNORECASE
        ),
    )

    def path(self, _call: Call) -> str:
        """Return the path of a call, relative to the base URL."""
        return _PATH

    def headers(self, call: Call, key: SecretStr | None) -> Mapping[str, str]:
        """Return the API version for the model, and the credentials."""
        version = {"anthropic-version": call.data.traits.api_version}
        return version if key is None else {**version, "x-api-key": key.get_secret_value()}

    def body(self, call: Call) -> Body:
        """Return the body of a call."""
        return to_anthropic_body(call)

    def answer(self, call: Call, body: Body, failures: Failures) -> Answer:
        """Return the decoder of the answer to a call with this body."""
        return MessageStream(failures, call, body.schema_method)

    def counting(self, call: Call) -> Counting:
        """Return the token-count request for a call."""
        return Counting(f"{_PATH}/count_tokens", to_counting_body(call), "input_tokens")
