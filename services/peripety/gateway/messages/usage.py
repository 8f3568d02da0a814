"""Protobuf codec of usage."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from google.protobuf.timestamp_pb2 import Timestamp

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.gateway.messages.answers import spent_to_proto
from peripety.gateway.usage import Dimension, UsageQuery
from peripety.requests import refuse

if TYPE_CHECKING:
    from peripety.gateway.usage import UsageRow
    from peripety.pages import Page

__all__ = ["query_from_proto", "usage_page_to_proto"]

_DIMENSIONS = {pb.UsageDimension.Value(f"USAGE_DIMENSION_{each.name}"): each for each in Dimension}


def query_from_proto(request: pb.GetUsageRequest) -> UsageQuery:
    """Convert a usage query from protobuf.

    Raises:
        InvalidArgumentError: a dimension is not in the contract, or a time is invalid.
    """
    for index, dimension in enumerate(request.group_by):
        if dimension not in _DIMENSIONS:
            raise refuse(f".group_by[{index}]", "must be a known dimension")
    return UsageQuery(
        start=_moment(".start_time", request.start_time) if request.HasField("start_time") else None,
        end=_moment(".end_time", request.end_time) if request.HasField("end_time") else None,
        group_by=tuple(dict.fromkeys(_DIMENSIONS[dimension] for dimension in request.group_by)),
        provider=request.provider,
        model=request.model,
        conversation_id=request.conversation_id,
    )


def usage_page_to_proto(page: Page[UsageRow]) -> pb.GetUsageResponse:
    """Convert a page of usage sums to protobuf."""
    return pb.GetUsageResponse(rows=map(_row, page.items), next_page_token=page.next_page_token)


def _row(row: UsageRow) -> pb.UsageRow:
    day = None
    if row.group.day is not None:
        day = Timestamp()
        day.FromDatetime(row.group.day)
    return pb.UsageRow(
        provider=row.group.provider,
        model=row.group.model,
        conversation_id=row.group.conversation_id,
        day=day,
        usage=spent_to_proto(row.spent),
        response_cache_hits=row.hits,
    )


def _moment(field: str, timestamp: Timestamp) -> datetime:
    try:
        return timestamp.ToDatetime(UTC)
    except (ValueError, OverflowError):
        raise refuse(field, "must be a time between the years 1 and 9999") from None
