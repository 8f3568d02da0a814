"""Errors and findings with stable codes, and the catalogue of findings; standard library only.

A subclass of `PeripetyError` names the *kind* of failure; the transport maps kinds to statuses in
`peripety.rpc.status`. `code` is a stable UPPER_SNAKE reason. The message names the field and the remedy.

    PeripetyError
    ├── InvalidArgumentError       the request is wrong; retrying it unchanged fails again
    │   └── SpecError              a scenario document with findings
    ├── NotFoundError              the named resource does not exist, or belongs to another caller
    ├── AlreadyExistsError         the name or request id is in use
    ├── FailedPreconditionError    the state of the resource does not allow the operation
    ├── ConflictError              a concurrent writer changed the resource; read it again, then retry
    ├── ResourceExhaustedError     a limit or budget is used up
    ├── UnavailableError           a dependency does not answer; retry later
    ├── DeadlineError              the deadline of the caller passed
    ├── UnsupportedError           the contract has the operation, this server does not
    └── InternalError              a defect of Peripety

Kinds are few and never grow with the features. Reasons are many, and clients may branch on them, so a
reason is never renamed. Errors know nothing about gRPC: the same tree serves the engine, which is usable
without any service.

A finding is a problem in a document. `findings.toml` is the catalogue of their kinds, with the fix of each,
shared by the command line, clients and prompts.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

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
    "FindingKind",
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
    "field_error",
    "filter_errors",
    "get_remedy",
    "hide_internal_error",
    "load_catalog",
    "require_field",
]


@dataclass(frozen=True, slots=True)
class FindingKind:
    """One kind of finding.

    Attributes:
        means: the problem in general.
        why: why it matters.
        fix: the remedy.
        example: a document, or a part of one, with the problem; empty where it would not help.
    """

    means: str
    why: str
    fix: str
    example: str = ""


@cache
def load_catalog() -> dict[str, dict[str, FindingKind]]:
    """Return all kinds of findings by code, grouped by the check that reports them."""
    text = Path(__file__).with_name("findings.toml").read_text(encoding="utf-8")
    return {
        group: {code: FindingKind(**kind) for code, kind in kinds.items()}
        for group, kinds in tomllib.loads(text).items()
    }


def get_remedy(code: str) -> str:
    """Return the fix for findings of a code; empty if this version does not know the code."""
    kind = _kinds_by_code().get(code)
    return kind.fix if kind else ""


@cache
def _kinds_by_code() -> dict[str, FindingKind]:
    return {code: kind for kinds in load_catalog().values() for code, kind in kinds.items()}


_RENAMED = {
    "BUDGET_USED_UP": "BUDGET_EXHAUSTED",
    "GOING_DOWN": "SERVER_SHUTTING_DOWN",
    "OUTPUT_TAKEN": "OUTPUT_EXISTS",
    "RISK_KEPT": "RISK_RETAINED",
    "RUN_GOES_ON": "RUN_NOT_FINISHED",
    "SEATS_ACT_TOGETHER": "SIMULTANEOUS_SEATS",
    "STOPPING": "SERVER_SHUTTING_DOWN",
    "TIME_IS_UP": "SEAT_TIMEOUT",
    "TOOLS_NOT_TAKEN": "TOOLS_UNSUPPORTED",
    "TURNS_USED_UP": "MAX_TURNS_REACHED",
    "TURN_TAKEN": "CONVERSATION_STARTED",
    "TURN_TAKEN_BACK": "TURN_REWOUND",
    "TURN_TOO_EARLY": "CONVERSATION_NOT_STARTED",
}


def current_code(code: str) -> str:
    """Return the present name of an error reason or finding code that was stored by an earlier version."""
    return _RENAMED.get(code, code)


class ErrorKind(Enum):
    """Kind of a failure, independent of any transport."""

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
    """Weight of a finding: an error rejects the document, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem in a document.

    Attributes:
        code: stable UPPER_SNAKE name of the broken rule.
        path: JSON Pointer (RFC 6901) into the document; empty for the whole document.
        message: one sentence with the problem and its fix.
        severity: an error rejects the document.
    """

    code: str
    path: str
    message: str
    severity: Severity = Severity.ERROR

    @property
    def remedy(self) -> str:
        """The catalogued fix for findings of this code; empty if this version does not know the code.

        It is derived from the code and is not a field, so stored and hashed findings do not depend on the
        catalogue.
        """
        return get_remedy(self.code)

    @property
    def violation(self) -> FieldViolation:
        """The finding as a field violation, for a call that fails because of the document."""
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


def filter_errors(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings that reject a document."""
    return tuple(finding for finding in findings if finding.severity is Severity.ERROR)


