"""Validation of requests before any work, and of documents up to a level.

Each error of a request names the field to correct. Findings from proofs need no simulation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety import engine
from peripety.core.validation import require_field
from peripety.engine.schema_validation import validate_against_schema
from peripety.engine.schemas import scenario_schema
from peripety.errors import FieldViolation, Finding, SpecError, UnsupportedError
from peripety.scenario.certificate.types import MAX_RUNS, MIN_RUNS
from peripety.scenario.dry_run.difficulty_gate import BLOCK
from peripety.scenario.types import ValidationLevel

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.engine import Program, Proof
    from peripety.scenario.certificate.types import CertificateOptions
    from peripety.scenario.types import AmendmentOrder, DryRunOptions, GenerationOrder


def validate_document(document: bytes, level: ValidationLevel) -> list[Finding]:
    """Return all findings of a document without simulation."""
    if level > ValidationLevel.SCHEMA:
        return engine.validate(document)
    try:
        spec = engine.parse_scenario(document)
    except SpecError as error:
        return list(error.findings)
    return validate_against_schema(scenario_schema(spec), spec)


def load_valid(document: bytes) -> Program:
    """Compile a valid document without validating it again."""
    return engine.compile_trusted(engine.canonicalize(engine.parse_scenario(document)))


MAX_ANSWERS = 100
MAX_DESCRIPTION_BYTES = 100 * 1024
MAX_SPEC_BYTES = 1024 * 1024

_LANGUAGE_TAG = re.compile(r"(?=.{2,35}$)[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
_MAX_SEED = 2**53 - 1
_MAX_RUNS = 100_000
_MAX_HORIZON = 1_000


def unsupported_error(field: str, what: str) -> UnsupportedError:
    """Return the error for a value that the contract allows and this server does not support."""
    reason = f"requests {what}, which this server does not support"
    violation = FieldViolation(field, reason)
    return UnsupportedError(f"{violation.field} {reason}", code="FIELD_UNSUPPORTED", violations=[violation])


def validate_order(order: GenerationOrder) -> None:
    """Validate a generation order.

    Raises:
        InvalidArgumentError: a field is out of range.
    """
    _validate_text(order.description, ".description")
    _validate_seed(order.seed, ".seed")
    _validate_answers(order.limits.answers)
    is_tag = not order.language or _LANGUAGE_TAG.fullmatch(order.language)
    require_field(is_tag, ".language", "is not a BCP 47 tag; send one such as es or pt-BR, or leave it out")


def validate_amendment(order: AmendmentOrder) -> None:
    """Validate an amendment order.

    Raises:
        InvalidArgumentError: a field is missing or out of range.
    """
    require_field(order.scenario_id, ".scenario_id", "is required")
    require_field(order.instruction.strip(), ".instruction", "is required: describe the change")
    _validate_text(order.instruction, ".instruction")
    _validate_answers(order.limits.answers)


def _validate_answers(answers: int) -> None:
    require_field(0 < answers <= MAX_ANSWERS, ".max_attempts", f"must be from 1 to {MAX_ANSWERS}, or 0 for 4")


def validate_document_size(document: bytes) -> None:
    """Validate the size of a document.

    Raises:
        InvalidArgumentError: the document is empty or too large.
    """
    require_field(document, ".spec", "is empty; send one JSON document")
    reason = f"has {len(document)} bytes; at most {MAX_SPEC_BYTES} are accepted, so shorten it"
    require_field(len(document) <= MAX_SPEC_BYTES, ".spec", reason)


def validate_options(options: DryRunOptions) -> None:
    """Validate simulation options.

    Raises:
        InvalidArgumentError: an option is out of range.
    """
    _validate_seed(options.seed, ".dry_run.seed")
    enough = BLOCK <= options.max_runs <= _MAX_RUNS
    require_field(
        enough,
        ".dry_run.max_runs",
        f"must be from {BLOCK} to {_MAX_RUNS}, or 0 for the usual number",
    )
    _validate_horizon(options.horizon, ".dry_run.horizon")


def validate_certificate_options(options: CertificateOptions, field: str = ".options") -> None:
    """Validate certificate options.

    Args:
        options: the options.
        field: their path in the request.

    Raises:
        InvalidArgumentError: an option is out of range.
    """
    _validate_seed(options.seed, f"{field}.seed")
    enough = MIN_RUNS <= options.max_runs <= MAX_RUNS
    reason = f"must be from {MIN_RUNS} to {MAX_RUNS}, which is enough for any rate, or 0 for that"
    require_field(enough, f"{field}.max_runs", reason)
    _validate_horizon(options.horizon, f"{field}.horizon")


def _validate_text(text: str, field: str) -> None:
    size = len(text.encode("utf-8", "replace"))
    reason = f"has {size} bytes; at most {MAX_DESCRIPTION_BYTES} are accepted, so shorten it"
    require_field(size <= MAX_DESCRIPTION_BYTES, field, reason)


def _validate_horizon(horizon: int | None, field: str) -> None:
    require_field(horizon is None or 0 < horizon <= _MAX_HORIZON, field, f"must be from 0 to {_MAX_HORIZON}")


def _validate_seed(seed: int | None, field: str) -> None:
    require_field(seed is None or 0 <= seed <= _MAX_SEED, field, "must be from 0 to 2^53 - 1")


def collect_proof_findings(program: Program) -> tuple[Finding, ...]:
    """Return the findings from proofs over all runs, up to the scenario's own horizon."""
    return proofs_to_findings(program.prove())


def proofs_to_findings(proofs: Iterable[Proof]) -> tuple[Finding, ...]:
    """Convert proofs to findings, with their explanations as messages."""
    return tuple(Finding(proof.code, proof.path, proof.argument, proof.severity) for proof in proofs)
