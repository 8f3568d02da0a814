"""Clients of a server: `AsyncClient` for asyncio, and `Client` for threads. They have the same methods."""

from __future__ import annotations

import asyncio
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import grpc
import grpc.aio

from peripety.client.channel import Channel, Settings
from peripety.client.errors import CallError
from peripety.client.streams import Cursor, batch_requests, turn_request, update_session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator

    from peripety.api.agent.v1 import agent_pb2_grpc as agent
    from peripety.api.common.v1.engine_pb2 import ActionCall
    from peripety.api.gateway.v1 import gateway_pb2_grpc as gateway
    from peripety.api.policy.v1 import policy_pb2_grpc as policy
    from peripety.api.scenario.v1 import scenario_pb2_grpc as scenario
    from peripety.api.scenario.v1.scenario_pb2 import SpecVerdict, ValidationOptions
    from peripety.api.session.v1 import session_pb2_grpc as session_grpc
    from peripety.api.session.v1.session_pb2 import (
        Session,
        TurnEvent,
        WatchSessionRequest,
        WatchSessionResponse,
    )
    from peripety.api.testgen.v1 import testgen_pb2_grpc as testgen

_STUBS = {
    "agents": ("agent", "AgentServiceStub"),
    "approvals": ("policy", "ApprovalServiceStub"),
    "gateway": ("gateway", "GatewayServiceStub"),
    "policies": ("policy", "PolicyServiceStub"),
    "scenarios": ("scenario", "ScenarioServiceStub"),
    "sessions": ("session", "SessionServiceStub"),
    "tests": ("testgen", "TestGenServiceStub"),
}


class _Connection:
    """Settings of a client, and the stubs of all services, each loaded at its first use.

    Args:
        address: `host:port` of the server.
        tls: False for plaintext, True for the system's certificate authorities, PEM bytes for others, or
            credentials of gRPC.
        token: bearer token, or a function that returns it for each call.
        timeout: deadline of each call in seconds, unless the call sets its own.

    Raises:
        ValueError: a token would be sent as plaintext to another machine.
    """

    def __init__(
        self,
        address: str,
        *,
        tls: bool | bytes | grpc.ChannelCredentials = False,
        token: str | Callable[[], str] | None = None,
        timeout: float | None = None,
    ) -> None:
        self.channel: Any = Channel(Settings(address, tls, token, timeout), self._api)

    _api: Any = grpc

    def __getattr__(self, name: str) -> Any:
        if name not in _STUBS:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        area, stub = _STUBS[name]
        module = import_module(f"peripety.api.{area}.v1.{area}_pb2_grpc")
        self.__dict__[name] = getattr(module, stub)(self.channel)
        return self.__dict__[name]


