"""Many specifications to a server, packed; their verdicts back as they are reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.client.options import DEFAULT_MESSAGE_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from peripety.api.scenario.v1 import scenario_pb2 as pb
    from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceAsyncStub

__all__ = ["validate_scenarios"]

_ITEMS = 256
_BYTES = DEFAULT_MESSAGE_BYTES // 8
_SPEC_BYTES = 1024 * 1024 + 1
"""What is longer is refused for its length, so that no more of it has to travel."""

_DAY = 86_400.0


async def validate_scenarios(
    scenarios: ScenarioServiceAsyncStub,
    documents: Iterable[tuple[str, bytes]],
    options: pb.ValidationOptions | None = None,
    *,
    timeout: float = _DAY,  # noqa: ASYNC109 - it is the deadline of the call
) -> AsyncIterator[pb.SpecVerdict]:
    """Have specifications checked, many in a message: one in each takes the server several times as long.

    Documents are read as fast as the server takes them, which it does as fast as verdicts are taken here.

    Args:
        scenarios: `Client.scenarios`.
        documents: each with an id of the caller's, 1 to 256 bytes.
        options: how to check them.
        timeout: seconds that all of it may take.

    Yields:
        A verdict on each, in any order; with `error` set for one that was not reached.

    Raises:
        PeripetyError: the call failed.
        Exception: what `documents` raised.
    """
    failure: list[Exception] = []

    async def requests() -> AsyncIterator[pb.ValidateScenariosRequest]:
        # What a stream of requests raises is lost in the library.
        try:
            for request in _requests(documents, options):
                yield request
        except Exception as error:  # noqa: BLE001 - raised below
            failure.append(error)

    async for response in scenarios.ValidateScenarios(requests(), timeout=timeout):
        for verdict in response.verdicts:
            yield verdict
    if failure:
        raise failure[0]


def _requests(
    documents: Iterable[tuple[str, bytes]], options: pb.ValidationOptions | None
) -> Iterator[pb.ValidateScenariosRequest]:
    from peripety.api.scenario.v1 import scenario_pb2 as pb  # noqa: PLC0415 - as in `Client`

    request = pb.ValidateScenariosRequest(options=options)
    size = 0
    for item_id, spec in documents:
        request.items.add(item_id=item_id, spec=spec[:_SPEC_BYTES])
        size += len(spec)
        if len(request.items) == _ITEMS or size >= _BYTES:
            yield request
            request, size = pb.ValidateScenariosRequest(), 0
    if request.items:
        yield request
