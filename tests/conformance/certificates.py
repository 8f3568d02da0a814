"""The worked example of docs/reference/certificate-format.md and a golden certificate: `make certificates`
writes both.

A change in them is a change of the engine's meaning, of the random numbers or of what a certificate is, and
wants a new version of one of these.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING

from peripety import engine
from peripety.certification.certificate import build_certificate
from peripety.certification.options import CertificateOptions
from peripety.certification.types import encode
from peripety.core.concurrency import WorkerPool
from peripety.scenario.certificate.plots import draw_plots
from peripety.scenario.rendering.markup import load_style, render_xml, with_style
from support.repo.repository import ROOT, with_output

if TYPE_CHECKING:
    from pathlib import Path

    from peripety.certification.types import Certificate
    from peripety.engine import Program


SPEC = ROOT / "examples" / "scenario.json"
PAGE = ROOT / "docs" / "reference" / "certificate-format.md"
GOLDEN = ROOT / "tests" / "conformance" / "certificate.json"
SMALL = CertificateOptions(max_runs=64, horizon=8)
"""So little that the reference core takes seconds."""

_FOLDER = ROOT / "docs" / "reference" / "certificates"


def certificate(program: Program, options: CertificateOptions) -> Certificate:
    """The certificate of a program, on whichever core it was compiled."""
    with closing(WorkerPool()) as workers:
        return asyncio.run(build_certificate(program, options, workers))


def golden(program: Program) -> bytes:
    """The file that holds the golden certificate."""
    return encode(certificate(program, SMALL)) + b"\n"


def example() -> dict[Path, bytes]:
    """The files that the worked example shows, by the core that runs here."""
    made = certificate(engine.compile(SPEC.read_bytes()), CertificateOptions())
    drawn = {
        _FOLDER / f"{name}.svg": render_xml(with_style(svg, load_style("plots")))
        for name, svg in draw_plots(made).items()
    }
    page = with_output(PAGE, "certify", str(SPEC.relative_to(ROOT)))
    return {PAGE: page, _FOLDER / "certificate.json": encode(made) + b"\n", **drawn}


def main() -> None:
    """Write everything."""
    program = engine.compile(SPEC.read_bytes())
    _FOLDER.mkdir(exist_ok=True)
    for path, content in {GOLDEN: golden(program), **example()}.items():
        path.write_bytes(content)


if __name__ == "__main__":
    main()
