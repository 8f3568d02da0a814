"""Batch validation: one pipeline for the command line, the service and partitions of data sets."""

from peripety.scenarios.batch.memory import Ledger
from peripety.scenarios.batch.model import MAX_FINDINGS, BatchOptions, Document, Verdict
from peripety.scenarios.batch.pipeline import validate

__all__ = ["MAX_FINDINGS", "BatchOptions", "Document", "Ledger", "Verdict", "validate"]
