"""`peripety validate`: check any number of specifications, with progress and a summary; and `schema`."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from peripety.certification.options import CertificateOptions, DryRunOptions
from peripety.cli.input_documents import STDIN, iterate_specifications, read_document, total_bytes
from peripety.cli.options import Horizon, Level, MaxRuns, Persona, Player, Seed
from peripety.cli.output import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    document_lines,
    error_console,
    explain_error,
    finding_fields,
    finding_lines,
    open_output,
    printable,
    require_writable,
    result_console,
    save_file,
    write_json,
    write_lines,
)
from peripety.engine.schemas import SCENARIO_SPEC, SCENARIO_SPEC_1_1, schema_document
from peripety.errors import InvalidArgumentError
from peripety.scenario import batch
from peripety.scenario.types import ValidationLevel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from peripety.cli.input_documents import SpecLocation
    from peripety.scenario.batch import BatchOptions, DocumentVerdict


commands = typer.Typer()


_SECONDS_BETWEEN_LINES = 5.0
_MAX_CODES = 20


class SpecVersion(Enum):
    """Versions of specifications."""

    FIRST = "1.0"
    LATEST = "1.1"


class BatchTally:
    """Counter of verdicts."""

    def __init__(self) -> None:
        self.valid = self.invalid = self.unreadable = self.undecided = 0
        self._codes: Counter[str] = Counter()
        self._started = time.perf_counter()

    def add(self, verdict: DocumentVerdict) -> None:
        """Count a verdict."""
        if verdict.error is not None:
            if isinstance(verdict.error, InvalidArgumentError):
                self.unreadable += 1
            else:
                self.undecided += 1
        elif verdict.is_accepted:
            self.valid += 1
        else:
            self.invalid += 1
        self._codes.update(finding.code for finding in verdict.findings)

    @property
    def checked(self) -> int:
        """Number of specifications with a verdict."""
        return self.valid + self.invalid

    @property
    def seconds(self) -> float:
        """Elapsed time."""
        return time.perf_counter() - self._started

    @property
    def rate(self) -> float:
        """Verdicts per second."""
        return self.checked / max(self.seconds, 1e-9)

    @property
    def exit_code(self) -> int:
        """The exit code of the command."""
        if self.unreadable or self.undecided:
            return EXIT_USAGE
        return EXIT_FAILED if self.invalid else 0

    def summary_lines(self) -> Iterator[str]:
        """Yield the lines of the summary."""
        undecided = f", {self.undecided} undecided" if self.undecided else ""
        yield (
            f"{self.valid} valid, {self.invalid} invalid, {self.unreadable} unreadable{undecided}"
            f" in {self.seconds:.1f} s, {self.rate:,.0f} per second"
        )
        by_count = sorted(self._codes.items(), key=lambda item: (-item[1], item[0]))
        for code, count in by_count[:_MAX_CODES]:
            yield f"  {count} {code}"
        if len(self._codes) > _MAX_CODES:
            yield f"  ... and {len(self._codes) - _MAX_CODES} more codes"


@contextmanager
def batch_progress(tally: BatchTally, total: Callable[[], int | None]) -> Iterator[Callable[[float], None]]:
    """Show the progress of a batch.

    A terminal gets a bar, a file a line every few seconds, a short batch nothing.

    Args:
        tally: the counts.
        total: returns the number of bytes of the batch; called only if needed.

    Yields:
        A function that adds processed bytes.
    """
    if sys.stderr.isatty():
        with _progress_bar(tally, total()) as advance:
            yield advance
    else:
        yield _ProgressLines(tally, total).advance


@contextmanager
def _progress_bar(tally: BatchTally, total: int | None) -> Iterator[Callable[[float], None]]:
    # Verdicts on the same terminal must go through the console of the bar, so that it moves down.
    console = result_console() if sys.stdout.isatty() else error_console()
    columns = (BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)

        def advance(size: float) -> None:
            bar.update(
                task,
                advance=size,
                description=f"{tally.checked:,} checked, {tally.rate:,.0f} per second",
            )

        yield advance


class _ProgressLines:
    def __init__(self, tally: BatchTally, total: Callable[[], int | None]) -> None:
        self._tally = tally
        self._total_of = total
        self._total: int | None = None
        self._done = 0.0
        self._last_printed = 0.0

    def advance(self, size: float) -> None:
        """Count bytes, and print the progress if the last line is some seconds old."""
        self._done += size
        if self._tally.seconds - self._last_printed < _SECONDS_BETWEEN_LINES:
            return
        if not self._last_printed:
            self._total = self._total_of()
        self._last_printed = self._tally.seconds
        left = ""
        if self._total and self._done:
            seconds = self._last_printed * max(0.0, self._total / self._done - 1)
            left = f", about {seconds:,.0f} s left"
        error_console().print(f"{self._tally.checked:,} checked, {self._tally.rate:,.0f} per second{left}")


def _check_all(
    sources: Sequence[str],
    options: BatchOptions,
    tally: BatchTally,
    *,
    jobs: int | None,
    resume: Path | None,
    as_json: bool,
) -> None:
    tell = partial(_print_verdict_json, options.level) if as_json else _print_verdict
    with ExitStack() as stack:
        ledger = stack.enter_context(closing(batch.SqliteVerdictCache(options, resume))) if resume else None
        found = batch.validate(iterate_specifications(sources), options, threads=jobs, cache=ledger)
        verdicts = stack.enter_context(closing(found))
        advance = stack.enter_context(batch_progress(tally, partial(total_bytes, sources)))
        for place, verdict in verdicts:
            tally.add(verdict)
            if isinstance(verdict.error, InvalidArgumentError):
                explain_error(verdict.error)
            else:
                tell(place, verdict)
            advance(place.size)


def _interrupted_message(resume: Path | None) -> str:
    if resume is None:
        return "interrupted; add --resume FILE to store verdicts and to continue from them"
    return f"interrupted; run the same command to continue from the verdicts in {printable(str(resume))}"


def _lines_of(place: SpecLocation) -> Callable[[str], int | None] | None:
    """Return the lines of the file of a verdict; None if the document is only a part of it."""
    if place.line is not None or place.source == STDIN:
        return None
    try:
        return document_lines(read_document(place.source).content)
    except InvalidArgumentError:
        return None  # the file has vanished meanwhile


def _print_verdict(place: SpecLocation, verdict: DocumentVerdict) -> None:
    lines = _lines_of(place) if verdict.findings else None
    if verdict.error is not None:
        reason = f"  {verdict.error.code}: {printable(verdict.error.message)}"
        write_lines([f"{place}: undecided", reason], style="yellow")
    elif verdict.is_accepted:
        write_lines(
            [f"{place}: valid", *finding_lines(verdict.findings, verdict.total, lines=lines)], style="green"
        )
    else:
        write_lines(
            [f"{place}: invalid", *finding_lines(verdict.findings, verdict.total, lines=lines)], style="red"
        )


def _print_verdict_json(level: ValidationLevel, place: SpecLocation, verdict: DocumentVerdict) -> None:
    line: dict[str, Any] = {
        "file": place.source,
        "line": place.line,
        "valid": verdict.is_accepted,
        "findings": list(map(finding_fields, verdict.findings)),
    }
    if place.id is not None:
        line["id"] = place.id
    if verdict.total > len(verdict.findings):
        line["total"] = verdict.total
    if level > ValidationLevel.STATIC:
        line["spec_hash"] = verdict.spec_hash
    if verdict.dry_run is not None:
        line["dry_run"] = {**asdict(verdict.dry_run), "fail_rate": verdict.dry_run.fail_rate}
    if verdict.certificate is not None:
        line["certificate"] = json.loads(verdict.certificate)
    if verdict.error is not None:
        line["error"] = {"code": verdict.error.code, "message": verdict.error.message}
    write_json(line)


@commands.command()
def validate(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="JSON, JSON Lines or Parquet (columns spec, id) file, or folder; use - for standard input.",
        ),
    ],
    level: Annotated[Level, typer.Option(help="Checks to run.")] = Level.STATIC,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=256, help="Number of threads. [default: 2 per core]"),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Store verdicts in this file, and skip specifications that have one.",
        ),
    ] = None,
    persona: Player = Persona.RANDOM,
    seed: Seed = None,
    max_runs: MaxRuns = None,
    horizon: Horizon = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each verdict as a line of JSON.")] = False,
) -> None:
    """Check specifications.

    Exit code 0 if all are valid, 1 if one is not, 2 if one cannot be read. Verdicts are printed in any order,
    each with its file and line. Identical specifications are checked once.
    """
    # The persona applies to the dry-run; a certificate covers all personas.
    played, measured = DryRunOptions(), CertificateOptions()
    options = batch.BatchOptions(
        ValidationLevel[level.name],
        DryRunOptions(persona.value, seed, max_runs or played.max_runs, horizon),
        CertificateOptions(
            seed=seed,
            max_runs=min(max_runs or measured.max_runs, measured.max_runs),
            horizon=horizon,
        ),
    )
    tally = BatchTally()
    try:
        _check_all(files, options, tally, jobs=jobs, resume=resume, as_json=as_json)
    except KeyboardInterrupt:
        error_console().print(_interrupted_message(resume))
        raise typer.Exit(EXIT_INTERRUPTED) from None
    for line in tally.summary_lines():
        error_console().print(line)
    raise typer.Exit(tally.exit_code)


@commands.command()
def schema(
    version: Annotated[
        SpecVersion, typer.Option("--version", help="Version of the specification.")
    ] = SpecVersion.LATEST,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write to a file. [default: standard output]"),
    ] = None,
) -> None:
    """Write the JSON Schema of specifications.

    Editors use it to complete and check a specification. With --out, prints the line that refers to the
    schema: add it to the specification. The key $schema is ignored, and changes no hash.
    """
    require_writable(out)
    document = dict(schema_document(SCENARIO_SPEC_1_1 if version is SpecVersion.LATEST else SCENARIO_SPEC))
    document["properties"] = {"$schema": {"type": "string"}, **document["properties"]}
    content = json.dumps(document, ensure_ascii=False, indent=2).encode() + b"\n"
    if out is None:
        with open_output(None) as file:
            file.write(content)
        return
    save_file(content, out)
    place = out.resolve()
    result_console().print(
        f'wrote {printable(str(place))}; begin a specification with: "$schema": "./{out.name}",'
    )
