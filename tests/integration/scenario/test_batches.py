"""Batches over a real loopback connection."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.client import AsyncClient
from peripety.client.errors import DeadlineExceeded, InvalidArgument
from peripety.server.app import serve
from support.engine.specs import as_bytes, spec
from support.scenario.batches import (
    BYTES,
    CERTIFIED,
    DICE,
    EASY,
    GOOD,
    WRONG,
    named,
    playing_otherwise,
    spaced,
    verdicts,
)
from support.servers.apps import config_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from peripety.engine.executor import Executor


PLAYED = pb.ValidationOptions(
    level=pb.VALIDATION_LEVEL_DRY_RUN,
    dry_run=pb.DryRunOptions(max_runs=DICE.dry_run.max_runs),
)
STATIC = pb.ValidationOptions(level=pb.VALIDATION_LEVEL_STATIC)


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[AsyncClient]:
    async with (
        serve(config_for(tmp_path), services={"gateway", "scenarios"}) as app,
        AsyncClient(app.address) as client,
    ):
        yield client


async def all_of(found: AsyncIterator[pb.SpecVerdict]) -> dict[str, pb.SpecVerdict]:
    every = [verdict async for verdict in found]
    by_id = {verdict.item_id: verdict for verdict in every}
    assert len(by_id) == len(every)
    return by_id


async def test_verdicts_are_those_of_a_batch_without_a_server(client: AsyncClient) -> None:
    documents = [
        ("good", GOOD),
        ("same", spaced(GOOD, 1)),
        ("easy", EASY),
        ("wrong", WRONG),
        ("bytes", BYTES),
    ]
    found = await all_of(client.validate(documents, PLAYED))
    for name, expected in verdicts(documents, DICE).items():
        assert (found[name].accepted, found[name].spec_hash) == (expected.is_accepted, expected.spec_hash)
        assert [f.code for f in found[name].findings.findings] == [f.code for f in expected.findings]
        assert found[name].dry_run.runs == (expected.dry_run.runs if expected.dry_run else 0)


async def test_a_certificate_comes_with_its_fields(client: AsyncClient) -> None:
    asked = pb.CertificateOptions(personas=[engine.PERSONA_IDLE, engine.PERSONA_RANDOM], max_runs=64)
    options = pb.ValidationOptions(
        level=pb.VALIDATION_LEVEL_CERTIFICATE,
        dry_run=PLAYED.dry_run,
        certificate=asked,
    )
    found = await all_of(client.validate([("good", GOOD), ("easy", EASY)], options))
    expected = verdicts([("good", GOOD)], CERTIFIED)["good"]
    assert found["good"].certificate.document == expected.certificate
    assert found["good"].certificate.spec_hash == found["good"].spec_hash == expected.spec_hash
    assert [report.persona for report in found["good"].certificate.personas] == list(asked.personas)
    assert not found["easy"].HasField("certificate")


async def test_more_than_fits_into_a_message_is_split(client: AsyncClient) -> None:
    large = b"[" + b" " * 800_000
    documents = [(str(index), large if index % 300 == 0 else WRONG) for index in range(1_200)]
    found = await all_of(client.validate(documents, STATIC))
    assert len(found) == len(documents)
    assert not any(verdict.accepted for verdict in found.values())


async def test_a_document_larger_than_any_message_has_a_verdict(client: AsyncClient) -> None:
    documents = [("large", b"[" + b" " * 20_000_000), ("good", GOOD)]
    found = await all_of(client.validate(documents, STATIC))
    assert [finding.code for finding in found["large"].findings.findings] == ["DOCUMENT_TOO_LARGE"]
    assert found["good"].accepted


async def test_an_item_that_fails_leaves_the_others_alone(
    client: AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def defective(name: str, _worker: Executor) -> None:
        if name == "odd":
            raise ZeroDivisionError

    playing_otherwise(monkeypatch, defective)
    documents = [("", GOOD), ("x" * 257, GOOD), ("odd", named("odd")), ("good", named("good"))]
    found = await all_of(client.validate(documents, PLAYED))
    assert found[""].error.violations[0].field == "item_id"
    assert found["x" * 257].error.reason == "INVALID_ARGUMENT"
    assert found["odd"].error.reason == "INTERNAL"
    assert found["good"].accepted


async def test_a_document_that_takes_long_delays_no_other(
    client: AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others_are_done = threading.Event()

    async def long(name: str, worker: Executor) -> None:
        while name == "long" and not others_are_done.is_set():
            await worker.run(others_are_done.wait, 0.01)

    playing_otherwise(monkeypatch, long)
    documents = [(name, named(name)) for name in ("long", *map(str, range(100)))]
    order = []
    async for verdict in client.validate(documents, PLAYED):
        order.append(verdict.item_id)
        if len(order) == len(documents) - 1:
            others_are_done.set()
    assert order[-1] == "long"


@pytest.mark.slow(reason="fills every buffer of a connection")
async def test_a_client_that_does_not_read_is_not_read_from(client: AsyncClient) -> None:
    everything = 20_000
    sent = 0
    full_of_faults = as_bytes(spec(actions=[{"oops": number} for number in range(60)]))

    def documents() -> Iterator[tuple[str, bytes]]:
        nonlocal sent
        while sent < everything:
            sent += 1
            yield str(sent), full_of_faults

    found = client.validate(documents(), STATIC)
    first = await anext(found)
    assert len(first.findings.findings) == 50
    before = -1
    while sent != before:
        before = sent
        await asyncio.sleep(0.05)
    assert sent < everything / 2
    assert len(await all_of(found)) == everything - 1


async def test_a_call_that_is_cancelled_begins_nothing_more(
    client: AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = []
    release = threading.Event()

    async def counting(name: str, worker: Executor) -> None:
        played.append(name)
        await worker.run(release.wait, 30)

    playing_otherwise(monkeypatch, counting)
    documents = [(name, named(name)) for name in map(str, range(500))]
    with pytest.raises(DeadlineExceeded):
        await all_of(client.validate(documents, PLAYED, timeout=0.5))
    # The cancellation reaches the server later than the error reaches its client.
    await asyncio.sleep(2)
    release.set()
    at_once = len(played)
    found = await all_of(client.validate([("good", GOOD)], PLAYED))
    assert found["good"].accepted
    assert len(played) <= at_once + 1 < 50


async def test_what_the_documents_raise_arrives_where_verdicts_are_taken(client: AsyncClient) -> None:
    def broken() -> Iterator[tuple[str, bytes]]:
        yield "good", GOOD
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await all_of(client.validate(broken(), STATIC))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (pb.ValidationOptions(level=99), "level"),  # type: ignore[arg-type]  # no level
        (pb.ValidationOptions(dry_run=pb.DryRunOptions(max_runs=1)), "dry_run.max_runs"),
        (pb.ValidationOptions(certificate=pb.CertificateOptions(max_runs=1)), "certificate.max_runs"),
    ],
)
async def test_options_that_nothing_can_be_checked_with_are_refused(
    client: AsyncClient,
    options: pb.ValidationOptions,
    field: str,
) -> None:
    with pytest.raises(InvalidArgument, match=field):
        await all_of(client.validate([("good", GOOD)], options))


async def test_a_call_without_a_message_ends(client: AsyncClient) -> None:
    assert not await all_of(client.validate([]))
