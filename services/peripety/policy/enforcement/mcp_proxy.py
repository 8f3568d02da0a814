"""MCP proxy: offers the tools of another MCP server, and lets an enforcement point decide each call.

The proxy offers tools only. Resources, prompts and requests from the server to the client are not forwarded,
because no rule decides about them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import mcp_types as types
import uvicorn
from mcp import Client, StdioServerParameters
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from peripety.errors import FailedPreconditionError
from peripety.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from mcp.server.context import ServerRequestContext

    from peripety.policy.enforcement.enforcer import Enforcer


_log = logging.getLogger(__name__)
_MAX_PAGES = 1_000
_MAX_LINE_BYTES = 1 << 26


@asynccontextmanager
async def connect_server(command: Sequence[str], directory: Path | None = None) -> AsyncIterator[Client]:
    """Connect to an MCP server.

    Args:
        command: its command with arguments, or only its `http://` or `https://` URL. A command gets the whole
            environment of this process.
        directory: working directory of the command; None for that of this process.

    Raises:
        FailedPreconditionError: the server cannot be started or reached, or does not
            answer as an MCP server.
    """
    first, *arguments = command
    is_url = first.startswith(("http://", "https://"))
    target = (
        first
        if is_url
        else StdioServerParameters(
            command=first, args=arguments, env=dict(os.environ), cwd=directory or Path.cwd()
        )
    )
    async with AsyncExitStack() as opened:
        try:
            client = await opened.enter_async_context(Client(target, cache=None))
        except Exception as error:
            what, remedy = (
                ("reach", "check the URL") if is_url else ("start", "run the command alone to see its error")
            )
            raise FailedPreconditionError(
                f"cannot {what} the MCP server {' '.join(command)}: {_describe_cause(error)}; {remedy}"
            ) from error
        yield client


def _describe_cause(error: BaseException) -> str:
    """Return the message of the first error in nested groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


async def list_server_tools(client: Client) -> list[types.Tool]:
    """Return all tools that a server lists."""
    tools: list[types.Tool] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return tools


class McpProxy:
    """Proxy of one server.

    Args:
        client: the connection to the server.
        enforcer: decides each call.
    """

    def __init__(self, client: Client, enforcer: Enforcer) -> None:
        self._client = client
        self._enforcer = enforcer
        self.server: Server[Any] = Server(
            "peripety-policy-proxy",
            version=__version__,
            instructions=client.instructions,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )

    async def refresh_tools(self) -> list[types.Tool]:
        """Read the definitions of the server's tools again, and return them."""
        tools = await list_server_tools(self._client)
        self._enforcer.set_listed_tools({tool.name: (tool.description, tool.input_schema) for tool in tools})
        return tools

    async def serve_stdio(self) -> None:
        """Serve the client on standard input and output until it closes them."""
        async with _open_pipes() as (stdin, stdout), stdio_server(stdin, stdout) as (read, write):
            await self.server.run(read, write, self.server.create_initialization_options())

    async def serve_http(self, host: str, port: int) -> None:
        """Serve clients over streamable HTTP at `/mcp` until the process ends."""
        app = self.server.streamable_http_app(host=host)
        config = uvicorn.Config(app, host=host, port=port, log_config=None, access_log=False)
        await uvicorn.Server(config).serve()

    async def _list_tools(
        self, _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        tools = await self.refresh_tools()
        is_open = self._enforcer.list_open_tools()
        return types.ListToolsResult(tools=[tool for tool in tools if tool.name in is_open])

    async def _call_tool(
        self, _context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments = params.arguments or {}
        verdict = await self._enforcer.decide(params.name, arguments)
        if not verdict.is_forwarded:
            return _error_result(verdict.reason)
        try:
            result = await self._client.call_tool(params.name, arguments)
        except asyncio.CancelledError:
            raise
        except Exception:  # noqa: BLE001 - the border: the client gets a result for each call
            _log.exception("the server failed in a call")
            return _error_result("The server of the tool failed; the call may have had effects.")
        self._enforcer.read_result(params.name, arguments, result_text(result))
        return result


class _PipeReader:
    """Lines of a pipe, as the SDK reads them from a file."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[str]:
        while line := await self._stream.readline():
            yield line.decode("utf-8", "replace")


class _PipeWriter(asyncio.BaseProtocol):
    """A pipe, as the SDK writes to a file; waits while its reader is slow."""

    def __init__(self) -> None:
        self._is_ready = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self._transport.set_write_buffer_limits(0)
        self._is_ready.set()

    def pause_writing(self) -> None:
        self._is_ready.clear()

    def resume_writing(self) -> None:
        self._is_ready.set()

    def connection_lost(self, _error: Exception | None) -> None:
        self._is_ready.set()

    async def write(self, text: str) -> None:
        self._transport.write(text.encode())

    async def flush(self) -> None:
        await self._is_ready.wait()


@asynccontextmanager
async def _open_pipes() -> AsyncIterator[tuple[Any, Any]]:
    """Yield standard input and output as files of the event loop; None for both unless they are pipes.

    The SDK opens files that use a thread for each line, which takes a third of the processor time of a call.
    Meanwhile the process itself reads nothing from standard input, and its own output goes to standard error,
    as with the SDK's files.
    """
    if not all(
        stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) for mode in (os.fstat(0).st_mode, os.fstat(1).st_mode)
    ):
        yield None, None
        return
    loop = asyncio.get_running_loop()
    stdin, stdout, nothing = os.dup(0), os.dup(1), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    try:
        reader = asyncio.StreamReader(limit=_MAX_LINE_BYTES)
        source, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(stdin), "rb")
        )
        target, writer = await loop.connect_write_pipe(_PipeWriter, os.fdopen(os.dup(stdout), "wb"))
        try:
            yield _PipeReader(reader), writer
        finally:
            source.close()
            target.close()
    finally:
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.close(stdin)
        os.close(stdout)


def result_text(result: types.CallToolResult) -> str:
    """Return the text of a result, in lines."""
    return "\n".join(part.text for part in result.content if isinstance(part, types.TextContent))


def _error_result(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
