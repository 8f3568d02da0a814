"""How a server is set up, setting by setting; the client's half is `peripety.client.options`."""

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
        ),  # shorter than the clients' keepalive, or they are cut off
        ("grpc.max_receive_message_length", config.max_message_bytes),  # a message is held in memory whole
        ("grpc.max_send_message_length", config.max_message_bytes),
        ("grpc.max_concurrent_streams", 128),  # of one connection, so that one client cannot take every place
        (
            "grpc.http2.bdp_probe",
            0,
        ),  # with the next one: 142 KiB instead of 4 MiB held for a client that only pushes
        ("grpc.http2.lookahead_bytes", 65_536),
        (
            "grpc.max_connection_age_ms",
            1_800_000,
        ),  # clients look names up again, and find new replicas, on reconnect
        ("grpc.max_connection_age_grace_ms", _grace_ms(config)),  # calls under way at that age may end
        ("grpc.max_metadata_size", METADATA_BYTES),  # both, or requests between the two limits fail at random
        ("grpc.absolute_max_metadata_size", METADATA_BYTES),
        ("grpc.so_reuseport", 0),  # a second server on the port is a mistake, not a worker
    ]


def _grace_ms(config: Config) -> int:
    longest = max(config.default_deadline_seconds, config.drain_seconds)
    return int(longest * 1000)
