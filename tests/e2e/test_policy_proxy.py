"""`peripety policy proxy` between a real MCP client and a real MCP server, over real processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from typing import TYPE_CHECKING

import pytest
from mcp import Client

from peripety.policy.enforcement.decision_log import read_log
from support.engine.policies import policy_document, rule
from support.policy.proxy import PERIPETY, SERVER, call, proxied, recorded, run_policy, write_policy

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow(reason="starts a process for each case")


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """A folder with a policy about the tools that the server lists."""
    await write_policy(tmp_path)
    return tmp_path


async def answered(folder: Path, word: str) -> None:
    """Wait for a call that waits for a person, and answer it as one does."""
    while True:
        code, out = await run_policy("approvals", "--json", "--approvals", str(folder / "proxy.json"))
        assert code == 0, out
        if out.strip():
            break
    waiting = json.loads(out.splitlines()[0])
    code, out = await run_policy(word, waiting["approval_id"], "--approvals", str(folder / "proxy.json"))
    assert code == 0, out


async def test_calls_are_forwarded_refused_and_approved(folder: Path) -> None:
    async with proxied(folder) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["read", "drop"]
        assert await call(client, "read", path="/a/b") == (False, "done: read /a/b")
        for name, arguments in (
            ("read", {"path": "/b"}),
            ("put", {"path": "/a", "content": "c"}),
            ("other", {}),
        ):
            is_error, text = await call(client, name, **arguments)
            assert (is_error, text.startswith("Refused by the policy")) == (True, True)
        assert (folder / "proxy.json").stat().st_mode & 0o777 == 0o600
        approved, _ = await asyncio.gather(call(client, "drop", path="/a"), answered(folder, "approve"))
        assert approved == (False, "done: drop /a")
        refused, _ = await asyncio.gather(call(client, "drop", path="/b"), answered(folder, "deny"))
        assert refused[0]
    assert recorded(folder) == ["read /a/b", "drop /a"]
    assert not (folder / "proxy.json").exists()
    (folder / "strict.json").write_bytes(
        policy_document(tools=json.loads((folder / "tools.json").read_text()), rules=[rule("closed", "deny")])
    )
    code, out = await run_policy("replay", str(folder / "log"), "-p", str(folder / "strict.json"))
    assert (code, 'allow → deny by closed: alpha/read {"path": "/a/b"}' in out) == (1, True)
    assert (await run_policy("replay", str(folder / "log"), "-p", str(folder / "policy.json")))[0] == 0


async def test_a_tool_whose_description_changed_is_closed(folder: Path) -> None:
    async with proxied(folder, "changed") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["drop"]
        is_error, text = await call(client, "read", path="/a/b")
        assert (is_error, "description" in text) == (True, True)
    assert recorded(folder) == []


@pytest.mark.parametrize("mode", ["dies", "garbage"])
async def test_a_server_that_fails_lets_no_undecided_call_pass(folder: Path, mode: str) -> None:
    async with proxied(folder, mode) as client:
        await call(client, "read", path="/a/b")
        is_error, _ = await call(client, "read", path="/b")
        assert is_error
    assert recorded(folder) == ["read /a/b"]


async def test_a_server_that_hangs_delays_no_other_decision(folder: Path) -> None:
    async with proxied(folder, "hangs") as client:
        hanging = asyncio.ensure_future(call(client, "read", path="/a/b"))
        is_error, text = await call(client, "read", path="/b")
        assert (is_error, text.startswith("Refused by the policy")) == (True, True)
        hanging.cancel()
    assert recorded(folder) in ([], ["read /a/b"])  # the allowed call may have arrived


async def test_a_proxy_that_is_killed_forwards_no_waiting_call_and_starts_again(folder: Path) -> None:
    async def lose() -> None:
        async with proxied(folder) as client:
            waiting = asyncio.ensure_future(call(client, "drop", path="/a"))
            while b'"waiting"' not in (folder / "log").read_bytes():  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.05)
            os.kill(json.loads((folder / "proxy.json").read_text())["process"], signal.SIGKILL)
            await waiting

    with pytest.raises((Exception, ExceptionGroup)):
        await lose()
    assert recorded(folder) == []
    async with proxied(folder) as client:  # the abandoned file is replaced, and the log is continued
        assert await call(client, "read", path="/a/b") == (False, "done: read /a/b")
    assert [entry["outcome"] for entry in read_log(folder / "log")] == ["waiting", "forwarded"]


async def test_garbage_from_the_client_reaches_no_tool(folder: Path) -> None:
    server = [sys.executable, str(SERVER), str(folder / "record")]
    process = await asyncio.create_subprocess_exec(
        *(*PERIPETY, "policy", "proxy", "-p", str(folder / "policy.json")),
        *("--approvals", str(folder / "proxy.json"), "--", *server),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    undecided = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    lines = [
        b"{garbage",
        b"\xff\xfe\x00",
        b"[" * 100_000,
        json.dumps(undecided).encode(),
        json.dumps(undecided | {"params": {"name": "put", "arguments": [1]}}).encode(),
        json.dumps(
            undecided | {"params": {"name": "put", "arguments": {"path": "/b", "content": "c"}}}
        ).encode(),
    ]
    await process.communicate(b"\n".join(lines) + b"\n")
    assert recorded(folder) == []


async def test_lines_of_a_file_are_answered_in_a_file(folder: Path) -> None:
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "read", "arguments": {"path": "/b"}},
        },
    ]
    (folder / "in").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    server = [sys.executable, str(SERVER), str(folder / "record")]
    with (folder / "in").open("rb") as lines_in, (folder / "out").open("wb") as lines_out:
        process = await asyncio.create_subprocess_exec(
            *(*PERIPETY, "policy", "proxy", "-p", str(folder / "policy.json")),
            *("--approvals", str(folder / "proxy.json"), "--", *server),
            stdin=lines_in,
            stdout=lines_out,
        )
        assert await process.wait() == 0
    first, second = map(json.loads, (folder / "out").read_text().splitlines())
    assert (first["result"]["protocolVersion"], second["result"]["isError"]) == ("2025-06-18", True)
    assert recorded(folder) == []


async def test_a_shadow_forwards_all_and_logs_the_decisions(folder: Path) -> None:
    async with proxied(folder, "", "--shadow") as client:
        assert await call(client, "put", path="/b", content="c") == (False, "done: put /b c")
    (entry,) = map(json.loads, (folder / "log").read_text().splitlines())
    assert (entry["decision"], entry["outcome"]) == ("deny", "shadowed")


async def test_a_call_over_http_is_decided_and_the_rate_is_limited(folder: Path) -> None:
    server = [sys.executable, str(SERVER), str(folder / "record")]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = await asyncio.create_subprocess_exec(
        *(*PERIPETY, "policy", "proxy", "-p", str(folder / "policy.json"), "--rate", "1/3600"),
        *("--listen", f"127.0.0.1:{port}", "--approvals", str(folder / "proxy.json"), "--", *server),
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stderr is not None
        while b"serving" not in await process.stderr.readline():
            assert process.returncode is None
        while not await _is_open(port):  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.05)
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            assert (await call(client, "read", path="/b"))[0]
            assert await call(client, "read", path="/a/b") == (False, "done: read /a/b")
            is_error, text = await call(client, "read", path="/a/c")
            assert (is_error, "rate is used up" in text) == (True, True)
    finally:
        process.kill()
        await process.wait()
    assert recorded(folder) == ["read /a/b"]


async def _is_open(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def test_what_is_wrong_at_the_start_is_said(folder: Path) -> None:
    server = ("--", sys.executable, str(SERVER), str(folder / "record"))
    code, out = await run_policy("proxy", "-p", str(folder / "policy.json"), "--rate", "many", *server)
    assert (code, "--rate must be CALLS/SECONDS" in out) == (2, True)
    code, out = await run_policy("proxy", "-p", str(folder / "policy.json"), "--role", "context.x", *server)
    assert (code, "must not begin with context." in out) == (2, True)
    code, out = await run_policy("proxy", "-p", str(folder / "missing.json"), *server)
    assert (code != 0, "missing.json" in out) == (True, True)
    code, out = await run_policy("proxy", "-p", str(folder / "policy.json"), "--shadow", *server)
    assert (code, "--log" in out) == (2, True)
    code, out = await run_policy("approvals", "--approvals", str(folder / "none.json"))
    assert (code, "no enforcement point runs" in out) == (1, True)


async def test_only_a_policy_of_a_trusted_key_opens_tools(folder: Path) -> None:
    for key in ("author", "other"):
        code, out = await run_policy("new-key", str(folder / f"{key}.key"))
        assert code == 0, out
    for key, version in (("author", "1"), ("other", "2"), ("author", "2")):
        code, out = await run_policy(
            *("export", str(folder / "policy.json"), "--key", str(folder / f"{key}.key")),
            *("--name", "guard", "--version", version, "-o", str(folder / f"{key}-{version}.bundle")),
        )
        assert code == 0, out
    trusted = ("--trust", str(folder / "author.key.pub"))
    server = ("--", sys.executable, str(SERVER), str(folder / "record"))
    for file in ("other-2.bundle", "policy.json"):
        code, out = await run_policy("proxy", "-p", str(folder / file), *trusted, *server)
        assert (code != 0, "done" in out) == (True, False), out
    policy = folder / "policy.json"

    def use(file: str) -> None:
        written = folder / "new"
        written.write_bytes((folder / file).read_bytes())
        written.replace(policy)

    use("author-2.bundle")
    async with proxied(folder, "", *trusted) as client:
        assert await call(client, "read", path="/a/b") == (False, "done: read /a/b")
        assert (await call(client, "read", path="/b"))[0]
        for file in ("other-2.bundle", "author-1.bundle"):  # an unknown key; an older version
            use(file)
            assert (await call(client, "read", path="/a/c"))[0]
            assert (await client.list_tools()).tools == []
        use("author-2.bundle")
        assert await call(client, "read", path="/a/d") == (False, "done: read /a/d")
    assert recorded(folder) == ["read /a/b", "read /a/d"]
