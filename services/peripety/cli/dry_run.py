"""`peripety dry-run`: simulate a specification, without a model and without a server."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING

from peripety import sim
from peripety.cli.documents import read_specification
from peripety.cli.output import progress, results, write_json
from peripety.cli.text import printable

if TYPE_CHECKING:
    from peripety.sim import DryRunReport, Persona, Program

__all__ = ["dry_run"]

_PIECE_SECONDS = 0.1


def dry_run(source: str, *, runs: int, persona: Persona, seed: int | None, as_json: bool) -> None:
    """Simulate the specification in `source` and print the report."""
    program = sim.compile(read_specification(source))
    report = _play(program, runs=runs, persona=persona, seed=seed)
    if as_json:
        write_json({**asdict(report), "fail_rate": report.fail_rate, "spec_hash": program.spec_hash})
    else:
        _tell(report, wanted=program.spec["negativity_budget"]["min_fail_rate"])


def _play(program: Program, *, runs: int, persona: Persona, seed: int | None) -> DryRunReport:
    """Run the simulation in chunks, because the native core handles Ctrl-C only between two calls."""
    with progress("simulating", total=runs) as advance:
        report = program.dry_run(runs=1, persona=persona, seed=seed)
        piece = 1
        while report.runs < runs:
            started = time.perf_counter()
            played = min(piece, runs - report.runs)
            more = program.dry_run(runs=played, first_run=report.runs, persona=persona, seed=seed)
            report = report.merged(more)
            advance(played)
            if time.perf_counter() - started < _PIECE_SECONDS:
                piece *= 2
    return report


def _tell(report: DryRunReport, *, wanted: float) -> None:
    out = results()
    out.print(
        f"{report.runs} runs of at most {report.horizon} turns, persona {report.persona}, core {sim.BACKEND}"
    )
    out.print(f"  lost {report.fail_rate:.1%} of them; the scenario requires at least {wanted:.1%}")
    out.print(f"  lost {report.lost}, won {report.won}, survived {report.survived}, errored {report.errored}")
    for condition, count in report.losses.items():
        out.print(f"    lost by {printable(condition)}: {count}")
    for error in report.errors:
        out.print(
            f"    {error.code} at {printable(error.rule)}, {error.count} times: {printable(error.message)}"
        )
