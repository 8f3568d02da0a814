"""`peripety validate`: what is wrong with specifications."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from peripety import sim
from peripety.cli.documents import STDIN, TOO_LARGE, read_documents
from peripety.cli.failure import FOUND_WRONG, MISUSED, explain, finding_lines
from peripety.cli.output import errors, progress, results, write_json
from peripety.cli.text import printable
from peripety.errors import InvalidArgumentError, Severity

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from peripety.cli.documents import Document
    from peripety.errors import Finding

__all__ = ["validate"]


@dataclass
class _Tally:
    valid: int = 0
    invalid: int = 0
    unreadable: int = 0

    @property
    def exit_code(self) -> int:
        if self.unreadable:
            return MISUSED
        return FOUND_WRONG if self.invalid else 0


def validate(sources: list[str], *, as_json: bool) -> int:
    """Check every document of every source, print a verdict on each, and return the exit code."""
    tell = _tell_json if as_json else _tell
    tally = _Tally()
    with _progress(sources) as advance:
        for source in sources:
            try:
                _check(source, tell, tally, advance)
            except InvalidArgumentError as error:
                explain(error)
                tally.unreadable += 1
    errors().print(f"{tally.valid} valid, {tally.invalid} invalid, {tally.unreadable} unreadable")
    return tally.exit_code


def _check(
    source: str,
    tell: Callable[[Document, bool, list[Finding]], None],
    tally: _Tally,
    advance: Callable[[float], None],
) -> None:
    for document in read_documents(source):
        findings = [TOO_LARGE] if document.too_large else sim.validate(document.content)
        valid = all(finding.severity is Severity.WARNING for finding in findings)
        tally.valid += valid
        tally.invalid += not valid
        tell(document, valid, findings)
        advance(len(document.content))


def _progress(sources: list[str]) -> AbstractContextManager[Callable[[float], None]]:
    """Show how far the reading is, unless the verdicts that appear on the terminal show it."""
    if sys.stdout.isatty():
        return nullcontext(lambda _: None)
    return progress("validating", _total(sources))


def _total(sources: list[str]) -> int | None:
    """The bytes to read, as far as they are known."""
    if STDIN in sources:
        return None
    return sum(Path(source).stat().st_size for source in sources if Path(source).exists())


def _tell(document: Document, valid: bool, findings: list[Finding]) -> None:  # noqa: FBT001 - one of two tellers
    place = document.source if document.line is None else f"{document.source}:{document.line}"
    results().print(
        f"{printable(place)}: {'valid' if valid else 'invalid'}", style="green" if valid else "red"
    )
    for line in finding_lines(findings):
        results().print(line)


def _tell_json(document: Document, valid: bool, findings: list[Finding]) -> None:  # noqa: FBT001 - one of two tellers
    write_json(
        {
            "file": document.source,
            "line": document.line,
            "valid": valid,
            "findings": [
                {"code": f.code, "path": f.path, "message": f.message, "severity": f.severity.value}
                for f in findings
            ],
        }
    )
