"""MCP proxy: offers the tools of another MCP server, and lets an enforcement point decide each call.

The proxy offers tools only. Resources, prompts and requests from the server to the client are not forwarded,
because no rule decides about them.
"""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
        async with stdio_server() as (read, write):
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
        self._enforcer.read_result(params.name, result_text(result))
        return result


def result_text(result: types.CallToolResult) -> str:
    """Return the text of a result, in lines."""
    return "\n".join(part.text for part in result.content if isinstance(part, types.TextContent))


def _error_result(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
