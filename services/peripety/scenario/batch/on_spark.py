"""Batch validation on Spark: `validated(spark.read.parquet("in"), options).write.parquet("out")`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.scenario.batch.partitions import ID, RESULTS, SPEC, validate_partition

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from peripety.scenario.batch.verdicts import BatchOptions


_TYPES = {"bool": "boolean", "int64": "bigint"}


def validate_frame(frame: DataFrame, options: BatchOptions | None = None) -> DataFrame:
    """Apply `validate_partition` to a frame with the columns `id` and `spec`."""

    def validate_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (validate_partition(batch, options) for batch in batches)

    columns = {ID: frame.schema[ID].dataType.simpleString(), **RESULTS}
    schema = ", ".join(f"{name} {_TYPES.get(kind, kind)}" for name, kind in columns.items())
    return frame.select(ID, SPEC).mapInArrow(validate_all, schema)
