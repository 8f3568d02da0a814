"""Errors of calls, one class for each gRPC status, with the reason, the wrong fields and the time to wait.

Decide by the class, or by `reason`, which is a name of the enum `ErrorReason` or the code of a finding. Show
`message` to people.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import grpc

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.api.common.v1.common_pb2 import ItemError
    from peripety.api.common.v1.error_reason_pb2 import ErrorReason

_DETAILS_KEY = "grpc-status-details-bin"


class Violation(NamedTuple):
    """A wrong field of a request.

    Attributes:
        field: path of the field, such as `actions[0].params`, or a JSON Pointer into a document.
        description: the problem and the remedy in one sentence.
    """

    field: str
    description: str


class CallError(Exception):
    """A call that failed.

    Attributes:
        status: status of the call.
        reason: stable UPPER_SNAKE reason; empty if the error does not come from the server.
        message: one sentence for display, with the problem and the remedy.
        violations: the wrong fields of the request.
        retry_after: seconds to wait before a retry; None if a retry is useless or the time is not known.
        metadata: short machine-readable context, such as ids and limits.
    """

    status: grpc.StatusCode = grpc.StatusCode.UNKNOWN

    def __init__(
        self,
        message: str,
        *,
        status: grpc.StatusCode | None = None,
        reason: str = "",
        violations: tuple[Violation, ...] = (),
        retry_after: float | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status or self.status
        self.reason = reason
        self.violations = violations
        self.retry_after = retry_after
        self.metadata = dict(metadata or {})

    def __str__(self) -> str:
        lines = [f"{self.status.name} {self.reason}".rstrip() + f": {self.message}"]
        return "\n  ".join([*lines, *(f"{field}: {text}" for field, text in self.violations)])

    @property
    def known_reason(self) -> ErrorReason.ValueType:
        """The reason as a value of the enum; `ERROR_REASON_UNSPECIFIED` for one that it does not have."""
        from peripety.api.common.v1 import error_reason_pb2  # noqa: PLC0415 - the stubs load on demand

        try:
            return error_reason_pb2.ErrorReason.Value(f"ERROR_REASON_{self.reason}")
        except ValueError:
            return error_reason_pb2.ERROR_REASON_UNSPECIFIED

    @property
    def is_lost_connection(self) -> bool:
        """True if the same request, sent again with the same `request_id`, may succeed."""
        return self.status is grpc.StatusCode.UNAVAILABLE or (
            self.status in _BROKEN_STREAM and not self.reason
        )


_BROKEN_STREAM = {grpc.StatusCode.CANCELLED, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}
"""Statuses that gRPC reports, besides UNAVAILABLE, if a connection breaks within a response."""


class InvalidArgument(CallError):
    """The request is wrong; `violations` has its wrong fields."""

    status = grpc.StatusCode.INVALID_ARGUMENT


class NotFound(CallError):
    """The named resource does not exist, or belongs to another caller."""

    status = grpc.StatusCode.NOT_FOUND


class AlreadyExists(CallError):
    """The name is in use, or the `request_id` was used for another request."""

    status = grpc.StatusCode.ALREADY_EXISTS


class FailedPrecondition(CallError):
    """The state of the resource does not allow the call."""

    status = grpc.StatusCode.FAILED_PRECONDITION


class Aborted(CallError):
    """Another client changed the resource first: read it again, then retry with a new `request_id`."""

    status = grpc.StatusCode.ABORTED


class ResourceExhausted(CallError):
    """A limit or a budget is used up; `retry_after` is set if waiting helps."""

    status = grpc.StatusCode.RESOURCE_EXHAUSTED


class Unavailable(CallError):
    """The server or one of its dependencies does not answer; retry later."""

    status = grpc.StatusCode.UNAVAILABLE


class DeadlineExceeded(CallError):
    """The deadline of the call passed. The server may still complete the work."""

    status = grpc.StatusCode.DEADLINE_EXCEEDED


class Unimplemented(CallError):
    """The server does not support the call, or a field that is set."""

    status = grpc.StatusCode.UNIMPLEMENTED


class PermissionDenied(CallError):
    """A proxy in front of the server refuses the call."""

    status = grpc.StatusCode.PERMISSION_DENIED


class Unauthenticated(CallError):
    """A proxy in front of the server does not accept the token."""

    status = grpc.StatusCode.UNAUTHENTICATED


_CLASSES: dict[grpc.StatusCode, type[CallError]] = {kind.status: kind for kind in CallError.__subclasses__()}
_BY_NUMBER = {status.value[0]: status for status in grpc.StatusCode}


def from_rpc_error(error: Any) -> CallError:
    """Return the error of a `grpc.RpcError`, of the sync or of the async API."""
    from google.protobuf.message import DecodeError  # noqa: PLC0415 - only failed calls need the details
    from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]  # noqa: PLC0415

    info, request, retry = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest(), None
    status = status_pb2.Status()
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS_KEY:
            try:
                status = status_pb2.Status.FromString(value)
            except DecodeError:
                break  # truncated by a proxy: the error itself remains
    for detail in status.details:
        detail.Unpack(info)
        detail.Unpack(request)
        if detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
            retry = error_details_pb2.RetryInfo.FromString(detail.value).retry_delay
    return _CLASSES.get(error.code(), CallError)(
        error.details() or error.code().name,
        status=error.code(),
        reason=info.reason,
        violations=tuple(Violation(found.field, found.description) for found in request.field_violations),
        retry_after=None if retry is None else retry.ToNanoseconds() / 1e9,
        metadata=info.metadata,
    )


def from_item_error(error: ItemError) -> CallError:
    """Return the error of one item of a batch."""
    status = _BY_NUMBER.get(error.code, grpc.StatusCode.UNKNOWN)
    return _CLASSES.get(status, CallError)(
        error.message,
        status=status,
        reason=error.reason,
        violations=tuple(Violation(found.field, found.description) for found in error.violations),
        retry_after=error.retry_after.ToNanoseconds() / 1e9 if error.HasField("retry_after") else None,
        metadata=error.metadata,
    )
