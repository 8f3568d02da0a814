"""Partitions of tables: a verdict for each row, whatever the table is like."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from peripety import engine
from peripety.errors import InvalidArgumentError
from peripety.scenario.batch import BatchOptions
from peripety.scenario.batch.partitions import RESULTS, validate_partition
from peripety.scenario.certificate.types import CertificateOptions
from peripety.scenario.spec_generator.generator import generate_spec
from peripety.scenario.types import DryRunOptions, ValidationLevel
from support.engine.specs import document

GOOD = generate_spec(1, 0)
BAD = document(seed="seven")


def partition(specs: list[Any], kind: str = "string", ids: Any = None) -> pa.Table:
    identities = pa.array(list(range(len(specs))) if ids is None else ids)
    return pa.table({"id": identities, "spec": pa.array(specs, kind), "other": [None] * len(specs)})


def rows(result: pa.RecordBatch) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = result.to_pylist()
    return found


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "binary", "large_binary"])
def test_text_and_bytes_are_documents(kind: str) -> None:
    specs = [GOOD, BAD] if "binary" in kind else [GOOD.decode(), BAD.decode()]
    good, bad = rows(validate_partition(partition(specs, kind)))
    assert good["accepted"]
    assert good["spec_hash"] == engine.compile(GOOD).spec_hash
    assert (good["findings"], good["total"], good["error"]) == ("[]", 0, None)
    (finding,) = json.loads(bad["findings"])
    assert not bad["accepted"]
    assert (finding["path"], finding["severity"], bad["total"]) == ("/seed", "error", 1)


def test_a_row_that_holds_no_document_is_found_wrong_beside_its_neighbours() -> None:
    none, empty, good = rows(validate_partition(partition([None, "", GOOD.decode()])))
    for row in (none, empty):
        assert json.loads(row["findings"])[0]["code"] == "INVALID_JSON"
        assert row["spec_hash"] is None
    assert good["accepted"]


def test_a_row_keeps_its_id_of_any_type_and_its_place() -> None:
    specs = [generate_spec(1, index).decode() for index in range(150)]
    for ids in ([f"n{index}" for index in range(150)], [{"a": index} for index in range(150)]):
        whole = partition(specs, ids=ids)
        cut = pa.concat_tables([whole.slice(0, 7), whole.slice(7)])
        result = validate_partition(cut)
        assert result.column("id").to_pylist() == ids
        assert result.column("spec_hash").to_pylist() == [engine.compile(spec).spec_hash for spec in specs]


@pytest.mark.parametrize("specs", [[], [GOOD.decode(), None]])
def test_the_columns_are_the_same_for_any_rows(specs: list[Any]) -> None:
    table = partition(specs, ids=pa.array(range(len(specs))).cast("string"))
    for given in (table, *table.to_batches()):
        assert {field.name: str(field.type) for field in validate_partition(given).schema} == {
            "id": "string",
            **RESULTS,
        }


def test_a_dry_run_tells_what_was_counted() -> None:
    options = BatchOptions(ValidationLevel.DRY_RUN, DryRunOptions(max_runs=64))
    good, bad = rows(validate_partition(partition([GOOD.decode(), BAD.decode()]), options))
    assert good["runs"] == 64
    assert good["fail_rate"] == good["lost"] / 64 > 0
    assert (bad["runs"], bad["lost"], bad["fail_rate"]) == (None, None, None)


def test_a_certificate_is_told_as_it_is_named() -> None:
    options = BatchOptions(
        ValidationLevel.CERTIFICATE,
        certificate=CertificateOptions(("idle",), max_runs=256),
    )
    good, bad = rows(validate_partition(partition([GOOD.decode(), BAD.decode()]), options))
    assert json.loads(good["certificate"])["spec_hash"] == good["spec_hash"]
    assert engine.canonicalize(json.loads(good["certificate"])).decode() == good["certificate"]
    assert bad["certificate"] is None


def test_a_document_that_takes_too_long_has_an_error_and_no_verdict() -> None:
    options = BatchOptions(ValidationLevel.DRY_RUN, seconds=0)
    (row,) = rows(validate_partition(partition([GOOD.decode()]), options))
    assert not row["accepted"]
    assert row["error"].startswith("DRY_RUN_TOO_SLOW: ")


@pytest.mark.parametrize("missing", ["id", "spec"])
def test_a_column_that_is_missing_is_named(missing: str) -> None:
    table = partition([GOOD.decode()]).drop_columns([missing])
    with pytest.raises(InvalidArgumentError, match=f"'{missing}'"):
        validate_partition(table)
