"""The harness: health, reflection, start, refusals and the graceful stop."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.wrappers_pb2 import StringValue
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from peripety import engine
from peripety.api.gateway.v1 import gateway_pb2, gateway_pb2_grpc
from peripety.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    PeripetyError,
    UnavailableError,
    UnsupportedError,
)
from peripety.rpc.channel import open_channel
from peripety.server.app import SERVICES, serve, serve_registered
from peripety.version import __version__
from support.servers.apps import SERVICE, Caller, config_for, plain_channel, service, serving, stream, unary

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.rpc.container import ServiceContainer


SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def _health(channel: grpc.aio.Channel) -> Any:
    return health_pb2_grpc.HealthStub(channel)


async def _echo(request: StringValue, _call: object) -> StringValue:
    return request


async def _call_until_refused(caller: Caller) -> None:
    while True:
        await caller.unary("Echo")


class _Gated:
    """A stream of two messages, the second of which waits to be let through."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.gate = asyncio.Event()

    async def replies(self, _request: object, _call: object) -> AsyncIterator[StringValue]:
        yield StringValue(value="first")
        self.started.set()
        await self.gate.wait()
        yield StringValue(value="second")


@pytest.mark.parametrize("name", ["", SERVICE])
async def test_health_says_serving_with_version_and_core(tmp_path: Path, name: str) -> None:
    async with serving(config_for(tmp_path), service()) as (app, _), plain_channel(app.address) as channel:
        call = _health(channel).Check(health_pb2.HealthCheckRequest(service=name))
        assert (await call).status == SERVING
        metadata = dict(await call.initial_metadata())
    assert metadata["x-peripety-core"] == engine.BACKEND
    assert metadata["x-peripety-version"] == __version__


