"""gRPC servers in process, embedded services, and the main job as a client."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

import grpc
import grpc.aio
from google.protobuf.wrappers_pb2 import StringValue

from peripety.api.common.v1 import engine_pb2
from peripety.api.scenario.v1 import scenario_pb2, scenario_pb2_grpc
from peripety.api.session.v1 import session_pb2, session_pb2_grpc
from peripety.core import logging_setup
from peripety.core.config import Config
from peripety.rpc.channel import open_channel
from peripety.server.app import serve_registered

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from peripety.rpc.container import ServiceContainer
    from peripety.server.app import RegisterService, ServerApp


def new_id() -> str:
    """A fresh request id."""
    return str(uuid4())


@dataclass
class Api:
    """Calls of one client."""

    scenarios: scenario_pb2_grpc.ScenarioServiceAsyncStub
    sessions: session_pb2_grpc.SessionServiceAsyncStub

    @classmethod
    @asynccontextmanager
    async def connected(cls, address: str, sessions_address: str | None = None) -> AsyncIterator[Self]:
        """Connect to a server, or to two when sessions are served elsewhere."""
        async with open_channel(address) as one, open_channel(sessions_address or address) as other:
            yield cls(scenario_pb2_grpc.ScenarioServiceStub(one), session_pb2_grpc.SessionServiceStub(other))

    async def generate(self, description: str) -> list[scenario_pb2.GenerateScenarioResponse]:
        """All events of writing a specification."""
        request = scenario_pb2.GenerateScenarioRequest(
            request_id=new_id(),
            description=description,
            level=scenario_pb2.VALIDATION_LEVEL_DRY_RUN,
        )
        return [event async for event in self.scenarios.GenerateScenario(request)]

    async def compile(self, spec: bytes) -> list[scenario_pb2.CompileScenarioResponse]:
        """All events of compiling one."""
        request = scenario_pb2.CompileScenarioRequest(request_id=new_id(), spec=spec)
        return [event async for event in self.scenarios.CompileScenario(request)]

    async def session_of(self, spec: bytes) -> session_pb2.Session:
        """A new session of a specification that can be compiled."""
        compiled = (await self.compile(spec))[-1]
        assert compiled.HasField("compiled"), compiled
        scenario_id = compiled.compiled.scenario_id
        request = session_pb2.CreateSessionRequest(request_id=new_id(), scenario_id=scenario_id)
        return (await self.sessions.CreateSession(request)).session

    async def session(self, session_id: str) -> session_pb2.Session:
        """Return the current session."""
        return (await self.sessions.GetSession(session_pb2.GetSessionRequest(session_id=session_id))).session

    async def turn(self, request: session_pb2.TakeTurnRequest) -> AsyncGenerator[session_pb2.TurnEvent]:
        """The events of a turn."""
        async for response in self.sessions.TakeTurn(request):
            yield response.event


def turn_request(session: session_pb2.Session) -> session_pb2.TakeTurnRequest:
    """The next turn of a session, with its first legal action that has no parameters."""
    plain = [action.action_id for action in session.legal_actions if not action.params]
    return session_pb2.TakeTurnRequest(
        session_id=session.session_id,
        request_id=new_id(),
        expected_turn=session.turn + 1,
        actions=[engine_pb2.ActionCall(action_id=action) for action in plain[:1]],
    )


SERVICE = "peripety.test.v1.TestService"

_CODEC = {
    "request_deserializer": StringValue.FromString,
    "response_serializer": StringValue.SerializeToString,
}


def config_for(tmp_path: Path, **settings: Any) -> Config:
    """A configuration that touches nothing outside `tmp_path`."""
    return Config(
        **{"database_url": f"sqlite:///{tmp_path / 'test.db'}", "listen": "127.0.0.1:0", **settings},
    )


def unary(behavior: Callable[..., Any]) -> grpc.RpcMethodHandler[Any, Any]:
    """A method from one `StringValue` to one."""
    return grpc.unary_unary_rpc_method_handler(
        behavior,
        StringValue.FromString,
        StringValue.SerializeToString,
    )


def stream(behavior: Callable[..., Any]) -> grpc.RpcMethodHandler[Any, Any]:
    """A method from one `StringValue` to many."""
    return grpc.unary_stream_rpc_method_handler(
        behavior,
        StringValue.FromString,
        StringValue.SerializeToString,
    )


def upload(behavior: Callable[..., Any]) -> grpc.RpcMethodHandler[Any, Any]:
    """A method from many `StringValue`s to one."""
    return grpc.stream_unary_rpc_method_handler(
        behavior,
        StringValue.FromString,
        StringValue.SerializeToString,
    )


def both(behavior: Callable[..., Any]) -> grpc.RpcMethodHandler[Any, Any]:
    """A method from many `StringValue`s to many."""
    return grpc.stream_stream_rpc_method_handler(
        behavior,
        StringValue.FromString,
        StringValue.SerializeToString,
    )


def service(**methods: grpc.RpcMethodHandler[Any, Any]) -> RegisterService:
    """The bind function of a service with these methods."""

    async def bind(wiring: ServiceContainer) -> None:
        wiring.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
        wiring.add_service_name(SERVICE)

    return bind


class Caller:
    """Calls methods of a test service by name, with text for messages."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel: Any = channel

    def unary(self, method: str, text: str = "", **options: Any) -> Any:
        return self._start(self.channel.unary_unary, method)(StringValue(value=text), **options)

    def stream(self, method: str, text: str = "", **options: Any) -> Any:
        return self._start(self.channel.unary_stream, method)(StringValue(value=text), **options)

    def upload(self, method: str, texts: AsyncIterator[StringValue], **options: Any) -> Any:
        return self._start(self.channel.stream_unary, method)(texts, **options)

    def both(self, method: str, texts: AsyncIterator[StringValue] | None = None, **options: Any) -> Any:
        return self._start(self.channel.stream_stream, method)(texts, **options)

    def raw(self, method: str, data: bytes, **options: Any) -> Any:
        """Send bytes that are not a message."""
        return self.channel.unary_unary(f"/{SERVICE}/{method}")(data, **options)

    def _start(self, kind: Callable[..., Any], method: str) -> Any:
        return kind(
            f"/{SERVICE}/{method}",
            request_serializer=StringValue.SerializeToString,
            response_deserializer=StringValue.FromString,
        )


