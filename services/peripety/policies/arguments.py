"""Validation of call arguments against the input schema of a tool."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim.schema import check

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.errors import Finding

__all__ = ["violations"]


def violations(input_schema: Mapping[str, Any] | None, arguments: Mapping[str, Any]) -> list[Finding]:
    """Return the schema violations of call arguments, with their paths.

    Args:
        input_schema: the schema of the tool, as accepted by the validation of a policy document; None accepts
            everything.
        arguments: the arguments of the call.
    """
    return [] if input_schema is None else check(input_schema, arguments, linear=True)