async def test_health_of_an_unknown_service_is_not_found(tmp_path: Path) -> None:
    async with serving(config_for(tmp_path), service()) as (app, _), plain_channel(app.address) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await _health(channel).Check(health_pb2.HealthCheckRequest(service="other"))
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_reflection_lists_and_describes_what_is_served(tmp_path: Path) -> None:
    async def bind(wiring: ServiceContainer) -> None:
        servicer = gateway_pb2_grpc.GatewayServiceServicer()
        gateway_pb2_grpc.add_GatewayServiceServicer_to_server(servicer, wiring.server)
        wiring.add_service_name("peripety.api.gateway.v1.GatewayService")

    def look(address: str) -> tuple[set[str], list[str]]:
        with grpc.insecure_channel(address) as channel:
            database = ProtoReflectionDescriptorDatabase(channel)
            file = database.FindFileContainingSymbol("peripety.api.gateway.v1.GatewayService")
            return set(database.get_services()), [method.name for method in file.service[0].method]

    async with serve_registered(config_for(tmp_path), [bind]) as app:
        services, methods = await asyncio.to_thread(look, app.address)
    assert services == {
        "peripety.api.gateway.v1.GatewayService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    }
    assert "Generate" in methods


async def test_reflection_answers_tools_that_ask_by_the_v1_name(tmp_path: Path) -> None:
    """The requests are bytes, as tools send them: field 4 is a symbol, field 7 lists the services."""

    def symbol(name: str) -> bytes:
        return b"\x22" + bytes([len(name)]) + name.encode()

    async def requests() -> AsyncIterator[bytes]:
        yield b"\x3a\x00"
        yield symbol("grpc.health.v1.Health.Check")
        yield symbol("grpc.reflection.v1.ServerReflection")
        yield symbol("grpc.reflection.v1.Absent")

    async def bind(_wiring: ServiceContainer) -> None:
        pass

    async with serve_registered(config_for(tmp_path), [bind]) as app, plain_channel(app.address) as channel:
        ask: Any = channel.stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
        call = ask(requests())
        listed, method, itself, absent = [
            reflection_pb2.ServerReflectionResponse.FromString(data) async for data in call
        ]
    names = {service.name for service in listed.list_services_response.service}
    assert {"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"} <= names
    assert [file.service[0].method[0].name for file in _files(method)] == ["Check"]
    (file,) = _files(itself)
    assert (file.package, file.service[0].method[0].input_type) == (
        "grpc.reflection.v1",
        ".grpc.reflection.v1.ServerReflectionRequest",
    )
    assert absent.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


def _files(response: Any) -> list[FileDescriptorProto]:
    return list(map(FileDescriptorProto.FromString, response.file_descriptor_response.file_descriptor_proto))


async def test_a_stub_on_our_channel_raises_errors_of_the_tree(tmp_path: Path) -> None:
    class Gateway(gateway_pb2_grpc.GatewayServiceServicer):
        async def ListModels(self, _request: object, _context: object) -> gateway_pb2.ListModelsResponse:  # noqa: N802
            raise InvalidArgumentError("page_size must not be negative")

    async def bind(wiring: ServiceContainer) -> None:
        gateway_pb2_grpc.add_GatewayServiceServicer_to_server(Gateway(), wiring.server)

    async with serve_registered(config_for(tmp_path), [bind]) as app, open_channel(app.address) as channel:
        with pytest.raises(InvalidArgumentError, match="page_size must not be negative"):
            await gateway_pb2_grpc.GatewayServiceStub(channel).ListModels(gateway_pb2.ListModelsRequest())


async def test_a_method_of_the_contract_that_is_not_written_yet_is_unsupported(tmp_path: Path) -> None:
    async def bind(wiring: ServiceContainer) -> None:
        servicer = gateway_pb2_grpc.GatewayServiceServicer()
        gateway_pb2_grpc.add_GatewayServiceServicer_to_server(servicer, wiring.server)

    async with serve_registered(config_for(tmp_path), [bind]) as app, open_channel(app.address) as channel:
        with pytest.raises(UnsupportedError, match="GetUsage is not implemented"):
            await gateway_pb2_grpc.GatewayServiceStub(channel).GetUsage(gateway_pb2.GetUsageRequest())
        with pytest.raises(UnsupportedError, match="Generate is not implemented"):
            async for _ in gateway_pb2_grpc.GatewayServiceStub(channel).Generate(
                gateway_pb2.GenerateRequest()
            ):
                pass


async def test_a_drain_lets_an_open_stream_finish_while_new_calls_are_turned_away(tmp_path: Path) -> None:
    gated = _Gated()
    methods = {"Turn": stream(gated.replies), "Echo": unary(_echo)}
    async with serving(config_for(tmp_path, drain_seconds=30), service(**methods)) as (app, caller):
        call = caller.stream("Turn")
        assert (await call.read()).value == "first"
        await gated.started.wait()
        drain = asyncio.ensure_future(app.drain())
        async with plain_channel(app.address) as late, asyncio.timeout(25):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await _call_until_refused(Caller(late))
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
        assert not drain.done()
        gated.gate.set()
        assert (await call.read()).value == "second"
        assert await call.read() is grpc.aio.EOF
        await asyncio.wait_for(drain, 25)


async def test_a_drain_tells_watchers_and_does_not_wait_for_them(tmp_path: Path) -> None:
    seen: list[Any] = []

    async def watch(channel: grpc.aio.Channel, first: asyncio.Event) -> None:
        async for reply in _health(channel).Watch(health_pb2.HealthCheckRequest(service=SERVICE)):
            seen.append(reply.status)
            first.set()

    async with (
        serving(config_for(tmp_path, drain_seconds=30), service()) as (app, _),
        plain_channel(app.address) as channel,
    ):
        first = asyncio.Event()
        watcher = asyncio.ensure_future(watch(channel, first))
        await first.wait()
        await asyncio.wait_for(app.drain(), 25)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await watcher
    assert seen == [SERVING, NOT_SERVING]
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_call_that_outlasts_the_drain_is_ended(tmp_path: Path) -> None:
    gated = _Gated()
    async with serving(config_for(tmp_path, drain_seconds=0.1), service(Turn=stream(gated.replies))) as (
        app,
        caller,
    ):
        call = caller.stream("Turn")
        await call.read()
        await asyncio.wait_for(app.drain(), 25)
        with pytest.raises(PeripetyError):
            await call.read()


async def test_resources_are_closed_in_reverse_order_after_the_last_call(tmp_path: Path) -> None:
    order: list[str] = []
    gated = _Gated()

    async def replies(request: object, call: object) -> AsyncIterator[StringValue]:
        try:
            async for reply in gated.replies(request, call):
                yield reply
        finally:
            order.append("call")

    async def bind(wiring: ServiceContainer) -> None:
        await service(Turn=stream(replies))(wiring)
        wiring.resources.callback(order.append, "opened first")
        wiring.resources.callback(order.append, "opened last")

    async with serving(config_for(tmp_path), bind) as (_, caller):
        await caller.stream("Turn").read()
    assert order == ["call", "opened last", "opened first"]


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "example.org:0", "192.0.2.1:0"])
async def test_plaintext_on_an_address_that_others_can_reach_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(FailedPreconditionError, match="PERIPETY_INSECURE=1") as caught:
        async with serve_registered(config_for(tmp_path), [service()], address):
            pass
    assert caught.value.code == "PLAINTEXT_REFUSED"


