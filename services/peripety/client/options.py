"""gRPC options of a client channel, each with its reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["DEFAULT_MESSAGE_BYTES", "KEEPALIVE", "client_options", "service_config"]

DEFAULT_MESSAGE_BYTES = 4 * 1024 * 1024

KEEPALIVE: tuple[tuple[str, Any], ...] = (
    ("grpc.keepalive_time_ms", 30_000),  # probe a silent peer
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),  # its default leaves a frozen peer connected for 60 s
    ("grpc.http2.max_pings_without_data", 0),  # a turn may take minutes without sending a frame
)


def client_options(
    max_message_bytes: int = DEFAULT_MESSAGE_BYTES, *, retryable: Iterable[str] = ()
) -> list[tuple[str, Any]]:
    """Return the channel arguments of every client.

    Args:
        max_message_bytes: maximum size of a message in either direction; never unlimited.
        retryable: `package.Service/Method` names that are safe to retry.
    """
    return [
        *KEEPALIVE,
        ("grpc.max_receive_message_length", max_message_bytes),
        ("grpc.max_send_message_length", max_message_bytes),
        ("grpc.keepalive_permit_without_calls", 0),  # an idle client costs the server nothing
        ("grpc.max_reconnect_backoff_ms", 5_000),  # a restarted server is found again within seconds
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.enable_retries", 1),
        ("grpc.service_config", json.dumps(service_config(retryable))),
    ]


def service_config(retryable: Iterable[str] = ()) -> dict[str, Any]:
    """Return the gRPC service config: round-robin load balancing, and retries of safe methods.

    Only UNAVAILABLE is retried: no other status means both that the call may not have happened and that
    waiting helps. The throttle stops retries when one call in ten fails, so they never double the load of a
    failing server.
    """
    names = [dict(zip(("service", "method"), name.split("/"), strict=True)) for name in retryable]
    policy = {
        "maxAttempts": 4,
        "initialBackoff": "0.1s",
        "maxBackoff": "2s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE"],
    }
    return {
        "loadBalancingConfig": [{"round_robin": {}}],
        "methodConfig": [{"name": names, "retryPolicy": policy}] if names else [],
        "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1},
    }
