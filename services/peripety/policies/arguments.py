"""Arguments against the schema of their tool: what no caller can send tests nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim.schema import check

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peripety.errors import Finding

__all__ = ["violations"]


def violations(input_schema: Mapping[str, Any] | None, arguments: Mapping[str, Any]) -> list[Finding]:
    """Everything in the arguments of a call that its tool refuses, by its place.

    Args:
        input_schema: that of the tool, as the checks of a policy document let it pass; None refuses nothing.
        arguments: what the tool is called with.
    """
    return [] if input_schema is None else check(input_schema, arguments, linear=True)