async def test_plaintext_is_allowed_when_somebody_said_so(tmp_path: Path) -> None:
    async with serve_registered(config_for(tmp_path, insecure=True), [service()], "0.0.0.0:0") as app:
        assert app.address == f"0.0.0.0:{app.port}"


@pytest.mark.parametrize("address", ["localhost:0", "127.0.0.2:0"])
async def test_every_way_to_write_this_machine_is_served(tmp_path: Path, address: str) -> None:
    async with (
        serve_registered(config_for(tmp_path), [service(Echo=unary(_echo))], address) as app,
        plain_channel(app.address) as channel,
    ):
        assert (await Caller(channel).unary("Echo", "a")).value == "a"


async def test_an_address_that_is_taken_is_one_clear_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with serve_registered(config_for(tmp_path), [service()]) as app:
        told = rf"cannot listen on 127.0.0.1:{app.port} \(Address already in use\)"
        with pytest.raises(UnavailableError, match=told):
            async with serve_registered(config_for(tmp_path), [service()], app.address):
                pass
    assert "add_port" not in capfd.readouterr().err  # where gRPC logs it again


async def test_a_service_that_cannot_start_stops_the_start_and_closes_what_was_opened(tmp_path: Path) -> None:
    closed: list[str] = []

    async def bind(wiring: ServiceContainer) -> None:
        wiring.resources.callback(closed.append, "resource")
        raise UnavailableError("no database")

    with pytest.raises(UnavailableError, match="no database"):
        async with serve_registered(config_for(tmp_path), [bind]):
            pass
    assert closed == ["resource"]


async def test_what_is_no_address_cannot_be_listened_on(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="host:port"):
        async with serve_registered(config_for(tmp_path), [service()], "50051"):
            pass


@pytest.mark.parametrize("services", [["gateway", "unheard-of"], []])
async def test_asking_for_an_unknown_service_or_none_lists_the_known_ones(
    tmp_path: Path,
    services: list[str],
) -> None:
    with pytest.raises(InvalidArgumentError, match=", ".join(SERVICES)):
        async with serve(config_for(tmp_path), services):
            pass


def _environment() -> dict[str, str]:
    """The environment of a process that finds what this one finds."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}


class _Process:
    """A served process that receives signals; it holds one call open until it is released."""

    def __init__(self, tmp_path: Path, hold_seconds: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "support.servers.apps", str(tmp_path), str(hold_seconds)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=_environment(),
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()


@pytest.mark.slow_after(1, reason="starts a process for each case")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_the_process_which_then_exits_well(
    tmp_path: Path,
    number: signal.Signals,
) -> None:
    served = _Process(tmp_path, hold_seconds=0.3)
    with served.process as process:
        async with plain_channel(served.address) as channel:
            call = Caller(channel).stream("Hold")
            await call.read()
            process.send_signal(number)
            assert (await call.read()).value == "end"
        _, errors = await asyncio.to_thread(process.communicate, timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in errors


async def test_a_second_signal_stops_the_process_now(tmp_path: Path) -> None:
    served = _Process(tmp_path, hold_seconds=60)
    with served.process as process:
        async with plain_channel(served.address) as channel:
            call = Caller(channel).stream("Hold")
            await call.read()
            process.send_signal(signal.SIGTERM)
            logged = await asyncio.to_thread(_read_log_until, process, "stopping")
            assert process.poll() is None
            process.send_signal(signal.SIGTERM)
            with pytest.raises(grpc.aio.AioRpcError):
                await call.read()
        _, errors = await asyncio.to_thread(process.communicate, timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in logged + errors


def _read_log_until(process: subprocess.Popen[str], text: str) -> str:
    """Return the log of a process up to a line with a text, once it is there."""
    logged = ""
    assert process.stderr is not None
    while text not in logged:
        line = process.stderr.readline()
        assert line, logged
        logged += line
    return logged


@pytest.mark.slow(reason="starts a process for each case")
async def test_serving_one_service_does_not_load_the_others(tmp_path: Path) -> None:
    program = (
        "import asyncio, sys; from pathlib import Path; from support.servers.apps import config_for\n"
        "from peripety.server.app import serve\n"
        "async def main():\n"
        "    async with serve(config_for(Path(sys.argv[1]), log_level='error'), {'gateway'}) as app:\n"
        "        loaded = {'peripety.scenario', 'peripety.session'} & set(sys.modules)\n"
        "        print(*app.services, *loaded)\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, str(tmp_path)),
        env=_environment(),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert output.decode().splitlines()[-1].split() == [
        "peripety.api.gateway.v1.GatewayService",
        "peripety.api.agent.v1.AgentService",
    ]
