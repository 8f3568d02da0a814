"""Cost of enforcing a policy: the proxy beside the plain server, and decisions through gRPC batches.

`make bench-policy-enforcement CALLS=500`. The plain server, the proxy without a log and the proxy with a log
are called in turn, one call each, so the load of the machine is the same for all of them. Processor time of
the gRPC server is that of its own process.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcp import Client, StdioServerParameters

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from peripety.rpc.channel import open_channel
from support.engine.policies import matching, policy_document, rule
from support.servers.processes import ServerProcess

PERIPETY = [sys.executable, "-m", "peripety"]
SERVER = [sys.executable, str(Path(__file__).parents[1] / "support" / "policy" / "mcp_server.py")]
RULES = [rule("reads", "allow", tools=["read"], arguments=[matching("/a", role="read_path")])]
BATCH = 1_000


def _parameters(command: list[str]) -> StdioServerParameters:
    return StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))


async def _run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    _, problems = await process.communicate()
    if process.returncode:
        raise SystemExit(problems.decode())


async def measure_proxy(folder: Path, calls: int) -> None:
    """Print the median and the 95th percentile of a call of each side, in milliseconds."""
    server = [*SERVER, str(folder / "record")]
    tools = folder / "tools.json"
    await _run(*PERIPETY, "policy", "tools", "--name", "alpha", "-o", str(tools), "--", *server)
    document = policy_document(tools=json.loads(tools.read_text()), rules=RULES)
    (folder / "policy.json").write_bytes(document)
    proxy = [*PERIPETY, "policy", "proxy", "-p", str(folder / "policy.json")]
    sides = {
        "plain": server,
        "proxy": [*proxy, "--approvals", str(folder / "a.json"), "--", *server],
        "with log": [
            *proxy,
            *("--approvals", str(folder / "b.json"), "--log", str(folder / "log")),
            *("--", *server),
        ],
    }
    spent: dict[str, list[float]] = {name: [] for name in sides}
    async with AsyncExitStack() as opened:
        clients: dict[str, Any] = {
            name: await opened.enter_async_context(Client(_parameters(command)))
            for name, command in sides.items()
        }
        for number in range(-20, calls):
            for name, client in clients.items():
                start = time.perf_counter()
                result = await client.call_tool("read", {"path": f"/a/{number}"})
                taken = time.perf_counter() - start
                assert not result.is_error, result
                if number >= 0:
                    spent[name].append(taken * 1_000)
    plain = statistics.median(spent["plain"])
    for name, times in spent.items():
        median = statistics.median(times)
        slowest = statistics.quantiles(times, n=20)[-1]
        sys.stdout.write(
            f"{name:9} median {median:7.2f} ms  +{median - plain:5.2f}  95 % {slowest:7.2f} ms\n"
        )


async def measure_batches(address: str, process: int, messages: int) -> None:
    """Print the decisions per second of wall time, and of processor time of the server."""
    policy = pb.PolicySource(document=policy_document(tools=[_annotation()], rules=RULES))
    items = [
        pb.DecideItem(
            item_id=str(number),
            request=pb.PolicyRequest(
                server_name="alpha", tool_name="read", arguments=json.dumps({"path": f"/a/{number}"}).encode()
            ),
        )
        for number in range(BATCH)
    ]

    def requests(count: int) -> Any:
        return (pb.DecideManyRequest(policy=policy, items=items) for _ in range(count))

    async with open_channel(address) as channel:
        stub = PolicyServiceStub(channel)
        async for _ in stub.DecideMany(requests(2)):
            pass
        before, start = _processor_seconds(process), time.perf_counter()
        decided = 0
        async for response in stub.DecideMany(requests(messages)):
            decided += len(response.outcomes)
            assert response.outcomes[0].result.decision == pb.DECISION_ALLOW
        wall, used = time.perf_counter() - start, _processor_seconds(process) - before
    sys.stdout.write(
        f"{decided:,} decisions: {decided / wall:,.0f} per second, {decided / used:,.0f} per core-second\n"
    )


def _annotation() -> dict[str, Any]:
    return {
        "server_name": "alpha",
        "tool_name": "read",
        "argument_roles": [{"path": "/path", "role": "read_path"}],
    }


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Print the figures."""
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    with TemporaryDirectory() as name:
        folder = Path(name)
        asyncio.run(measure_proxy(folder, calls))
        with ServerProcess(folder / "home") as server:
            asyncio.run(measure_batches(server.address, server.process.pid, 100))


if __name__ == "__main__":
    main()
