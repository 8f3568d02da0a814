"""The one tree of errors.

A subclass says what *kind* of failure it is (the transport maps kinds to statuses in `peripety.rpc.errors`);
`code` is a stable UPPER_SNAKE reason for machines; the message names the field and says what to do.

    PeripetyError
    ├── InvalidArgumentError       the request itself is wrong; retrying it unchanged is useless
    │   └── SpecError              a scenario document with findings
    ├── NotFoundError              the named resource does not exist (or is not yours)
    ├── AlreadyExistsError         the name or request id is taken by something else
    ├── FailedPreconditionError    the resource is not in a state that allows this
    ├── ConflictError              somebody else changed it first; read again, then retry
    ├── ResourceExhaustedError     a limit or budget is used up
    ├── UnavailableError           a part we depend on does not answer; retry later
    ├── DeadlineError              the caller's time ran out
    ├── UnsupportedError           the operation exists in the contract but not in this server
    └── InternalError              a defect of ours
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from peripety.remedies import remedy_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "AlreadyExistsError",
    "ConflictError",
    "DeadlineError",
    "ErrorKind",
    "FailedPreconditionError",
    "FieldViolation",
    "Finding",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "PeripetyError",
    "ResourceExhaustedError",
    "Severity",
    "SpecError",
    "UnavailableError",
    "UnsupportedError",
    "current_code",
]

_RENAMED = {
    "GOING_DOWN": "SERVER_SHUTTING_DOWN",
    "RISK_KEPT": "RISK_RETAINED",
    "SEATS_ACT_TOGETHER": "SIMULTANEOUS_SEATS",
    "STOPPING": "SERVER_SHUTTING_DOWN",
    "TURN_TAKEN_BACK": "TURN_REWOUND",
}


def current_code(code: str) -> str:
    """Return the present name of an error reason or finding code that was stored by an earlier version."""
    return _RENAMED.get(code, code)


class ErrorKind(Enum):
    """What went wrong, in words no transport owns."""

    INVALID_ARGUMENT = "invalid_argument"
    NOT_FOUND = "not_found"
    ALREADY_EXISTS = "already_exists"
    FAILED_PRECONDITION = "failed_precondition"
    CONFLICT = "conflict"
    RESOURCE_EXHAUSTED = "resource_exhausted"
    UNAVAILABLE = "unavailable"
    DEADLINE = "deadline"
    UNSUPPORTED = "unsupported"
    INTERNAL = "internal"


class Severity(Enum):
    """How much a finding matters: an error rejects the document, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong in a document.

    Attributes:
        code: stable UPPER_SNAKE name of the rule that was broken.
        path: JSON Pointer (RFC 6901) into the document; empty for the whole document.
        message: one sentence that names the problem and the way out.
        severity: whether the document is rejected because of it.
    """

    code: str
    path: str
    message: str
    severity: Severity = Severity.ERROR

    @property
    def remedy(self) -> str:
        """What to do about any finding of this kind; empty for a kind that this version does not know.

        It follows from the code and is no field: what is stored or hashed of findings does not depend on it.
        """
        return remedy_of(self.code)

    @property
    def violation(self) -> FieldViolation:
        """The finding as a wrong field, for a call that fails because of the document."""
        reason = f"{self.code}: {self.message}"
        if self.remedy:
            reason = f"{reason.rstrip('.')}; fix: {self.remedy}"
        return FieldViolation(self.path or "/", reason)


@dataclass(frozen=True, slots=True)
class FieldViolation:
    """One invalid field of a request.

    Attributes:
        field: path in the request, such as `actions[0].params`, or a JSON Pointer into a document. A leading
            dot is removed, so that no path on the wire has one.
        reason: the problem and the remedy.
    """

    field: str
    reason: str

    def __post_init__(self) -> None:
        if self.field.startswith("."):
            object.__setattr__(self, "field", self.field[1:])


class PeripetyError(Exception):
    """Root of the tree; never raised itself.

    Args:
        message: one actionable sentence, free of secrets and of other entities' private state.
        code: stable reason for machines; each class has a default.
        details: short machine-readable context (identifiers, limits).
        violations: the wrong fields, when the request has some.
        retry_after: seconds to wait before a retry makes sense, when known.
    """

    kind: ClassVar[ErrorKind]
    default_code: ClassVar[str]

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        details: Mapping[str, str] | None = None,
        violations: Sequence[FieldViolation] = (),
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.details = dict(details or {})
        self.violations = tuple(violations)
        self.retry_after = retry_after


class InvalidArgumentError(PeripetyError):
    """The request itself is wrong; retrying it unchanged is useless."""

    kind = ErrorKind.INVALID_ARGUMENT
    default_code = "INVALID_ARGUMENT"


class SpecError(InvalidArgumentError):
    """A scenario document that was refused; `findings` says why, worst first."""

    default_code = "SPEC_INVALID"

    def __init__(self, message: str, findings: Sequence[Finding], *, code: str | None = None) -> None:
        super().__init__(message, code=code, violations=[finding.violation for finding in findings])
        self.findings = tuple(findings)


class NotFoundError(PeripetyError):
    """The named resource does not exist, or is not the caller's."""

    kind = ErrorKind.NOT_FOUND
    default_code = "NOT_FOUND"


class AlreadyExistsError(PeripetyError):
    """The name or request id is already taken by something else."""

    kind = ErrorKind.ALREADY_EXISTS
    default_code = "ALREADY_EXISTS"


class FailedPreconditionError(PeripetyError):
    """The resource is not in a state that allows the operation."""

    kind = ErrorKind.FAILED_PRECONDITION
    default_code = "FAILED_PRECONDITION"


class ConflictError(PeripetyError):
    """Somebody else changed the resource first: read it again, then retry."""

    kind = ErrorKind.CONFLICT
    default_code = "CONFLICT"


class ResourceExhaustedError(PeripetyError):
    """A limit or a budget is used up."""

    kind = ErrorKind.RESOURCE_EXHAUSTED
    default_code = "RESOURCE_EXHAUSTED"


class UnavailableError(PeripetyError):
    """A part we depend on does not answer; a later retry may succeed."""

    kind = ErrorKind.UNAVAILABLE
    default_code = "UNAVAILABLE"


class DeadlineError(PeripetyError):
    """The caller's time ran out before the work was done."""

    kind = ErrorKind.DEADLINE
    default_code = "DEADLINE_EXCEEDED"


class UnsupportedError(PeripetyError):
    """The operation is part of the contract but not of this server."""

    kind = ErrorKind.UNSUPPORTED
    default_code = "UNSUPPORTED"


class InternalError(PeripetyError):
    """A defect of ours; the message tells the caller nothing but an id to quote."""

    kind = ErrorKind.INTERNAL
    default_code = "INTERNAL"
