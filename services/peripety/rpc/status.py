"""gRPC status mapping: one table from error kinds to status codes, with `google.rpc` details.

`from_rpc_error` is the reverse. Findings and errors of single items have messages of their own.

Details travel in HTTP/2 trailers, whose size clients limit: above about 8 KiB the whole status is lost at
random. The server limits them to 4 KiB and counts the violations it leaves out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]  # ships no types

from peripety.api.common.v1 import common_pb2 as common
from peripety.errors import (
    AlreadyExistsError,
    ConflictError,
    DeadlineError,
    FailedPreconditionError,
    FieldViolation,
    Finding,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    PeripetyError,
    ResourceExhaustedError,
    Severity,
    UnavailableError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from google.protobuf.message import Message

    from peripety.errors import ErrorKind


DOMAIN = "peripety"
DETAILS_KEY = "grpc-status-details-bin"

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

STATUS: dict[ErrorKind, grpc.StatusCode] = {error.kind: status for status, error in ERRORS.items()}

# A status without a reason was made by the local gRPC library, not by our servers.
_LOCAL_MESSAGES = {
    grpc.StatusCode.UNAVAILABLE: "server does not respond ({}); check that it runs at this address",
    grpc.StatusCode.DEADLINE_EXCEEDED: "server did not respond in time ({}); increase the deadline",
    grpc.StatusCode.UNIMPLEMENTED: "server does not implement this call ({}); it may be an older version",
}


def from_rpc_error(error: grpc.aio.AioRpcError) -> PeripetyError:
    """Return the error of a failed call: class, message, code, details, violations and retry delay."""
    info, bad_request, retry = _parse_details(error)
    kind = ERRORS.get(error.code(), InternalError)
    message = error.details() or error.code().name
    return kind(
        message if info.reason else _LOCAL_MESSAGES.get(error.code(), "{}").format(message),
        code=info.reason or None,
        details=dict(info.metadata),
        violations=[FieldViolation(v.field, v.description) for v in bad_request.field_violations],
        retry_after=retry.retry_delay.ToTimedelta().total_seconds() if retry else None,
    )


def _parse_details(
    error: grpc.aio.AioRpcError,
) -> tuple[error_details_pb2.ErrorInfo, error_details_pb2.BadRequest, error_details_pb2.RetryInfo | None]:
    info, bad_request = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    has_retry = False
    for detail in _parse_status(error.trailing_metadata()).details:
        detail.Unpack(info)
        detail.Unpack(bad_request)
        has_retry = detail.Unpack(retry) or has_retry
    return info, bad_request, retry if has_retry else None


def _parse_status(metadata: Iterable[tuple[str, str | bytes]]) -> status_pb2.Status:
    """Return the details of a status; truncation by a proxy must not hide the error itself."""
    for key, value in metadata or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            try:
                return status_pb2.Status.FromString(value)
            except DecodeError:
                break
    return status_pb2.Status()


def finding_to_proto(finding: Finding) -> common.Finding:
    """Return the message of a finding, with its remedy."""
    return common.Finding(
        code=finding.code,
        path=finding.path,
        message=finding.message,
        severity=common.Severity.Value(f"SEVERITY_{finding.severity.name}"),
        remedy=finding.remedy,
    )


def finding_from_proto(finding: common.Finding) -> Finding:
    """Return the finding of a message; a missing severity means error."""
    warning = finding.severity == common.SEVERITY_WARNING
    severity = Severity.WARNING if warning else Severity.ERROR
    return Finding(finding.code, finding.path, finding.message, severity)


_MAX_ITEMS = 1_000
_MAX_BYTES = 1024 * 1024

_Item = TypeVar("_Item", bound="Message")

_KINDS = {status.value[0]: kind for status, kind in ERRORS.items()}


def item_error_to_proto(error: PeripetyError) -> common.ItemError:
    """Convert an error to a message."""
    written = common.ItemError(
        code=STATUS[error.kind].value[0],
        reason=error.code,
        message=error.message,
        metadata=error.details,
        violations=[common.FieldViolation(field=v.field, description=v.reason) for v in error.violations],
    )
    if error.retry_after is not None:
        written.retry_after.FromNanoseconds(round(error.retry_after * 1e9))
    return written


def item_error_from_proto(error: common.ItemError) -> PeripetyError:
    """Convert a message to the error it describes."""
    retry_after = error.retry_after.ToNanoseconds() / 1e9 if error.HasField("retry_after") else None
    return _KINDS.get(error.code, InternalError)(
        error.message,
        code=error.reason,
        details=dict(error.metadata),
        violations=[FieldViolation(v.field, v.description) for v in error.violations],
        retry_after=retry_after,
    )


def batch_items(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    """Group items into as few messages as their sizes allow."""
    some: list[_Item] = []
    size = 0
    for item in items:
        some.append(item)
        size += item.ByteSize()
        if len(some) == _MAX_ITEMS or size >= _MAX_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


MAX_DETAILS_BYTES = 3_072
"""Maximum size of the serialised status: 4 KiB after the base64 encoding of HTTP/2 headers."""

_MESSAGE_BYTES = 768
_REASON_CHARACTERS = 63
_DETAIL_ENTRIES = 8
_DETAIL_BYTES = 96
_FIELD_BYTES = 256
_DESCRIPTION_BYTES = 512
_RESERVE_BYTES = 160  # type names of the details, and the count of omitted violations


class RpcStatus(NamedTuple):
    """Status, message and trailers of a failed call: the arguments of `ServicerContext.abort`."""

    code: grpc.StatusCode
    message: str
    trailers: tuple[tuple[str, str | bytes], ...]


def to_status(error: PeripetyError) -> RpcStatus:
    """Return the status, message and trailers of a call that fails with an error."""
    status = to_status_message(error)
    trailers: list[tuple[str, str | bytes]] = [(DETAILS_KEY, status.SerializeToString())]
    if error.retry_after is not None:
        # The gRPC library's own retries honour this header, so a fleet of clients waits as long as requested.
        trailers.append(("grpc-retry-pushback-ms", str(_milliseconds(error.retry_after))))
    return RpcStatus(STATUS[error.kind], status.message, tuple(trailers))


def to_status_message(error: PeripetyError) -> status_pb2.Status:
    """Return the status of an error with its details, at most `MAX_DETAILS_BYTES` long."""
    info = error_details_pb2.ErrorInfo(reason=error.code[:_REASON_CHARACTERS], domain=DOMAIN)
    for key, value in list(error.details.items())[:_DETAIL_ENTRIES]:
        info.metadata[_truncate(key, _DETAIL_BYTES)] = _truncate(value, _DETAIL_BYTES)
    status = status_pb2.Status(
        code=STATUS[error.kind].value[0],
        message=_truncate(error.message, _MESSAGE_BYTES),
    )
    if error.retry_after is not None:
        _add_detail(status, error_details_pb2.RetryInfo(retry_delay=_to_duration(error.retry_after)))
    if error.violations:
        room = MAX_DETAILS_BYTES - status.ByteSize() - info.ByteSize() - _RESERVE_BYTES
        bad_request = _to_bad_request(error.violations, room)
        _add_detail(status, bad_request)
        omitted = len(error.violations) - len(bad_request.field_violations)
        if omitted:
            info.metadata["violations_omitted"] = str(omitted)
    _add_detail(status, info)
    return status


def _to_bad_request(violations: Iterable[FieldViolation], room: int) -> error_details_pb2.BadRequest:
    """Add violations in order, worst first, while they fit."""
    bad_request = error_details_pb2.BadRequest()
    for violation in violations:
        bad_request.field_violations.add(
            field=_truncate(violation.field, _FIELD_BYTES),
            description=_truncate(violation.reason, _DESCRIPTION_BYTES),
        )
        if bad_request.ByteSize() > room:
            del bad_request.field_violations[-1]
            break
    return bad_request


def _add_detail(status: status_pb2.Status, detail: Message) -> None:
    status.details.add().Pack(detail)


def _milliseconds(seconds: float) -> int:
    return max(0, round(seconds * 1000))


def _to_duration(seconds: float) -> Duration:
    delay = Duration()
    delay.FromMilliseconds(_milliseconds(seconds))
    return delay


def _truncate(text: str, limit: int) -> str:
    """Truncate text to `limit` bytes of UTF-8 at a character boundary, and mark the cut."""
    data = text.encode("utf-8", "replace")
    if len(data) <= limit:
        return data.decode("utf-8")
    return data[: limit - 3].decode("utf-8", "ignore") + "…"
