"""The compared sides: this engine's sessions and the naive ones, in front of the same narrator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import grpc

from bench.session_clients import GrpcPlayer, SsePlayer
from bench.session_game import POV, scenario
from peripety.api.scenario.v1 import scenario_pb2, scenario_pb2_grpc
from peripety.api.session.v1 import session_pb2, session_pb2_grpc
from support.servers.apps import new_id
from support.servers.processes import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bench.session_clients import Player


@dataclass(frozen=True)
class Side:
    """A server of sessions.

    Attributes:
        name: its title.
        pid: its process.
        player: starts a session with a number, and returns its player.
        address: the address on which it listens.
    """

    name: str
    pid: int
    player: Callable[[int], Player]
    address: str


@dataclass(frozen=True)
class ScriptedNarrator:
    """The scripted LLM, and where it notes its moments."""

    pid: int
    url: str
    moments: Path


@contextmanager
def narrating(folder: Path, script: object) -> Iterator[ScriptedNarrator]:
    """Serve a script."""
    file, moments = folder / "script.json", folder / "moments"
    file.write_text(json.dumps(script), encoding="utf-8")
    moments.write_bytes(b"")
    command = [sys.executable, "-m", "bench.scripted_narrator", str(file), str(moments)]
    with _listening(command, folder / "narrator.log") as (pid, address):
        yield ScriptedNarrator(pid, address, moments)


@contextmanager
def peripety(folder: Path, narrator: ScriptedNarrator) -> Iterator[Side]:
    """This engine: every service in one process, each turn a transaction in a SQLite file."""
    settings = {
        "MODEL_PROVIDER": "generic",
        "OPENAI_API_BASE": f"{narrator.url}/v1",
        "MODEL_NAME": "m",
    }
    with _serving(folder, settings) as side:
        yield side


@contextmanager
def offline(folder: Path) -> Iterator[Side]:
    """The same without a model."""
    with _serving(folder, {"MODEL_PROVIDER": "offline"}) as side:
        yield side


@contextmanager
def _serving(folder: Path, settings: dict[str, str]) -> Iterator[Side]:
    with (
        ServerProcess(folder / "peripety", "all", settings | {"PERIPETY_LOG_LEVEL": "error"}) as server,
        grpc.insecure_channel(server.address) as channel,
    ):
        stub = session_pb2_grpc.SessionServiceStub(channel)
        scenario_id = compiled(scenario_pb2_grpc.ScenarioServiceStub(channel), scenario())
        port = int(server.address.rpartition(":")[2])

        def player(number: int) -> Player:
            request = session_pb2.CreateSessionRequest(
                request_id=new_id(),
                scenario_id=scenario_id,
                pov_entity_id=POV,
            )
            return GrpcPlayer(port, number, stub.CreateSession(request).session)

        yield Side("peripety", server.process.pid, player, server.address)


@contextmanager
def naive(folder: Path, narrator: ScriptedNarrator) -> Iterator[Side]:
    """The naive version, on the reference core in Python; see `bench.naive_sessions`."""
    spec = folder / "spec.json"
    spec.write_bytes(scenario())
    command = [sys.executable, "-m", "bench.naive_sessions", str(spec), f"{narrator.url}/v1"]
    with _listening(command, folder / "naive.log", PERIPETY_SIMCORE="python") as (pid, address):

        def player(number: int) -> Player:
            with urllib.request.urlopen(f"http://{address}/sessions", data=b"") as answer:
                return SsePlayer(int(address.rpartition(":")[2]), number, json.load(answer)["session_id"])

        yield Side("naive", pid, player, address)


def compiled(stub: scenario_pb2_grpc.ScenarioServiceStub, spec: bytes) -> str:
    """Store a scenario; its id."""
    request = scenario_pb2.CompileScenarioRequest(request_id=new_id(), spec=spec)
    *_, last = stub.CompileScenario(request)
    assert last.HasField("compiled"), last
    return last.compiled.scenario_id


@contextmanager
def _listening(command: list[str], log: Path, **settings: str) -> Iterator[tuple[int, str]]:
    """Start a server that prints where it listens; its process and what it printed."""
    with log.open("ab") as errors:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=os.environ | settings,
            text=True,
        )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        if not said.startswith("listening on "):
            raise RuntimeError(f"{command[2]} did not start:\n{log.read_text(encoding='utf-8')}")
        yield process.pid, said.removeprefix("listening on ").strip()
    finally:
        process.terminate()
        process.communicate(timeout=30)
