"""Conversion of a gRPC status to the error that the server raised: the reverse of `peripety.rpc.errors`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]  # ships no types

from peripety.errors import (
    AlreadyExistsError,
    ConflictError,
    DeadlineError,
    FailedPreconditionError,
    FieldViolation,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    PeripetyError,
    ResourceExhaustedError,
    UnavailableError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["ERRORS", "from_rpc_error"]

_DETAILS_KEY = "grpc-status-details-bin"

ERRORS: dict[grpc.StatusCode, type[PeripetyError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExistsError,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPreconditionError,
    grpc.StatusCode.ABORTED: ConflictError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhaustedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineError,
    grpc.StatusCode.UNIMPLEMENTED: UnsupportedError,
    grpc.StatusCode.INTERNAL: InternalError,
}
"""Statuses that our servers send; any other comes from a proxy or from gRPC and becomes an
`InternalError`.
"""

# A status without a reason was made by the local gRPC library, not by our servers.
_EXPLAINED = {
    grpc.StatusCode.UNAVAILABLE: "server does not respond ({}); check that it runs at this address",
    grpc.StatusCode.DEADLINE_EXCEEDED: "server did not respond in time ({}); increase the deadline",
    grpc.StatusCode.UNIMPLEMENTED: "server does not implement this call ({}); it may be an older version",
}


def from_rpc_error(error: grpc.aio.AioRpcError) -> PeripetyError:
    """Return the error of a failed call: class, message, code, details, violations and retry delay."""
    info, bad_request, retry = _details(error)
    kind = ERRORS.get(error.code(), InternalError)
    message = error.details() or error.code().name
    return kind(
        message if info.reason else _EXPLAINED.get(error.code(), "{}").format(message),
        code=info.reason or None,
        details=dict(info.metadata),
        violations=[FieldViolation(v.field, v.description) for v in bad_request.field_violations],
        retry_after=retry.retry_delay.ToTimedelta().total_seconds() if retry else None,
    )


def _details(
    error: grpc.aio.AioRpcError,
) -> tuple[error_details_pb2.ErrorInfo, error_details_pb2.BadRequest, error_details_pb2.RetryInfo | None]:
    info, bad_request = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    has_retry = False
    for detail in _status(error.trailing_metadata()).details:
        detail.Unpack(info)
        detail.Unpack(bad_request)
        has_retry = detail.Unpack(retry) or has_retry
    return info, bad_request, retry if has_retry else None


def _status(metadata: Iterable[tuple[str, str | bytes]]) -> status_pb2.Status:
    """Return the details of a status; truncation by a proxy must not hide the error itself."""
    for key, value in metadata or ():
        if key == _DETAILS_KEY and isinstance(value, bytes):
            try:
                return status_pb2.Status.FromString(value)
            except DecodeError:
                break
    return status_pb2.Status()
