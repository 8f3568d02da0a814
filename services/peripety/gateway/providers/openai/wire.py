"""Wire protocol of Chat Completions, in the dialect of a server."""

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
        dialect: the dialect of the server.
    """

    framing = Framing.EVENTS
    vocabulary = VOCABULARY

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect

    def path(self, call: Call) -> str:
        """Return the path of a call, relative to the base URL."""
        version = call.data.traits.api_version
        if self._dialect.deployment_path is None or not version:
            return self._dialect.path
        return self._dialect.deployment_path.format(
            model=quote(call.model, safe=""), api_version=quote(version, safe="")
        )

    def headers(self, _call: Call, key: SecretStr | None) -> Mapping[str, str]:
        """Return the required headers, with the credentials."""
        if key is None:
            return {}
        return {self._dialect.key_header: self._dialect.key_prefix + key.get_secret_value()}

    def body(self, call: Call) -> Body:
        """Return the body of a call.

        Raises:
            InvalidArgumentError: the model does not support the request.
        """
        return to_openai_body(call, self._dialect)

    def answer(self, call: Call, body: Body, failures: Failures) -> Answer:
        """Return the decoder of the answer to a call with this body."""
        return ChatCompletionStream(failures, call, body.schema_method, self._dialect)

    def counting(self, _call: Call) -> None:
        """Return None: Chat Completions do not count tokens."""
