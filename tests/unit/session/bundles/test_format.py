"""The schema of bundles matches the written format, key by key."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, get_args

import pytest

from peripety.gateway.types.request import Budget
from peripety.gateway.types.response import Usage, UsageTotal
from peripety.session import events
from peripety.session.bundles.format import BundledTurn, BundleHeader, schema_of
from peripety.session.types import NarratorMemory, NarratorOptions, NarratorStats, Seat, SeatConfig

if TYPE_CHECKING:
    from collections.abc import Mapping


COMPUTED = {events.ActionResolved, events.Rolled, events.WorldResolved, events.RuleFailed}


def keys(schema: Mapping[str, Any]) -> set[str]:
    assert schema["additionalProperties"] is False
    return set(schema["properties"])


def names(kind: type) -> set[str]:
    return {field.name for field in fields(kind)}


def test_the_schema_of_a_part_has_the_fields_that_are_written() -> None:
    header, committed = schema_of("header"), schema_of("event.committed")
    assert keys(header) == names(BundleHeader) | {"kind", "version"}
    assert keys(header["properties"]["table"]) == names(SeatConfig)
    assert keys(header["properties"]["table"]["properties"]["seats"]["items"]) == names(Seat)
    assert keys(header["properties"]["narrator"]) == names(NarratorOptions)
    assert keys(schema_of("budget")) == names(Budget)
    assert keys(schema_of("turn")) == names(BundledTurn)
    assert keys(schema_of("memory")) == names(NarratorMemory)
    assert keys(committed["properties"]["conduct"]) == names(NarratorStats)
    assert keys(committed["properties"]["usage"]) == names(UsageTotal)
    assert keys(committed["properties"]["usage"]["properties"]["usage"]) == names(Usage)


def test_every_event_has_a_name_in_storage() -> None:
    assert set(events._KINDS) == set(get_args(events.Event))


@pytest.mark.parametrize("kind", get_args(events.Event))
def test_every_event_has_a_schema_with_its_fields_unless_it_is_computed_again(kind: type) -> None:
    name = events._KINDS[kind]
    schema = schema_of(f"event.{name}")
    assert name in schema_of("event")["properties"]["kind"]["enum"]
    if kind not in COMPUTED:
        assert keys(schema) == names(kind) | {"kind"}
