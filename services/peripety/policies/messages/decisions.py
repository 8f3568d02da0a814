"""Batch decisions from and to protobuf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.client.items import item_error, parcels
from peripety.errors import PeripetyError
from peripety.policies.messages import asked, parts
from peripety.requests import require

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.policies.deciding import Outcome
    from peripety.policies.model import ToolRequest

__all__ = ["items", "responses"]

_MAX_ITEMS = 1_000
_MAX_ITEM_ID_BYTES = 256


def items(request: pb.DecideManyRequest) -> list[tuple[str, ToolRequest | PeripetyError]]:
    """Parse the requests of a message; an invalid request becomes an error in its place."""
    require(len(request.items) <= _MAX_ITEMS, ".items", f"has more than {_MAX_ITEMS} items; send fewer")
    return [(item.item_id, _request(item)) for item in request.items]


def _request(item: pb.DecideItem) -> ToolRequest | PeripetyError:
    try:
        size = len(item.item_id.encode())
        require(0 < size <= _MAX_ITEM_ID_BYTES, ".item_id", f"must have 1 to {_MAX_ITEM_ID_BYTES} bytes")
        return asked.tool_request(item.request)
    except PeripetyError as error:
        return error


def responses(decided: Iterable[tuple[str, Outcome]]) -> Iterator[pb.DecideManyResponse]:
    """Yield decisions in as few messages as the size limit allows, without sequence numbers."""
    for some in parcels(_outcome(item_id, outcome) for item_id, outcome in decided):
        yield pb.DecideManyResponse(outcomes=some)


def _outcome(item_id: str, outcome: Outcome) -> pb.DecideOutcome:
    if isinstance(outcome, PeripetyError):
        return pb.DecideOutcome(item_id=item_id, error=item_error(outcome))
    return pb.DecideOutcome(item_id=item_id, result=parts.decision_result(outcome))
