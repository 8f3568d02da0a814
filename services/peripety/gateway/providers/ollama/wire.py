"""Wire protocol of `/api/chat`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.gateway.providers.failures import Vocabulary
from peripety.gateway.providers.framing import Framing
from peripety.gateway.providers.ollama.body import to_ollama_body
from peripety.gateway.providers.ollama.stream import OllamaStream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import SecretStr

    from peripety.gateway.providers.base import Call
    from peripety.gateway.providers.failures import Failures
    from peripety.gateway.providers.wire import Answer, Body

__all__ = ["OllamaWire"]


class OllamaWire:
    """Implements `Wire`."""

    framing = Framing.LINES
    vocabulary = Vocabulary()

    def path(self, _call: Call) -> str:
        """Return the path of a call, relative to the base URL."""
        return "/api/chat"

    def headers(self, _call: Call, key: SecretStr | None) -> Mapping[str, str]:
        """Return the credentials, for a server behind an authenticating proxy."""
        return {} if key is None else {"Authorization": f"Bearer {key.get_secret_value()}"}

    def body(self, call: Call) -> Body:
        """Return the body of a call."""
        return to_ollama_body(call)

    def answer(self, call: Call, _body: Body, failures: Failures) -> Answer:
        """Return the decoder of the answer to a call with this body."""
        return OllamaStream(failures, call)

    def counting(self, _call: Call) -> None:
        """Return None: Ollama does not count tokens."""
