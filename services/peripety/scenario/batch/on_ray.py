"""Batch validation on Ray Data: `validated(ray.data.read_parquet("in"), options).write_parquet("out")`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from peripety.scenario.batch.partitions import validate_partition

if TYPE_CHECKING:
    from ray.data import Dataset

    from peripety.scenario.batch.verdicts import BatchOptions


def validate_dataset(dataset: Dataset, options: BatchOptions | None = None) -> Dataset:
    """Apply `validate_partition` to a dataset with the columns `id` and `spec`."""
    return dataset.map_batches(partial(_validate_table, options=options), batch_format="pyarrow")


def _validate_table(table: pa.Table, options: BatchOptions | None) -> pa.Table:
    return pa.Table.from_batches([validate_partition(table, options)])
