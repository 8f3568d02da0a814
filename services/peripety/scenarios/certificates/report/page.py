"""HTML page of a certificate: its verdict, its plots with their figures, and the command to verify it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.scenarios.certificates.document import certificate_hash, encode
from peripety.scenarios.certificates.report.drawing import style
from peripety.scenarios.certificates.report.figures import tables
from peripety.scenarios.certificates.report.plots import plots
from peripety.scenarios.drawing.markup import Element, element, html, percent, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from peripety.scenarios.certificates.model import Certificate

__all__ = ["page"]


def page(certificate: Certificate, spec: Mapping[str, Any]) -> bytes:
    """Render the report in UTF-8; equal certificates result in equal bytes.

    Args:
        certificate: the certificate.
        spec: the certified specification, for its name.
    """
    name = str(spec["name"])
    return html(
        element(
            "html",
            element(
                "head",
                element("meta", charset="utf-8"),
                element("meta", name="viewport", content="width=device-width, initial-scale=1"),
                element("title", f"{name}: {certificate.verdict.value}"),
                element("style", style("page"), style("plots")),
            ),
            element("body", element("main", *_sections(certificate, name))),
            lang="en",
        )
    )


def _sections(certificate: Certificate, name: str) -> Iterator[Element]:
    yield element("h1", element("bdi", name))
    yield element("p", *_verdict(certificate))
    yield from _findings(certificate)
    figures = tables(certificate)
    for plot, svg in plots(certificate).items():
        yield element(
            "figure",
            element("figcaption", svg.findtext("title", "")),
            svg,
            element("details", element("summary", "The figures"), _wide(figures.pop(plot))),
        )
    yield element("h2", "What was done, and what happened")
    yield from map(_wide, figures.values())
    yield from _proofs(certificate)
    yield from _identity(certificate)


def _verdict(certificate: Certificate) -> Iterator[Element | str]:
    verdict, band = certificate.verdict.value, certificate.band
    yield element("strong", f"{verdict.capitalize()}.", class_=verdict)
    yield (
        f" The specification wants the random persona to lose {percent(band.min_fail_rate)} to"
        f" {percent(band.max_fail_rate)} of its runs."
    )
    if certificate.planner_gap is not None:
        points = f"{100 * abs(certificate.planner_gap):.1f}"
        less = "more" if certificate.planner_gap < 0 else "less"
        yield f" The planner loses {points} points {less} of them than the random persona."


def _findings(certificate: Certificate) -> Iterator[Element]:
    if not certificate.findings:
        return
    yield element("h2", "Findings")
    yield element(
        "ul",
        *(
            element(
                "li",
                element("strong", f"{found.severity.value} {found.code}", class_=found.severity.value),
                " ",
                element("code", found.path or "/"),
                ": ",
                element("bdi", found.message),
                *([element("div", f"Fix: {found.remedy}")] if found.remedy else []),
            )
            for found in certificate.findings
        ),
    )


def _proofs(certificate: Certificate) -> Iterator[Element]:
    if not certificate.proofs:
        return
    yield element("h2", "Proofs")
    for proof in certificate.proofs:
        claim, place = element("strong", proof.code), element("code", proof.path)
        yield element("p", claim, " ", place, ": ", element("bdi", proof.argument))
        if proof.witness:
            calls = (element("li", element("bdi", call.action_id or "nothing")) for call in proof.witness)
            yield element("details", element("summary", "A run that proves it"), element("ol", *calls))


def _identity(certificate: Certificate) -> Iterator[Element]:
    options = certificate.options
    yield element("h2", "Identity of the certificate")
    yield _wide(
        table(
            "These inputs result in the same figures",
            ("what", "value"),
            [
                ("certificate", certificate_hash(encode(certificate))),
                ("specification", certificate.spec_hash),
                (
                    "engine",
                    f"semantics {certificate.engine_version}, random numbers {certificate.rng_version}",
                ),
                ("seed", str(options.seed)),
                ("most runs of a persona", str(options.max_runs)),
                ("most turns of a run", str(options.horizon)),
            ],
        )
    )
    command = element("code", "peripety certify --check CERTIFICATE SPECIFICATION")
    yield element("p", "To compute it again: ", command)


def _wide(figures: Element) -> Element:
    """Return a table in a container that scrolls horizontally, also with the keyboard."""
    name = figures.findtext("caption", "")
    return element("div", figures, class_="wide", tabindex="0", role="region", aria_label=name)
