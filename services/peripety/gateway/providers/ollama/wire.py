"""The protocol `/api/chat`."""

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
        """Where to post a call, behind the base URL."""
        return "/api/chat"

    def headers(self, _call: Call, key: SecretStr | None) -> Mapping[str, str]:
        """The credentials, where a server in front of it wants any."""
        return {} if key is None else {"Authorization": f"Bearer {key.get_secret_value()}"}

    def body(self, call: Call) -> Body:
        """Write a call down."""
        return to_ollama_body(call)

    def answer(self, call: Call, _body: Body, failures: Failures) -> Answer:
        """Begin to read the answer to a call, which was made with this body."""
        return OllamaStream(failures, call)

    def counting(self, _call: Call) -> None:
        """Ollama does not count."""
