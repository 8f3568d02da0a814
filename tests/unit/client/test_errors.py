"""Failed calls as typed errors: class, reason, violations and retry hints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import grpc
import pytest

from peripety.api.common.v1.error_reason_pb2 import ERROR_REASON_UNSPECIFIED, ErrorReason
from peripety.client import errors
from peripety.client.errors import CallError, Violation, from_item_error, from_rpc_error
from peripety.rpc.status import ERRORS, item_error_to_proto, to_status
from support.repo.repository import example

if TYPE_CHECKING:
    from peripety.errors import PeripetyError


class Failed(grpc.RpcError):
    """A failed call, as gRPC reports it."""

    def __init__(
        self, code: grpc.StatusCode, details: str, trailers: tuple[tuple[str, str | bytes], ...]
    ) -> None:
        self._code, self._details, self._trailers = code, details, trailers

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def trailing_metadata(self) -> Any:
        return self._trailers


@pytest.mark.parametrize(("status", "kind"), ERRORS.items(), ids=lambda value: getattr(value, "name", ""))
def test_an_error_of_the_server_arrives_with_all_that_it_has(
    status: grpc.StatusCode, kind: type[PeripetyError]
) -> None:
    sent = example(kind)
    for received in (from_rpc_error(Failed(*to_status(sent))), from_item_error(item_error_to_proto(sent))):
        assert (received.status, received.reason, received.message) == (status, sent.code, sent.message)
        assert received.violations == tuple(Violation(one.field, one.reason) for one in sent.violations)
        assert received.retry_after == sent.retry_after
        assert received.metadata == sent.details
        assert sent.message in str(received)


def test_each_status_of_the_server_has_a_class() -> None:
    named = {kind.status: kind for kind in CallError.__subclasses__()}
    assert set(ERRORS) - set(named) == {grpc.StatusCode.INTERNAL}
    for status, kind in named.items():
        assert kind.__name__.upper() == status.name.replace("_", "")
        assert type(from_rpc_error(Failed(status, "x", ()))) is kind
    assert all(getattr(errors, kind.__name__) is kind for kind in named.values())


@pytest.mark.parametrize("name", ["STALE_TURN", "UNKNOWN_SESSION"])
def test_a_reason_of_the_enum_is_known(name: str) -> None:
    error = CallError("x", reason=name)
    assert error.known_reason == ErrorReason.Value(f"ERROR_REASON_{name}")


def test_a_reason_that_the_enum_does_not_have_is_unspecified() -> None:
    assert CallError("x", reason="INVALID_JSON_OF_TOMORROW").known_reason == ERROR_REASON_UNSPECIFIED


def test_a_status_that_a_proxy_has_cut_off_hides_nothing_else() -> None:
    error = from_rpc_error(
        Failed(grpc.StatusCode.NOT_FOUND, "gone", (("grpc-status-details-bin", b"\x0a\xff"),))
    )
    assert isinstance(error, errors.NotFound)
    assert (error.message, error.reason) == ("gone", "")


@pytest.mark.parametrize(
    ("code", "reason", "lost"),
    [
        (grpc.StatusCode.UNAVAILABLE, "", True),
        (grpc.StatusCode.UNAVAILABLE, "SERVER_SHUTTING_DOWN", True),
        (grpc.StatusCode.INTERNAL, "", True),
        (grpc.StatusCode.INTERNAL, "INTERNAL", False),
        (grpc.StatusCode.CANCELLED, "", True),
        (grpc.StatusCode.DEADLINE_EXCEEDED, "", False),
        (grpc.StatusCode.INVALID_ARGUMENT, "", False),
        (grpc.StatusCode.ABORTED, "STALE_TURN", False),
    ],
)
def test_only_errors_after_which_the_same_request_may_succeed_are_lost_connections(
    code: grpc.StatusCode, reason: str, lost: bool
) -> None:
    assert CallError("x", status=code, reason=reason).is_lost_connection == lost
