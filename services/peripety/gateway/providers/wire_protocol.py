"""Wire protocol of a provider: pure functions from a call to bytes, and from bytes to events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import SecretStr

    from peripety.gateway.providers.error_mapping import ErrorMapper, ErrorVocabulary
    from peripety.gateway.providers.provider import AnswerFinished, Delta, ProviderCall
    from peripety.gateway.providers.stream_framing import StreamFraming
    from peripety.gateway.types.response import SchemaMethod, SchemaReport


@dataclass(frozen=True, slots=True)
class RequestBody:
    """A call in a provider's form.

    Attributes:
        document: the JSON to post.
        schema_report: how the schema was adapted, if there was one.
    """

    document: Mapping[str, Any]
    schema_report: SchemaReport | None = None

    @property
    def schema_method(self) -> SchemaMethod | None:
        """Return the method by which the answer is made to match its schema; None without a schema."""
        return None if self.schema_report is None else self.schema_report.method


@dataclass(frozen=True, slots=True)
class TokenCountRequest:
    """A token-count request for a call.

    Attributes:
        path: its path, relative to the base URL.
        document: the JSON to post.
        field: the field of the count in the response.
    """

    path: str
    document: Mapping[str, Any]
    field: str


class AnswerDecoder(Protocol):
    """State of one answer: decodes its stream strictly, and detects truncation."""

    @property
    def done(self) -> bool:
        """Return True if the provider has marked the end."""
        ...

    @property
    def complete(self) -> bool:
        """Return True if the whole answer has arrived; usage may follow."""
        ...

    def feed(self, data: str) -> Sequence[Delta]:
        """Decode the data of one event; return the deltas.

        Raises:
            PeripetyError: the provider reports an error.
            UnavailableError: the event is invalid (code STREAM_MALFORMED).
        """
        ...

    def finish(self) -> AnswerFinished:
        """Return the end of the answer, after the last event.

        Raises:
            UnavailableError: the stream was truncated (code STREAM_TRUNCATED).
        """
        ...


class WireProtocol(Protocol):
    """Wire protocol of one provider; stateless."""

    framing: StreamFraming
    """Framing of the provider's answers."""
    vocabulary: ErrorVocabulary
    """The provider's names of errors."""

    def path(self, call: ProviderCall) -> str:
        """Return the path of a call, relative to the base URL."""
        ...

    def headers(self, call: ProviderCall, key: SecretStr | None) -> Mapping[str, str]:
        """Return the required headers, with the credentials."""
        ...

    def body(self, call: ProviderCall) -> RequestBody:
        """Return the body of a call.

        Raises:
            InvalidArgumentError: the provider does not support the request.
        """
        ...

    def answer(self, call: ProviderCall, body: RequestBody, error_mapper: ErrorMapper) -> AnswerDecoder:
        """Return the decoder of the answer to a call with this body."""
        ...

    def token_count_request(self, call: ProviderCall) -> TokenCountRequest | None:
        """Return the token-count request for a call; None if the provider does not count."""
        ...
