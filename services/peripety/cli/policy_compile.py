"""`peripety policy compile`: a written policy in, rules and the suite that proves them out."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from peripety.cli.embedded import services_at
from peripety.cli.failure import finding_lines
from peripety.cli.jsonify import enum_word, jsonify
from peripety.cli.output import asides, results, save, write_json
from peripety.cli.policy_input import POLICY, SCENARIOS, suite_bytes
from peripety.cli.policy_telling import (
    audit_line,
    counted,
    coverage_lines,
    failure_lines,
    mutation_lines,
    sources_words,
)
from peripety.cli.spending import model_usage_line
from peripety.cli.text import in_one_line
from peripety.client.findings import finding_from_proto
from peripety.errors import InternalError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from rich.console import Console

    from peripety.api.common.v1 import common_pb2 as common

__all__ = ["compile_policy", "require_folder"]

_PHASE = pb.CompilePolicyResponse.Progress.DESCRIPTOR.fields_by_name["phase"]


def require_folder(out: Path | None) -> None:
    """Refuse a place for the result where no folder can be made, before the work.

    Raises:
        BadParameter: it is a file, or the folder that it is to be in does not exist.
    """
    if out is not None and (out.is_file() or not out.absolute().parent.is_dir()):
        raise typer.BadParameter(f"cannot write to {out}: name a folder in a folder that exists")


def compile_policy(
    request: pb.CompilePolicyRequest, server: str | None, *, out: Path | None, as_json: bool
) -> None:
    """Compile a policy, tell how that goes and where the result is now.

    Args:
        request: what to compile; it gets an id here.
        server: `host:port` of a server; None compiles it in this process, into the configured database.
        out: a folder for the document and its suite; None for none.
        as_json: whether to print the result as a line of JSON instead.

    Raises:
        SpecError: rules and scenarios could not be brought together.
    """
    request.request_id = str(uuid4())
    compiled = asyncio.run(_compiled(request, server, asides() if as_json else results()))
    policy = compiled.policy
    if out is not None:
        out.mkdir(exist_ok=True)
        save(policy.document + b"\n", out / POLICY)
        save(suite_bytes([jsonify(one) for one in policy.scenarios]), out / SCENARIOS)
    if as_json:
        write_json(jsonify(compiled))
    else:
        results().print(f"stored as {policy.policy_id}, version {policy.policy_hash}", style="bold")


async def _compiled(
    request: pb.CompilePolicyRequest, server: str | None, out: Console
) -> pb.CompilePolicyResponse.Compiled:
    with _bar(out) as follow:
        story = _Story(out, follow)
        async with services_at(server, "gateway", "policies") as channel:
            async for event in PolicyServiceStub(channel).CompilePolicy(request):
                story.tell(event)
                if event.HasField("compiled"):
                    return event.compiled
                if event.HasField("failed"):
                    found = list(map(finding_from_proto, event.failed.findings))
                    raise SpecError("Rules and scenarios could not be brought together", found)
    raise InternalError("The policy service ended its stream without a result")


@contextmanager
def _bar(out: Console) -> Iterator[Callable[[pb.CompilePolicyResponse.Progress], None]]:
    """A bar that is there while somebody can watch it; what this gives is told how far the work is."""
    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda told: bar.update(task, completed=told.fraction, description=in_one_line(told.message))


class _Story:
    """Tells a person what happens while a policy is compiled."""

    def __init__(self, out: Console, follow: Callable[[pb.CompilePolicyResponse.Progress], None]) -> None:
        self._out = out
        self._follow = follow
        self._phase = pb.COMPILE_PHASE_UNSPECIFIED
        self._scenarios: dict[str, pb.PolicyScenario] = {}

    def tell(self, event: pb.CompilePolicyResponse) -> None:
        """Tell one event."""
        match event.WhichOneof("event"):
            case "progress":
                self._progress(event.progress)
            case "rules_written":
                rules = json.loads(event.rules_written.document).get("rules", ())
                self._print(f"  {counted(len(rules), 'rule')}")
                self._findings(event.rules_written.findings)
            case "scenarios_written":
                self._written(event.scenarios_written)
            case "verified":
                passed, failed = event.verified.passed, event.verified.failed
                self._print(f"  {passed:,} passed, {failed:,} failed", "yellow" if failed else "green")
                self._lines(failure_lines(event.verified.failures, self._scenarios), "yellow")
            case "decided":
                self._print(audit_line(event.decided))
            case "compiled":
                self._compiled(event.compiled)
            case "failed":
                self._print(f"  given up{_used(event.failed.usage)}", "red")

    def _progress(self, progress: pb.CompilePolicyResponse.Progress) -> None:
        if progress.phase != self._phase:
            word = enum_word(_PHASE, progress.phase)
            self._print(f"  {word}: {in_one_line(progress.message)}", "dim")
        self._phase = progress.phase
        self._follow(progress)

    def _written(self, written: pb.CompilePolicyResponse.ScenariosWritten) -> None:
        self._scenarios |= {one.scenario_id: one for one in written.scenarios}
        used = _used(written.turn.usage) if written.HasField("turn") else ""
        self._print(f"  {sources_words(written.scenarios)}{used}")

    def _compiled(self, compiled: pb.CompilePolicyResponse.Compiled) -> None:
        policy = compiled.policy
        rules = json.loads(policy.document)["rules"]
        cached = ", as compiled before for the same input; no model was asked" if compiled.from_cache else ""
        self._print(f"{counted(len(rules), 'rule')}, {sources_words(policy.scenarios)}{cached}", "bold")
        self._lines(coverage_lines(policy.verification.coverage))
        if policy.verification.HasField("mutation"):
            self._lines(mutation_lines(policy.verification.mutation))
        self._print(f"  {counted(len(policy.audit), 'decision')} on the way{_used(compiled.usage)}")
        self._findings(compiled.findings)

    def _findings(self, findings: Iterable[common.Finding]) -> None:
        self._lines(finding_lines([*map(finding_from_proto, findings)]), "yellow")

    def _lines(self, lines: Iterable[str], style: str | None = None) -> None:
        for line in lines:
            self._print(line, style)

    def _print(self, line: str, style: str | None = None) -> None:
        self._out.print(line, style=style)


def _used(usage: common.ModelUsage) -> str:
    return f" · {model_usage_line(usage)}" if usage.calls else ""
