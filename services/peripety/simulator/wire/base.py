"""Wire interface: requests, answers, streams and errors of one API. Pure functions without I/O."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.simulator.model import Api, ApiError, Block, Frame, Reply, Request
    from peripety.simulator.truth.limits import Allowance

__all__ = ["Call", "Document", "Operation", "Route", "Service", "Wire"]


class Operation(StrEnum):
    """The purpose of a path."""

    GENERATE = "generate"
    OTHER = "other"  # answered directly with a document: models, token counts, stored objects


@dataclass(frozen=True, slots=True)
class Route:
    """A path of an API. `{name}` matches one segment, which may have the suffix `:verb`."""

    method: str
    path: str
    operation: Operation
    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """An HTTP request. Header names are in lower case; `params` are those of the path and the query."""

    route: Route
    headers: Mapping[str, str]
    params: Mapping[str, str]
    body: bytes = b""

    @property
    def bearer(self) -> str:
        """The bearer token of the header `authorization`; empty without one."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    @property
    def conversation(self) -> str | None:
        """The conversation name of the simulator's own header, for any API."""
        return self.headers.get("x-peripety-conversation")


@dataclass(frozen=True, slots=True)
class Document:
    """A complete HTTP response."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"


class Service(Protocol):
    """Simulator functions available to wires."""

    def now(self) -> float:
        """Return the seconds since 1970, by the simulator's clock."""
        ...

    def models(self, api: Api) -> Sequence[Any]:
        """Return the known models of a provider, as `truth.models.Model`."""
        ...

    def objects(self, name: str) -> Any:
        """Return a `state.Table` of objects that the API stores (explicit caches, stored answers)."""
        ...


class Wire(Protocol):
    """An API."""

    api: Api
    routes: Sequence[Route]

    def media_type(self, request: Request) -> str:
        """Return the media type of the stream for a request."""
        ...

    def request(self, call: Call, service: Service) -> Request:
        """Parse a request for a model answer.

        Raises:
            ApiError: the request is not valid; with the provider's own message if it is known.
        """
        ...

    def document(self, request: Request, reply: Reply) -> Any:
        """Return the JSON value of an answer that is not streamed."""
        ...

    def frames(self, request: Request, reply: Reply) -> Sequence[Frame[bytes]]:
        """Return the same answer as a stream: one frame per event, in order."""
        ...

    def headers(self, request_id: str, allowance: Allowance | None, now: float) -> Mapping[str, str]:
        """Return the headers of every answer: ids and remaining rate limits.

        Args:
            request_id: 24 letters and digits.
            allowance: the remaining limits; None for no limit headers.
            now: seconds since 1970 by the simulator's clock, for reset times.
        """
        ...

    def error(self, error: ApiError, request_id: str, now: float) -> Document:
        """Return an error response, with a retry hint if the provider sends one.

        Args:
            error: the error.
            request_id: 24 letters and digits.
            now: seconds since 1970 by the machine's clock, for retry dates, because clients wait in real
                time.
        """
        ...

    def error_frame(self, error: ApiError, request_id: str, sent: Sequence[Frame[bytes]]) -> bytes:
        """Return an error inside a stream, after the frames that were sent."""
        ...

    def stored(self, request: Request, reply: Reply) -> Mapping[str, Mapping[str, Any]]:  # noqa: ARG002
        """Return the objects that the API stores before the first byte: by table name, then by key.

        The default stores nothing.
        """
        return {}

    def repeated(self, request: Request, reply: Reply) -> Sequence[Block]:  # noqa: ARG002
        """Return the answer as blocks of a prompt that repeats it, for providers that cache answers.

        The default is empty.
        """
        return ()

    def other(self, call: Call, service: Service) -> Document:
        """Handle any operation other than a request for a model answer.

        Raises:
            ApiError: the request is not valid.
        """
        ...
