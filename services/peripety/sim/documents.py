"""Parsing, validation and compilation of one scenario document."""

from __future__ import annotations

from typing import Any

from peripety.errors import Finding, InternalError, Severity, SpecError
from peripety.sim._backend import CORE
from peripety.sim._core import CoreError
from peripety.sim._pure.canonical import canonical
from peripety.sim._values import loads
from peripety.sim.checks import check_spec
from peripety.sim.program import Program
from peripety.sim.schema import check
from peripety.sim.schemas import SCENARIO_SPEC, schema_document

__all__ = [
    "canonical_document",
    "compile",
    "compile_canonical",
    "findings_of",
    "load",
    "parse",
    "parse_canonical",
    "validate",
]


def parse(document: bytes | str) -> Any:
    """Parse JSON strictly.

    Raises:
        SpecError: with one finding for the first error.
    """
    return loads(canonical_document(document))


def canonical_document(document: bytes | str) -> bytes:
    """Return the canonical JSON of a document.

    Raises:
        SpecError: as `parse`.
    """
    try:
        return CORE.parse(_bytes(document))
    except CoreError as error:
        raise _refused(error.code, error.message) from None


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
        is_canonical = canonical(value) == document
    except UnicodeDecodeError as error:
        raise _refused("INVALID_UTF8", f"not valid UTF-8 at byte {error.start}") from None
    except (ValueError, RecursionError) as error:
        raise _refused("INVALID_JSON", f"not one JSON document: {error}") from None
    except CoreError as error:
        raise _refused(error.code, error.message) from None
    if not is_canonical:
        raise _refused("NOT_CANONICAL", "the JSON is not in canonical form (RFC 8785)")
    return value


def _refused(code: str, message: str) -> SpecError:
    return SpecError(
        f"the document is not acceptable JSON: {message}", [Finding(code, "", message)], code=code
    )


def _bytes(document: bytes | str) -> bytes:
    # A lone surrogate in a str becomes invalid UTF-8, which the strict parser reports.
    return document.encode("utf-8", "surrogatepass") if isinstance(document, str) else document


def validate(document: bytes | str) -> list[Finding]:
    """Return all findings of a scenario document; one without errors can be compiled.

    The stages are the strict parser, the JSON Schema and the static checks. Each runs only if the previous
    one found no error.
    """
    try:
        spec = parse(document)
    except SpecError as error:
        return list(error.findings)
    return findings_of(spec)


def findings_of(spec: Any) -> list[Finding]:
    """Return the findings of a document that is already parsed, as `validate`."""
    return check(schema_document(SCENARIO_SPEC), spec) or check_spec(spec)


def compile(document: bytes | str) -> Program:  # noqa: A001 - public name of the API
    """Compile a scenario document.

    Raises:
        SpecError: with the findings of `validate`.
    """
    accepted = canonical_document(document)
    _require_valid(loads(accepted))
    return load(accepted)


def compile_canonical(document: bytes) -> Program:
    """Compile a scenario document that must already be in canonical form, such as an exported one.

    Raises:
        SpecError: as `parse_canonical`, or with the findings of `validate`.
    """
    _require_valid(parse_canonical(document))
    try:
        return Program(document, CORE.compile(document))
    except CoreError as error:
        raise _refused(error.code, error.message) from None


def _require_valid(spec: Any) -> None:
    errors = [finding for finding in findings_of(spec) if finding.severity is Severity.ERROR]
    if errors:
        raise SpecError(f"the scenario has {len(errors)} error(s); the first: {errors[0].message}", errors)


def load(document: bytes) -> Program:
    """Compile a trusted document: `Program.document`, or a validated scenario in canonical form.

    It is not validated again, and the long integers of canonical form are accepted.

    Raises:
        InternalError: the document is not such a document.
    """
    try:
        return Program(document, CORE.compile(document))
    except CoreError as error:
        raise InternalError(f"a valid scenario did not compile: {error.message}", code=error.code) from error
