"""Verdict cache of batches: returns unchanged verdicts for the same document and options."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from peripety.certification.options import DryRunOptions
from peripety.errors import InvalidArgumentError
from peripety.scenario.batch import BatchOptions, DocumentVerdict, SqliteVerdictCache
from peripety.scenario.batch.verdicts import RecentVerdictCache, create_cache
from peripety.scenario.types import ValidationLevel
from support.scenario.batches import CERTIFIED, DICE, EASY, GOOD, WRONG, verdicts

if TYPE_CHECKING:
    from pathlib import Path


KEY = b"k" * 32
FOUND = {
    **verdicts([("good", GOOD), ("easy", EASY), ("wrong", WRONG)], DICE),
    **verdicts([("certified", GOOD)], CERTIFIED),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_verdict_is_found_as_it_was_kept(tmp_path: Path, name: str) -> None:
    ledger = SqliteVerdictCache(DICE, tmp_path / "ledger")
    ledger.put_many([(KEY, FOUND[name])])
    assert ledger.get_many([KEY, b"other"]) == {KEY: FOUND[name]}
    ledger.close()


def test_another_process_finds_what_was_kept_however_the_first_one_ended(tmp_path: Path) -> None:
    first = SqliteVerdictCache(DICE, tmp_path / "ledger")
    first.put_many([(KEY, FOUND["good"])])
    second = SqliteVerdictCache(DICE, tmp_path / "ledger")  # the first one is never closed
    assert second.get_many([KEY]) == {KEY: FOUND["good"]}
    second.close()
    first.close()


@pytest.mark.parametrize(
    "options",
    [
        BatchOptions(ValidationLevel.STATIC),
        BatchOptions(ValidationLevel.DRY_RUN),
        BatchOptions(ValidationLevel.DRY_RUN, DryRunOptions(max_runs=64, seed=1)),
        BatchOptions(ValidationLevel.DRY_RUN, DryRunOptions(max_runs=64, persona="idle")),
        BatchOptions(ValidationLevel.DRY_RUN, DryRunOptions(max_runs=64, horizon=3)),
    ],
)
def test_verdicts_under_other_options_are_not_seen(tmp_path: Path, options: BatchOptions) -> None:
    ledger = SqliteVerdictCache(DICE, tmp_path / "ledger")
    ledger.put_many([(KEY, FOUND["good"])])
    ledger.close()
    other = SqliteVerdictCache(options, tmp_path / "ledger")
    assert not other.get_many([KEY])
    other.close()


def test_how_long_a_document_may_take_changes_no_verdict(tmp_path: Path) -> None:
    ledger = SqliteVerdictCache(DICE, tmp_path / "ledger")
    ledger.put_many([(KEY, FOUND["good"])])
    ledger.close()
    patient = SqliteVerdictCache(BatchOptions(DICE.level, DICE.dry_run, seconds=99), tmp_path / "ledger")
    assert patient.get_many([KEY])
    patient.close()


def test_a_file_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_bytes(b"words " * 100)
    tables = tmp_path / "other.db"
    with sqlite3.connect(tables) as database:
        database.execute("CREATE TABLE words (word)")
    database.close()
    for path in (text, tables, tmp_path, tmp_path / "no" / "where"):
        before = path.read_bytes() if path.is_file() else None
        with pytest.raises(InvalidArgumentError) as caught:
            SqliteVerdictCache(DICE, path)
        assert caught.value.code == "RESUME_UNUSABLE"
        assert str(path) in caught.value.message
        assert before is None or path.read_bytes() == before


def test_without_dice_the_last_findings_are_remembered_in_memory() -> None:
    memory = create_cache(BatchOptions())
    assert isinstance(memory, RecentVerdictCache)
    wrong = FOUND["wrong"]
    memory.put_many([(b"good", DocumentVerdict()), *((index.to_bytes(4), wrong) for index in range(10_000))])
    assert not memory.get_many([b"good", (0).to_bytes(4)])
    assert memory.get_many([(9_999).to_bytes(4)]) == {(9_999).to_bytes(4): wrong}
    memory.close()
