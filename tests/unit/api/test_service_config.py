"""The service config of the clients has every call once, and retries those that can be repeated."""

from __future__ import annotations

import json
from collections import Counter
from importlib import import_module
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.protobuf.descriptor_pb2 import MethodOptions

from support.repo.repository import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from google.protobuf.descriptor import MethodDescriptor

CONFIG = json.loads((ROOT / "clients" / "service-config.json").read_bytes())
ENTRIES: dict[str, Any] = {
    f"{name['service']}/{name['method']}": entry for entry in CONFIG["methodConfig"] for name in entry["name"]
}


def methods() -> Iterator[MethodDescriptor]:
    for area in ("agent", "gateway", "policy", "scenario", "session", "testgen"):
        file = import_module(f"peripety.api.{area}.v1.{area}_pb2").DESCRIPTOR
        for service in file.services_by_name.values():
            yield from service.methods


def name_of(method: MethodDescriptor) -> str:
    return f"{method.containing_service.full_name}/{method.name}"


def test_every_call_of_the_contract_has_one_entry() -> None:
    listed = [
        f"{name['service']}/{name['method']}" for entry in CONFIG["methodConfig"] for name in entry["name"]
    ]
    assert Counter(listed) == Counter(name_of(method) for method in methods())


@pytest.mark.parametrize("method", [*methods()], ids=lambda method: method.name)
def test_a_call_is_retried_if_and_only_if_it_can_be_repeated(method: MethodDescriptor) -> None:
    can_be_repeated = method.GetOptions().idempotency_level != MethodOptions.IDEMPOTENCY_UNKNOWN
    assert ("retryPolicy" in ENTRIES[name_of(method)]) == can_be_repeated
    if method.GetOptions().idempotency_level == MethodOptions.IDEMPOTENT:
        assert {"request_id", "after_sequence"} & set(method.input_type.fields_by_name)


def test_only_a_server_that_is_away_is_tried_again() -> None:
    for entry in ENTRIES.values():
        assert entry["retryPolicy"]["retryableStatusCodes"] == [grpc.StatusCode.UNAVAILABLE.name]
        assert entry["retryPolicy"]["maxAttempts"] <= 5, "gRPC allows no more"


def test_every_call_has_a_time_limit_except_those_that_may_last_for_days() -> None:
    assert [name for name, entry in ENTRIES.items() if "timeout" not in entry] == [
        "peripety.api.policy.v1.ApprovalService/WatchApprovals",
        "peripety.api.session.v1.SessionService/WatchSession",
    ]
    for name, entry in ENTRIES.items():
        assert float(entry.get("timeout", "60s").removesuffix("s")) >= 60, name


def test_no_unary_call_may_last_longer_than_the_server_lets_it_without_a_deadline() -> None:
    for method in methods():
        if not (method.client_streaming or method.server_streaming):
            assert float(ENTRIES[name_of(method)]["timeout"].removesuffix("s")) <= 300
