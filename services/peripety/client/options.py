"""How a client channel is set up, with the reason for each setting."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["DEFAULT_MESSAGE_BYTES", "KEEPALIVE", "client_options", "service_config"]

DEFAULT_MESSAGE_BYTES = 4 * 1024 * 1024

KEEPALIVE: tuple[tuple[str, Any], ...] = (
    ("grpc.keepalive_time_ms", 30_000),  # ask a silent peer for a sign of life
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),  # the one that counts: its default lets a frozen peer live 60 s
    ("grpc.http2.max_pings_without_data", 0),  # a turn may think for minutes without sending a frame
)


def client_options(
    max_message_bytes: int = DEFAULT_MESSAGE_BYTES, *, retryable: Iterable[str] = ()
) -> list[tuple[str, Any]]:
    """Return the channel arguments of every client.

    Args:
        max_message_bytes: largest message taken or sent; never unlimited.
        retryable: `package.Service/Method` names that may be sent twice without harm.
    """
    return [
        *KEEPALIVE,
        ("grpc.max_receive_message_length", max_message_bytes),
        ("grpc.max_send_message_length", max_message_bytes),
        ("grpc.keepalive_permit_without_calls", 0),  # an idle client costs the server nothing
        ("grpc.max_reconnect_backoff_ms", 5_000),  # a restarted server is found again within a breath
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.enable_retries", 1),
        ("grpc.service_config", json.dumps(service_config(retryable))),
    ]


def service_config(retryable: Iterable[str] = ()) -> dict[str, Any]:
    """Spread calls over all addresses of a name, and retry what is safe to retry when a server is away.

    Only UNAVAILABLE is retried: it alone says that the call may not have happened and that waiting helps.
    The throttle stops retries when one call in ten fails, so that they never double the load of a server in
    trouble.
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
