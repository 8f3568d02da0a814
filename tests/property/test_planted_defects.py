"""Defects planted in good specifications are found by their right names; good ones are not called that."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest

from peripety import engine
from peripety.certification.certificate import build_certificate
from peripety.certification.options import CertificateOptions
from peripety.core.concurrency import WorkerPool
from peripety.scenario.spec_generator.generator import generate_spec
from support.engine.broken_specs import DEFECTS, plant

if TYPE_CHECKING:
    from peripety.errors import Finding

pytestmark = pytest.mark.slow(reason="analyses scenarios with thousands of planted defects")


SEED = 20
IS_NATIVE = engine.BACKEND == "native"
# Without the native core those who look ahead take minutes; what only they show is left out there.
PLAYING = engine.PERSONAS if IS_NATIVE else ("idle", "random")
SHOWN = [
    defect
    for defect in DEFECTS
    if IS_NATIVE or defect not in {"a dominant action", "choices that do not matter"}
]
PLANTED = 8 if IS_NATIVE else 1
RUNS = 512 if IS_NATIVE else 64
WINNABLE = 1_000 if IS_NATIVE else 30


def checked(document: bytes) -> list[Finding]:
    """Return all findings of a document: of the checks, or else of its certificate."""
    findings = engine.validate(document)
    if findings:
        return findings
    workers = WorkerPool()
    try:
        options = CertificateOptions(personas=PLAYING, max_runs=RUNS)
        return [*asyncio.run(build_certificate(engine.compile(document), options, workers)).findings]
    finally:
        workers.close()


@pytest.fixture(scope="module")
def missed() -> dict[str, list[str]]:
    """Return, for each defect, the other findings of each document in which it was not found."""
    found: dict[str, list[str]] = {}
    for number, defect in enumerate(SHOWN):
        found[defect] = []
        for index in range(PLANTED):
            document, codes = plant(generate_spec(SEED, number * PLANTED + index), defect, Random(index))
            said = {finding.code for finding in checked(document)}
            if not said & codes:
                found[defect].append(f"{index}: {', '.join(sorted(said)) or 'nothing'}")
    return found


@pytest.mark.timeout(600)
def test_planted_defects_are_found_by_their_right_names(missed: dict[str, list[str]]) -> None:
    planted = PLANTED * len(SHOWN)
    overlooked = {defect: said for defect, said in missed.items() if said}
    assert sum(map(len, overlooked.values())) <= 0.05 * planted, overlooked


@pytest.mark.timeout(600)
def test_no_kind_of_defect_is_mostly_overlooked(missed: dict[str, list[str]]) -> None:
    assert {defect: said for defect, said in missed.items() if 2 * len(said) > PLANTED} == {}


@pytest.mark.timeout(600)
def test_what_can_be_won_is_never_called_unwinnable() -> None:
    proofs: Counter[str] = Counter()
    winnable = index = 0
    while winnable < WINNABLE:
        program = engine.compile(generate_spec(SEED + 1, index))
        index += 1
        if program.spec.get("win_conditions"):
            winnable += 1
            proofs.update(proof.code for proof in program.prove())
    assert proofs["UNREACHABLE_WIN"] == 0
