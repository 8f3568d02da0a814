"""Batch items, and errors inside messages: of one item, or of work that continues without its caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import grpc

from peripety.api.common.v1 import common_pb2 as common
from peripety.client.errors import ERRORS
from peripety.errors import FieldViolation, InternalError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from google.protobuf.message import Message

    from peripety.errors import PeripetyError

__all__ = ["item_error", "item_error_to_exception", "parcels"]

_MOST_ITEMS = 1_000
_MOST_BYTES = 1024 * 1024

_Item = TypeVar("_Item", bound="Message")

_KINDS = {status.value[0]: kind for status, kind in ERRORS.items()}


def item_error(error: PeripetyError) -> common.ItemError:
    """Convert an error to a message."""
    status = next(
        (status for status, kind in ERRORS.items() if isinstance(error, kind)), grpc.StatusCode.INTERNAL
    )
    written = common.ItemError(
        code=status.value[0],
        reason=error.code,
        message=error.message,
        metadata=error.details,
        violations=[common.FieldViolation(field=v.field, description=v.reason) for v in error.violations],
    )
    if error.retry_after is not None:
        written.retry_after.FromNanoseconds(round(error.retry_after * 1e9))
    return written


def item_error_to_exception(error: common.ItemError) -> PeripetyError:
    """Convert a message to the error it describes."""
    retry_after = error.retry_after.ToNanoseconds() / 1e9 if error.HasField("retry_after") else None
    return _KINDS.get(error.code, InternalError)(
        error.message,
        code=error.reason,
        details=dict(error.metadata),
        violations=[FieldViolation(v.field, v.description) for v in error.violations],
        retry_after=retry_after,
    )


def parcels(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    """Group items into as few messages as their sizes allow."""
    some: list[_Item] = []
    size = 0
    for item in items:
        some.append(item)
        size += item.ByteSize()
        if len(some) == _MOST_ITEMS or size >= _MOST_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some
