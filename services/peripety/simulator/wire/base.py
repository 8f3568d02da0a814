"""A wire module: one API's words for requests, answers, streams and errors. Pure functions, no I/O."""

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
    """What a path is for."""

    GENERATE = "generate"
    OTHER = "other"  # answered at once with a document: models, token counts, stored objects


@dataclass(frozen=True, slots=True)
class Route:
    """A path of an API; `{name}` stands for one segment, which may end in `:verb`."""

    method: str
    path: str
    operation: Operation
    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """An HTTP request: header names in lower case; `params` are the path's and the query's."""

    route: Route
    headers: Mapping[str, str]
    params: Mapping[str, str]
    body: bytes = b""

    @property
    def bearer(self) -> str:
        """The token of the header `authorization`; empty where there is none."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    @property
    def conversation(self) -> str | None:
        """What the caller calls the conversation, whichever the API."""
        return self.headers.get("x-peripety-conversation")


@dataclass(frozen=True, slots=True)
class Document:
    """A whole HTTP answer."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"


class Service(Protocol):
    """What the other operations may ask of the simulator."""

    def now(self) -> float:
        """Seconds since 1970 by the simulator's clock."""
        ...

    def models(self, api: Api) -> Sequence[Any]:
        """The models that are known of a provider, as `truth.models.Model`."""
        ...

    def objects(self, name: str) -> Any:
        """A `state.Table` for what the API stores (explicit caches, stored answers)."""
        ...


class Wire(Protocol):
    """One API."""

    api: Api
    routes: Sequence[Route]

    def media_type(self, request: Request) -> str:
        """The media type of the stream that answers the request."""
        ...

    def request(self, call: Call, service: Service) -> Request:
        """Read a request for an answer.

        Raises:
            ApiError: it is not valid, with the provider's own message where one is known.
        """
        ...

    def document(self, request: Request, reply: Reply) -> Any:
        """The JSON value of an answer that is not streamed."""
        ...

    def frames(self, request: Request, reply: Reply) -> Sequence[Frame[bytes]]:
        """The same answer as a stream: one frame for each event, in order."""
        ...

    def headers(self, request_id: str, allowance: Allowance | None, now: float) -> Mapping[str, str]:
        """The headers of every answer: ids, and what is left of the limits.

        Args:
            request_id: 24 letters and digits.
            allowance: what is left; None writes nothing about it.
            now: seconds since 1970 by the simulator's clock, for limits that say when they are full again.
        """
        ...

    def error(self, error: ApiError, request_id: str, now: float) -> Document:
        """An error as an answer, its retry hint included where this provider gives one.

        Args:
            error: the error.
            request_id: 24 letters and digits.
            now: seconds since 1970 by the machine's clock, for hints that are dates: callers do wait.
        """
        ...

    def error_frame(self, error: ApiError, request_id: str, sent: Sequence[Frame[bytes]]) -> bytes:
        """An error inside a stream, after the frames that were sent."""
        ...

    def stored(self, request: Request, reply: Reply) -> Mapping[str, Mapping[str, Any]]:  # noqa: ARG002
        """What the API remembers of an answer from before its first byte: by the table's name, then by key.

        A wire that inherits from this class remembers nothing unless it says so.
        """
        return {}

    def repeated(self, request: Request, reply: Reply) -> Sequence[Block]:  # noqa: ARG002
        """The answer as blocks of a prompt that repeats it, for providers that cache answers too.

        A wire that inherits from this class has none unless it says so.
        """
        return ()

    def other(self, call: Call, service: Service) -> Document:
        """Answer anything but a request for an answer.

        Raises:
            ApiError: it is not valid.
        """
        ...
