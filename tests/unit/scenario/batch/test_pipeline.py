"""Batches: one verdict for each document of any kind, without effect on other documents.

Batches beside an event loop: bounded in both directions, and stopped when the consumer leaves.
"""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import aclosing
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from peripety import engine
from peripety.certification.certificate import build_certificate
from peripety.certification.options import DryRunOptions
from peripety.certification.types import encode
from peripety.errors import Finding, InvalidArgumentError, ResourceExhaustedError, Severity
from peripety.scenario import batch
from peripety.scenario.batch import MAX_FINDINGS, BatchOptions, DocumentVerdict
from peripety.scenario.batch.pipeline import validate_stream
from peripety.scenario.batch.validator import FairThreadPool
from peripety.scenario.batch.verdicts import build_verdict
from peripety.scenario.types import ValidationLevel
from support.engine.specs import as_bytes, chance, program, spec
from support.scenario.batches import (
    BYTES,
    CERTIFIED,
    DICE,
    EASY,
    GOOD,
    WORKERS,
    WRONG,
    named,
    playing_otherwise,
    spaced,
    verdicts,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from peripety.engine.executor import Executor


STATIC = BatchOptions()
FOUR = [("good", GOOD), ("easy", EASY), ("wrong", WRONG), ("bytes", BYTES)]


def test_each_document_is_judged_as_if_it_were_alone() -> None:
    found = verdicts(FOUR, DICE)
    assert {name: verdict.is_accepted for name, verdict in found.items()} == {
        "good": True,
        "easy": False,
        "wrong": False,
        "bytes": False,
    }
    assert found["good"].dry_run == program_of(GOOD).dry_run(runs=64)
    assert found["good"].spec_hash == program_of(GOOD).spec_hash
    assert {finding.code for finding in found["easy"].findings} == {"TOO_EASY", "IMPOSSIBLE_LOSS"}
    assert list(found["wrong"].findings) == engine.validate(WRONG)
    assert (found["bytes"].spec_hash, found["bytes"].findings[0].code) == ("", "INVALID_UTF8")


def program_of(data: bytes) -> engine.Program:
    return engine.compile(data)


def test_the_level_says_how_much_is_checked() -> None:
    nowhere = as_bytes(spec(loss_conditions=[{"id": "a", "when": {"<": [{"var": "state.x"}, 0]}}] * 2))
    documents = [("nowhere", nowhere), ("easy", EASY)]
    levels = (ValidationLevel.SCHEMA, ValidationLevel.STATIC, ValidationLevel.DRY_RUN)
    accepted = {level: verdicts(documents, BatchOptions(level)) for level in levels}
    assert accepted[ValidationLevel.SCHEMA]["nowhere"].is_accepted
    assert not accepted[ValidationLevel.STATIC]["nowhere"].is_accepted
    assert accepted[ValidationLevel.STATIC]["easy"].is_accepted
    assert not accepted[ValidationLevel.DRY_RUN]["easy"].is_accepted


def test_the_highest_level_gives_the_certificate_that_the_document_gets_alone() -> None:
    found = verdicts([("good", GOOD), ("easy", EASY)], CERTIFIED)
    alone = asyncio.run(build_certificate(program_of(GOOD), CERTIFIED.certificate, WORKERS))
    assert found["good"].certificate == encode(alone)
    assert set(found["good"].findings) == set(alone.findings)
    assert (found["easy"].certificate, found["easy"].findings[0].code) == (None, "TOO_EASY")


def test_options_of_the_dry_run_are_obeyed() -> None:
    how = DryRunOptions(persona="idle", seed=5, max_runs=100, horizon=2)
    (verdict,) = verdicts([("good", GOOD)], BatchOptions(ValidationLevel.DRY_RUN, how)).values()
    assert verdict.dry_run is not None
    assert (verdict.dry_run.persona, verdict.dry_run.seed, verdict.dry_run.horizon) == ("idle", 5, 2)
    assert verdict.dry_run.runs <= 100


def test_many_findings_are_counted_and_the_worst_are_told() -> None:
    warnings = [Finding(f"W{index}", "", "may be", Severity.WARNING) for index in range(MAX_FINDINGS)]
    verdict = build_verdict("", [*warnings, Finding("E", "", "is")])
    assert verdict.findings[0].code == "E"
    assert (len(verdict.findings), verdict.total) == (MAX_FINDINGS, MAX_FINDINGS + 1)
    assert not verdict.is_accepted


def test_what_could_not_be_read_passes_through() -> None:
    unread = DocumentVerdict(error=InvalidArgumentError("it is gone", code="UNREADABLE"))
    found = dict(batch.validate([("unread", unread), ("good", GOOD)], STATIC))
    assert found["unread"] is unread
    assert found["good"].is_accepted


def test_what_is_the_same_is_played_once(monkeypatch: pytest.MonkeyPatch) -> None:
    played = []

    async def counting(name: str, _worker: Executor) -> None:
        played.append(name)

    playing_otherwise(monkeypatch, counting)
    documents = [((name, spaces), spaced(named(name), spaces)) for spaces in range(40) for name in "abcde"]
    found = verdicts(documents, DICE, threads=4)
    assert sorted(played) == list("abcde")
    assert all(found[name, spaces] == found[name, 0] for name, spaces in found)


def test_findings_of_the_same_bytes_are_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = []
    check_all = engine.validate_many

    def counting(documents: list[bytes], threads: int | None = None) -> list[engine.ValidationResult]:
        checked.extend(documents)
        return check_all(documents, threads)

    monkeypatch.setattr(engine, "validate_many", counting)
    documents = [(index, WRONG) for index in range(300)]
    list(batch.validate(documents, STATIC, threads=1))
    assert len(checked) < 10


def test_a_document_that_never_ends_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    released = []

    async def stuck(name: str, worker: Executor) -> None:
        if name == "stuck":
            released.append(await worker.run(release.wait, 30))

    playing_otherwise(monkeypatch, stuck)
    documents = [(name, named(name)) for name in ("a", "stuck", *map(str, range(200)))]
    order = []
    for name, _ in batch.validate(documents, DICE, threads=2):
        order.append(name)
        if len(order) == len(documents) - 1:
            release.set()
    assert order[-1] == "stuck"
    assert released == [True]


def test_one_thread_goes_on_with_others_between_the_pieces_of_a_long_document(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others_are_done = threading.Event()

    async def long(name: str, worker: Executor) -> None:
        while name == "long" and not others_are_done.is_set():
            await worker.run(time.sleep, 0.005)

    playing_otherwise(monkeypatch, long)
    documents = [(name, named(name)) for name in ("long", "a", "b", "c")]
    order = []
    for name, _ in batch.validate(documents, DICE, threads=1):
        order.append(name)
        if len(order) == len(documents) - 1:
            others_are_done.set()
    assert order[-1] == "long"


def test_a_document_that_uses_up_its_time_is_an_error_and_no_verdict() -> None:
    documents = [("slow", GOOD), ("wrong", WRONG)]
    found = verdicts(documents, BatchOptions(ValidationLevel.DRY_RUN, seconds=1e-9))
    error = found["slow"].error
    assert isinstance(error, ResourceExhaustedError)
    assert error.code == "DRY_RUN_TOO_SLOW"
    assert not found["slow"].is_accepted
    assert found["wrong"].error is None


def test_an_error_is_tried_again_by_the_next_batch(tmp_path: object) -> None:
    hasty = BatchOptions(ValidationLevel.DRY_RUN, DICE.dry_run, seconds=1e-9)
    ledger = batch.SqliteVerdictCache(hasty)
    assert verdicts([("good", GOOD)], hasty, cache=ledger)["good"].error
    assert verdicts([("good", GOOD)], DICE, cache=ledger)["good"].is_accepted
    ledger.close()


def test_a_defect_is_an_error_of_the_one_document_that_shows_it(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def defective(name: str, _worker: Executor) -> None:
        if name == "odd":
            raise ZeroDivisionError("private words")

    playing_otherwise(monkeypatch, defective)
    found = verdicts([(name, named(name)) for name in ("a", "odd", "b")], DICE)
    assert found["odd"].error is not None
    assert found["odd"].error.code == "INTERNAL"
    assert "private words" not in found["odd"].error.message + caplog.text
    assert found["a"].is_accepted
    assert found["b"].is_accepted


def test_a_defect_in_checking_is_an_error_of_the_one_document_that_shows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    check_all = engine.validate_many

    def defective(documents: list[bytes], threads: int | None = None) -> list[engine.ValidationResult]:
        if BYTES in documents:
            raise RecursionError
        return check_all(documents, threads)

    monkeypatch.setattr("peripety.engine.validate_many", defective)
    found = verdicts(FOUR, STATIC, threads=1)
    assert found["bytes"].error is not None
    assert found["good"].is_accepted
    assert found["wrong"].findings


def test_no_more_is_read_than_is_taken() -> None:
    read = 0

    def endless() -> Iterator[tuple[int, bytes]]:
        nonlocal read
        while True:
            read += 1
            yield read, b"{}"

    found = batch.validate(endless(), STATIC, threads=1)
    next(found)
    before = -1
    while read != before:
        before = read
        time.sleep(0.03)
    assert 0 < read < 1_500
    assert len(list(islice(found, 3_000))) == 3_000
    found.close()


def test_a_document_is_judged_while_the_next_one_is_not_there_yet() -> None:
    arrives = threading.Event()

    def slow() -> Iterator[tuple[str, bytes]]:
        yield "first", GOOD
        assert arrives.wait(30)
        yield "second", WRONG

    found = batch.validate(slow(), STATIC)
    assert next(found)[0] == "first"
    arrives.set()
    assert [name for name, _ in found] == ["second"]


def test_what_the_source_raises_comes_after_what_it_gave() -> None:
    def broken() -> Iterator[tuple[str, bytes]]:
        yield "good", GOOD
        raise OSError("gone")

    found = batch.validate(broken(), STATIC)
    assert next(found)[0] == "good"
    with pytest.raises(OSError, match="gone"):
        next(found)


def test_closing_ends_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    played = []

    async def counting(name: str, worker: Executor) -> None:
        played.append(name)
        await worker.run(time.sleep, 0.01)

    playing_otherwise(monkeypatch, counting)
    found = batch.validate([(name, named(str(name))) for name in range(500)], DICE, threads=1)
    next(found)
    found.close()
    time.sleep(0.05)
    before = len(played)
    time.sleep(0.05)
    assert len(played) == before < 500


def test_no_documents_are_no_verdicts() -> None:
    assert not list(batch.validate([], DICE))


def test_the_runs_are_those_of_a_plain_dry_run_whatever_the_detail() -> None:
    drifting = as_bytes(chance(0.6, max_positive_drift=0.5))
    (verdict,) = verdicts([("drifting", drifting)], DICE).values()
    assert verdict.dry_run is not None
    assert verdict.dry_run == program(chance(0.6)).dry_run(runs=verdict.dry_run.runs)


@pytest.fixture
def threads() -> Iterator[FairThreadPool]:
    with FairThreadPool(2) as threads:
        yield threads


async def given(*messages: list[tuple[str, bytes]]) -> AsyncIterator[list[tuple[str, bytes]]]:
    for message in messages:
        yield message


async def all_of(
    found: AsyncIterator[list[tuple[str, DocumentVerdict]]],
) -> list[tuple[str, DocumentVerdict]]:
    return [verdict async for some in found for verdict in some]


@pytest.mark.parametrize("messages", [[FOUR], [FOUR[:1], [], FOUR[1:]], [[each] for each in FOUR]])
async def test_the_verdicts_are_those_of_any_other_batch(
    threads: FairThreadPool,
    messages: list[list[tuple[str, bytes]]],
) -> None:
    found = await all_of(validate_stream(given(*messages), DICE, threads))
    assert sorted(name for name, _ in found) == sorted(name for name, _ in FOUR)
    assert dict(found) == verdicts(FOUR, DICE)


async def test_streaming_without_documents(threads: FairThreadPool) -> None:
    assert not await all_of(validate_stream(given(), DICE, threads))


async def test_streaming_reads_no_more_than_is_taken(threads: FairThreadPool) -> None:
    read = 0

    async def endless() -> AsyncIterator[list[tuple[str, bytes]]]:
        nonlocal read
        while True:
            read += 1
            yield [(f"{read}.{index}", b"{}") for index in range(100)]

    async with aclosing(validate_stream(endless(), BatchOptions(), threads)) as found:  # type: ignore[type-var]  # a generator
        await anext(found)
        before = -1
        while read != before:
            before = read
            await asyncio.sleep(0.03)
        assert 0 < read < 25
        await anext(found)


async def test_a_batch_that_nobody_follows_any_more_begins_nothing(
    threads: FairThreadPool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played = []
    release = threading.Event()

    async def counting(name: str, worker: Executor) -> None:
        played.append(name)
        await worker.run(release.wait, 30)

    playing_otherwise(monkeypatch, counting)
    documents = [("wrong", WRONG), *((name, named(name)) for name in map(str, range(100)))]
    async with aclosing(validate_stream(given(documents), DICE, threads)) as found:  # type: ignore[type-var]  # a generator
        await anext(found)
    release.set()
    assert len(played) <= 2
    assert dict(await all_of(validate_stream(given(FOUR), DICE, threads))).keys() == dict(FOUR).keys()
    assert len(played) <= 2 + len(FOUR)


async def test_what_the_source_raises_ends_the_batch_at_once(
    threads: FairThreadPool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release = threading.Event()

    async def stuck(_name: str, worker: Executor) -> None:
        await worker.run(release.wait, 30)

    async def broken() -> AsyncIterator[list[tuple[str, bytes]]]:
        yield [("stuck", GOOD)]
        raise OSError("gone")

    playing_otherwise(monkeypatch, stuck)
    with pytest.raises(OSError, match="gone"):
        await all_of(validate_stream(broken(), DICE, threads))
    release.set()


async def test_what_the_source_raises_while_verdicts_are_taken_is_raised_too(threads: FairThreadPool) -> None:
    taken = asyncio.Event()

    async def broken() -> AsyncIterator[list[tuple[str, bytes]]]:
        yield [("a", b"{}")]
        await taken.wait()
        raise OSError("gone")

    found = validate_stream(broken(), DICE, threads)
    await anext(found)
    taken.set()
    await asyncio.sleep(0.02)
    with pytest.raises(OSError, match="gone"):
        await anext(found)
