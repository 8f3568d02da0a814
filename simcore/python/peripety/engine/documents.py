"""Parsing, validation and compilation of scenario documents, one or many.

In bulk, a backend accepts the documents without findings, in parallel. The reference validates the others,
so findings have one source: a backend reports only that a document has none.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.engine._backend import ACTIVE_BACKEND
from peripety.engine.backend_protocol import EngineError
from peripety.engine.canonical_json import canonicalize
from peripety.engine.checks import check_despite_schema, check_spec
from peripety.engine.json_values import loads
from peripety.engine.lowering import lower_document
from peripety.engine.program import Program, require_integer
from peripety.engine.schema_validation import MAX_FINDINGS, validate_against_schema
from peripety.engine.schemas import scenario_schema
from peripety.engine.spelling import EARLIER_WORDS, to_canonical_spelling
from peripety.errors import Finding, InternalError, Severity, SpecError

# The key with which a document names its schema for an editor; neither the scenario nor its hash has it.
_SCHEMA_KEY = "$schema"
_SCHEMA_WORD = b'"$schema":'

# A document in canonical form with this word may have warnings, which a backend does not find.
_WANTS = b'"wants":'

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.engine.backend_protocol import Backend


def parse(document: bytes | str) -> Any:
    """Parse JSON strictly.

    Raises:
        SpecError: with one finding for the first error.
    """
    return loads(canonicalize_document(document))


def canonicalize_document(document: bytes | str) -> bytes:
    """Return the canonical JSON of a document.

    Raises:
        SpecError: as `parse`.
    """
    try:
        return ACTIVE_BACKEND.parse(_to_bytes(document))
    except EngineError as error:
        raise _document_error(error.code, error.message) from None


def parse_scenario(document: bytes | str) -> Any:
    """Parse a scenario strictly, in either spelling, into the canonical one; without its key `$schema`.

    Raises:
        SpecError: as `parse`.
    """
    return _read_scenario(document)[0]


def _read_scenario(document: bytes | str) -> tuple[Any, bytes]:
    """Return a scenario in the canonical spelling, as values and in canonical form."""
    accepted = canonicalize_document(document)
    spec = loads(accepted)
    if _SCHEMA_WORD in accepted and isinstance(spec, dict) and isinstance(spec.get(_SCHEMA_KEY), str):
        del spec[_SCHEMA_KEY]
        accepted = canonicalize(spec)
    if not any(word in accepted for word in EARLIER_WORDS):
        return spec, accepted
    spec = to_canonical_spelling(spec)
    return spec, canonicalize(spec)


def parse_canonical(document: bytes) -> Any:
    """Parse a document that must already be in canonical form, byte for byte.

    Canonical form writes large numbers as long integers. The strict parser rejects these; this function
    accepts them.

    Raises:
        SpecError: with one finding; `NOT_CANONICAL` if only the notation differs.
    """
    try:
        document.decode()
        value = loads(document)
        is_canonical = canonicalize(value) == document
    except UnicodeDecodeError as error:
        raise _document_error("INVALID_UTF8", f"not valid UTF-8 at byte {error.start}") from None
    except (ValueError, RecursionError) as error:
        raise _document_error("INVALID_JSON", f"not one JSON document: {error}") from None
    except EngineError as error:
        raise _document_error(error.code, error.message) from None
    if not is_canonical:
        raise _document_error("NOT_CANONICAL", "the JSON is not in canonical form (RFC 8785)")
    return value


def _document_error(code: str, message: str) -> SpecError:
    return SpecError(
        f"the document is not acceptable JSON: {message}",
        [Finding(code, "", message)],
        code=code,
    )


def _to_bytes(document: bytes | str) -> bytes:
    # A lone surrogate in a str becomes invalid UTF-8, which the strict parser reports.
    return document.encode("utf-8", "surrogatepass") if isinstance(document, str) else document


def validate(document: bytes | str) -> list[Finding]:
    """Return all findings of a scenario document; one without errors can be compiled.

    The stages are the strict parser, the JSON Schema and the static checks. If the schema is violated, the
    static checks examine the other parts.
    """
    try:
        spec = parse_scenario(document)
    except SpecError as error:
        return list(error.findings)
    return validate_parsed(spec)


def validate_parsed(spec: Any) -> list[Finding]:
    """Return the findings of a document that is already parsed, as `validate`."""
    schema = scenario_schema(spec)
    violations = validate_against_schema(schema, spec)
    if not violations:
        return check_spec(spec)
    return [*violations, *check_despite_schema(spec, schema, violations)][:MAX_FINDINGS]


def compile(document: bytes | str) -> Program:  # noqa: A001 - public name of the API
    """Compile a scenario document.

    Raises:
        SpecError: with the findings of `validate`.
    """
    spec, accepted = _read_scenario(document)
    _require_valid(spec)
    return compile_trusted(accepted)


def compile_canonical(document: bytes) -> Program:
    """Compile a scenario document that must already be in canonical form, such as an exported one.

    Raises:
        SpecError: as `parse_canonical`, or with the findings of `validate`.
    """
    _require_valid(parse_canonical(document))
    try:
        return build_program(document, ACTIVE_BACKEND)
    except EngineError as error:
        raise _document_error(error.code, error.message) from None


def _require_valid(spec: Any) -> None:
    errors = [finding for finding in validate_parsed(spec) if finding.severity is Severity.ERROR]
    if errors:
        raise SpecError(f"the scenario has {len(errors)} error(s); the first: {errors[0].message}", errors)


def compile_trusted(document: bytes) -> Program:
    """Compile a trusted document: `Program.document`, or a validated scenario in canonical form.

    It is not validated again, and the long integers of canonical form are accepted.

    Raises:
        InternalError: the document is not such a document.
    """
    try:
        return build_program(document, ACTIVE_BACKEND)
    except EngineError as error:
        raise InternalError(f"a valid scenario did not compile: {error.message}", code=error.code) from error


def build_program(document: bytes, backend: Backend) -> Program:
    """Compile a valid document in canonical form on a backend, which receives the lowered document.

    Every program of a document with lowered keys comes from here: backends accept no such document in bulk.

    Raises:
        EngineError: the document is not valid.
    """
    lowering = lower_document(document)
    if lowering is None:
        return Program(document, backend.compile(document))
    return Program(document, backend.compile(lowering.document), lowering=lowering)


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """Result of validating one document.

    Attributes:
        findings: as from `validate`.
        spec_hash: SHA-256 of the canonical document, in hex: the content address; empty if it is not JSON.
        program: the scenario, compiled on first use; None if a finding is an error.
    """

    findings: tuple[Finding, ...]
    spec_hash: str
    program: Program | None


def validate_many(documents: Sequence[bytes], threads: int | None = None) -> list[ValidationResult]:
    """Validate many scenario documents independently.

    Args:
        documents: scenario documents.
        threads: number of threads, 1 … 256; one for each processor by default. The result does not depend on
            it, and the Python backend uses one.

    Raises:
        InvalidArgumentError: `threads` is out of range.
    """
    if threads is not None:
        require_integer("threads", threads, 1, 256)
    screened = ACTIVE_BACKEND.validate_many(documents, threads or os.cpu_count() or 1)
    return [
        _validate_one(document)
        if spotless is None or _WANTS in spotless.document
        else ValidationResult((), spotless.spec_hash, Program(*spotless))
        for document, spotless in zip(documents, screened, strict=True)
    ]


def _validate_one(document: bytes) -> ValidationResult:
    """Validate one document with the reference."""
    try:
        spec, accepted = _read_scenario(document)
    except SpecError as error:
        return ValidationResult(tuple(error.findings), "", None)
    findings = tuple(validate_parsed(spec))
    if any(finding.severity is Severity.ERROR for finding in findings):
        return ValidationResult(findings, hashlib.sha256(accepted).hexdigest(), None)
    program = compile_trusted(accepted)
    return ValidationResult(findings, program.spec_hash, program)
