"""Batch validation of specifications over one stream."""

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
"""Longer specifications are rejected for their length, so the rest is not sent."""

_DAY = 86_400.0


async def validate_scenarios(
    scenarios: ScenarioServiceAsyncStub,
    documents: Iterable[tuple[str, bytes]],
    options: pb.ValidationOptions | None = None,
    *,
    timeout: float = _DAY,  # noqa: ASYNC109 - it is the deadline of the call
) -> AsyncIterator[pb.SpecVerdict]:
    """Validate specifications in batches, which is several times as fast as one message each.

    Documents are read only as fast as the server accepts them, and the server accepts them only as fast as
    the caller consumes verdicts (back-pressure).

    Args:
        scenarios: `Client.scenarios`.
        documents: each with an id of 1 to 256 bytes chosen by the caller.
        options: validation options.
        timeout: deadline of the whole stream in seconds.

    Yields:
        A verdict on each document, in any order; `error` is set for one that was not reached.

    Raises:
        PeripetyError: the call failed.
        Exception: an error raised by `documents`.
    """
    failure: list[Exception] = []

    async def requests() -> AsyncIterator[pb.ValidateScenariosRequest]:
        # gRPC discards an exception raised by a request stream.
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
