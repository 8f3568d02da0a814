"""Partitions on Spark."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from peripety.scenario.batch.on_spark import validate_frame
from peripety.scenario.batch.partitions import validate_partition
from peripety.scenario.spec_generator.generator import generate_spec
from support.engine.specs import document

if TYPE_CHECKING:
    from collections.abc import Iterator


sql = pytest.importorskip("pyspark.sql", reason="Spark: not installed; pip install 'peripety[spark]'")

ROWS = [
    (f"n{number:02}", (generate_spec(2, number) if number % 5 else document(seed="seven")).decode())
    for number in range(60)
]


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    session = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    yield session
    session.stop()


@pytest.mark.filterwarnings("default")  # libraries of its own are deprecated
def test_a_frame_comes_to_the_same_as_one_partition(session: Any) -> None:
    frame = session.createDataFrame(ROWS, "id string, spec string").repartition(4)
    found = sorted((row.asDict() for row in validate_frame(frame).collect()), key=lambda row: row["id"])
    ids, specs = ([row[column] for row in ROWS] for column in (0, 1))
    assert found == validate_partition(pa.table({"id": ids, "spec": specs})).to_pylist()
