"""Validation of requests before any work, and of documents up to a level.

Each error of a request names the field to correct. Findings from proofs need no simulation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from peripety import engine
from peripety.certification.options import validate_seed
from peripety.certification.statistics import proofs_to_findings
from peripety.engine.schema_validation import validate_against_schema
from peripety.engine.schemas import scenario_schema
from peripety.errors import FieldViolation, Finding, SpecError, UnsupportedError, require_field
from peripety.scenario.types import ValidationLevel

if TYPE_CHECKING:
    from peripety.engine import Program
    from peripety.scenario.types import AmendmentOrder, GenerationOrder


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
    validate_seed(order.seed, ".seed")
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


def _validate_text(text: str, field: str) -> None:
    size = len(text.encode("utf-8", "replace"))
    reason = f"has {size} bytes; at most {MAX_DESCRIPTION_BYTES} are accepted, so shorten it"
    require_field(size <= MAX_DESCRIPTION_BYTES, field, reason)


def collect_proof_findings(program: Program) -> tuple[Finding, ...]:
    """Return the findings from proofs over all runs, up to the scenario's own horizon."""
    return proofs_to_findings(program.prove())
