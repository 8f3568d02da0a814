"""gRPC options of the server, each with its reason; see `peripety.client.options` for the client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.client.options import KEEPALIVE

if TYPE_CHECKING:
    from peripety.config import Config

__all__ = ["METADATA_BYTES", "server_options"]

METADATA_BYTES = 16_384


def server_options(config: Config) -> list[tuple[str, Any]]:
    """Return the channel arguments of every server."""
    return [
        *KEEPALIVE,
        (
            "grpc.http2.min_ping_interval_without_data_ms",
            20_000,
        ),  # shorter than the keepalive of the clients, or gRPC closes their connections
        ("grpc.max_receive_message_length", config.max_message_bytes),  # messages are held in memory
        ("grpc.max_send_message_length", config.max_message_bytes),
        ("grpc.max_concurrent_streams", 128),  # per connection: no client can use every slot
        (
            "grpc.http2.bdp_probe",
            0,
        ),  # with the next option: 142 KiB instead of 4 MiB buffered for a client that only sends
        ("grpc.http2.lookahead_bytes", 65_536),
        (
            "grpc.max_connection_age_ms",
            1_800_000,
        ),  # on reconnect, clients resolve names again and find new replicas
        ("grpc.max_connection_age_grace_ms", _grace_ms(config)),  # running calls may end after that age
        ("grpc.max_metadata_size", METADATA_BYTES),  # both limits, or requests between them fail at random
        ("grpc.absolute_max_metadata_size", METADATA_BYTES),
        ("grpc.so_reuseport", 0),  # a second server on the port is an error, not a worker
    ]


def _grace_ms(config: Config) -> int:
    longest = max(config.default_deadline_seconds, config.drain_seconds)
    return int(longest * 1000)
