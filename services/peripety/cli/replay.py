"""`peripety replay`: verify a session bundle, without a server."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import IO, TYPE_CHECKING, Any

from peripety import sim
from peripety.cli.documents import opened, size_of
from peripety.cli.failure import FOUND_WRONG, INTERRUPTED, finding_fields, finding_lines
from peripety.cli.output import errors, progress, results, write_json
from peripety.cli.text import in_one_line
from peripety.sessions.bundles.format import header_fields
from peripety.sessions.bundles.verifying import Verification

if TYPE_CHECKING:
    from peripety.sessions.bundles.verifying import Verdict

__all__ = ["replay"]

_SHOWN_HASH = 12


def replay(source: str, *, as_json: bool) -> int:
    """Replay the session of a bundle, print the result, and return the exit code."""
    try:
        with opened(source) as file:
            verdict = _verdict(file, size_of(source))
    except KeyboardInterrupt:
        errors().print("interrupted")
        return INTERRUPTED
    if as_json:
        write_json(_fields(verdict))
    else:
        _tell(verdict)
    return 0 if verdict.right else FOUND_WRONG


def _verdict(file: IO[bytes], size: int | None) -> Verdict:
    verification = Verification(file)
    shown = 0
    with progress("replaying", size) as advance:
        for _ in verification.turns():
            if size is not None:
                advance(file.tell() - shown)
                shown = file.tell()
    return verification.verdict


def _tell(verdict: Verdict) -> None:
    out = results()
    out.print("the bundle is right" if verdict.right else "the bundle is wrong", style=_colour(verdict))
    header = verdict.header
    if header is not None:
        certificate = header.certificate_hash
        out.print(
            f"  {in_one_line(header.scenario_id)}, specification {header.spec_hash[:_SHOWN_HASH]},"
            f" {'no certificate' if certificate is None else f'certificate {certificate[:_SHOWN_HASH]}'},"
            f" written by {in_one_line(header.exported_by)}"
        )
        out.print(
            f"  {verdict.turns:,} of {header.turns:,} turns replayed on the {sim.BACKEND} core,"
            f" {verdict.mismatches:,} of them differ; chain {header.chain_hash[:_SHOWN_HASH]}"
        )
    for line, defects in groupby(verdict.defects, key=attrgetter("line")):
        for told in finding_lines([defect.finding for defect in defects], indent=f"  line {line}: "):
            out.print(told)


def _colour(verdict: Verdict) -> str:
    return "green" if verdict.right else "red"


def _fields(verdict: Verdict) -> dict[str, Any]:
    return {
        "right": verdict.right,
        "core": sim.BACKEND,
        "turns": verdict.turns,
        "mismatches": verdict.mismatches,
        "header": None if verdict.header is None else header_fields(verdict.header),
        "findings": [{"line": d.line, **finding_fields(d.finding)} for d in verdict.defects],
    }
