"""`peripety policy proxy` in front of the recording MCP server, as processes."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp import Client, StdioServerParameters

from support.engine.policies import matching, policy_document, rule

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PERIPETY = [sys.executable, "-m", "peripety"]
SERVER = Path(__file__).parent / "mcp_server.py"
RULES = [
    rule("reads", "allow", tools=["read"], arguments=[matching("/a", role="read_path")]),
    rule("drops", "escalate", tools=["drop"]),
    rule("puts", "deny", tools=["put"]),
]


async def run_policy(*arguments: str) -> tuple[int, str]:
    """Run `peripety policy`, and return its exit code and its output."""
    process = await asyncio.create_subprocess_exec(
        *PERIPETY,
        "policy",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    out, _ = await process.communicate()
    return process.returncode or 0, out.decode()


async def write_policy(folder: Path) -> None:
    """Write a policy about the tools that the server lists."""
    tools = folder / "tools.json"
    record = str(folder / "record")
    code, out = await run_policy(
        "tools", "--name", "alpha", "-o", str(tools), "--", sys.executable, str(SERVER), record
    )
    assert code == 0, out
    document = policy_document(tools=json.loads(tools.read_text()), rules=RULES)
    (folder / "policy.json").write_bytes(document)


@asynccontextmanager
async def proxied(folder: Path, mode: str = "", *options: str) -> AsyncIterator[Client]:
    """Run the proxy, with its approvals in `proxy.json` of the folder, and yield its client."""
    server = [sys.executable, str(SERVER), str(folder / "record"), *([mode] if mode else [])]
    files = ("--log", str(folder / "log"), "--approvals", str(folder / "proxy.json"))
    arguments = ["policy", "proxy", "-p", str(folder / "policy.json"), *files, *options, "--", *server]
    command, *first = PERIPETY
    parameters = StdioServerParameters(command=command, args=[*first, *arguments], env=dict(os.environ))
    async with Client(parameters, read_timeout_seconds=60) as client:
        yield client


async def call(client: Client, name: str, **arguments: Any) -> tuple[bool, str]:
    """Call a tool, and return whether it failed, and its text."""
    result = await client.call_tool(name, arguments)
    return result.is_error, result.content[0].text  # type: ignore[union-attr]  # the proxy and the server send text


def recorded(folder: Path) -> list[str]:
    """Return the calls that reached the server."""
    record = folder / "record"
    return record.read_text().splitlines() if record.exists() else []
