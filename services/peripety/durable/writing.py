"""JSON encoding of the error of a failed run, for the database."""

from __future__ import annotations

import json

from peripety.errors import FieldViolation, PeripetyError, current_code

__all__ = ["read_error", "write_error"]

_ERRORS = {error.kind.value: error for error in PeripetyError.__subclasses__()}


def write_error(error: PeripetyError | None) -> str | None:
    """Encode the error of a run as JSON."""
    if error is None:
        return None
    # ASCII escapes: a message may quote characters that a database does not accept in text.
    return json.dumps(
        {
            "kind": error.kind.value,
            "message": error.message,
            "code": error.code,
            "details": error.details,
            "violations": [[violation.field, violation.reason] for violation in error.violations],
            "retry_after": error.retry_after,
        },
        separators=(",", ":"),
    )


def read_error(text: str | None) -> PeripetyError | None:
    """Decode the error of a run."""
    if text is None:
        return None
    written = json.loads(text)
    kind = _ERRORS[written.pop("kind")]
    violations = [FieldViolation(*violation) for violation in written.pop("violations")]
    code = current_code(written.pop("code"))
    return kind(written.pop("message"), code=code, violations=violations, **written)
