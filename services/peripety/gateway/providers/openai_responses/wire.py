"""The protocol of OpenAI's Responses API."""

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
        """Where to post a call, behind the base URL."""
        return "/responses"

    def headers(self, _call: Call, key: SecretStr | None) -> Mapping[str, str]:
        """The headers that the protocol wants, with the credentials."""
        return {} if key is None else {"Authorization": f"Bearer {key.get_secret_value()}"}

    def body(self, call: Call) -> Body:
        """Write a call down.

        Raises:
            InvalidArgumentError: the API has no way to be asked that.
        """
        return to_responses_body(call)

    def answer(self, call: Call, body: Body, failures: Failures) -> Answer:
        """Begin to read the answer to a call, which was made with this body."""
        return ResponseStream(failures, call, body.schema_method)

    def counting(self, call: Call) -> Counting:
        """Ask how many tokens a call would read.

        Raises:
            InvalidArgumentError: the API has no way to be asked that.
        """
        return Counting("/responses/input_tokens", to_counted(call), "input_tokens")
