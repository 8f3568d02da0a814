"""How a failure is told: one paragraph, an exit code, no traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.cli.output import errors
from peripety.cli.text import printable
from peripety.errors import InvalidArgumentError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.errors import Finding, PeripetyError

__all__ = ["FOUND_WRONG", "MISUSED", "explain", "finding_lines"]

FOUND_WRONG = 1
MISUSED = 2
_SHOWN = 20


def explain(error: PeripetyError) -> int:
    """Print what went wrong to standard error and return the exit code."""
    console = errors()
    console.print(f"error: {printable(error.message)} ({error.code})", style="red")
    if isinstance(error, SpecError):
        details: Iterable[str] = finding_lines(error.findings)
    else:
        details = (f"  {printable(v.field)}: {printable(v.reason)}" for v in error.violations)
    for line in details:
        console.print(line)
    if error.retry_after is not None:
        console.print(f"  try again in {error.retry_after:g} s")
    return (
        MISUSED
        if isinstance(error, InvalidArgumentError) and not isinstance(error, SpecError)
        else FOUND_WRONG
    )


def finding_lines(findings: Iterable[Finding]) -> list[str]:
    """Tell findings in one line each; a long list is cut, and says so."""
    lines = [
        f"  {f.severity.value} {f.code} {printable(f.path) or '/'}: {printable(f.message)}" for f in findings
    ]
    return lines if len(lines) <= _SHOWN else [*lines[:_SHOWN], f"  ... and {len(lines) - _SHOWN} more"]
