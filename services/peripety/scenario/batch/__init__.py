"""Batch validation: one pipeline for the command line, the service and partitions of data sets."""

from peripety.scenario.batch.pipeline import validate
from peripety.scenario.batch.verdicts import (
    MAX_FINDINGS,
    BatchOptions,
    Document,
    DocumentVerdict,
    SqliteVerdictCache,
)

__all__ = ["MAX_FINDINGS", "BatchOptions", "Document", "DocumentVerdict", "SqliteVerdictCache", "validate"]
