"""Error output: one paragraph and an exit code, without a traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.cli.output import errors
from peripety.cli.text import in_one_line, printable
from peripety.errors import InvalidArgumentError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peripety.errors import Finding, PeripetyError

__all__ = ["FOUND_WRONG", "INTERRUPTED", "MISUSED", "explain", "finding_fields", "finding_lines"]

FOUND_WRONG = 1
MISUSED = 2
INTERRUPTED = 130
_SHOWN = 20


def explain(error: PeripetyError) -> int:
    """Print an error to standard error and return the exit code."""
    console = errors()
    console.print(f"error: {printable(error.message)} ({error.code})", style="red")
    if isinstance(error, SpecError):
        details: Iterable[str] = finding_lines(error.findings)
    else:
        details = (f"  {printable(v.field)}: {printable(v.reason)}" for v in error.violations)
    for line in details:
        console.print(line)
    if error.retry_after is not None:
        console.print(f"  retry in {error.retry_after:g} s")
    return (
        MISUSED
        if isinstance(error, InvalidArgumentError) and not isinstance(error, SpecError)
        else FOUND_WRONG
    )


def finding_lines(findings: Sequence[Finding], total: int | None = None, *, indent: str = "  ") -> list[str]:
    """Format findings as lines, with one remedy per kind. A long list is truncated, with a note.

    Args:
        findings: the findings, or the first of them.
        total: the number of all findings, if it is larger.
        indent: the prefix of each line.
    """
    lines = []
    told = set()
    for found in findings[:_SHOWN]:
        place = in_one_line(found.path) or "/"
        lines.append(f"{indent}{found.severity.value} {found.code} {place}: {in_one_line(found.message)}")
        if found.remedy and found.code not in told:
            lines.append(f"{indent}  fix: {found.remedy}")
        told.add(found.code)
    left = max(total or 0, len(findings)) - min(len(findings), _SHOWN)
    return lines if left <= 0 else [*lines, f"{indent}... and {left} more"]


def finding_fields(finding: Finding) -> dict[str, str]:
    """Return a finding as JSON fields, the same for every command."""
    return {
        "code": finding.code,
        "path": finding.path,
        "message": finding.message,
        "severity": finding.severity.value,
        "remedy": finding.remedy,
    }
