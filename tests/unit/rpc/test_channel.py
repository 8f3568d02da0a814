"""Client retries, and the methods that are safe to retry."""

from __future__ import annotations

import json

from peripety.rpc.channel import SERVICES, client_options, read_only_methods, service_config


def test_only_methods_named_as_safe_are_retried_and_only_when_the_server_is_away() -> None:
    config = json.loads(dict(client_options(retryable=["a.B/GetC"]))["grpc.service_config"])
    (method,) = config["methodConfig"]
    assert method["name"] == [{"service": "a.B", "method": "GetC"}]
    assert method["retryPolicy"]["retryableStatusCodes"] == ["UNAVAILABLE"]
    assert method["retryPolicy"]["maxAttempts"] <= 5
    assert config["retryThrottling"] == {"maxTokens": 10, "tokenRatio": 0.1}
    assert config["loadBalancingConfig"] == [{"round_robin": {}}]
    assert service_config()["methodConfig"] == []


def test_the_methods_called_safe_are_the_unary_reads_of_each_service() -> None:
    names = [name for service in SERVICES for name in read_only_methods(service)]
    assert "peripety.api.session.v1.SessionService/GetSession" in names
    assert "peripety.api.gateway.v1.GatewayService/ListModels" in names
    assert not [
        name for name in names if "Create" in name or "TakeTurn" in name or "ForecastOutcomes" in name
    ]
