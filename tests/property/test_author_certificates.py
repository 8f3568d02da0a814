"""Almost every description becomes a scenario that earns its certificate at once.

`PERIPETY_EXAMPLES` sets a larger number of descriptions than continuous integration has time for.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from peripety import engine
from peripety.author.spec_author import author_from_text
from peripety.certification.options import CertificateOptions
from peripety.certification.types import CertificateVerdict
from support.engine.backends import backend_named, program_on
from support.examples import example_count
from support.repo.repository import ROOT
from support.scenario.batches import certified
from support.scenario.generation import descriptions

if TYPE_CHECKING:
    from peripety.certification.types import Certificate


EXAMPLES = example_count(24)
ENOUGH = CertificateOptions(max_runs=2_048)
SAMPLES = ROOT.parent / "shared" / "data" / "prompts.md"

native = pytest.mark.skipif(engine.BACKEND != "native", reason="the planner takes the core in Python minutes")


def shares(certificate: Certificate) -> dict[str, tuple[float, float]]:
    return {report.persona: (report.lost.value, report.won.value) for report in certificate.personas}


def is_good(certificate: Certificate) -> bool:
    """Return True if a scenario is certified without findings, choices matter, and some risk remains."""
    fared = shares(certificate)
    random = next(report for report in certificate.personas if report.persona == "random")
    return (
        certificate.verdict is CertificateVerdict.CERTIFIED
        and not certificate.findings
        and 0.55 <= fared["random"][0] <= 0.9
        and sum(loss.count > 0 for loss in random.losses) >= 2
        and 0.6 <= fared["par"][1] <= 0.95
        and 0.15 <= fared["curious"][1] <= 0.5
        and (certificate.planner_gap or 0) >= 0.15
    )


@native
@pytest.mark.slow(reason="certifies dozens of scenarios")
async def test_nearly_every_description_earns_a_certificate_at_once() -> None:
    failed = {}
    for text in descriptions(EXAMPLES):
        certificate = await certified(author_from_text(text), ENOUGH)
        if not is_good(certificate):
            failed[text] = (shares(certificate), [finding.code for finding in certificate.findings])
    assert len(failed) <= 0.05 * EXAMPLES, failed


@pytest.mark.slow(reason="reads sample descriptions beside the repository, if present")
@native
@pytest.mark.skipif(
    not SAMPLES.exists(),
    reason=f"sample descriptions are not beside this repository ({SAMPLES.name})",
)
async def test_sample_descriptions_earn_certificates_at_once() -> None:
    samples = re.findall(r"^\| \d+ \| (.+?) \|", SAMPLES.read_text(encoding="utf-8"), re.MULTILINE)
    assert samples
    for sample in samples:
        certificate = await certified(author_from_text(sample), ENOUGH)
        assert is_good(certificate), (sample, shares(certificate), certificate.findings)


@pytest.mark.slow(reason="measures certificates on both cores")
def test_both_cores_find_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    for name in ("python", "native"):
        core = backend_named(name)
        monkeypatch.setattr(engine, "compile", lambda text, core=core: program_on(core, text.encode()))
        written.append(
            [json.dumps(author_from_text(text), ensure_ascii=False) for text in descriptions(6, seed=1)],
        )
    python, native = written
    assert python == native
