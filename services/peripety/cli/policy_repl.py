"""`peripety policy repl`: calls that are typed, with their decisions and reasons."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Annotated, Any

import typer

from peripety import engine
from peripety.cli.output import one_line, result_console
from peripety.cli.policy_author import policy_input
from peripety.cli.policy_check import Policy
from peripety.cli.prompt import prompt_line
from peripety.engine import ToolRequest
from peripety.errors import InvalidArgumentError, PeripetyError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.engine.policies.policy import Policy as CompiledPolicy


commands = typer.Typer()

_HELP = (
    "Type a call: TOOL NAME=VALUE … or SERVER/TOOL {JSON}. Other lines:",
    "  tools        the tools with their arguments",
    "  roles A B    roles of the caller from now on; roles alone: none",
    "  quit         the end; so does the end of input",
)
_STYLES = {"allow": "green", "deny": "red", "escalate": "yellow"}


@commands.command()
def repl(
    policy: Policy,
    role: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE", help="Role of the caller; may be repeated. [default: no role]"),
    ] = None,
) -> None:
    """Type calls, and see the decision of each with its reasons.

    Lists the deciding rule, and the rules about the same tool that did not apply.
    """
    document = policy_input(policy).policy.document
    if not document:
        raise typer.BadParameter("POLICY must be a folder or a document, not the id of a stored policy")
    session = _CallPrompt(engine.compile_policy(document), role or ())
    for line in _HELP:
        result_console().print(line, style="dim")
    while (typed := prompt_line("> ")) is not None and typed not in {"quit", "exit"}:
        try:
            session.answer(typed)
        except PeripetyError as error:
            result_console().print(one_line(str(error)), style="red")


class _CallPrompt:
    """Prompt for calls of one policy.

    Args:
        policy: the policy.
        roles: the roles of the caller.
    """

    def __init__(self, policy: CompiledPolicy, roles: Sequence[str]) -> None:
        self._policy = policy
        self._roles = tuple(roles)
        self._tools = {(tool["server_name"], tool["tool_name"]): tool for tool in policy.spec["tools"]}

    def answer(self, line: str) -> None:
        """Print the answer to a line.

        Raises:
            PeripetyError: the line is not a call.
        """
        word, _, rest = line.partition(" ")
        if word == "tools":
            for (server, tool), entry in self._tools.items():
                names = ", ".join((entry.get("input_schema") or {}).get("properties", {}))
                result_console().print(f"  {one_line(server)}/{one_line(tool)} {one_line(names)}")
        elif word == "roles":
            self._roles = tuple(rest.split())
        elif word in {"help", "?"}:
            for text in _HELP:
                result_console().print(text, style="dim")
        elif word:
            self._decide(word, rest.strip())

    def _decide(self, name: str, written: str) -> None:
        server, tool = self._find_tool(name)
        request = ToolRequest(server, tool, _read_arguments(written), self._roles)
        result = self._policy.decide(request)
        decision = result.decision.value
        out = result_console()
        out.print(f"{decision} by {one_line(result.rule_id) or 'no rule'}", style=_STYLES[decision])
        for reason in result.reasons:
            out.print(f"  {one_line(reason)}")
        for rule in self._other_rules(server, tool, result.rule_id):
            out.print(f"  not decided by {one_line(rule['id'])}: {rule['then']}", style="dim")

    def _find_tool(self, name: str) -> tuple[str, str]:
        server, _, tool = name.rpartition("/")
        found = [key for key in self._tools if key[1] == tool and server in {"", key[0]}]
        if len(found) == 1:
            return found[0]
        if server:
            return server, tool
        said = "several servers have it; write SERVER/TOOL" if found else "type `tools` for the list"
        raise InvalidArgumentError(f"call: tool {name!r} cannot be selected: {said}")

    def _other_rules(self, server: str, tool: str, deciding: str) -> Iterator[dict[str, Any]]:
        """Yield the other rules whose condition names the tool."""
        for rule in self._policy.spec["rules"]:
            when = rule["when"]
            is_about = server in when.get("servers", (server,)) and tool in when.get("tools", (tool,))
            if is_about and rule["id"] != deciding:
                yield rule


def _read_arguments(written: str) -> dict[str, Any]:
    """Return the arguments of a call: a JSON object, or words NAME=VALUE with JSON values or plain texts."""
    if not written or written.startswith("{"):
        return _to_object(written or "{}")
    found: dict[str, Any] = {}
    for word in _split(written):
        name, equals, value = word.partition("=")
        if not equals:
            raise InvalidArgumentError(f"call: {word!r} is not NAME=VALUE; write a JSON object instead")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def _split(written: str) -> list[str]:
    try:
        return shlex.split(written)
    except ValueError as error:
        raise InvalidArgumentError(f"call: a quotation mark is not closed: {error}") from error


def _to_object(written: str) -> dict[str, Any]:
    try:
        value = json.loads(written)
    except ValueError as error:
        raise InvalidArgumentError(f"call: the arguments are not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidArgumentError("call: the arguments must be an object")
    return value
