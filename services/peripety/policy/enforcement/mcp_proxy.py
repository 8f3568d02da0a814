"""MCP proxy: offers the tools of another MCP server, and lets an enforcement point decide each call.

The proxy offers tools only. Resources, prompts and requests from the server to the client are not forwarded,
because no rule decides about them.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import mcp_types as types
import uvicorn
from mcp import Client, ClientSession, MCPError
from mcp.server.lowlevel import Server
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from pydantic import ValidationError

from peripety.errors import FailedPreconditionError
from peripety.policy.enforcement.mcp_stdio import LineDispatcher, open_pipes, serve_lines, start_server
from peripety.version import __version__

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from mcp.server.context import ServerRequestContext
    from mcp.shared.dispatcher import ProgressFnT

    from peripety.policy.enforcement.enforcement_point import Enforcer


_log = logging.getLogger(__name__)
_MAX_PAGES = 1_000
_MAX_ROUNDS = 10
_ROUND_SECONDS = 0.05


class StdioClient:
    """Client of a server that runs as a process, with the methods of the SDK's `Client` for tools.

    Args:
        session: the open session.
    """

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    @property
    def instructions(self) -> str | None:
        """The instructions of the server."""
        return self._session.instructions

    async def list_tools(self, *, cursor: str | None = None) -> types.ListToolsResult:
        """Return one page of the tools."""
        return await self._session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))

    async def call_tool(
        self, name: str, arguments: dict[str, Any], *, progress_callback: ProgressFnT | None = None
    ) -> types.CallToolResult:
        """Call a tool; call it again if the server wants that, without input of the client.

        Raises:
            MCPError: the server answered with an error, or closed the connection.
            RuntimeError: the server requires input, or the result does not have the schema of the tool.
            ValidationError: the result is not one of the protocol.
        """
        state: str | None = None
        for number in range(_MAX_ROUNDS):
            result = await self._session.call_tool(
                name,
                arguments,
                progress_callback=progress_callback,
                request_state=state,
                allow_input_required=True,
            )
            if isinstance(result, types.CallToolResult):
                return result
            if result.input_requests:
                break
            state = result.request_state
            await asyncio.sleep(_ROUND_SECONDS * (number + 1))
        raise RuntimeError(f"the tool {name} requires input")


@asynccontextmanager
async def connect_server(
    command: Sequence[str], directory: Path | None = None
) -> AsyncIterator[Client | StdioClient]:
    """Connect to an MCP server.

    Args:
        command: its command with arguments, or only its `http://` or `https://` URL. A command gets the whole
            environment of this process.
        directory: working directory of the command; None for that of this process.

    Raises:
        FailedPreconditionError: the server cannot be started or reached, or does not
            answer as an MCP server.
    """
    is_url = command[0].startswith(("http://", "https://"))
    async with AsyncExitStack() as opened:
        try:
            client: Client | StdioClient = await (
                opened.enter_async_context(Client(command[0], cache=None))
                if is_url
                else opened.enter_async_context(_connect_command(command, directory))
            )
        except Exception as error:
            what, remedy = (
                ("reach", "check the URL") if is_url else ("start", "run the command alone to see its error")
            )
            raise FailedPreconditionError(
                f"cannot {what} the MCP server {' '.join(command)}: {_describe_cause(error)}; {remedy}"
            ) from error
        yield client


@asynccontextmanager
async def _connect_command(command: Sequence[str], directory: Path | None) -> AsyncIterator[StdioClient]:
    async with (
        start_server(command, directory) as (reader, writer),
        ClientSession(dispatcher=LineDispatcher(reader, writer)) as session,
    ):
        await _negotiate(session)
        yield StdioClient(session)


async def _negotiate(session: ClientSession) -> None:
    """Open the newest era of the protocol that the server speaks."""
    for attempt in range(2):
        try:
            await session.discover()
        except (MCPError, RuntimeError, ValidationError):
            _log.debug("the server needs the handshake")
        else:
            return
        try:
            await session.initialize()
        except MCPError as error:
            # A server that starts slowly may answer the first request after its time, and then refuse this.
            if error.code != types.UNSUPPORTED_PROTOCOL_VERSION or attempt:
                raise
        else:
            return


def _describe_cause(error: BaseException) -> str:
    """Return the message of the first error in nested groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


async def list_server_tools(client: Client | StdioClient) -> list[types.Tool]:
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

    def __init__(self, client: Client | StdioClient, enforcer: Enforcer) -> None:
        self._client = client
        self._enforcer = enforcer
        self.server: Server[Any] = Server(
            "peripety-policy-proxy",
            version=__version__,
            instructions=client.instructions,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )
        # The SDK's tracing would pass the trace context and the baggage of the client on to the server.
        self.server.middleware.clear()

    async def refresh_tools(self) -> list[types.Tool]:
        """Read the definitions of the server's tools again, and return them.

        A name that is listed twice is not a tool: only one of its definitions could be compared.
        """
        listed = await list_server_tools(self._client)
        times = Counter(tool.name for tool in listed)
        tools = [tool for tool in listed if times[tool.name] == 1]
        self._enforcer.set_listed_tools({tool.name: (tool.description, tool.input_schema) for tool in tools})
        return tools

    async def serve_stdio(self) -> None:
        """Serve the client on standard input and output until it closes them."""
        async with open_pipes() as (reader, writer):
            await serve_lines(self.server, reader, writer)

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
        self, context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments = params.arguments or {}
        if not _is_json(arguments):
            return _error_result("Refused: a number of the arguments is too large.")
        verdict = await self._enforcer.decide(params.name, arguments)
        if not verdict.is_forwarded:
            return _error_result(verdict.reason)
        try:
            wants_progress = progress_token_from_params(context.params) is not None
            result = await self._client.call_tool(
                params.name,
                arguments,
                progress_callback=context.session.report_progress if wants_progress else None,
            )
        except asyncio.CancelledError:
            raise
        except Exception:  # noqa: BLE001 - the border: the client gets a result for each call
            _log.exception("the server failed in a call")
            return _error_result("The server of the tool failed; the call may have had effects.")
        self._enforcer.read_result(params.name, arguments, result_text(result))
        return result


def _is_json(arguments: dict[str, Any]) -> bool:
    """Return False for a number such as 1e999, which would be decided as infinite and forwarded as null."""
    try:
        json.dumps(arguments, allow_nan=False)
    except ValueError:
        return False
    return True


def result_text(result: types.CallToolResult) -> str:
    """Return the text of a result, in lines."""
    return "\n".join(part.text for part in result.content if isinstance(part, types.TextContent))


def _error_result(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=True)
