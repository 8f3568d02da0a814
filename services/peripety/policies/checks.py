"""What is refused before a model is asked: orders that no rules could fulfil."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.errors import FieldViolation, Finding, InvalidArgumentError, Severity
from peripety.policies.compiling.material import tool_document
from peripety.sim import canonical, validate_policy

if TYPE_CHECKING:
    from peripety.policies.model import CompileOrder

__all__ = ["check_order"]


def check_order(order: CompileOrder) -> None:
    """Refuse tools, invariants and lists that no policy document could have.

    Raises:
        InvalidArgumentError: they are wrong; the violations name each place.
    """
    foundation = {
        "policy_version": "1.0",
        "id": "policy",
        "name": "policy",
        "tools": [*map(tool_document, order.tools)],
        "lists": {**order.lists},
        "invariants": [*order.invariants],
        "rules": [],
    }
    errors = [one for one in validate_policy(canonical(foundation)) if one.severity is Severity.ERROR]
    if errors:
        raise InvalidArgumentError(
            f"What the rules have to stand on has {len(errors)} error(s); the first: {errors[0].message}",
            code="FOUNDATION_INVALID",
            violations=[*map(_violation, errors)],
        )


def _violation(finding: Finding) -> FieldViolation:
    """A finding, where it stands in a request."""
    if not finding.path:
        # The whole is too large; a foundation alone is held to the same limit when it is read.
        return FieldViolation(".tools", f"together with the foundation: {finding.violation.reason}")
    first, _, rest = finding.path.removeprefix("/").partition("/")
    if first != "tools":
        return FieldViolation(f".foundation{finding.path}", finding.violation.reason)
    index, _, inner = rest.partition("/")
    place = f".tools[{index}]" if index else ".tools"
    return FieldViolation(f"{place}/{inner}" if inner else place, finding.violation.reason)
