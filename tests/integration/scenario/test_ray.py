"""Partitions on Ray Data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from peripety.scenario.batch.partitions import validate_partition
from peripety.scenario.spec_generator.generator import generate_spec
from support.engine.specs import document

if TYPE_CHECKING:
    from collections.abc import Iterator


ray = pytest.importorskip("ray", reason="Ray: not installed; pip install 'peripety[ray]'")
data = pytest.importorskip("ray.data")

TABLE = pa.table(
    {
        "id": list(range(60)),
        "spec": [(generate_spec(2, n) if n % 5 else document(seed="seven")).decode() for n in range(60)],
    },
)


@pytest.fixture
def local() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.filterwarnings("default")  # libraries of its own are deprecated
@pytest.mark.usefixtures("local")
def test_a_dataset_comes_to_the_same_as_one_partition() -> None:
    from peripety.scenario.batch.on_ray import validate_dataset  # noqa: PLC0415 - needs Ray

    found = validate_dataset(data.from_arrow(TABLE).repartition(4)).take_all()
    assert sorted(found, key=lambda row: row["id"]) == validate_partition(TABLE).to_pylist()
