"""`peripety policy compile`, and the inputs of the policy commands.

It turns a written policy into rules and a test suite. Inputs are folders, documents, suites, and ids of
stored policies.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from peripety.cli.embedded_services import services_at
from peripety.cli.input_documents import STDIN, open_input
from peripety.cli.options import MaxCost, MaxTime, MaxTokens, Model, Server
from peripety.cli.output import (
    MAX_INPUT_BYTES,
    deadline_of,
    make_budget,
    one_line,
    person_console,
    printable,
    result_console,
    save_file,
    write_json,
)
from peripety.cli.render.policy import live_policy_view
from peripety.cli.runs import Follow, RunFollower, resumed_compilation
from peripety.engine import compile_policy
from peripety.errors import InternalError, InvalidArgumentError, Severity, SpecError
from peripety.policy.authoring.judge import CONTESTED_CODE
from peripety.policy.authoring.sentence_report import PARTIAL_CODE, UNREAD_CODE, summarize_sentences
from peripety.policy.explanation import list_closed_tools
from peripety.rpc.proto_json import from_json, to_json
from peripety.rpc.status import finding_from_proto

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Iterable, Sequence

    from rich.console import Console


commands = typer.Typer()


POLICY_FILE, SCENARIOS_FILE = "policy.json", "scenarios.json"
"""File names of a compiled policy and its suite in a folder."""

CONSTITUTION_FILE = "constitution.md"
"""File name of the written policy in a folder."""

_TOOLS_FILE = "tools.json"
_HANDWRITTEN_FILE, _FOUNDATION_FILE = "handwritten.json", "foundation.json"
_STORED_POLICY = re.compile(r"(?P<id>pol_[0-9a-f]{8,64})(@(?P<hash>[0-9a-f]{64}))?")
_MAX_BYTES = 16 * MAX_INPUT_BYTES
_SHOWN_TOOLS = 20


@dataclass(frozen=True, slots=True)
class PolicySources:
    """Sources of a policy to compile; None for a source that does not exist.

    Attributes:
        constitution: the written policy.
        tools: the tools that the policy covers.
        handwritten: scenarios that must hold.
        foundation: invariants and lists.
    """

    constitution: str
    tools: str
    handwritten: str | None = None
    foundation: str | None = None

    def to_request(self) -> pb.CompilePolicyRequest:
        """Return the request, without its id and its options.

        Raises:
            InvalidArgumentError: a file cannot be read.
        """
        request = pb.CompilePolicyRequest(constitution=read_text_file(self.constitution))
        request.tools.extend(from_json(pb.ToolAnnotation, _read_json(self.tools), self.tools))
        if self.handwritten is not None:
            request.handwritten_scenarios.extend(_read_suite(self.handwritten))
        if self.foundation is not None:
            request.foundation = _read_bytes(self.foundation)
        return request


@dataclass(frozen=True, slots=True)
class PolicyInput:
    """A policy, and scenarios for it.

    Attributes:
        policy: the policy document, or the id of a stored policy.
        scenarios: the scenarios; None for those stored with the policy.
    """

    policy: pb.PolicySource
    scenarios: Sequence[pb.PolicyScenario] | None

    def required_scenarios(self) -> Sequence[pb.PolicyScenario]:
        """Return the scenarios; empty for those stored with the policy.

        Raises:
            BadParameter: no scenarios are given, and the policy is not stored.
        """
        if self.scenarios is None and not self.policy.policy_id:
            raise typer.BadParameter("scenarios are missing: add --scenarios FILE")
        return self.scenarios or ()


def policy_sources(
    folder: Path | None,
    constitution: str | None,
    tools: str | None,
    handwritten: str | None,
    foundation: str | None,
) -> PolicySources:
    """Return the sources that the options name. A file option overrides the file of that kind in the folder.

    Raises:
        BadParameter: the policy or the tools are missing, or the folder is not a folder.
    """
    if folder is not None:
        if not folder.is_dir():
            raise typer.BadParameter(
                f"{folder} is not a folder; to use files, add --constitution FILE and --tools FILE",
            )
        constitution = constitution or str(folder / CONSTITUTION_FILE)
        tools = tools or str(folder / _TOOLS_FILE)
        handwritten = handwritten or _existing(folder / _HANDWRITTEN_FILE)
        foundation = foundation or _existing(folder / _FOUNDATION_FILE)
        if not Path(tools).exists() and tools == str(folder / _TOOLS_FILE):
            raise typer.BadParameter(
                f"{tools} is missing: the tools that the policy covers. Write it from an MCP server:"
                f" peripety policy tools --name NAME -o {tools} -- SERVER"
            )
    if constitution is None or tools is None:
        raise typer.BadParameter("input is missing: add a folder, or --constitution FILE and --tools FILE")
    if [constitution, tools, handwritten, foundation].count(STDIN) > 1:
        raise typer.BadParameter("only one file can be standard input")
    return PolicySources(constitution, tools, handwritten, foundation)


def policy_input(argument: str, scenarios: str | None = None) -> PolicyInput:
    """Return the policy that an argument names, and scenarios for it.

    Args:
        argument: a compiled folder, a policy document, `-`, or a stored policy as `ID` or `ID@HASH`.
        scenarios: a file with scenarios; None for those in the folder or stored with the policy.

    Raises:
        BadParameter: the folder has no policy document.
    """
    given = _read_suite(scenarios) if scenarios is not None else None
    path = Path(argument)
    if path.is_dir():
        if not (path / POLICY_FILE).exists():
            raise typer.BadParameter(
                f"{path} has no {POLICY_FILE}; write it with: peripety policy compile {path} -o DIR",
            )
        if given is None and (path / SCENARIOS_FILE).exists():
            given = _read_suite(str(path / SCENARIOS_FILE))
        return PolicyInput(pb.PolicySource(document=_read_bytes(str(path / POLICY_FILE))), given)
    stored = _STORED_POLICY.fullmatch(argument)
    if stored and not path.exists():
        return PolicyInput(pb.PolicySource(policy_id=stored["id"], policy_hash=stored["hash"] or ""), given)
    return PolicyInput(pb.PolicySource(document=_read_bytes(argument)), given)


def format_suite(scenarios: Sequence[dict[str, Any]]) -> bytes:
    """Return the content of a suite file, indented so that it can be edited."""
    return json.dumps(scenarios, ensure_ascii=False, indent=2).encode() + b"\n"


def _read_suite(file: str) -> list[pb.PolicyScenario]:
    return from_json(pb.PolicyScenario, _read_json(file), file)


def _existing(path: Path) -> str | None:
    return str(path) if path.exists() else None


def _read_json(file: str) -> Any:
    try:
        return json.loads(read_text_file(file))
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(
            f"cannot read {printable(file)}: not JSON: {error}", code="FILE_INVALID"
        ) from None


def read_text_file(file: str) -> str:
    """Return the text of a file or of standard input.

    Raises:
        InvalidArgumentError: the file is too long or not UTF-8.
    """
    try:
        return _read_bytes(file).decode()
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f"cannot read {printable(file)}: not UTF-8 (byte {error.start + 1}); save or convert it as UTF-8",
            code="BAD_TEXT",
        ) from None


def _read_bytes(file: str) -> bytes:
    with open_input(file) as stream:
        content = stream.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise InvalidArgumentError(f"cannot read {printable(file)}: longer than 16 MiB", code="FILE_INVALID")
    return content


def require_folder(out: Path | None) -> None:
    """Check that an output folder can be created, before the work starts.

    Raises:
        BadParameter: a file has this path, or its folder is not writable.
    """
    if out is None:
        return
    if any(path.is_file() for path in (out, *out.parents)):
        raise typer.BadParameter(f"cannot write to {out}: choose a folder")
    existing = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
    if not os.access(existing, os.W_OK):
        raise typer.BadParameter(f"cannot write to {out}: {existing} is not writable; choose another folder")


async def _compile(
    request: pb.CompilePolicyRequest | str,
    server: str | None,
    out: Console,
    follower: RunFollower,
    folder: Path | None,
) -> pb.CompilePolicyResponse.Compiled:
    """Compile a policy, or follow the run with this id.

    If only contested scenarios are left, the rules and the scenarios are written to the folder all the same.
    """
    # The text of a followed run is not known here; the summary then counts the findings alone.
    constitution = "" if isinstance(request, str) else request.constitution
    with live_policy_view(out, constitution) as story:
        async with services_at(server, "gateway", "policies") as channel:
            first: AsyncIterable[pb.CompilePolicyResponse]
            if isinstance(request, str):
                first = resumed_compilation(channel, request, 0)
            else:
                timeout = deadline_of(request.budget)
                first = PolicyServiceStub(channel).CompilePolicy(request, timeout=timeout)
            async for event in follower.events(first, partial(resumed_compilation, channel)):
                story.show(event)
                if event.HasField("compiled"):
                    return event.compiled
                if event.HasField("failed"):
                    found = list(map(finding_from_proto, event.failed.findings))
                    if any(one.code in {UNREAD_CODE, PARTIAL_CODE} for one in found):
                        summary = summarize_sentences(constitution, found)
                        raise SpecError(f"{summary}; nothing is stored", found)
                    if {one.code for one in found if one.severity is Severity.ERROR} == {CONTESTED_CODE}:
                        where = _save_rules(folder, event.failed.document, event.failed.scenarios)
                        raise SpecError(f"a person has to decide what is contested; {where}", found)
                    raise SpecError("rules and scenarios could not be reconciled", found)
    raise InternalError("the policy service ended its stream without a result")


def _save_rules(folder: Path | None, document: bytes, scenarios: Iterable[pb.PolicyScenario]) -> str:
    """Write rules and scenarios to a folder, if there is one, and return what was done."""
    if folder is None:
        return "nothing is stored or written"
    folder.mkdir(parents=True, exist_ok=True)
    save_file(document + b"\n", folder / POLICY_FILE)
    save_file(format_suite([to_json(one) for one in scenarios]), folder / SCENARIOS_FILE)
    return f"nothing is stored; rules and scenarios are written to {printable(str(folder))}"


@commands.command("compile")
def compile_(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]",
            help="Folder with constitution.md, tools.json, optionally handwritten.json and foundation.json.",
        ),
    ] = None,
    constitution: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Written policy; use - for standard input."),
    ] = None,
    tools: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Tools that the policy covers: a JSON list."),
    ] = None,
    handwritten: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Handwritten scenarios that must pass: a JSON list."),
    ] = None,
    foundation: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Invariants and lists that precede the rules: {invariants, lists} in JSON.",
        ),
    ] = None,
    version_of: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Store the result as the latest version of this policy. [default: a new policy]",
        ),
    ] = None,
    allow_partial: Annotated[
        bool,
        typer.Option(
            "--allow-partial",
            help="Store a policy with sentences that rules express only in part. Calls of the tools that"
            " such a sentence is about are then denied, or wait for a person.",
        ),
    ] = False,
    model: Model = "",
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    max_time: MaxTime = None,
    follow: Follow = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Write policy.json and scenarios.json to this folder. [default: no folder]",
        ),
    ] = None,
    server: Server = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the stored policy as one line of JSON."),
    ] = False,
) -> None:
    """Compile a written policy into rules and a test suite.

    Stores both. Exit code 0 if rules express every word of every sentence, and decide every scenario of the
    suite as it expects. Exit code 1 otherwise: the findings give the reasons, and nothing is stored. If the
    only fault is scenarios that expect a refusal where the rules allow the call, --out is written, so that
    you can decide. The work is a run; see `peripety generate`.
    """
    require_folder(out)
    order: pb.CompilePolicyRequest | str
    if follow is None:
        order = policy_sources(folder, constitution, tools, handwritten, foundation).to_request()
        order.request_id = str(uuid4())
        order.policy_id = version_of or ""
        order.model = model
        order.options.allow_partial = allow_partial
        order.budget.CopyFrom(
            make_budget(tokens=max_tokens or 0, dollars=max_cost or 0.0, seconds=max_time or 0.0),
        )
    elif folder is not None or constitution is not None or tools is not None:
        raise typer.BadParameter("--follow RUN continues a run; leave out the sources")
    else:
        order = follow
    follower = RunFollower("peripety policy compile --follow", server)
    shown = person_console() if as_json else result_console()
    compiled = follower.wait(_compile(order, server, shown, follower, out))
    policy = compiled.policy
    _save_rules(out, policy.document, policy.scenarios)
    if as_json:
        write_json(to_json(compiled))
    else:
        closed = list_closed_tools(compile_policy(policy.document))
        if closed:
            names = [f"{server_name}/{name}" for server_name, name in closed[:_SHOWN_TOOLS]]
            if len(closed) > _SHOWN_TOOLS:
                names.append(f"and {len(closed) - _SHOWN_TOOLS:,} more")
            listed = one_line(", ".join(names))
            result_console().print(f"  closed, because no sentence allows them: {listed}")
        result_console().print(f"stored as {policy.policy_id}, version {policy.policy_hash}", style="bold")
