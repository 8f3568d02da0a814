"""Wire protocol of OpenAI's Responses API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.gateway.providers.framing import Framing
from peripety.gateway.providers.openai.vocabulary import VOCABULARY
from peripety.gateway.providers.openai_responses.body import to_counted, to_responses_body
from peripety.gateway.providers.openai_responses.stream import ResponseStream
from peripety.gateway.providers.wire import Counting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import SecretStr

    from peripety.gateway.providers.base import Call
    from peripety.gateway.providers.failures import Failures
    from peripety.gateway.providers.wire import Answer, Body

__all__ = ["ResponsesWire"]


class ResponsesWire:
    """Implements `Wire`."""

    framing = Framing.EVENTS
    vocabulary = VOCABULARY

    def path(self, _call: Call) -> str:
        """Return the path of a call, relative to the base URL."""
        return "/responses"

    def headers(self, _call: Call, key: SecretStr | None) -> Mapping[str, str]:
        """Return the required headers, with the credentials."""
        return {} if key is None else {"Authorization": f"Bearer {key.get_secret_value()}"}

    def body(self, call: Call) -> Body:
        """Return the body of a call.

        Raises:
            InvalidArgumentError: the API does not support the request.
        """
        return to_responses_body(call)

    def answer(self, call: Call, body: Body, failures: Failures) -> Answer:
        """Return the decoder of the answer to a call with this body."""
        return ResponseStream(failures, call, body.schema_method)

    def counting(self, call: Call) -> Counting:
        """Return the token-count request for a call.

        Raises:
            InvalidArgumentError: the API does not support the request.
        """
        return Counting("/responses/input_tokens", to_counted(call), "input_tokens")
