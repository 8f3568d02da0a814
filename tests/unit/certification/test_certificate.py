"""A certificate that is computed again: the right one matches, and a forged figure is found."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.certification.certificate import (
    CertificateComparison,
    CertificationProgress,
    certify_document,
    verify_certificate,
)
from peripety.certification.options import CertificateOptions
from peripety.certification.types import encode
from peripety.errors import FailedPreconditionError, InvalidArgumentError, SpecError
from support.engine.specs import action, as_bytes
from support.scenario.batches import FEWEST, WORKERS, certified, certified_alone, contest

if TYPE_CHECKING:
    from collections.abc import Callable


SPEC = as_bytes(contest())


@pytest.fixture(scope="module")
def right() -> bytes:
    return encode(certified_alone(contest()))


async def compared(certificate: bytes, spec: bytes = SPEC) -> CertificateComparison:
    (*progress, last) = [event async for event in verify_certificate(certificate, spec, WORKERS)]
    assert all(isinstance(event, CertificationProgress) for event in progress)
    assert isinstance(last, CertificateComparison)
    return last


def forged(right: bytes, change: Callable[[Any], None]) -> bytes:
    value = json.loads(right)
    change(value)
    return engine.canonicalize(value)


def test_a_document_is_certified_in_one_call() -> None:
    assert certify_document(SPEC, FEWEST) == certified_alone(contest())
    with pytest.raises(SpecError):
        certify_document(b"{}")
    with pytest.raises(InvalidArgumentError, match=r"options\.horizon"):
        certify_document(SPEC, CertificateOptions(horizon=0))


async def test_the_right_certificate_matches(right: bytes) -> None:
    assert (await compared(right)).matches
    assert (await compared(right + b"\n")).matches


async def test_spelling_of_the_specification_does_not_matter(right: bytes) -> None:
    assert (await compared(right, json.dumps(contest(), indent=2).encode())).matches


def _lost(value: Any) -> None:
    value["personas"][1]["lost"]["count"] += 1


def _verdict(value: Any) -> None:
    value["verdict"] = "refused"


def _finding(value: Any) -> None:
    value["findings"] = [{"code": "A", "path": "", "message": "m", "severity": "warning"}]


def _drift(value: Any) -> None:
    value["drifts"][0]["per_turn"] = 0.000001


def _persona(value: Any) -> None:
    value["personas"].pop()


@pytest.mark.parametrize(
    ("change", "path"),
    [
        (_lost, "/personas/1/lost/count"),
        (_verdict, "/verdict"),
        (_finding, "/findings"),
        (_drift, "/drifts/0/per_turn"),
        (_persona, "/personas"),
    ],
)
async def test_a_forged_figure_is_named(right: bytes, change: Callable[[Any], None], path: str) -> None:
    result = await compared(forged(right, change))
    assert not result.matches
    assert [(finding.code, finding.path) for finding in result.findings] == [("CERTIFICATE_DIFFERS", path)]


async def test_what_is_said_and_what_was_computed_are_told(right: bytes) -> None:
    (finding,) = (await compared(forged(right, _verdict))).findings
    assert finding.message == 'the certificate has "refused", but the computed value is "certified"'


async def test_true_is_not_taken_for_one() -> None:
    flagged = contest(state={"a": 4, "b": 0, "c": 0, "list": []})
    emptied = action("odd", [{"op": "pop", "path": "state.list"}], params={"flag": {"type": "boolean"}})
    flagged["actions"].append(emptied)

    def number(value: Any) -> None:
        value["proofs"][0]["witness"][0]["params"]["flag"] = 1

    certificate = forged(encode(await certified(flagged)), number)
    (finding,) = (await compared(certificate, as_bytes(flagged))).findings
    assert finding.path == "/proofs/0/witness/0/params/flag"


async def test_another_specification_is_refused(right: bytes) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await compared(right, as_bytes(contest(name="Beta")))
    assert caught.value.code == "OTHER_SPEC"


async def test_a_specification_with_errors_is_refused(right: bytes) -> None:
    with pytest.raises(SpecError):
        await compared(right, b"{}")


@pytest.mark.parametrize("change", [{"engine_version": "2.0"}, {"rng_version": 99}])
async def test_the_work_of_another_engine_is_refused_with_a_way_out(
    right: bytes,
    change: dict[str, Any],
) -> None:
    with pytest.raises(FailedPreconditionError, match="certify anew") as caught:
        await compared(forged(right, lambda value: value.update(change)))
    assert caught.value.code == "OTHER_ENGINE"


async def test_options_that_nobody_could_have_asked_for_cost_nothing(right: bytes) -> None:
    with pytest.raises(InvalidArgumentError):
        await compared(forged(right, lambda value: value["options"].update(max_runs=10**9)))
