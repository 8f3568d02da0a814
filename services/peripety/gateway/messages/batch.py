"""Protobuf codec of batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.client.items import item_error
from peripety.errors import PeripetyError
from peripety.gateway.batch import Item
from peripety.gateway.messages.answers import completion_to_proto
from peripety.gateway.messages.requests import from_proto
from peripety.requests import check_request_id, refuse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from peripety.gateway.batch import ItemResult

__all__ = ["items_from_proto", "results_to_proto"]

_MAX_ITEMS = 1_000
# Large enough to amortize the cost of a message, and well below the maximum message size.
_MESSAGE_BYTES = 1_048_576


async def items_from_proto(requests: AsyncIterator[pb.GenerateManyRequest]) -> AsyncIterator[Item]:
    """Convert the prompts of a batch from protobuf; an invalid prompt fails only its own item.

    Raises:
        InvalidArgumentError: the first message has no UUID, or one has too many items.
    """
    batch_id = ""
    async for request in requests:
        if not batch_id:
            check_request_id(request.request_id)
            batch_id = request.request_id
        if len(request.items) > _MAX_ITEMS:
            raise refuse(".items", f"has more than {_MAX_ITEMS} items; send fewer in one message")
        for item in request.items:
            yield _item(batch_id, item)


def results_to_proto(results: Iterable[ItemResult]) -> Iterator[pb.GenerateManyResponse]:
    """Convert results to as many messages as needed, without sequences."""
    response = pb.GenerateManyResponse()
    for result in map(_result, results):
        if response.results and response.ByteSize() + result.ByteSize() > _MESSAGE_BYTES:
            yield response
            response = pb.GenerateManyResponse()
        response.results.append(result)
    if response.results:
        yield response


def _item(batch_id: str, item: pb.GenerateItem) -> Item:
    try:
        return Item(batch_id, item.item_id, from_proto("", item))
    except PeripetyError as error:
        return Item(batch_id, item.item_id, error)


def _result(result: ItemResult) -> pb.GenerateResult:
    if isinstance(result.outcome, PeripetyError):
        return pb.GenerateResult(item_id=result.item_id, error=item_error(result.outcome))
    return pb.GenerateResult(item_id=result.item_id, completion=completion_to_proto(result.outcome))
