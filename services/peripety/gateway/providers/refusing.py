"""Requests that make sense, and that a model has no way to be asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.errors import FieldViolation
    from peripety.gateway.providers.base import Call

__all__ = ["refuse_inexpressible"]


def refuse_inexpressible(call: Call, violations: Iterable[FieldViolation]) -> None:
    """Refuse a call if there is something that its model cannot be told and that changes what is asked.

    Raises:
        InvalidArgumentError: there is; the message names the model, the fields and the ways out.
    """
    found = list(violations)
    if found:
        reasons = "; ".join(f"{violation.field} {violation.reason}" for violation in found)
        raise InvalidArgumentError(
            f"The model {call.data.provider}/{call.model} cannot be asked that: {reasons}", violations=found
        )
