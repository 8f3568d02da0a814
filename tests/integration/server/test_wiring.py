"""Arguments of bind functions: one database, direct calls to neighbours, channels to the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest
from google.protobuf.wrappers_pb2 import StringValue

from peripety.core import call_context
from peripety.errors import FailedPreconditionError
from peripety.server.app import serve_registered
from support.servers.apps import Caller, config_for, service, serving, unary

if TYPE_CHECKING:
    from pathlib import Path

    from peripety.rpc.container import ServiceContainer


class _Port(Protocol):
    def answer(self) -> int: ...


class _Answer:
    def answer(self) -> int:
        return 42


async def test_services_of_one_process_share_one_database(tmp_path: Path) -> None:
    seen = []

    async def bind(wiring: ServiceContainer) -> None:
        seen.append(await wiring.get_database())

    async with serve_registered(config_for(tmp_path), [bind, bind]):
        assert seen[0] is seen[1]
    assert (tmp_path / "test.db").exists()


async def test_a_process_that_asks_for_no_database_makes_none(tmp_path: Path) -> None:
    async with serve_registered(config_for(tmp_path), [service()]):
        pass
    assert not (tmp_path / "test.db").exists()


async def test_a_port_is_there_for_the_services_bound_after_its_provider(tmp_path: Path) -> None:
    found: list[_Port | None] = []

    async def look(wiring: ServiceContainer) -> None:
        found.append(wiring.get_local(_Port))

    async def provide(wiring: ServiceContainer) -> None:
        wiring.register(_Port, _Answer())

    async with serve_registered(config_for(tmp_path), [look, provide, look]):
        before, after = found
    assert before is None
    assert after is not None
    assert after.answer() == 42


async def test_a_service_elsewhere_without_an_address_is_a_clear_error(tmp_path: Path) -> None:
    async def bind(wiring: ServiceContainer) -> None:
        wiring.get_channel("gateway")

    with pytest.raises(FailedPreconditionError, match="PERIPETY_GATEWAY_ADDRESS"):
        async with serve_registered(config_for(tmp_path), [bind]):
            pass


async def test_a_channel_to_a_service_elsewhere_is_opened_once_and_carries_the_call(tmp_path: Path) -> None:
    async def tell(_request: object, _call: object) -> StringValue:
        return StringValue(value=str(call_context.request_id()))

    async def forward(wiring: ServiceContainer) -> None:
        assert wiring.get_channel("gateway") is wiring.get_channel("gateway")
        neighbour = Caller(wiring.get_channel("gateway"))

        async def ask(_request: object, _call: object) -> StringValue:
            reply: StringValue = await neighbour.unary("Tell")
            return reply

        await service(Ask=unary(ask))(wiring)

    async with (
        serve_registered(config_for(tmp_path), [service(Tell=unary(tell))]) as far,
        serving(config_for(tmp_path, gateway_address=far.address), forward) as (_, caller),
    ):
        reply = await caller.unary("Ask", metadata=(("x-request-id", "abc"),))
    assert reply.value == "abc"
