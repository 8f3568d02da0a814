"""Wire protocol of `generateContent`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from peripety.gateway.providers.failures import Vocabulary
from peripety.gateway.providers.framing import Framing
from peripety.gateway.providers.gemini.body import to_gemini_body
from peripety.gateway.providers.gemini.stream import GeminiStream
from peripety.gateway.providers.wire import Counting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import SecretStr

    from peripety.gateway.providers.base import Call
    from peripety.gateway.providers.failures import Failures
    from peripety.gateway.providers.wire import Answer, Body

__all__ = ["GeminiWire"]


class GeminiWire:
    """Implements `Wire`."""

    framing = Framing.EVENTS
    vocabulary = Vocabulary(
        refused_keys=frozenset({"API_KEY_INVALID"}),
        permanent_limit_words=re.compile(r"\bcredits?\b|\bbilling account\b", re.IGNORECASE),
        too_long_words=re.compile(r"input token count .* exceeds", re.IGNORECASE),
    )

    def path(self, call: Call) -> str:
        """Return the path of a call, relative to the base URL; it does not contain the key."""
        return f"{_model(call)}:streamGenerateContent?alt=sse"

    def headers(self, _call: Call, key: SecretStr | None) -> Mapping[str, str]:
        """Return the required headers, with the credentials."""
        return {} if key is None else {"x-goog-api-key": key.get_secret_value()}

    def body(self, call: Call) -> Body:
        """Return the body of a call."""
        return to_gemini_body(call)

    def answer(self, call: Call, body: Body, failures: Failures) -> Answer:
        """Return the decoder of the answer to a call with this body."""
        return GeminiStream(failures, call, body.schema_method)

    def counting(self, call: Call) -> Counting:
        """Return the token-count request for a call."""
        asked = {"model": f"models/{call.model}", **to_gemini_body(call).document}
        return Counting(f"{_model(call)}:countTokens", {"generateContentRequest": asked}, "totalTokens")


def _model(call: Call) -> str:
    return f"/v1beta/models/{quote(call.model, safe='')}"
