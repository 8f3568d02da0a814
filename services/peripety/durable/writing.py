"""Why a run failed, as JSON for a database."""

from __future__ import annotations

import json

from peripety.errors import FieldViolation, PeripetyError, current_code

__all__ = ["read_error", "write_error"]

_ERRORS = {error.kind.value: error for error in PeripetyError.__subclasses__()}


def write_error(error: PeripetyError | None) -> str | None:
    """Write down why a run failed."""
    if error is None:
        return None
    # Escaped: a message may quote what no database takes as text.
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
    """Read what `write_error` has written."""
    if text is None:
        return None
    written = json.loads(text)
    kind = _ERRORS[written.pop("kind")]
    violations = [FieldViolation(*violation) for violation in written.pop("violations")]
    code = current_code(written.pop("code"))
    return kind(written.pop("message"), code=code, violations=violations, **written)
