"""Messages copied from values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.gateway.v1 import gateway_pb2 as gateway
from peripety.api.policy.v1 import policy_pb2 as policy
from peripety.errors import Finding, NotFoundError, Severity
from peripety.rpc.messages import copy_fields


class _Block(Enum):
    TOOLS = "t"


@dataclass
class _Breakpoint:
    block: Any = _Block.TOOLS
    ttl: Any = "one_hour"
    message_index: int = 2


@dataclass
class _Plan:
    breakpoints: Any = ()
    predicted_read_tokens: int = 1
    predicted_write_tokens: int = 0
    first_difference: _Breakpoint | None = None


def test_nested_values_become_messages() -> None:
    breakpoint_ = gateway.CacheBreakpoint(
        block=gateway.CACHE_BLOCK_TOOLS,
        ttl=gateway.CACHE_TTL_ONE_HOUR,
        message_index=2,
    )
    plan = copy_fields(gateway.CachePlan, _Plan([_Breakpoint(), breakpoint_], first_difference=_Breakpoint()))
    expected = gateway.CachePlan(breakpoints=[breakpoint_, breakpoint_], predicted_read_tokens=1)
    expected.first_difference.CopyFrom(breakpoint_)
    assert plan == expected


def test_none_leaves_a_field_unset() -> None:
    plan = copy_fields(gateway.CachePlan, _Plan())
    assert not plan.HasField("first_difference")
    assert copy_fields(gateway.CacheBreakpoint, _Breakpoint(block=None)).block == 0


def test_given_values_are_converted_and_preferred() -> None:
    plan = copy_fields(gateway.CachePlan, _Plan(), breakpoints=iter([_Breakpoint()]), predicted_read_tokens=5)
    assert (len(plan.breakpoints), plan.predicted_read_tokens) == (1, 5)


def test_numbers_become_times_durations_and_amounts() -> None:
    price = copy_fields(
        gateway.ModelPrice,
        None,
        effective_time=datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        input_token=7,
        output_token=None,
        cache_read_token=0,
        cache_write_token=None,
        min_input_tokens=0,
        cache_ttl=1.5,
        peak=False,
    )
    assert price.effective_time == Timestamp(seconds=1)
    assert price.cache_ttl == Duration(seconds=1, nanos=500_000_000)
    assert price.input_token == common.Money(currency_code="USD", pico_units=7)
    assert price.HasField("cache_read_token")
    assert not price.HasField("output_token")


def test_findings_and_errors_become_messages() -> None:
    finding = Finding("SPEC_INVALID", "/a", "alpha", Severity.WARNING)
    written = copy_fields(policy.CompilePolicyResponse.RulesWritten, None, document=b"d", findings=[finding])
    assert written.findings[0].severity == common.SEVERITY_WARNING
    started = copy_fields(
        gateway.FallbackStarted,
        None,
        from_model="a",
        to_model="b",
        cause=NotFoundError("alpha", code="MODEL_NOT_FOUND"),
    )
    assert started.cause.message == "alpha"


def test_a_missing_attribute_or_an_unknown_field_is_an_error() -> None:
    with pytest.raises(AttributeError, match="message_index"):
        copy_fields(gateway.CacheBreakpoint, object(), block=1, ttl=1)
    with pytest.raises(ValueError, match="blocks"):
        copy_fields(gateway.CacheBreakpoint, _Breakpoint(), blocks=1)
