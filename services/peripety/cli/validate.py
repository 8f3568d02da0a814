"""`peripety validate`: check any number of specifications."""

from __future__ import annotations

import json
from contextlib import ExitStack, closing
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from peripety.cli.failure import INTERRUPTED, explain, finding_fields, finding_lines
from peripety.cli.output import errors, write_json, write_lines
from peripety.cli.sources import bytes_in, specifications
from peripety.cli.tally import Tally, watched
from peripety.cli.text import printable
from peripety.errors import InvalidArgumentError
from peripety.scenarios import batch
from peripety.scenarios.certificates.model import CertificateOptions
from peripety.scenarios.model import DryRunOptions, Level
from peripety.sim import PERSONAS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from peripety.cli.sources import Place
    from peripety.scenarios.batch import BatchOptions, Verdict
    from peripety.sim import Persona

__all__ = ["options", "validate"]


def options(
    level: str, persona: Persona, seed: int | None, max_runs: int | None, horizon: int | None
) -> BatchOptions:
    """Return the options of the checks.

    The persona applies to the dry-run; a certificate covers all personas.
    """
    played, measured = DryRunOptions(), CertificateOptions()
    return batch.BatchOptions(
        Level[level],
        DryRunOptions(persona, seed, max_runs or played.max_runs, horizon),
        CertificateOptions(PERSONAS, seed, min(max_runs or measured.max_runs, measured.max_runs), horizon),
    )


def validate(
    sources: Sequence[str], options: BatchOptions, *, jobs: int | None, resume: Path | None, as_json: bool
) -> int:
    """Check the specifications of all sources, print each verdict, and return the exit code.

    Args:
        sources: files, folders, `-` for standard input.
        options: the checks.
        jobs: number of threads; default two per core.
        resume: file that stores verdicts between runs.
        as_json: True to print lines of JSON.
    """
    tally = Tally()
    try:
        _check(sources, options, tally, jobs=jobs, resume=resume, as_json=as_json)
    except KeyboardInterrupt:
        errors().print(_interrupted(resume))
        return INTERRUPTED
    for line in tally.lines():
        errors().print(line)
    return tally.exit_code


def _check(
    sources: Sequence[str],
    options: BatchOptions,
    tally: Tally,
    *,
    jobs: int | None,
    resume: Path | None,
    as_json: bool,
) -> None:
    tell = partial(_tell_json, options.level) if as_json else _tell
    with ExitStack() as stack:
        ledger = stack.enter_context(closing(batch.Ledger(options, resume))) if resume else None
        found = batch.validate(specifications(sources), options, threads=jobs, memory=ledger)
        verdicts = stack.enter_context(closing(found))
        advance = stack.enter_context(watched(tally, partial(bytes_in, sources)))
        for place, verdict in verdicts:
            tally.add(verdict)
            if isinstance(verdict.error, InvalidArgumentError):
                explain(verdict.error)
            else:
                tell(place, verdict)
            advance(place.size)


def _interrupted(resume: Path | None) -> str:
    if resume is None:
        return "interrupted; add --resume FILE to store verdicts and to continue from them"
    return f"interrupted; run the same command to continue from the verdicts in {printable(str(resume))}"


def _tell(place: Place, verdict: Verdict) -> None:
    if verdict.error is not None:
        reason = f"  {verdict.error.code}: {printable(verdict.error.message)}"
        write_lines([f"{place}: undecided", reason], style="yellow")
    elif verdict.accepted:
        write_lines([f"{place}: valid", *finding_lines(verdict.findings, verdict.total)], style="green")
    else:
        write_lines([f"{place}: invalid", *finding_lines(verdict.findings, verdict.total)], style="red")


def _tell_json(level: Level, place: Place, verdict: Verdict) -> None:
    line: dict[str, Any] = {
        "file": place.source,
        "line": place.line,
        "valid": verdict.accepted,
        "findings": list(map(finding_fields, verdict.findings)),
    }
    if place.id is not None:
        line["id"] = place.id
    if verdict.total > len(verdict.findings):
        line["total"] = verdict.total
    if level > Level.STATIC:
        line["spec_hash"] = verdict.spec_hash
    if verdict.dry_run is not None:
        line["dry_run"] = {**asdict(verdict.dry_run), "fail_rate": verdict.dry_run.fail_rate}
    if verdict.certificate is not None:
        line["certificate"] = json.loads(verdict.certificate)
    if verdict.error is not None:
        line["error"] = {"code": verdict.error.code, "message": verdict.error.message}
    write_json(line)
