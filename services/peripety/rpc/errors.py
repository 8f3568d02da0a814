"""gRPC status mapping: one table from error kinds to status codes, with `google.rpc` details.

The reverse is in `peripety.client.errors`. Details travel in HTTP/2 trailers, whose size clients limit: above
about 8 KiB the whole status is lost at random. The server limits them to 4 KiB and counts the violations it
leaves out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]  # ships no types

from peripety.errors import ErrorKind, InternalError, PeripetyError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.protobuf.message import Message

    from peripety.errors import FieldViolation

__all__ = ["DETAILS_KEY", "DOMAIN", "MAX_DETAILS_BYTES", "STATUS", "Ending", "ending", "public_error"]

DOMAIN = "peripety"
DETAILS_KEY = "grpc-status-details-bin"

MAX_DETAILS_BYTES = 3_072
"""Maximum size of the serialised status: 4 KiB after the base64 encoding of HTTP/2 headers."""

STATUS: dict[ErrorKind, grpc.StatusCode] = {
    ErrorKind.INVALID_ARGUMENT: grpc.StatusCode.INVALID_ARGUMENT,
    ErrorKind.NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    ErrorKind.ALREADY_EXISTS: grpc.StatusCode.ALREADY_EXISTS,
    ErrorKind.FAILED_PRECONDITION: grpc.StatusCode.FAILED_PRECONDITION,
    ErrorKind.CONFLICT: grpc.StatusCode.ABORTED,
    ErrorKind.RESOURCE_EXHAUSTED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    ErrorKind.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    ErrorKind.DEADLINE: grpc.StatusCode.DEADLINE_EXCEEDED,
    ErrorKind.UNSUPPORTED: grpc.StatusCode.UNIMPLEMENTED,
    ErrorKind.INTERNAL: grpc.StatusCode.INTERNAL,
}

_MESSAGE_BYTES = 768
_REASON_CHARACTERS = 63
_DETAIL_ENTRIES = 8
_DETAIL_BYTES = 96
_FIELD_BYTES = 256
_DESCRIPTION_BYTES = 512
_RESERVE_BYTES = 160  # type names of the details, and the count of omitted violations


def public_error(error: Exception, request_id: str) -> PeripetyError:
    """Return the error shown to the caller: our own errors unchanged, anything else as an id to quote."""
    if isinstance(error, PeripetyError) and not isinstance(error, InternalError):
        return error
    return InternalError(
        f"internal error of the server; quote request id {request_id}",
        details={"request_id": request_id},
    )


class Ending(NamedTuple):
    """Status, message and trailers of a failed call: the arguments of `ServicerContext.abort`."""

    code: grpc.StatusCode
    message: str
    trailers: tuple[tuple[str, str | bytes], ...]


def ending(error: PeripetyError) -> Ending:
    """Return the status, message and trailers of a call that fails with an error."""
    status = _status(error)
    trailers: list[tuple[str, str | bytes]] = [(DETAILS_KEY, status.SerializeToString())]
    if error.retry_after is not None:
        # The gRPC library's own retries honour this header, so a fleet of clients waits as long as requested.
        trailers.append(("grpc-retry-pushback-ms", str(_milliseconds(error.retry_after))))
    return Ending(STATUS[error.kind], status.message, tuple(trailers))


def _status(error: PeripetyError) -> status_pb2.Status:
    info = error_details_pb2.ErrorInfo(reason=error.code[:_REASON_CHARACTERS], domain=DOMAIN)
    for key, value in list(error.details.items())[:_DETAIL_ENTRIES]:
        info.metadata[_cut(key, _DETAIL_BYTES)] = _cut(value, _DETAIL_BYTES)
    status = status_pb2.Status(code=STATUS[error.kind].value[0], message=_cut(error.message, _MESSAGE_BYTES))
    if error.retry_after is not None:
        _attach(status, error_details_pb2.RetryInfo(retry_delay=_delay(error.retry_after)))
    if error.violations:
        room = MAX_DETAILS_BYTES - status.ByteSize() - info.ByteSize() - _RESERVE_BYTES
        bad_request = _bad_request(error.violations, room)
        _attach(status, bad_request)
        omitted = len(error.violations) - len(bad_request.field_violations)
        if omitted:
            info.metadata["violations_omitted"] = str(omitted)
    _attach(status, info)
    return status


def _bad_request(violations: Iterable[FieldViolation], room: int) -> error_details_pb2.BadRequest:
    """Add violations in order, worst first, while they fit."""
    bad_request = error_details_pb2.BadRequest()
    for violation in violations:
        bad_request.field_violations.add(
            field=_cut(violation.field, _FIELD_BYTES), description=_cut(violation.reason, _DESCRIPTION_BYTES)
        )
        if bad_request.ByteSize() > room:
            del bad_request.field_violations[-1]
            break
    return bad_request


def _attach(status: status_pb2.Status, detail: Message) -> None:
    status.details.add().Pack(detail)


def _milliseconds(seconds: float) -> int:
    return max(0, round(seconds * 1000))


def _delay(seconds: float) -> Duration:
    delay = Duration()
    delay.FromMilliseconds(_milliseconds(seconds))
    return delay


def _cut(text: str, limit: int) -> str:
    """Truncate text to `limit` bytes of UTF-8 at a character boundary, and mark the cut."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8")
    return data[: limit - 3].decode("utf-8", "ignore") + "…"
