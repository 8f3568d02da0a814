"""`peripety balance`: tune the numbers of a specification to a target loss rate, without a server."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table

from peripety import sim
from peripety.cli.documents import read_specification
from peripety.cli.failure import FOUND_WRONG, finding_fields, finding_lines
from peripety.cli.output import require_place, results, save, tables, write_json
from peripety.cli.text import printable
from peripety.cli.working import result_of
from peripety.scenarios.balancing.balancing import Balancer
from peripety.scenarios.balancing.model import CONFIRMING_RUNS, Balanced, BalanceOrder, NotBalanced, Target
from peripety.scenarios.checks import check_options
from peripety.scenarios.gate import rate_sentence
from peripety.scenarios.model import DryRunOptions
from peripety.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from peripety.scenarios.model import NumberEdit
    from peripety.sim import DryRunReport, Persona

__all__ = ["balance", "options", "target"]

_RESULTS: tuple[type[Balanced | NotBalanced], ...] = (Balanced, NotBalanced)
_TARGET = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%?\s*-\s*(\d+(?:\.\d+)?)\s*%?\s*")


def target(text: str) -> Target:
    """Parse a target range such as `30-40`, in percent.

    Raises:
        BadParameter: the text is not a range.
    """
    match = _TARGET.fullmatch(text)
    ends = [float(end) / 100 for end in match.groups()] if match else []
    if not ends or not ends[0] <= ends[1] <= 1:
        raise typer.BadParameter("--target must be two percentages, the lower one first, such as 30-40")
    return Target(*ends)


def options(persona: Persona, seed: int | None, max_runs: int | None) -> DryRunOptions:
    """Return the options of the simulation.

    Raises:
        InvalidArgumentError: an option is out of range.
    """
    asked = DryRunOptions(persona, seed, max_runs or CONFIRMING_RUNS)
    check_options(asked)
    return asked


def balance(source: str, wanted: Target, asked: DryRunOptions, *, as_json: bool, out: Path | None) -> int:
    """Balance the specification in `source`, print and save the result, and return the exit code."""
    require_place(out)
    order = BalanceOrder(read_specification(source), wanted, asked)
    with closing(Workers()) as workers:
        events = Balancer(workers).balance(order)
        result = result_of(events, "balancing", *_RESULTS)
    if isinstance(result, Balanced) and out is not None:
        save(result.document + b"\n", out)
    tell = _tell_json if as_json else _tell
    tell(result, wanted)
    return 0 if isinstance(result, Balanced) else FOUND_WRONG


def _tell(result: Balanced | NotBalanced, wanted: Target) -> None:
    out = results()
    if isinstance(result, Balanced):
        out.print(f"balanced: {rate_sentence(result.after)}", style="green")
        out.print(f"before, {rate_sentence(result.before)}; target {wanted}")
        if result.edits:
            tables().print(_table(result.edits))
        else:
            out.print("no number had to be changed")
        return
    out.print("not balanced", style="red")
    for line in finding_lines(result.findings):
        out.print(line)
    if result.closest is not None:
        out.print(f"at best {rate_sentence(result.closest)}")


def _table(edits: Sequence[NumberEdit]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("number", "before", "after", "what changed"):
        table.add_column(column, justify="right" if column in {"before", "after"} else "left", no_wrap=True)
    for edit in edits:
        table.add_row(
            printable(edit.path), f"{edit.before:.15g}", f"{edit.after:.15g}", printable(edit.summary)
        )
    return table


def _tell_json(result: Balanced | NotBalanced, wanted: Target) -> None:
    told: dict[str, Any] = {
        "balanced": isinstance(result, Balanced),
        "target": {"min_fail_rate": wanted.least, "max_fail_rate": wanted.most},
    }
    if isinstance(result, Balanced):
        told |= {
            "before": _report(result.before),
            "after": _report(result.after),
            "edits": [asdict(edit) for edit in result.edits],
            "spec": sim.parse(result.document),
        }
    else:
        told |= {
            "closest": _report(result.closest) if result.closest else None,
            "findings": list(map(finding_fields, result.findings)),
        }
    write_json(told)


def _report(report: DryRunReport) -> dict[str, Any]:
    return {
        "persona": report.persona,
        "runs": report.runs,
        "first_run": report.first_run,
        "lost": report.lost,
        "fail_rate": report.fail_rate,
    }
