"""The limits of a server are set, and agree with those of a client."""

from __future__ import annotations

from peripety.core.config import Config
from peripety.rpc.channel import client_options
from peripety.server.interceptor import server_options


def test_a_frozen_peer_is_noticed_by_both_sides_and_pings_are_welcome() -> None:
    server, client = dict(server_options(Config())), dict(client_options())
    for side in (server, client):
        # Without the last one the first two have no effect before a minute has passed.
        assert side["grpc.keepalive_time_ms"] == 30_000
        assert side["grpc.keepalive_timeout_ms"] == side["grpc.http2.ping_timeout_ms"] == 10_000
    assert server["grpc.http2.min_ping_interval_without_data_ms"] < client["grpc.keepalive_time_ms"]


def test_nothing_is_unlimited() -> None:
    server = dict(server_options(Config(max_message_bytes=100_000)))
    assert server["grpc.max_receive_message_length"] == server["grpc.max_send_message_length"] == 100_000
    assert server["grpc.max_metadata_size"] == server["grpc.absolute_max_metadata_size"] == 16_384
    assert server["grpc.http2.bdp_probe"] == 0
    assert server["grpc.http2.lookahead_bytes"] == 65_536
    assert 0 < server["grpc.max_concurrent_streams"] <= 256
    assert all(value >= 0 for value in server.values())


def test_an_old_connection_gives_its_calls_the_longest_time_a_call_may_take() -> None:
    config = Config(default_deadline_seconds=700, drain_seconds=20)
    assert dict(server_options(config))["grpc.max_connection_age_grace_ms"] == 700_000


def test_a_port_is_not_shared_by_accident() -> None:
    assert dict(server_options(Config()))["grpc.so_reuseport"] == 0
