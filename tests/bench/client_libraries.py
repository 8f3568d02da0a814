"""Client libraries against one server: turns, events, validated specifications, and opening quiet streams.

`make bench-clients`. The clients take turns, in several rounds; the best figure of each counts.
A missing toolchain is skipped with a note.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from peripety.api.scenario.v1.scenario_pb2 import CompileScenarioRequest
from peripety.client import AsyncClient
from peripety.scenario.spec_generator.generator import generate_spec
from support.engine.specs import action, at_most, event, spec
from support.repo.repository import ROOT
from support.servers.processes import ServerProcess

CLIENTS = ROOT / "clients"
HERE = ROOT / "tests" / "bench" / "clients"
BUILD = ROOT / "build" / "bench-clients"
SEED = 7
SPECS = 4_000
SESSIONS = 8
TURNS = 25
ROUNDS = 3
ROUNDS_OF_A_PROCESS = 3
"""The first one warms the process up."""
COLUMNS = ("turns", "events", "specifications", "openings")

Command = list[str]


def main() -> None:
    """Build the clients, measure them, and print one table."""
    BUILD.mkdir(parents=True, exist_ok=True)
    commands: dict[str, Command] = {}
    for name, (tool, build) in _LANGUAGES.items():
        if shutil.which(tool) is None:
            _say(f"*** {name} is not measured: {tool} is not on PATH")
        else:
            commands[name] = build()
    with tempfile.TemporaryDirectory() as folder, ServerProcess(Path(folder) / "home") as server:
        documents = Path(folder) / "specs.jsonl"
        documents.write_bytes(b"".join(generate_spec(SEED, index) + b"\n" for index in range(SPECS)))
        scenario_id = asyncio.run(_compile(server.address))
        counts = [str(count) for count in (SESSIONS, TURNS, ROUNDS_OF_A_PROCESS)]
        best = {name: dict.fromkeys(COLUMNS, 0.0) for name in commands}
        for name, command in [*commands.items()] * ROUNDS:
            figures = json.loads(_run([*command, server.address, scenario_id, str(documents), *counts]))
            best[name] = {column: max(best[name][column], figures[column]) for column in COLUMNS}
    _say(f"{SESSIONS} sessions at a time, {SPECS} specifications over one stream, {os.cpu_count()} cores")
    _say("| client | turns/s | events/s | specifications/s | a quiet stream opens in |")
    _say("| --- | --- | --- | --- | --- |")
    *rates, openings = COLUMNS
    fastest = {column: max(figures[column] for figures in best.values()) for column in rates}
    for name, figures in best.items():
        cells = [f"{figures[column]:,.0f} ({figures[column] / fastest[column]:.0%})" for column in rates]
        _say(f"| {name} | {' | '.join(cells)} | {1000 / figures[openings]:.1f} ms |")


def _scenario() -> bytes:
    """Return a scenario in which `hold` prevents both endings."""
    held = [{"op": "set", "path": f"state.{name}", "value": 20} for name in ("gauge", "reserve")]
    return json.dumps(
        spec(
            state={"gauge": 20, "reserve": 20},
            actions=[
                action("hold", held),
                action("spend", [{"op": "dec", "path": "state.gauge", "value": 3}]),
            ],
            random_events=[
                event("wear", [{"op": "dec", "path": "state.gauge", "value": 4}]),
                event("leak", [{"op": "dec", "path": "state.reserve", "value": 4}]),
            ],
            loss_conditions=[
                at_most("gauge_gone", "state.gauge", 0),
                at_most("reserve_gone", "state.reserve", 0),
            ],
        )
    ).encode()


async def _compile(address: str) -> str:
    async with AsyncClient(address) as client:
        request = CompileScenarioRequest(spec=_scenario())
        async for response in client.follow(client.scenarios.CompileScenario, request):
            if response.HasField("rejected"):
                raise SystemExit(str(response.rejected))
        return str(response.compiled.scenario_id)


def _python() -> Command:
    return [sys.executable, str(HERE / "client.py")]


def _typescript() -> Command:
    package = CLIENTS / "typescript"
    if not (package / "node_modules").exists():
        _run(["npm", "ci", "--silent"], package)
    _run(["npm", "run", "--silent", "build"], package)
    return ["node", str(HERE / "client.mjs")]


def _go() -> Command:
    _run(["go", "build", "-o", str(BUILD / "go"), str(HERE / "client.go")], CLIENTS / "go")
    return [str(BUILD / "go")]


def _rust() -> Command:
    _run(["cargo", "build", "--quiet", "--release", "--target-dir", str(BUILD / "rust")], HERE)
    return [str(BUILD / "rust" / "release" / "bench-client")]


def _java() -> Command:
    module = CLIENTS / "java"
    copied = ["dependency:copy-dependencies", "-DincludeScope=runtime"]
    _run(["mvn", "-q", "-B", "-DskipTests", "compile", *copied], module)
    classes = f"{module}/target/classes:{module}/target/dependency/*"
    return ["java", "-cp", classes, str(HERE / "BenchClient.java")]


def _run(command: Command, folder: Path | None = None) -> str:
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: ended with {done.returncode}: {done.stdout}")
    return done.stdout


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


_LANGUAGES = {
    "Python": ("python3", _python),
    "TypeScript": ("npm", _typescript),
    "Go": ("go", _go),
    "Rust": ("cargo", _rust),
    "Java": ("mvn", _java),
}

if __name__ == "__main__":
    main()
