"""The list of models over gRPC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.core.config import ProviderName
from peripety.errors import InvalidArgumentError
from peripety.gateway.setup import register_service
from peripety.rpc.channel import open_channel
from peripety.server.app import serve_registered
from support.servers.apps import config_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceAsyncStub


MINE = """
[[model]]
provider = "generic"
name = "alpha"
capabilities = ["tools", "reasoning"]
context_tokens = 8192
max_output_tokens = 2048
default_output_tokens = 1024
cache = { ttls = { short = 60, long = 3600 } }
prices = [
    { input = 1, output = 2, cache_read = 0.5 },
    { effective = 2026-01-31, input = 3, output = 4, cache_read = 1, cache_write = { short = 5, long = 6 } },
    { effective = 2026-01-31, input = 7, output = 8, cache_read = 1, peak = { weekdays = [], hours = [] } },
    { effective = 2026-01-31, min_input_tokens = 100, input = 9, output = 10, cache_read = 1 },
]
"""


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[GatewayServiceAsyncStub]:
    mine = tmp_path / "mine.toml"
    mine.write_text(MINE, "utf-8")
    config = config_for(
        tmp_path,
        model_provider=ProviderName.GENERIC,
        openai_api_base="http://127.0.0.1:9/v1",
        model_name="alpha",
        models=mine,
    )
    async with serve_registered(config, [register_service]) as app, open_channel(app.address) as channel:
        yield GatewayServiceStub(channel)


async def test_a_model_comes_with_what_it_can_do_and_costs(gateway: GatewayServiceAsyncStub) -> None:
    page = await gateway.ListModels(pb.ListModelsRequest(provider="generic"))
    (model,) = page.models
    assert (model.name, model.provider, model.is_default) == ("generic/alpha", "generic", True)
    assert (model.context_tokens, model.max_output_tokens) == (8192, 2048)
    assert list(model.capabilities) == [pb.MODEL_CAPABILITY_TOOLS, pb.MODEL_CAPABILITY_REASONING]
    prices = [
        (
            price.input_token.pico_units,
            price.cache_write_token.pico_units,
            price.cache_ttl.seconds,
            price.min_input_tokens,
            price.peak,
        )
        for price in model.prices
    ]
    dollar = 10**6  # for a million tokens, in pico-dollars for each
    assert prices == [
        (1 * dollar, 1 * dollar, 0, 0, False),
        (3 * dollar, 5 * dollar, 0, 0, False),
        (3 * dollar, 6 * dollar, 3600, 0, False),
        (7 * dollar, 7 * dollar, 0, 0, True),
        (9 * dollar, 9 * dollar, 0, 100, False),
    ]
    assert {price.output_token.currency_code for price in model.prices} == {"USD"}
    assert not model.prices[0].HasField("effective_time")
    assert model.prices[1].effective_time.ToDatetime(UTC) == datetime(2026, 1, 31, tzinfo=UTC)


async def test_pages_go_through_all_models_in_the_order_of_their_names(
    gateway: GatewayServiceAsyncStub,
) -> None:
    names, token = list[str](), ""
    while True:
        page = await gateway.ListModels(pb.ListModelsRequest(page_size=9, page_token=token))
        names += [model.name for model in page.models]
        if not (token := page.next_page_token):
            break
    assert names == sorted(set(names))
    assert {"anthropic/claude-opus-5-5", "gemini/gemini-4-argon", "generic/alpha"} < set(names)


async def test_a_page_that_cannot_be_is_refused(gateway: GatewayServiceAsyncStub) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await gateway.ListModels(pb.ListModelsRequest(page_size=-1))
    assert [violation.field for violation in caught.value.violations] == ["page_size"]
