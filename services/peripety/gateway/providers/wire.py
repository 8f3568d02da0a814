"""What makes one provider's protocol: pure functions from a call to bytes, and from bytes to events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import SecretStr

    from peripety.gateway.model import SchemaMethod, SchemaReport
    from peripety.gateway.providers.base import Call, Delta, Finished
    from peripety.gateway.providers.failures import Failures, Vocabulary
    from peripety.gateway.providers.framing import Framing

__all__ = ["Answer", "Body", "Counting", "Wire"]


@dataclass(frozen=True, slots=True)
class Body:
    """A call as a provider takes it.

    Attributes:
        document: the JSON to post.
        schema_report: what became of the schema, when one was given.
    """

    document: Mapping[str, Any]
    schema_report: SchemaReport | None = None

    @property
    def schema_method(self) -> SchemaMethod | None:
        """How the answer is brought to match its schema, when one was given."""
        return None if self.schema_report is None else self.schema_report.method


@dataclass(frozen=True, slots=True)
class Counting:
    """A question for the tokens of a call, which is not made.

    Attributes:
        path: where to post it, behind the base URL.
        document: the JSON to post.
        field: where the answer says how many they are.
    """

    path: str
    document: Mapping[str, Any]
    field: str


class Answer(Protocol):
    """The state of one answer: decodes its stream strictly, and knows whether it arrived whole."""

    @property
    def done(self) -> bool:
        """Whether the provider said that nothing follows."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the whole answer has arrived; usage may still follow."""
        ...

    def feed(self, data: str) -> Sequence[Delta]:
        """Take the data of one event; return what it adds.

        Raises:
            PeripetyError: the provider reports an error.
            UnavailableError: the event is no part of an answer (code STREAM_MALFORMED).
        """
        ...

    def finish(self) -> Finished:
        """Return the end of the answer, when nothing follows.

        Raises:
            UnavailableError: the stream ended before the answer did (code STREAM_TRUNCATED).
        """
        ...


class Wire(Protocol):
    """The protocol of one provider; holds no state of a call."""

    framing: Framing
    """How the provider cuts its answers into events."""
    vocabulary: Vocabulary
    """How the provider names what went wrong."""

    def path(self, call: Call) -> str:
        """Where to post a call, behind the base URL."""
        ...

    def headers(self, call: Call, key: SecretStr | None) -> Mapping[str, str]:
        """The headers that the protocol wants, with the credentials."""
        ...

    def body(self, call: Call) -> Body:
        """Write a call down.

        Raises:
            InvalidArgumentError: the provider has no way to be asked that.
        """
        ...

    def answer(self, call: Call, body: Body, failures: Failures) -> Answer:
        """Begin to read the answer to a call, which was made with this body."""
        ...

    def counting(self, call: Call) -> Counting | None:
        """Ask how many tokens a call would read; None when the provider does not tell."""
        ...
