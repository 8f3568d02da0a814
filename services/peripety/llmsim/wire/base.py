"""Wire interface: requests, answers, streams and errors of one API. Pure functions without I/O.

It includes the common parts of all wires: strict JSON, server-sent events and retry headers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from email.utils import formatdate
from enum import StrEnum
from math import ceil
from typing import TYPE_CHECKING, Any, Protocol

import jiter
from pydantic_core import to_json

from peripety.llmsim.types import RetryForm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.llmsim.provider_rules.limits import RateAllowance
    from peripety.llmsim.types import Api, ApiError, RetryHint, SimBlock, SimReply, SimRequest, StreamFrame


class WireOperation(StrEnum):
    """The purpose of a path."""

    GENERATE = "generate"
    OTHER = "other"  # answered directly with a document: models, token counts, stored objects


@dataclass(frozen=True, slots=True)
class Route:
    """A path of an API. `{name}` matches one segment, which may have the suffix `:verb`."""

    method: str
    path: str
    operation: WireOperation
    name: str


@dataclass(frozen=True, slots=True)
class HttpCall:
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
class HttpDocument:
    """A complete HTTP response."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = "application/json"


class SimService(Protocol):
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

    def media_type(self, request: SimRequest) -> str:
        """Return the media type of the stream for a request."""
        ...

    def parse_request(self, call: HttpCall, service: SimService) -> SimRequest:
        """Parse a request for a model answer.

        Raises:
            ApiError: the request is not valid; with the provider's own message if it is known.
        """
        ...

    def document(self, request: SimRequest, reply: SimReply) -> Any:
        """Return the JSON value of an answer that is not streamed."""
        ...

    def frames(self, request: SimRequest, reply: SimReply) -> Sequence[StreamFrame[bytes]]:
        """Return the same answer as a stream: one frame per event, in order."""
        ...

    def headers(self, request_id: str, allowance: RateAllowance | None, now: float) -> Mapping[str, str]:
        """Return the headers of every answer: ids and remaining rate limits.

        Args:
            request_id: 24 letters and digits.
            allowance: the remaining limits; None for no limit headers.
            now: seconds since 1970 by the simulator's clock, for reset times.
        """
        ...

    def error(self, error: ApiError, request_id: str, now: float) -> HttpDocument:
        """Return an error response, with a retry hint if the provider sends one.

        Args:
            error: the error.
            request_id: 24 letters and digits.
            now: seconds since 1970 by the machine's clock, for retry dates, because clients wait in real
                time.
        """
        ...

    def error_frame(self, error: ApiError, request_id: str, sent: Sequence[StreamFrame[bytes]]) -> bytes:
        """Return an error inside a stream, after the frames that were sent."""
        ...

    def objects_to_store(self, request: SimRequest, reply: SimReply) -> Mapping[str, Mapping[str, Any]]:  # noqa: ARG002
        """Return the objects that the API stores before the first byte: by table name, then by key.

        The default stores nothing.
        """
        return {}

    def answer_blocks(self, request: SimRequest, reply: SimReply) -> Sequence[SimBlock]:  # noqa: ARG002
        """Return the answer as blocks of a prompt that repeats it, for providers that cache answers.

        The default is empty.
        """
        return ()

    def handle_other(self, call: HttpCall, service: SimService) -> HttpDocument:
        """Handle any operation other than a request for a model answer.

        Raises:
            ApiError: the request is not valid.
        """
        ...


def parse_json(text: bytes) -> Any:
    """Parse a JSON text.

    Raises:
        ValueError: the text is not JSON, repeats a key, is nested too deeply, or has a number that is not
            finite; the message has the reason and the position.
    """
    value = jiter.from_json(text, allow_inf_nan=False, catch_duplicate_keys=True)
    if b"Infinity" in compact_json(value):  # a number too large for a float, or a word within a text
        json.dumps(value, allow_nan=False)
    return value


def compact_json(value: Any) -> bytes:
    """Format a value as JSON in UTF-8 without spaces; the order of members is preserved."""
    return to_json(value)


def block_cache_key(block: Mapping[str, Any], *without: str) -> bytes:
    """Return the cache key of a prompt block: equal bytes mean equal blocks.

    The order of the block's own members is irrelevant. The order within their values counts, as with the
    providers: tool arguments with another key order are another prompt.

    Args:
        block: the block, as sent.
        without: members that are not part of the model input, such as cache markers.
    """
    return compact_json({name: block[name] for name in sorted(block) if name not in without})


def retry_headers(hint: RetryHint | None, now: float) -> Mapping[str, str]:
    """Return the retry header, if there is a hint. A date is rounded up.

    Args:
        hint: the retry delay.
        now: the base of a date, in seconds since 1970.
    """
    if hint is None:
        return {}
    if hint.form is RetryForm.MILLISECONDS:
        return {"retry-after-ms": f"{hint.seconds * 1000:.10g}"}
    if hint.form is RetryForm.DATE:
        return {"retry-after": formatdate(ceil(now + hint.seconds), usegmt=True)}
    return {"retry-after": f"{hint.seconds:.10g}"}


def sse_event(data: bytes, name: str | None = None, newline: bytes = b"\n") -> bytes:
    """Return one event.

    Args:
        data: its data, on one line.
        name: the event name; None for no name.
        newline: the line ending.
    """
    head = b"" if name is None else b"event: " + name.encode() + newline
    return head + b"data: " + data + newline + newline


def sse_comment(text: str) -> bytes:
    """Return a comment line, which clients ignore and which prevents idle timeouts."""
    return f": {text}\n\n".encode()
