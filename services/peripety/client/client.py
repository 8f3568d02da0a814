"""Client: typed stubs of all services behind one address.

`validate_scenarios` sends many specifications over one stream.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from peripety.rpc.channel import DEFAULT_MESSAGE_BYTES, SERVICES, open_channel, read_only_methods

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    import grpc.aio

    from peripety.api.scenario.v1 import scenario_pb2 as pb
    from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceAsyncStub


class Client:
    """Stubs of every service over one channel.

    Calls take generated messages and return or stream them. They raise `PeripetyError`, always have a
    deadline (`timeout=` in seconds), and end when their task is cancelled.

    Attributes:
        gateway: language models.
        agents: agent runs, described by manifests of phases over one conversation.
        scenarios: scenarios from texts.
        sessions: sessions of scenarios.
        policies: policies from written rules, and their decisions.
        tests: generated and evaluated tests.
    """

    def __init__(self, channel: grpc.aio.Channel) -> None:
        # Servers open channels, too, but do not need the generated code of services they neither serve nor
        # call.
        from peripety.api.agent.v1.agent_pb2_grpc import AgentServiceStub  # noqa: PLC0415
        from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub  # noqa: PLC0415
        from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceStub  # noqa: PLC0415
        from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub  # noqa: PLC0415
        from peripety.api.session.v1.session_pb2_grpc import SessionServiceStub  # noqa: PLC0415
        from peripety.api.testgen.v1.testgen_pb2_grpc import TestGenServiceStub  # noqa: PLC0415

        self.gateway = GatewayServiceStub(channel)
        self.agents = AgentServiceStub(channel)
        self.scenarios = ScenarioServiceStub(channel)
        self.sessions = SessionServiceStub(channel)
        self.policies = PolicyServiceStub(channel)
        self.tests = TestGenServiceStub(channel)


@asynccontextmanager
async def connect(address: str, *, max_message_bytes: int = DEFAULT_MESSAGE_BYTES) -> AsyncIterator[Client]:
    """Open a client of the server at `host:port`; read-only methods are retried if it is unavailable."""
    retryable = [name for service in SERVICES for name in read_only_methods(service)]
    async with open_channel(address, max_message_bytes=max_message_bytes, retryable=retryable) as channel:
        yield Client(channel)


_ITEMS_PER_MESSAGE = 256
_BYTES_PER_MESSAGE = DEFAULT_MESSAGE_BYTES // 8
_MAX_SPEC_BYTES = 1024 * 1024 + 1
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
            for request in _batch_requests(documents, options):
                yield request
        except Exception as error:  # noqa: BLE001 - raised below
            failure.append(error)

    async for response in scenarios.ValidateScenarios(requests(), timeout=timeout):
        for verdict in response.verdicts:
            yield verdict
    if failure:
        raise failure[0]


def _batch_requests(
    documents: Iterable[tuple[str, bytes]],
    options: pb.ValidationOptions | None,
) -> Iterator[pb.ValidateScenariosRequest]:
    from peripety.api.scenario.v1 import scenario_pb2 as pb  # noqa: PLC0415 - as in `Client`

    request = pb.ValidateScenariosRequest(options=options)
    size = 0
    for item_id, spec in documents:
        request.items.add(item_id=item_id, spec=spec[:_MAX_SPEC_BYTES])
        size += len(spec)
        if len(request.items) == _ITEMS_PER_MESSAGE or size >= _BYTES_PER_MESSAGE:
            yield request
            request, size = pb.ValidateScenariosRequest(), 0
    if request.items:
        yield request
