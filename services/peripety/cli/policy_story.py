"""Progress output of a policy compilation, with a live status bar on a terminal."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from peripety.api.policy.v1 import policy_pb2 as pb
from peripety.cli.failure import finding_lines
from peripety.cli.jsonify import enum_word
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

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.console import Console

    from peripety.api.common.v1 import common_pb2 as common

__all__ = ["PolicyStory", "live_policy_story"]

_PHASE = pb.CompilePolicyResponse.Progress.DESCRIPTOR.fields_by_name["phase"]


@contextmanager
def live_policy_story(out: Console) -> Iterator[PolicyStory]:
    """Yield a progress view. The bar is shown only on a terminal."""
    columns = (BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=out, transient=True, disable=not out.is_terminal) as bar:
        task = bar.add_task("", total=1.0)

        def follow(told: pb.CompilePolicyResponse.Progress) -> None:
            bar.update(task, completed=told.fraction, description=in_one_line(told.message))

        yield PolicyStory(out, follow)


class PolicyStory:
    """Console output of the events of a policy compilation.

    Args:
        out: the console.
        follow: called with each progress event.
    """

    def __init__(
        self, out: Console, follow: Callable[[pb.CompilePolicyResponse.Progress], None] = lambda _: None
    ) -> None:
        self._out = out
        self._follow = follow
        self._phase = pb.COMPILE_PHASE_UNSPECIFIED
        self._scenarios: dict[str, pb.PolicyScenario] = {}

    def tell(self, event: pb.CompilePolicyResponse) -> None:
        """Print one event."""
        match event.WhichOneof("event"):
            case "progress":
                self._progress(event.progress)
            case "rules_written":
                rules = json.loads(event.rules_written.document).get("rules", ())
                self._print(f"    {counted(len(rules), 'rule')}")
                self._findings(event.rules_written.findings)
            case "scenarios_written":
                self._written(event.scenarios_written)
            case "verified":
                passed, failed = event.verified.passed, event.verified.failed
                self._print(f"    {passed:,} passed, {failed:,} failed", "yellow" if failed else "green")
                self._lines(failure_lines(event.verified.failures, self._scenarios), "yellow")
            case "decided":
                self._print(audit_line(event.decided))
            case "compiled":
                self._compiled(event.compiled)
            case "failed":
                self._print(f"  given up{_used(event.failed.usage)}", "red")

    def _progress(self, progress: pb.CompilePolicyResponse.Progress) -> None:
        if progress.phase != self._phase:
            self._print(f"  {enum_word(_PHASE, progress.phase)}", "dim")
        self._phase = progress.phase
        self._follow(progress)

    def _written(self, written: pb.CompilePolicyResponse.ScenariosWritten) -> None:
        self._scenarios |= {one.scenario_id: one for one in written.scenarios}
        used = _used(written.turn.usage) if written.HasField("turn") else ""
        if written.scenarios:
            self._print(f"    {sources_words(written.scenarios)}{used}")

    def _compiled(self, compiled: pb.CompilePolicyResponse.Compiled) -> None:
        policy = compiled.policy
        rules = json.loads(policy.document)["rules"]
        cached = ", cached for the same input; no model was called" if compiled.from_cache else ""
        self._print(f"{counted(len(rules), 'rule')}, {sources_words(policy.scenarios)}{cached}", "bold")
        self._lines(coverage_lines(policy.verification.coverage))
        if policy.verification.HasField("mutation"):
            self._lines(mutation_lines(policy.verification.mutation))
        self._print(f"  {counted(len(policy.audit), 'decision')} recorded{_used(compiled.usage)}")
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
