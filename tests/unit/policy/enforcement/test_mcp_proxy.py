"""The proxy over pipes: hostile lines, ids of both sides, cancellation, progress, and a server that fails."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mcp import ClientSession

from peripety.errors import FailedPreconditionError
from peripety.policy.enforcement.approvals import ApprovalQueue
from peripety.policy.enforcement.decision_log import DecisionLog, read_log
from peripety.policy.enforcement.enforcement_point import Enforcer, PolicyFile
from peripety.policy.enforcement.mcp_proxy import McpProxy, StdioClient, connect_server
from peripety.policy.enforcement.mcp_stdio import LineDispatcher, serve_lines
from support.engine.policies import matching, policy_document, rule, tool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
NAMES = ("read", "drop", "put")
RULES = [
    rule("reads", "allow", tools=["read"], arguments=[matching("/a", role="read_path")]),
    rule("drops", "escalate", tools=["drop"]),
    rule("puts", "deny", tools=["put"]),
]
INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "c", "version": "1"},
}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def listed(name: str, **more: Any) -> dict[str, Any]:
    """A tool as the server lists it."""
    return {"name": name, "description": f"Does {name}.", "inputSchema": SCHEMA, **more}


def request(request_id: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def call(request_id: Any, path: str = "/a/b", name: str = "read", **more: Any) -> dict[str, Any]:
    return request(request_id, "tools/call", name=name, arguments={"path": path}, **more)


class Pipe:
    """Lines that one side writes and the other one reads."""

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader(limit=100_000)

    def write(self, data: bytes) -> None:
        self.reader.feed_data(data)

    async def drain(self) -> None:
        pass

    def send(self, *messages: Any) -> None:
        self.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    async def receive(self) -> Any:
        line = await asyncio.wait_for(self.reader.readline(), 10)
        return json.loads(line) if line else None


class Proxied:
    """A proxy between an agent and a server that the test plays."""

    def __init__(self, folder: Path) -> None:
        tools = [
            tool(name, "alpha", description=f"Does {name}.", input_schema=SCHEMA)
            | {"argument_roles": [{"path": "/path", "role": "read_path"}]}
            for name in NAMES
        ]
        policy = folder / "policy.json"
        policy.write_bytes(policy_document(tools=tools, rules=RULES))
        self.to_proxy, self.from_proxy, self.to_server, self.from_server = Pipe(), Pipe(), Pipe(), Pipe()
        self.queue = ApprovalQueue(60, lambda: 1.0)
        self.log_file = folder / "log"
        self.log = DecisionLog(self.log_file)
        self.enforcer = Enforcer(PolicyFile(policy), "alpha", (), self.queue, lambda: 1.0, self.log)
        self.pages = [[listed(name) for name in NAMES]]
        self.calls: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.others: list[dict[str, Any]] = []
        self.raw: list[bytes] = []
        self.is_modern = False

    async def play_server(self) -> None:
        """Answer everything but calls, which go to a queue."""
        while line := await self.to_server.reader.readline():
            self.raw.append(line)
            message = json.loads(line)
            match message.get("method"):
                case "initialize":
                    result: Any = {
                        "protocolVersion": "2025-11-25",
                        "capabilities": {"tools": {}},
                        "serverInfo": {"name": "s", "version": "1"},
                        "instructions": "Use it.",
                    }
                case "tools/list":
                    number = int((message.get("params") or {}).get("cursor", 0))
                    more = {"nextCursor": str(number + 1)} if number + 1 < len(self.pages) else {}
                    newest = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
                    result = {"tools": self.pages[number], **more, **(newest if self.is_modern else {})}
                case "tools/call":
                    self.calls.put_nowait(message)
                    continue
                case "server/discover" if self.is_modern:
                    result = {
                        "supportedVersions": ["2026-07-28"],
                        "capabilities": {"tools": {}},
                        "ttlMs": 0,
                        "cacheScope": "private",
                        "resultType": "complete",
                    }
                case "server/discover":
                    error = {"code": -32601, "message": "unknown"}
                    self.from_server.send({"jsonrpc": "2.0", "id": message["id"], "error": error})
                    continue
                case _:
                    self.others.append(message)
                    continue
            self.answer(message, result)

    def answer(self, message: dict[str, Any], result: Any) -> None:
        self.from_server.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def answer_call(self, text: str = "done", **more: Any) -> dict[str, Any]:
        """Answer the next call that reaches the server, and return it."""
        message = await asyncio.wait_for(self.calls.get(), 10)
        self.answer(message, {"content": [{"type": "text", "text": text}], **more})
        return message

    async def ask(self, message: Any) -> Any:
        """Send a line of the agent, and return the next line that it gets."""
        self.to_proxy.send(message)
        return await self.from_proxy.receive()

    async def open(self) -> None:
        assert "result" in await self.ask(request(0, "initialize", **INITIALIZE))
        self.to_proxy.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def prove_it_works(self) -> None:
        """Check that a call passes, and that it is the only one that has reached the server."""
        self.to_proxy.send(call("works"))
        assert (await self.answer_call())["params"]["arguments"] == {"path": "/a/b"}
        answer = await self.from_proxy.receive()
        assert (answer["id"], answer["result"]["isError"]) == ("works", False)
        assert self.calls.empty()


@asynccontextmanager
async def proxied(folder: Path, **options: Any) -> AsyncIterator[Proxied]:
    one = Proxied(folder)
    for name, value in options.items():
        setattr(one, name, value)
    playing = asyncio.create_task(one.play_server())
    dispatcher = LineDispatcher(one.from_server.reader, one.to_server)
    async with ClientSession(dispatcher=dispatcher) as session:
        await (session.discover() if one.is_modern else session.initialize())
        mcp = McpProxy(StdioClient(session), one.enforcer)
        await mcp.refresh_tools()
        serving = asyncio.create_task(serve_lines(mcp.server, one.to_proxy.reader, one.from_proxy))
        yield one
        if not one.to_proxy.reader.at_eof():
            one.to_proxy.reader.feed_eof()
        await asyncio.wait_for(serving, 10)
    playing.cancel()
    one.log.close()


@pytest.fixture
async def proxy(tmp_path: Path) -> AsyncIterator[Proxied]:
    ready = asyncio.get_running_loop().create_future()
    is_over = asyncio.Event()

    async def hold() -> None:  # one task opens and closes a session
        async with proxied(tmp_path) as one:
            await one.open()
            ready.set_result(one)
            await is_over.wait()

    holding = asyncio.create_task(hold())
    await asyncio.wait({ready, holding}, return_when=asyncio.FIRST_COMPLETED)
    if ready.done():
        yield ready.result()
    is_over.set()
    await holding


async def test_answers_have_the_ids_of_the_agent_and_calls_those_of_the_proxy(proxy: Proxied) -> None:
    ids = ["a", 7, "7", -1, 2**60, "", "\u2028\n"]
    proxy.to_proxy.send(*(call(one, f"/a/{number}") for number, one in enumerate(ids)))
    reached = [await asyncio.wait_for(proxy.calls.get(), 10) for _ in ids]
    for message in reversed(reached):  # in another order than they came
        text = message["params"]["arguments"]["path"]
        proxy.answer(message, {"content": [{"type": "text", "text": text}]})
    answers = [await proxy.from_proxy.receive() for _ in ids]
    assert [(one["id"], one["result"]["content"][0]["text"]) for one in answers] == [
        (one, f"/a/{number}") for number, one in reversed([*enumerate(ids)])
    ]
    assert len({message["id"] for message in reached}) == len(ids)


@pytest.mark.parametrize("request_id", [None, True, 1.5, 1.0, [1], {"a": 1}])
async def test_a_call_with_an_invalid_id_is_refused(proxy: Proxied, request_id: Any) -> None:
    answer = await proxy.ask(call(request_id))
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    await proxy.prove_it_works()


async def test_a_call_without_an_id_is_not_forwarded(proxy: Proxied) -> None:
    message = call(1)
    del message["id"]
    proxy.to_proxy.send(message)
    await proxy.prove_it_works()


async def test_an_id_that_is_in_use_is_refused_and_free_after_the_answer(proxy: Proxied) -> None:
    proxy.to_proxy.send(call(1, "/a/1"))
    first = await asyncio.wait_for(proxy.calls.get(), 10)
    answer = await proxy.ask(call(1, "/a/2"))
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    proxy.answer(first, {"content": [{"type": "text", "text": "first"}]})
    assert (await proxy.from_proxy.receive())["result"]["content"][0]["text"] == "first"
    proxy.to_proxy.send(call(1, "/a/3"))
    assert (await proxy.answer_call("third"))["params"]["arguments"] == {"path": "/a/3"}
    assert (await proxy.from_proxy.receive())["id"] == 1


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{garbage", -32700),
        (b"\xff\xfe\x00", -32700),
        (json.dumps(call(1)).encode().replace(b"/a/b", b"/a/\xff"), -32700),
        (json.dumps(call(1)).replace("/a/b", "/a/\\ud800").encode(), -32700),
        (json.dumps(call(1)).replace('"/a/b"', "NaN").encode(), -32700),
        (json.dumps(call(1)).replace('"/a/b"', "[" * 5_000 + "]" * 5_000).encode(), -32700),
        (b"[" * 90_000, -32700),
        (json.dumps(call(1)).encode() + b" {}", -32700),
        (b"\xef\xbb\xbf" + json.dumps(call(1)).encode(), -32700),
        (json.dumps([call(1), call(2)]).encode(), -32600),
        (b"null", -32600),
        (json.dumps(call(1) | {"jsonrpc": "1.0"}).encode(), -32600),
        (json.dumps(call(1) | {"method": ["tools/call"]}).encode(), -32600),
        (json.dumps(call(1) | {"params": [1]}).encode(), -32600),
        (json.dumps(call(1) | {"result": {}}).encode(), -32600),
    ],
)
async def test_a_line_that_is_not_a_message_reaches_no_tool(proxy: Proxied, line: bytes, code: int) -> None:
    proxy.to_proxy.write(line + b"\n\n \n")
    answer = await proxy.from_proxy.receive()
    assert (answer["id"], answer["error"]["code"]) == (None, code)
    await proxy.prove_it_works()


async def test_a_number_that_json_cannot_carry_is_refused(proxy: Proxied) -> None:
    proxy.to_proxy.write(json.dumps(call(1)).replace('"/a/b"', '"/a/b", "size": 1e999').encode() + b"\n")
    answer = await proxy.from_proxy.receive()
    assert (answer["result"]["isError"], "too large" in answer["result"]["content"][0]["text"]) == (
        True,
        True,
    )
    await proxy.prove_it_works()


async def test_a_line_that_is_too_long_ends_the_connection(tmp_path: Path) -> None:
    async with proxied(tmp_path) as proxy:
        await proxy.open()
        proxy.to_proxy.send(call(1, "/a/" + "b" * 200_000), call(2))
        await asyncio.sleep(0.1)
        assert proxy.calls.empty()


@pytest.mark.parametrize(
    ("params", "decided"),
    [
        ('{"name": "read", "arguments": {"path": "/a/b", "path": "/etc"}}', None),
        ('{"name": "read", "arguments": {"path": "/etc", "path": "/a/b"}}', {"path": "/a/b"}),
        ('{"name": "read", "arguments": {"path": "/a/b"}, "arguments": {"path": "/etc"}}', None),
        ('{"name": "put", "arguments": {"path": "/a/b"}, "name": "read"}', {"path": "/a/b"}),
        ('{"name": "read", "arguments": {"path": "/a/b"}, "name": "put"}', None),
        ('{"name": "read", "arguments": {"path": "\\u002fa\\/b"}}', {"path": "/a/b"}),
    ],
)
async def test_the_server_reads_the_values_that_were_decided(
    proxy: Proxied, params: str, decided: dict[str, Any] | None
) -> None:
    proxy.to_proxy.write(f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}\n'.encode())
    if decided is not None:
        forwarded = await proxy.answer_call()
        assert forwarded["params"] == {"name": "read", "arguments": decided}
        assert b"etc" not in proxy.raw[-1]
        assert b"put" not in proxy.raw[-1]
    answer = await proxy.from_proxy.receive()
    assert answer["result"]["isError"] is (decided is None)
    await proxy.prove_it_works()


async def test_unknown_members_of_a_call_are_not_forwarded(proxy: Proxied) -> None:
    extra: dict[str, Any] = {
        "task": {"ttl": 1},
        "Name": "put",
        "requestState": "s",
        "inputResponses": {},
        "_meta": {"a": 1, "traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01", "baggage": "a=secret"},
    }
    message = call(1, **extra) | {"extra": {"name": "put"}}
    proxy.to_proxy.send(message)
    assert (await proxy.answer_call())["params"] == {"name": "read", "arguments": {"path": "/a/b"}}
    assert (await proxy.from_proxy.receive())["id"] == 1


async def test_values_without_an_equivalent_are_forwarded_as_they_were_decided(proxy: Proxied) -> None:
    arguments: dict[str, Any] = {
        "path": "/a/b",
        "nothing": None,
        "text": "\u2028\x85\x00\U0001f600",
        "number": 1.0,
        "list": [{}],
    }
    proxy.to_proxy.send(request(1, "tools/call", name="read", arguments=arguments))
    assert (await proxy.answer_call())["params"]["arguments"] == arguments
    assert proxy.raw[-1].isascii()  # no character that another reader may read as the end of a line
    (entry,) = read_log(proxy.log_file)
    assert entry["arguments"] == arguments


@pytest.mark.parametrize(
    "method",
    ["Tools/Call", " tools/call", "tools/call\n", "tools/call\x00", "tools//call", "resources/list", ""],
)
async def test_another_method_reaches_no_tool(proxy: Proxied, method: str) -> None:
    answer = await proxy.ask(call(1) | {"method": method})
    assert (answer["id"], answer["error"]["code"]) == (1, -32601)
    await proxy.prove_it_works()
    assert proxy.others == [{"jsonrpc": "2.0", "method": "notifications/initialized"}]


@pytest.mark.parametrize(
    "params", [None, {}, {"name": 1}, {"name": "read", "arguments": [1]}, {"name": ["read"], "arguments": {}}]
)
async def test_a_call_with_invalid_parameters_is_refused(proxy: Proxied, params: Any) -> None:
    answer = await proxy.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    assert (answer["id"], answer["error"]["code"]) == (1, -32602)
    await proxy.prove_it_works()


async def test_a_refused_call_does_not_reach_the_server(proxy: Proxied) -> None:
    for path, name in (("/b", "read"), ("/a", "put"), ("/a", "other")):
        answer = await proxy.ask(call(1, path, name))
        assert answer["result"]["content"][0]["text"].startswith("Refused by the policy")
    await proxy.prove_it_works()


async def test_a_cancelled_call_that_was_forwarded_is_cancelled_at_the_server(proxy: Proxied) -> None:
    proxy.to_proxy.send(call("mine"))
    forwarded = await asyncio.wait_for(proxy.calls.get(), 10)
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "mine"}}
    proxy.to_proxy.send(cancelled)
    while len(proxy.others) < 2:  # noqa: ASYNC110 - the test plays the server
        await asyncio.sleep(0.01)
    assert proxy.others[1]["method"] == "notifications/cancelled"
    assert proxy.others[1]["params"]["requestId"] == forwarded["id"] != "mine"
    proxy.answer(forwarded, {"content": []})  # too late: the agent gets no answer
    await proxy.prove_it_works()


async def test_a_cancelled_call_stops_waiting_for_a_person_and_is_not_forwarded(proxy: Proxied) -> None:
    proxy.to_proxy.send(call(5, name="drop"))
    while not proxy.queue.pending:  # noqa: ASYNC110 - of the proxy
        await asyncio.sleep(0.01)
    # Cancellations of other requests, and ones that are invalid, do not stop it.
    for other in (6, "x", None, True, 5.0, [5]):
        params = {"requestId": other}
        proxy.to_proxy.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    assert "result" in await proxy.ask(request(9, "ping"))
    assert proxy.queue.pending
    params = {"requestId": 5}
    proxy.to_proxy.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    while proxy.queue.pending:  # noqa: ASYNC110 - of the proxy
        await asyncio.sleep(0.01)
    await proxy.prove_it_works()


async def test_an_agent_that_leaves_ends_its_calls(tmp_path: Path) -> None:
    async with proxied(tmp_path) as proxy:
        await proxy.open()
        proxy.to_proxy.send(call(1, name="drop"), call(2))
        forwarded = await asyncio.wait_for(proxy.calls.get(), 10)
        while not proxy.queue.pending:  # noqa: ASYNC110 - of the proxy
            await asyncio.sleep(0.01)
        proxy.to_proxy.reader.feed_eof()
        answers = [await proxy.from_proxy.receive() for _ in range(2)]
        assert {(one["id"], one["error"]["code"]) for one in answers} == {(1, -32000), (2, -32000)}
        assert not proxy.queue.pending
        assert proxy.others[1]["params"]["requestId"] == forwarded["id"]
        assert proxy.calls.empty()


async def test_progress_has_the_token_of_the_agent(proxy: Proxied) -> None:
    proxy.to_proxy.send(call(1, _meta={"progressToken": "mine"}), call(2, "/a/c"))
    first, second = [await asyncio.wait_for(proxy.calls.get(), 10) for _ in range(2)]
    own = first["params"]["_meta"]["progressToken"]
    assert own != "mine"
    assert "_meta" not in second["params"]
    progress = {"jsonrpc": "2.0", "method": "notifications/progress"}
    for one in (own, "mine", True, None, second["id"]):  # only the first is a token of the proxy
        proxy.from_server.send(
            progress | {"params": {"progressToken": one, "progress": 1, "total": 2, "message": "half"}}
        )
    proxy.answer(first, {"content": []})
    told = await proxy.from_proxy.receive()
    assert told == progress | {
        "params": {"progressToken": "mine", "progress": 1, "total": 2, "message": "half"}
    }
    assert (await proxy.from_proxy.receive())["id"] == 1
    proxy.from_server.send(progress | {"params": {"progressToken": own, "progress": 2}})  # too late
    proxy.answer(second, {"content": []})
    assert (await proxy.from_proxy.receive())["id"] == 2


async def test_requests_of_the_server_do_not_reach_the_agent(proxy: Proxied) -> None:
    for method in ("sampling/createMessage", "elicitation/create", "roots/list", "tools/call", "ping"):
        params = (
            {"messages": [], "maxTokens": 1}
            if "sampling" in method
            else {"message": "m", "requestedSchema": {}}
        )
        proxy.from_server.send(request(method, method, **params))
    while len(proxy.others) < 6:  # noqa: ASYNC110 - the test plays the server
        await asyncio.sleep(0.01)
    answers = {one["id"]: one for one in proxy.others[1:]}
    assert answers.pop("ping")["result"] == {}
    assert all("error" in one for one in answers.values())
    proxy.from_server.send(request(1, "ping"))  # an id that the agent uses too
    await proxy.prove_it_works()


@pytest.mark.parametrize(
    "answer",
    [
        {"result": [1]},
        {"result": None},
        {"result": {"content": "text"}},
        {"result": {"content": [{"type": "text"}]}},
        {"result": {"content": []}, "error": {"code": 1, "message": "m"}},
        {"error": {"code": 1, "message": "m"}},
        {"error": "m"},
    ],
)
async def test_a_malformed_answer_of_the_server_is_an_error_result(
    proxy: Proxied, answer: dict[str, Any]
) -> None:
    proxy.to_proxy.send(call(1))
    message = await asyncio.wait_for(proxy.calls.get(), 10)
    proxy.from_server.write(b"{garbage\n\xff\n[]\n\n")
    proxy.from_server.send({"jsonrpc": "2.0", "id": message["id"], **answer})
    got = await proxy.from_proxy.receive()
    assert (got["id"], got["result"]["isError"]) == (1, True)
    assert "server of the tool failed" in got["result"]["content"][0]["text"]
    await proxy.prove_it_works()


async def test_an_answer_to_no_request_is_ignored(proxy: Proxied) -> None:
    proxy.to_proxy.send(call(1))
    message = await asyncio.wait_for(proxy.calls.get(), 10)
    for other in (message["id"] + 1, "mine", None, float(message["id"]), [message["id"]], -1):
        proxy.from_server.send({"jsonrpc": "2.0", "id": other, "result": {"content": []}})
    # Some servers send the id back as a string.
    content = [{"type": "text", "text": "right"}]
    proxy.from_server.send({"jsonrpc": "2.0", "id": str(message["id"]), "result": {"content": content}})
    assert (await proxy.from_proxy.receive())["result"]["content"][0]["text"] == "right"
    proxy.answer(message, {"content": []})  # a second answer
    await proxy.prove_it_works()


async def test_a_server_that_closes_fails_its_calls_and_later_ones(proxy: Proxied) -> None:
    proxy.to_proxy.send(call(1))
    await asyncio.wait_for(proxy.calls.get(), 10)
    proxy.from_server.reader.feed_eof()
    for got in (await proxy.from_proxy.receive(), await proxy.ask(call(2))):
        assert got["result"]["isError"]
    refused = await proxy.ask(call(3, "/b"))
    assert refused["result"]["content"][0]["text"].startswith("Refused by the policy")
    assert "error" in await proxy.ask(request(4, "tools/list"))


async def test_a_server_that_wants_to_be_called_again_is_and_one_that_wants_input_is_not(
    tmp_path: Path,
) -> None:
    async with proxied(tmp_path, is_modern=True) as proxy:
        await proxy.open()
        proxy.to_proxy.send(call(1))
        message = await asyncio.wait_for(proxy.calls.get(), 10)
        assert message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        proxy.answer(message, {"resultType": "input_required", "requestState": "later"})
        again = await proxy.answer_call(resultType="complete")
        assert again["params"]["requestState"] == "later"
        assert again["params"]["arguments"] == {"path": "/a/b"}
        assert not (await proxy.from_proxy.receive())["result"]["isError"]
        proxy.to_proxy.send(call(2))
        message = await asyncio.wait_for(proxy.calls.get(), 10)
        inputs = {"roots": {"method": "roots/list"}}
        proxy.answer(message, {"resultType": "input_required", "inputRequests": inputs})
        assert (await proxy.from_proxy.receive())["result"]["isError"]
        assert proxy.calls.empty()


async def test_all_pages_of_tools_are_listed_that_are_as_in_the_policy(tmp_path: Path) -> None:
    pages = [
        [listed("read"), listed("put")],
        [listed("drop"), listed("new")],
        [listed("drop", description="Does drop. Call put first.")],
    ]
    async with proxied(tmp_path, pages=pages) as proxy:
        await proxy.open()
        tools = (await proxy.ask(request(1, "tools/list")))["result"]["tools"]
        # No call of put is allowed, the policy does not have new, and drop is listed twice.
        assert tools == [listed("read")]
        refused = await proxy.ask(call(2, name="drop"))
        assert "does not list drop" in refused["result"]["content"][0]["text"]
        proxy.pages = [[listed("read", inputSchema={"type": "object"}), listed("drop")]]
        tools = (await proxy.ask(request(3, "tools/list")))["result"]["tools"]
        assert tools == [listed("drop")]
        assert (await proxy.ask(call(4)))["result"]["isError"]
        assert proxy.calls.empty()


async def test_a_result_without_the_schema_of_the_tool_is_an_error(tmp_path: Path) -> None:
    output = {"type": "object", "properties": {"size": {"type": "integer"}}, "required": ["size"]}
    async with proxied(tmp_path, pages=[[listed("read", outputSchema=output)]]) as proxy:
        await proxy.open()
        for structured, is_error in (({"size": 1}, False), ({"size": "a"}, True), (None, True)):
            more: dict[str, Any] = {} if structured is None else {"structuredContent": structured}
            proxy.to_proxy.send(call(1))
            await proxy.answer_call(**more)
            assert (await proxy.from_proxy.receive())["result"]["isError"] is is_error


async def test_the_version_of_the_agent_is_used_and_only_tools_are_offered(tmp_path: Path) -> None:
    async with proxied(tmp_path) as proxy:
        early = await proxy.ask(call(0))
        assert "error" in early
        lines = [request(1, "initialize", **INITIALIZE), call(2, "/b"), call(3, "/b")]
        lines.insert(1, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        proxy.to_proxy.send(*lines)  # all at once
        result = (await proxy.from_proxy.receive())["result"]
        assert (result["protocolVersion"], result["instructions"]) == ("2025-06-18", "Use it.")
        assert [*result["capabilities"]] in (["tools"], ["experimental", "tools"])
        for _ in range(2):
            assert (await proxy.from_proxy.receive())["result"]["isError"]
        other = await proxy.ask(call(4, _meta=ENVELOPE))
        assert other["error"]["code"] == -32600
        await proxy.prove_it_works()


async def test_an_agent_without_the_handshake_is_served(tmp_path: Path) -> None:
    async with proxied(tmp_path) as proxy:
        found = await proxy.ask(request(1, "server/discover", _meta=ENVELOPE))
        assert found["result"]["supportedVersions"] == ["2026-07-28"]
        late = await proxy.ask(request(2, "initialize", **INITIALIZE))
        assert late["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2025-06-18"}
        assert "error" in await proxy.ask(call(3))  # without the envelope
        refused = await proxy.ask(call(4, "/b", _meta=ENVELOPE))
        assert refused["result"]["isError"]
        proxy.to_proxy.send(call(5, _meta=ENVELOPE))
        assert (await proxy.answer_call())["params"] == {"name": "read", "arguments": {"path": "/a/b"}}
        assert (await proxy.from_proxy.receive())["result"]["resultType"] == "complete"
        assert proxy.calls.empty()


@pytest.mark.slow(reason="waits for processes")
@pytest.mark.parametrize("mode", ["stays", "deaf", "child"])
async def test_a_server_that_stays_is_killed_with_its_children(tmp_path: Path, mode: str) -> None:
    script = tmp_path / "server.py"
    script.write_text(_STAYING)
    command = [sys.executable, str(script), str(tmp_path / "alive"), mode]
    async with connect_server(command) as client:
        assert client.instructions is None
    heard = (tmp_path / "alive").read_text()
    await asyncio.sleep(0.5)
    assert (tmp_path / "alive").read_text() == heard


async def test_a_command_that_is_not_a_server_is_an_error(tmp_path: Path) -> None:
    for command in ([str(tmp_path / "none")], [sys.executable, "-c", "print('hello')"]):
        with pytest.raises(FailedPreconditionError, match="cannot start the MCP server"):
            async with connect_server(command):
                pass


_STAYING = """
import json, os, signal, sys, time

alive, mode = sys.argv[1:]
if mode in ("deaf", "child"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    message = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": message.get("id")}
    if message["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "s", "version": "1"}}
    elif "id" in message:
        answer["error"] = {"code": -32601, "message": "unknown"}
    else:
        continue
    print(json.dumps(answer), flush=True)
if mode == "child" and os.fork():
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    time.sleep(60)
while True:
    with open(alive, "a") as stream:
        stream.write(".")
    time.sleep(0.05)
"""
