"""Validation of requests before any work; each error names the field to correct."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.errors import FieldViolation, UnsupportedError
from peripety.requests import require
from peripety.scenarios.certificates.model import LEAST_RUNS, MOST_RUNS
from peripety.scenarios.gate import BLOCK

if TYPE_CHECKING:
    from peripety.scenarios.amending.model import AmendmentOrder
    from peripety.scenarios.certificates.model import CertificateOptions
    from peripety.scenarios.model import DryRunOptions, GenerationOrder

__all__ = [
    "MAX_ANSWERS",
    "MAX_DESCRIPTION_BYTES",
    "MAX_SPEC_BYTES",
    "check_amendment",
    "check_certificate_options",
    "check_document",
    "check_options",
    "check_order",
    "unsupported",
]

MAX_ANSWERS = 100
MAX_DESCRIPTION_BYTES = 100 * 1024
MAX_SPEC_BYTES = 1024 * 1024

_MAX_SEED = 2**53 - 1
_MAX_RUNS = 100_000
_MAX_HORIZON = 1_000


def unsupported(field: str, what: str) -> UnsupportedError:
    """Return the error for a value that the contract allows and this server does not support."""
    reason = f"requests {what}, which this server does not support"
    violation = FieldViolation(field, reason)
    return UnsupportedError(f"{violation.field} {reason}", code="FIELD_UNSUPPORTED", violations=[violation])


def check_order(order: GenerationOrder) -> None:
    """Validate a generation order.

    Raises:
        InvalidArgumentError: a field is out of range.
    """
    _check_text(order.description, ".description")
    _check_seed(order.seed, ".seed")
    _check_answers(order.limits.answers)


def check_amendment(order: AmendmentOrder) -> None:
    """Validate an amendment order.

    Raises:
        InvalidArgumentError: a field is missing or out of range.
    """
    require(order.scenario_id, ".scenario_id", "is required")
    require(order.instruction.strip(), ".instruction", "is required: describe the change")
    _check_text(order.instruction, ".instruction")
    _check_answers(order.limits.answers)


def _check_answers(answers: int) -> None:
    require(0 < answers <= MAX_ANSWERS, ".max_attempts", f"must be from 1 to {MAX_ANSWERS}, or 0 for 4")


def check_document(document: bytes) -> None:
    """Validate the size of a document.

    Raises:
        InvalidArgumentError: the document is empty or too large.
    """
    require(document, ".spec", "is empty; send one JSON document")
    reason = f"has {len(document)} bytes; at most {MAX_SPEC_BYTES} are accepted, so shorten it"
    require(len(document) <= MAX_SPEC_BYTES, ".spec", reason)


def check_options(options: DryRunOptions) -> None:
    """Validate simulation options.

    Raises:
        InvalidArgumentError: an option is out of range.
    """
    _check_seed(options.seed, ".dry_run.seed")
    enough = BLOCK <= options.max_runs <= _MAX_RUNS
    require(enough, ".dry_run.max_runs", f"must be from {BLOCK} to {_MAX_RUNS}, or 0 for the usual number")
    _check_horizon(options.horizon, ".dry_run.horizon")


def check_certificate_options(options: CertificateOptions, field: str = ".options") -> None:
    """Validate certificate options.

    Args:
        options: the options.
        field: their path in the request.

    Raises:
        InvalidArgumentError: an option is out of range.
    """
    _check_seed(options.seed, f"{field}.seed")
    enough = LEAST_RUNS <= options.max_runs <= MOST_RUNS
    reason = f"must be from {LEAST_RUNS} to {MOST_RUNS}, which is enough for any rate, or 0 for that"
    require(enough, f"{field}.max_runs", reason)
    _check_horizon(options.horizon, f"{field}.horizon")


def _check_text(text: str, field: str) -> None:
    size = len(text.encode("utf-8", "replace"))
    reason = f"has {size} bytes; at most {MAX_DESCRIPTION_BYTES} are accepted, so shorten it"
    require(size <= MAX_DESCRIPTION_BYTES, field, reason)


def _check_horizon(horizon: int | None, field: str) -> None:
    require(horizon is None or 0 < horizon <= _MAX_HORIZON, field, f"must be from 0 to {_MAX_HORIZON}")


def _check_seed(seed: int | None, field: str) -> None:
    require(seed is None or 0 <= seed <= _MAX_SEED, field, "must be from 0 to 2^53 - 1")
