"""Protobuf codec of the list of models."""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import TYPE_CHECKING

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.gateway.v1 import gateway_pb2 as pb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.gateway.catalogue import ListedModel, ModelData, Price
    from peripety.pages import Page

__all__ = ["models_to_proto"]


def models_to_proto(page: Page[ListedModel]) -> pb.ListModelsResponse:
    """Convert a page of models to protobuf."""
    return pb.ListModelsResponse(models=map(_model, page.items), next_page_token=page.next_page_token)


def _model(model: ListedModel) -> pb.Model:
    data = model.data
    capabilities = [
        pb.ModelCapability.Value(f"MODEL_CAPABILITY_{capability.name}") for capability in data.capabilities
    ]
    return pb.Model(
        name=model.name,
        provider=data.provider,
        capabilities=sorted(capabilities),
        context_tokens=data.context_tokens,
        max_output_tokens=data.max_output_tokens,
        prices=[each for price in data.prices for each in _prices(price, data)],
        is_default=model.is_default,
    )


def _prices(price: Price, data: ModelData) -> Iterator[pb.ModelPrice]:
    """Yield one message per cache lifetime with a write price, or one for all."""
    effective = None
    if price.effective is not None:
        effective = Timestamp()
        effective.FromDatetime(datetime.combine(price.effective, time(), UTC))
    ttls = list(price.cache_write) or [""]
    for ttl in ttls:
        yield pb.ModelPrice(
            effective_time=effective,
            input_token=_dollars(price.input),
            output_token=_dollars(price.output),
            cache_read_token=_dollars(price.cache_read),
            cache_write_token=_dollars(price.cache_write.get(ttl, price.input)),
            min_input_tokens=price.min_input_tokens,
            cache_ttl=None if ttl == ttls[0] else Duration(seconds=data.cache.ttls[ttl]),
            peak=price.peak is not None,
        )


def _dollars(pico_units: int) -> common.Money:
    return common.Money(currency_code="USD", pico_units=pico_units)