class AsyncClient(_Connection):
    """Client for asyncio.

    Attributes:
        agents: agent runs.
        approvals: calls that wait for a person; connect to the enforcement point.
        gateway: language models.
        policies: policies, and their decisions.
        scenarios: scenarios from texts.
        sessions: sessions of scenarios.
        tests: generated tests.
        channel: the channel, for stubs of your own.
    """

    agents: agent.AgentServiceAsyncStub
    approvals: policy.ApprovalServiceAsyncStub
    gateway: gateway.GatewayServiceAsyncStub
    policies: policy.PolicyServiceAsyncStub
    scenarios: scenario.ScenarioServiceAsyncStub
    sessions: session_grpc.SessionServiceAsyncStub
    tests: testgen.TestGenServiceAsyncStub
    _api = grpc.aio

    async def play(
        self,
        session: Session,
        *actions: str | ActionCall,
        text: str = "",
        seat_id: str = "",
        timeout: float | None = None,  # noqa: ASYNC109 - the deadline of the call
    ) -> AsyncIterator[TurnEvent]:
        """Play the next turn of a session, and yield its events as they happen.

        After a lost connection the turn continues: no event is missing and none is repeated. If the server
        had to start the turn again, `accepted` follows once more; then discard the events before it.

        Args:
            session: the session as the server returned it. The committed turn updates it in place: turn,
                status, hashes and legal actions. `state` is cleared.
            actions: ids of actions, or `action(id, **params)`.
            text: free text of the player.
            seat_id: the seat that acts; empty for a single player.
            timeout: seconds for the whole turn.

        Raises:
            CallError: the turn was refused, or the server does not answer.
        """
        request = turn_request(session, actions, text, seat_id)
        async for response in self.follow(self.sessions.TakeTurn, request, timeout=timeout):
            update_session(session, response.event)
            yield response.event

    async def watch(self, request: WatchSessionRequest) -> AsyncIterator[WatchSessionResponse]:
        """Follow a session until it ends or is deleted, over lost connections and restarts of the server."""
        async for response in self.follow(self.sessions.WatchSession, request):
            yield response

    async def follow(
        self,
        call: Callable[..., Any],
        request: Any,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the deadline of the call
    ) -> AsyncIterator[Any]:
        """Yield the responses of a streaming call, and continue it after a lost connection.

        Use it for long work (`scenarios.GenerateScenario`, `tests.GenerateTests`, `agents.RunAgent`, …) and
        for `Resume…` calls; their responses include the progress.

        Args:
            call: a method of a stub that streams numbered events.
            request: its request; it gets a `request_id` if it needs one.
            timeout: seconds for the whole stream.

        Raises:
            CallError: the call failed, or the server does not answer.
        """
        cursor = Cursor(request, timeout)
        while True:
            try:
                async for response in call(cursor.request, timeout=cursor.remaining()):
                    if cursor.advance(response):
                        yield response
            except CallError as error:
                pause = cursor.pause_after(error)
            else:
                return
            await asyncio.sleep(pause)

    async def validate(
        self,
        documents: Iterable[tuple[str, bytes]],
        options: ValidationOptions | None = None,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - the deadline of the call
    ) -> AsyncIterator[SpecVerdict]:
        """Validate specifications over one stream, and yield a verdict on each, in any order.

        Documents are read only as fast as the verdicts are consumed.

        Args:
            documents: specifications, each with an id of 1 to 256 bytes.
            options: options of the validation.
            timeout: seconds for the whole batch.

        Raises:
            CallError: the call failed.
            Exception: an error raised by `documents`.
        """
        failures: list[Exception] = []
        requests = batch_requests(documents, options, failures)
        async for response in self.scenarios.ValidateScenarios(requests, timeout=timeout):
            for verdict in response.verdicts:
                yield verdict
        if failures:
            raise failures[0]

    async def close(self) -> None:
        """Close the connection; calls in progress end."""
        await self.channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


class Client(_Connection):
    """Client for threads. Its attributes and methods are those of `AsyncClient`."""

    agents: agent.AgentServiceStub
    approvals: policy.ApprovalServiceStub
    gateway: gateway.GatewayServiceStub
    policies: policy.PolicyServiceStub
    scenarios: scenario.ScenarioServiceStub
    sessions: session_grpc.SessionServiceStub
    tests: testgen.TestGenServiceStub

    def play(
        self,
        session: Session,
        *actions: str | ActionCall,
        text: str = "",
        seat_id: str = "",
        timeout: float | None = None,
    ) -> Iterator[TurnEvent]:
        """See `AsyncClient.play`."""
        request = turn_request(session, actions, text, seat_id)
        for response in self.follow(self.sessions.TakeTurn, request, timeout=timeout):
            update_session(session, response.event)
            yield response.event

    def watch(self, request: WatchSessionRequest) -> Iterator[WatchSessionResponse]:
        """See `AsyncClient.watch`."""
        yield from self.follow(self.sessions.WatchSession, request)

    def follow(
        self, call: Callable[..., Any], request: Any, *, timeout: float | None = None
    ) -> Iterator[Any]:
        """See `AsyncClient.follow`."""
        cursor = Cursor(request, timeout)
        while True:
            stream = call(cursor.request, timeout=cursor.remaining())
            try:
                for response in stream:
                    if cursor.advance(response):
                        yield response
            except CallError as error:
                pause = cursor.pause_after(error)
            else:
                return
            finally:
                stream.cancel()
            time.sleep(pause)

    def validate(
        self,
        documents: Iterable[tuple[str, bytes]],
        options: ValidationOptions | None = None,
        *,
        timeout: float | None = None,
    ) -> Iterator[SpecVerdict]:
        """See `AsyncClient.validate`."""
        failures: list[Exception] = []
        stream = self.scenarios.ValidateScenarios(
            batch_requests(documents, options, failures), timeout=timeout
        )
        for response in stream:
            yield from response.verdicts
        if failures:
            raise failures[0]

    def close(self) -> None:
        """Close the connection; calls in progress end."""
        self.channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
