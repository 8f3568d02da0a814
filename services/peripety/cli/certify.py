"""`peripety certify`: compute or verify a fairness certificate, without a server."""

from __future__ import annotations

import math
from contextlib import closing
from typing import TYPE_CHECKING

from rich.table import Table

from peripety import sim
from peripety.cli.documents import read_specification
from peripety.cli.failure import FOUND_WRONG, finding_lines
from peripety.cli.output import require_place, results, save, tables, write_bytes, write_json
from peripety.cli.text import in_one_line
from peripety.cli.working import result_of
from peripety.scenarios.certificates import checking
from peripety.scenarios.certificates.certifying import certify as certifying
from peripety.scenarios.certificates.document import certificate_hash, encode
from peripety.scenarios.certificates.model import (
    MOST_RUNS,
    Certificate,
    CertificateOptions,
    CertificateVerdict,
)
from peripety.scenarios.certificates.report.page import page
from peripety.scenarios.checks import check_certificate_options
from peripety.sim import PERSONAS
from peripety.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from peripety.scenarios.certificates.model import PersonaReport, Rate

__all__ = ["certify", "check", "options"]

_PATIENCE = math.inf
"""Time limit for a persona, in seconds: none, because the user sees the progress and can interrupt."""


def options(
    personas: Sequence[str], seed: int | None, max_runs: int | None, horizon: int | None
) -> CertificateOptions:
    """Return the certificate options. All personas play if none is given.

    Raises:
        InvalidArgumentError: an option is out of range.
    """
    playing = tuple(persona for persona in PERSONAS if persona in personas) or PERSONAS
    asked = CertificateOptions(playing, seed, max_runs or MOST_RUNS, horizon)
    check_certificate_options(asked)
    return asked


def certify(
    source: str, asked: CertificateOptions, *, as_json: bool, out: Path | None, html: Path | None
) -> int:
    """Certify the specification in `source`, print and save the result, and return the exit code."""
    for place in (out, html):
        require_place(place)
    program = sim.compile(read_specification(source))
    with closing(Workers()) as workers:
        certificate = result_of(certifying(program, asked, workers, _PATIENCE), "certifying", Certificate)
    document = encode(certificate)
    if out is not None:
        save(document + b"\n", out)
    if html is not None:
        save(page(certificate, program.spec), html)
    if as_json:
        write_bytes(document)
    else:
        _tell(certificate, program.spec["name"], certificate_hash(document))
    return 0 if certificate.verdict is CertificateVerdict.CERTIFIED else FOUND_WRONG


def check(certificate: str, source: str, *, as_json: bool) -> int:
    """Recompute a certificate, print the differences, and return the exit code."""
    with closing(Workers()) as workers:
        events = checking.check(
            read_specification(certificate), read_specification(source), workers, _PATIENCE
        )
        compared = result_of(events, "certifying", checking.Comparison)
    if as_json:
        differing = [{"path": f.path, "message": f.message} for f in compared.findings]
        write_json({"matches": compared.matches, "findings": differing})
    else:
        results().print(
            "the certificate is right" if compared.matches else "the certificate is wrong",
            style="green" if compared.matches else "red",
        )
        for line in finding_lines(compared.findings):
            results().print(line)
    return 0 if compared.matches else FOUND_WRONG


def _tell(certificate: Certificate, name: str, identity: str) -> None:
    out = results()
    certified = certificate.verdict is CertificateVerdict.CERTIFIED
    out.print(
        f"{in_one_line(name)}: {certificate.verdict.value}",
        style="green" if certified else "red",
    )
    tables().print(_table(certificate.personas))
    band = certificate.band
    out.print(f"target: the random persona loses {band.min_fail_rate:.1%} to {band.max_fail_rate:.1%}")
    if certificate.planner_gap is not None:
        out.print(f"planning ahead is worth {100 * certificate.planner_gap:.1f} points")
    for line in finding_lines(certificate.findings):
        out.print(line)
    out.print(f"certificate {identity}")


def _table(personas: tuple[PersonaReport, ...]) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in ("persona", "runs", "lost", "95 % interval", "won", "survived", "turns per run"):
        table.add_column(column, justify="left" if column == "persona" else "right", no_wrap=True)
    for fared in personas:
        table.add_row(
            fared.persona,
            f"{fared.runs:,}",
            f"{fared.lost.value:.1%}",
            _interval(fared.lost),
            f"{fared.won.value:.1%}",
            f"{fared.survived.value:.1%}",
            f"{fared.turns / fared.runs:.1f}",
        )
    return table


def _interval(rate: Rate) -> str:
    return f"{rate.low:.1%} to {rate.high:.1%}"