class PeripetyError(Exception):
    """Root of the hierarchy; only subclasses are raised.

    Args:
        message: one actionable sentence, free of secrets and of the private state of entities.
        code: stable reason for machines; each class has a default.
        details: short machine-readable context (identifiers, limits).
        violations: the wrong fields of the request, if any.
        retry_after: seconds to wait before a retry, if known.
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
    """The request is wrong; retrying it unchanged fails again."""

    kind = ErrorKind.INVALID_ARGUMENT
    default_code = "INVALID_ARGUMENT"


def field_error(field: str, reason: str) -> InvalidArgumentError:
    """Return the error of a request with one invalid field."""
    violation = FieldViolation(field, reason)
    return InvalidArgumentError(f"{violation.field} {reason}", violations=[violation])


def require_field(condition: object, field: str, reason: str) -> None:
    """Raise an error unless a condition holds.

    Args:
        condition: the condition.
        field: path of the field in the request.
        reason: problem and remedy.

    Raises:
        InvalidArgumentError: the condition does not hold.
    """
    if not condition:
        raise field_error(field, reason)


class SpecError(InvalidArgumentError):
    """Rejected scenario document; `findings` holds the problems, worst first."""

    default_code = "SPEC_INVALID"

    def __init__(self, message: str, findings: Sequence[Finding], *, code: str | None = None) -> None:
        super().__init__(message, code=code, violations=[finding.violation for finding in findings])
        self.findings = tuple(findings)


class NotFoundError(PeripetyError):
    """The named resource does not exist, or belongs to another caller."""

    kind = ErrorKind.NOT_FOUND
    default_code = "NOT_FOUND"


class AlreadyExistsError(PeripetyError):
    """The name or request id is already in use."""

    kind = ErrorKind.ALREADY_EXISTS
    default_code = "ALREADY_EXISTS"


class FailedPreconditionError(PeripetyError):
    """The state of the resource does not allow the operation."""

    kind = ErrorKind.FAILED_PRECONDITION
    default_code = "FAILED_PRECONDITION"


class ConflictError(PeripetyError):
    """A concurrent writer changed the resource first: read it again, then retry."""

    kind = ErrorKind.CONFLICT
    default_code = "CONFLICT"


class ResourceExhaustedError(PeripetyError):
    """A limit or a budget is used up."""

    kind = ErrorKind.RESOURCE_EXHAUSTED
    default_code = "RESOURCE_EXHAUSTED"


class UnavailableError(PeripetyError):
    """A dependency does not answer; a later retry may succeed."""

    kind = ErrorKind.UNAVAILABLE
    default_code = "UNAVAILABLE"


class DeadlineError(PeripetyError):
    """The deadline of the caller passed before the work was done."""

    kind = ErrorKind.DEADLINE
    default_code = "DEADLINE_EXCEEDED"


class UnsupportedError(PeripetyError):
    """The contract has the operation, this server does not."""

    kind = ErrorKind.UNSUPPORTED
    default_code = "UNSUPPORTED"


class InternalError(PeripetyError):
    """Defect of Peripety; the message holds only an id to quote."""

    kind = ErrorKind.INTERNAL
    default_code = "INTERNAL"


def hide_internal_error(
    error: Exception, reference: str, details: Mapping[str, str] | None = None
) -> PeripetyError:
    """Return the error shown to clients: a defect is replaced by a reference to the log.

    Args:
        error: the error.
        reference: the id to quote, as part of a sentence.
        details: details of the replacement.
    """
    if isinstance(error, PeripetyError) and not isinstance(error, InternalError):
        return error
    return InternalError(f"internal error of the server; quote {reference}", details=details)
