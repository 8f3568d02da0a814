"""The protocol Chat Completions, in the dialect of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from peripety.gateway.providers.framing import Framing
from peripety.gateway.providers.openai.body import to_openai_body
from peripety.gateway.providers.openai.stream import ChatCompletionStream
from peripety.gateway.providers.openai.vocabulary import VOCABULARY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import SecretStr

    from peripety.gateway.providers.base import Call
    from peripety.gateway.providers.failures import Failures
    from peripety.gateway.providers.openai.dialect import Dialect
    from peripety.gateway.providers.wire import Answer, Body

__all__ = ["ChatCompletionsWire"]


class ChatCompletionsWire:
    """Implements `Wire`.

    Args:
        dialect: what is particular about the server.
    """

    framing = Framing.EVENTS
    vocabulary = VOCABULARY

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def path(self, call: Call) -> str:
        """Where to post a call, behind the base URL."""
        version = call.data.traits.api_version
        if self._dialect.deployment_path is None or not version:
            return self._dialect.path
        return self._dialect.deployment_path.format(
            model=quote(call.model, safe=""), api_version=quote(version, safe="")
        )

    def headers(self, _call: Call, key: SecretStr | None) -> Mapping[str, str]:
        """The headers that the protocol wants, with the credentials."""
        if key is None:
            return {}
        return {self._dialect.key_header: self._dialect.key_prefix + key.get_secret_value()}

    def body(self, call: Call) -> Body:
        """Write a call down.

        Raises:
            InvalidArgumentError: the model has no way to be asked that.
        """
        return to_openai_body(call, self._dialect)

    def answer(self, call: Call, body: Body, failures: Failures) -> Answer:
        """Begin to read the answer to a call, which was made with this body."""
        return ChatCompletionStream(failures, call, body.schema_method, self._dialect)

    def counting(self, _call: Call) -> None:
        """Chat Completions do not count."""
