"""Tools of an agent file: commands of this machine and MCP servers, with a policy in front of them."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.api.gateway.v1 import gateway_pb2 as gateway
from peripety.cli.agent_file import COMMAND_SERVER, MAX_RESULT_BYTES
from peripety.cli.output import error_console, one_line
from peripety.cli.policy_approvals import serve_approvals
from peripety.cli.policy_enforce import policy_document_path, require_mcp
from peripety.engine import compile_policy
from peripety.errors import InvalidArgumentError
from peripety.policy.enforcement.approvals import ApprovalQueue, PendingApproval
from peripety.policy.enforcement.context import CallContext, process_owner
from peripety.policy.enforcement.decision_log import DecisionLog
from peripety.policy.enforcement.enforcement_point import Enforcer, PolicyFile

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from peripety.cli.agent_file import AgentFile, CommandTool


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool of an MCP server.

    Attributes:
        client: the connection to the server.
        server_name: name of the server in the agent file and in its policy.
        definition: the tool as its server lists it.
    """

    client: Any
    server_name: str
    definition: Any

    def message(self) -> gateway.Tool:
        """Return the tool as a model sees it."""
        return gateway.Tool(
            name=self.definition.name,
            description=self.definition.description or "",
            input_schema=json.dumps(self.definition.input_schema).encode(),
        )

    async def run_call(self, call: gateway.ToolCall) -> gateway.ToolResult:
        """Call the tool. A failure becomes an error result, so that the model can react to it."""
        try:
            result = await self.client.call_tool(self.definition.name, json.loads(call.arguments or b"{}"))
        except Exception as error:  # noqa: BLE001 - the border: the model gets a result for each call
            text, is_error = f"The server of the tool failed: {error}; the call may have had effects.", True
        else:
            text, is_error = require_mcp().result_text(result), bool(result.is_error)
            if len(text.encode()) > MAX_RESULT_BYTES:
                text, is_error = f"The tool returned more than {MAX_RESULT_BYTES:,} bytes.", True
        return gateway.ToolResult(call_id=call.call_id, text=text, is_error=is_error)


class AgentTools:
    """Tools of an agent, and the enforcement points in front of them.

    Args:
        agent: the agent file.
        served: the tools of its MCP servers, by name.
        enforcers: the enforcement point of each server; empty without a policy.
        context: the context of the policy.
        log: the decision log; None without a policy.
    """

    def __init__(
        self,
        agent: AgentFile,
        served: Mapping[str, McpTool],
        enforcers: Mapping[str, Enforcer],
        context: CallContext,
        log: DecisionLog | None,
    ) -> None:
        self._runners: dict[str, CommandTool | McpTool] = {**agent.commands, **served}
        self._served = served
        self._enforcers = enforcers
        self._context = context
        self._log = log
        self._heard: list[str] = []

    def has_runner(self, name: str) -> bool:
        """Return True if a command or a server runs the tool."""
        return name in self._runners

    def begin(self, run_id: str, texts: list[str]) -> None:
        """Store the run of later decisions, and what its user has written."""
        if self._log is not None:
            self._log.details["run_id"] = run_id
        if texts != self._heard:
            # Hearing the same words again would confirm a second call with them.
            self._heard = texts
            for text in texts:
                self._context.hear_user(text)

    async def refuse(self, call: gateway.ToolCall) -> gateway.ToolResult | None:
        """Decide a call; return the result that refuses it, or None if it may be run."""
        if not self._enforcers:
            return None
        try:
            arguments = json.loads(call.arguments or b"{}")
        except ValueError:
            arguments = None
        if not isinstance(arguments, dict):
            reason = "Refused: the arguments are not a JSON object."
        else:
            verdict = await self._enforcers[self._server_of(call.name)].decide(call.name, arguments)
            if verdict.is_forwarded:
                return None
            reason = verdict.reason
        return gateway.ToolResult(call_id=call.call_id, text=reason, is_error=True)

    async def run_call(self, call: gateway.ToolCall) -> gateway.ToolResult:
        """Run a call that was not refused."""
        result = await self._runners[call.name].run_call(call)
        if self._enforcers:
            arguments = json.loads(call.arguments or b"{}")
            self._enforcers[self._server_of(call.name)].read_result(call.name, arguments, result.text)
        return result

    def _server_of(self, name: str) -> str:
        return self._served[name].server_name if name in self._served else COMMAND_SERVER


@asynccontextmanager
async def open_tools(
    agent: AgentFile, approvals: Path | None, approval_time: float
) -> AsyncIterator[AgentTools]:
    """Connect the MCP servers of an agent file, and put its policy in front of all tools.

    The tools that a phase names are added to the manifest.

    Args:
        agent: the agent file.
        approvals: receives the addresses and the token of the approvals; None for the default file.
        approval_time: seconds that a person has to approve a call.

    Raises:
        InvalidArgumentError: two tools have the same name, or the policy is invalid.
        FailedPreconditionError: a server cannot be started or reached.
    """
    async with AsyncExitStack() as opened:
        served: dict[str, McpTool] = {}
        own = {tool.name for tool in agent.manifest.tools}
        listed: dict[str, dict[str, tuple[str | None, Any]]] = {
            COMMAND_SERVER: {
                tool.name: (tool.description, json.loads(tool.input_schema)) for tool in agent.manifest.tools
            }
        }
        for name, command in agent.servers.items():
            mcp = require_mcp()
            client = await opened.enter_async_context(mcp.connect_server(command, agent.directory))
            tools = await mcp.list_server_tools(client)
            listed[name] = {tool.name: (tool.description, tool.input_schema) for tool in tools}
            for tool in tools:
                if tool.name in own or tool.name in served:
                    raise InvalidArgumentError(
                        f"servers.{name}: the tool {tool.name} exists twice; give each tool its own name"
                    )
                served[tool.name] = McpTool(client, name, tool)
        named = {name for phase in agent.manifest.phases for name in phase.tool_names}
        agent.manifest.tools.extend(tool.message() for name, tool in served.items() if name in named)
        context = CallContext(time.time, process_owner(), hears_user=True)
        if agent.policy is None:
            yield AgentTools(agent, served, {}, context, None)
            return
        source = PolicyFile(policy_document_path(agent.policy), compile_policy)
        try:
            context.require_supplied(source.current())
        except OSError as error:
            raise InvalidArgumentError(
                f"policy: cannot read {policy_document_path(agent.policy)}: {error.strerror};"
                " compile it with peripety policy compile",
                code="FILE_INVALID",
            ) from None
        log = DecisionLog(agent.decision_log)
        opened.callback(log.close)
        context.restore(log.take_restored())
        queue = ApprovalQueue(approval_time, time.time)
        enforcers = {}
        for name, definitions in listed.items():
            enforcers[name] = Enforcer(source, name, (), queue, time.time, log, context=context)
            enforcers[name].set_listed_tools(definitions)
        await opened.enter_async_context(serve_approvals(queue, approvals))
        telling = asyncio.create_task(_announce_waiting(queue, approvals))
        opened.callback(telling.cancel)
        yield AgentTools(agent, served, enforcers, context, log)


async def _announce_waiting(queue: ApprovalQueue, approvals: Path | None) -> None:
    """Print each call that starts to wait, with the command that approves it."""
    where = f" --approvals {approvals}" if approvals else ""
    async for event in queue.watch():
        if isinstance(event, PendingApproval):
            for reason in event.reasons:
                error_console().print(f"   {one_line(reason)}", style="dim")
            error_console().print(
                f"   waits for a person: peripety policy approve {event.approval_id}{where}", style="bold"
            )
