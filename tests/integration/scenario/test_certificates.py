"""Certificates over a real loopback connection: computed, stored, checked, deleted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

import pytest

from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub
from peripety.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError, PeripetyError
from peripety.rpc.channel import open_channel
from peripety.scenario.remote import RemoteScenarioSource
from peripety.server.app import serve
from support.engine.specs import as_bytes, chance
from support.servers.apps import config_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceAsyncStub


FEW = pb.CertificateOptions(personas=[engine.PERSONA_IDLE, engine.PERSONA_GREEDY], max_runs=64)
FAIR = as_bytes(chance(0.45))


@pytest.fixture
async def stub(tmp_path: Path) -> AsyncIterator[ScenarioServiceAsyncStub]:
    async with (
        serve(config_for(tmp_path), services={"gateway", "scenarios"}) as app,
        open_channel(app.address) as opened,
    ):
        yield ScenarioServiceStub(opened)


def certification(**fields: Any) -> pb.CertifyScenarioRequest:
    return pb.CertifyScenarioRequest(**{"request_id": str(uuid4()), "options": FEW, **fields})


async def all_of(responses: Any) -> list[Any]:
    return [response async for response in responses]


async def certificate_of(stub: ScenarioServiceAsyncStub, **fields: Any) -> pb.Certificate:
    last = (await all_of(stub.CertifyScenario(certification(**fields))))[-1]
    assert last.WhichOneof("event") == "certificate", last
    certificate: pb.Certificate = last.certificate
    return certificate


async def compiled(stub: ScenarioServiceAsyncStub) -> pb.CompiledScenario:
    request = pb.CompileScenarioRequest(request_id=str(uuid4()), spec=FAIR)
    scenario: pb.CompiledScenario = (await all_of(stub.CompileScenario(request)))[-1].compiled
    return scenario


async def test_a_specification_is_certified_persona_by_persona(stub: ScenarioServiceAsyncStub) -> None:
    events = await all_of(stub.CertifyScenario(certification(spec=FAIR)))
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    told = [event.persona for event in events if event.WhichOneof("event") == "persona"]
    certificate = events[-1].certificate
    assert list(certificate.personas) == told
    assert [report.persona for report in told] == [
        engine.PERSONA_IDLE,
        engine.PERSONA_RANDOM,
        engine.PERSONA_GREEDY,
    ]
    assert certificate.verdict == pb.CERTIFICATE_VERDICT_CERTIFIED
    assert (certificate.band.min_fail_rate, certificate.band.max_fail_rate) == (0.25, 1)
    assert sum(lost.count for lost in told[0].loss_turns) == told[0].lost.count
    fractions = [event.progress.fraction for event in events if event.HasField("progress")]
    assert fractions == sorted(fractions)


async def test_the_message_says_what_its_document_says(stub: ScenarioServiceAsyncStub) -> None:
    certificate = await certificate_of(stub, spec=FAIR)
    said = json.loads(certificate.document)
    assert said["spec_hash"] == certificate.spec_hash
    assert said["personas"][1]["lost"]["count"] == certificate.personas[1].lost.count
    assert said["options"]["max_runs"] == certificate.options.max_runs == 64


async def test_a_request_that_is_sent_again_gets_the_same_answer(stub: ScenarioServiceAsyncStub) -> None:
    request = certification(spec=FAIR)
    first = await all_of(stub.CertifyScenario(request))
    assert await all_of(stub.CertifyScenario(request)) == first
    request.after_sequence = first[-2].sequence
    assert await all_of(stub.CertifyScenario(request)) == first[-1:]


async def test_a_specification_with_errors_is_a_result(stub: ScenarioServiceAsyncStub) -> None:
    (*_, last) = await all_of(stub.CertifyScenario(certification(spec=b"{}")))
    assert {finding.code for finding in last.rejected.findings.findings} == {"MISSING_KEY"}


async def test_the_certificate_of_a_stored_scenario_is_kept_with_it(stub: ScenarioServiceAsyncStub) -> None:
    scenario = await compiled(stub)
    assert not scenario.certificate_hash
    certificate = await certificate_of(stub, scenario_id=scenario.scenario_id)
    name = certificate.certificate_hash
    kept = await stub.GetCertificate(pb.GetCertificateRequest(certificate_hash=name))
    assert kept.certificate == certificate
    read = await stub.GetScenario(pb.GetScenarioRequest(scenario_id=scenario.scenario_id))
    assert read.scenario.certificate_hash == name
    (listed,) = (await stub.ListScenarios(pb.ListScenariosRequest())).scenarios
    assert listed.certificate_hash == name
    assert (await compiled(stub)).certificate_hash == name


async def test_a_certificate_goes_with_its_scenario(stub: ScenarioServiceAsyncStub) -> None:
    scenario = await compiled(stub)
    certificate = await certificate_of(stub, scenario_id=scenario.scenario_id)
    await stub.DeleteScenario(
        pb.DeleteScenarioRequest(request_id=str(uuid4()), scenario_id=scenario.scenario_id),
    )
    with pytest.raises(NotFoundError) as caught:
        await stub.GetCertificate(pb.GetCertificateRequest(certificate_hash=certificate.certificate_hash))
    assert caught.value.code == "CERTIFICATE_NOT_FOUND"
    assert not (await compiled(stub)).certificate_hash


async def test_the_certificate_of_a_specification_is_not_kept(stub: ScenarioServiceAsyncStub) -> None:
    certificate = await certificate_of(stub, spec=FAIR)
    with pytest.raises(NotFoundError):
        await stub.GetCertificate(pb.GetCertificateRequest(certificate_hash=certificate.certificate_hash))


async def test_a_check_computes_the_certificate_again(stub: ScenarioServiceAsyncStub) -> None:
    right = (await certificate_of(stub, spec=FAIR)).document
    forged = right.replace(b'"dead_actions":[]', b'"dead_actions":["wait"]')
    for said, matches in ((right, True), (forged, False)):
        request = pb.CheckCertificateRequest(document=said, spec=FAIR)
        events = await all_of(stub.CheckCertificate(request))
        assert [event.sequence for event in events] == list(range(1, len(events) + 1))
        assert events[-1].checked.matches is matches
    (finding,) = events[-1].checked.findings
    assert (finding.code, finding.path) == ("CERTIFICATE_DIFFERS", "/dead_actions")


@pytest.mark.parametrize(
    ("change", "code", "kind"),
    [
        ((b'"rng_version":1', b'"rng_version":2'), "OTHER_ENGINE", FailedPreconditionError),
        ((b'"spec_hash":"', b'"spec_hash":"0'), "OTHER_SPEC", InvalidArgumentError),
        ((b'"version":1', b'"version":9'), "CERTIFICATE_INVALID", InvalidArgumentError),
    ],
)
async def test_what_cannot_be_checked_is_refused(
    stub: ScenarioServiceAsyncStub,
    change: tuple[bytes, bytes],
    code: str,
    kind: type[PeripetyError],
) -> None:
    other = (await certificate_of(stub, spec=FAIR)).document.replace(*change)
    with pytest.raises(kind) as caught:
        await all_of(stub.CheckCertificate(pb.CheckCertificateRequest(document=other, spec=FAIR)))
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"request_id": "x", "spec": FAIR}, "request_id"),
        ({}, "source"),
        ({"scenario_id": ""}, "scenario_id"),
        ({"spec": FAIR, "options": pb.CertificateOptions(personas=cast("Any", [99]))}, "options.personas"),
        ({"spec": FAIR, "options": pb.CertificateOptions(max_runs=63)}, "options.max_runs"),
        ({"spec": FAIR, "options": pb.CertificateOptions(max_runs=9_605)}, "options.max_runs"),
        ({"spec": FAIR, "options": pb.CertificateOptions(horizon=1_001)}, "options.horizon"),
        ({"spec": FAIR, "options": pb.CertificateOptions(seed=-1)}, "options.seed"),
    ],
)
async def test_wrong_requests_name_the_field(
    stub: ScenarioServiceAsyncStub,
    fields: dict[str, Any],
    field: str,
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await all_of(stub.CertifyScenario(certification(**fields)))
    assert [violation.field for violation in caught.value.violations] == [field]


async def test_whoever_plays_a_version_gets_its_latest_certificate_or_none(tmp_path: Path) -> None:
    async with (
        serve(config_for(tmp_path), services={"gateway", "scenarios"}) as app,
        open_channel(app.address) as channel,
    ):
        stub, source = ScenarioServiceStub(channel), RemoteScenarioSource(channel)
        scenario = await compiled(stub)
        version = (scenario.scenario_id, scenario.spec_hash)
        assert await source.get_certificate_document(*version) is None
        certificate = await certificate_of(stub, scenario_id=scenario.scenario_id)
        assert await source.get_certificate_document(*version) == certificate.document
        assert await source.get_certificate_document("scn_none", scenario.spec_hash) is None
