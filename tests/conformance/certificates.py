"""The worked example of docs/certificates.md and a golden certificate: `make certificates` writes both.

A change in them is a change of the engine's meaning, of the random numbers or of what a certificate is, and
wants a new version of one of these.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING

from peripety import sim
from peripety.scenarios.certificates.certifying import certificate_of
from peripety.scenarios.certificates.document import encode
from peripety.scenarios.certificates.model import CertificateOptions
from peripety.scenarios.certificates.report.drawing import style
from peripety.scenarios.certificates.report.plots import plots
from peripety.scenarios.drawing.frame import standalone
from peripety.scenarios.drawing.markup import xml
from peripety.workers import Workers
from support.pages import with_output
from support.repository import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from peripety.scenarios.certificates.model import Certificate
    from peripety.sim import Program

__all__ = ["GOLDEN", "PAGE", "SMALL", "SPEC", "certificate", "example", "golden"]

SPEC = ROOT / "examples" / "scenario.json"
PAGE = ROOT / "docs" / "certificates.md"
GOLDEN = ROOT / "tests" / "conformance" / "certificate.json"
SMALL = CertificateOptions(max_runs=64, horizon=8)
"""So little that the reference core takes seconds."""

_FOLDER = ROOT / "docs" / "certificates"


def certificate(program: Program, options: CertificateOptions) -> Certificate:
    """The certificate of a program, on whichever core it was compiled."""
    with closing(Workers()) as workers:
        return asyncio.run(certificate_of(program, options, workers))


def golden(program: Program) -> bytes:
    """The file that holds the golden certificate."""
    return encode(certificate(program, SMALL)) + b"\n"


def example() -> dict[Path, bytes]:
    """The files that the worked example shows, by the core that runs here."""
    made = certificate(sim.compile(SPEC.read_bytes()), CertificateOptions())
    drawn = {
        _FOLDER / f"{name}.svg": xml(standalone(svg, style("plots"))) for name, svg in plots(made).items()
    }
    page = with_output(PAGE, "certify", str(SPEC.relative_to(ROOT)))
    return {PAGE: page, _FOLDER / "certificate.json": encode(made) + b"\n", **drawn}


def main() -> None:
    """Write everything."""
    program = sim.compile(SPEC.read_bytes())
    _FOLDER.mkdir(exist_ok=True)
    for path, content in {GOLDEN: golden(program), **example()}.items():
        path.write_bytes(content)


if __name__ == "__main__":
    main()