async def texts(*values: str) -> AsyncIterator[StringValue]:
    """A stream of requests."""
    for value in values:
        yield StringValue(value=value)


@asynccontextmanager
async def serving(config: Config, bind: RegisterService) -> AsyncIterator[tuple[ServerApp, Caller]]:
    """Serve one test service and open a client channel to it."""
    async with serve_registered(config, [bind]) as app, open_channel(app.address) as channel:
        yield app, Caller(channel)


@asynccontextmanager
async def plain_channel(address: str) -> AsyncIterator[grpc.aio.Channel]:
    """A channel as any other gRPC client would open it."""
    async with grpc.aio.insecure_channel(address) as channel:
        yield channel


def embedding(
    *add: Callable[[grpc.aio.Server], None],
) -> Callable[..., AbstractAsyncContextManager[grpc.aio.Channel]]:
    """Return a replacement of `embedded_services`: a real server on loopback with these services."""

    @asynccontextmanager
    async def embedded(*_: str) -> AsyncIterator[grpc.aio.Channel]:
        server = grpc.aio.server()
        for each in add:
            each(server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with open_channel(f"127.0.0.1:{port}") as channel:
            yield channel
        await server.stop(None)

    return embedded


async def _main(directory: Path, hold_seconds: float) -> None:
    async def hold(_request: object, _call: object) -> AsyncIterator[StringValue]:
        yield StringValue(value="begin")
        await asyncio.sleep(hold_seconds)
        yield StringValue(value="end")

    config = config_for(directory)
    logging_setup.configure(config)
    async with serve_registered(config, [service(Hold=stream(hold))]) as app:
        sys.stdout.write(f"{app.address}\n")
        sys.stdout.flush()
        await app.wait()


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), float(sys.argv[2])))
