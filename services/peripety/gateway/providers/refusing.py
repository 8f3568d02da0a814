"""Rejection of valid requests that a model does not support."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.errors import FieldViolation, InvalidArgumentError
from peripety.gateway.model import ToolChoice, ToolChoiceMode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from peripety.gateway.model import GenerateRequest
    from peripety.gateway.providers.base import Call

__all__ = ["forced_tool", "forces_tool", "one_call_at_a_time", "refuse_inexpressible", "too_many_stops"]


def refuse_inexpressible(call: Call, violations: Iterable[FieldViolation]) -> None:
    """Reject a call that uses what its model does not support, if dropping it would change the meaning.

    Raises:
        InvalidArgumentError: it does; the message names the model, the fields and the alternatives.
    """
    found = list(violations)
    if found:
        reasons = "; ".join(f"{violation.field} {violation.reason}" for violation in found)
        raise InvalidArgumentError(
            f"model {call.data.provider}/{call.model} does not support the request: {reasons}",
            violations=found,
        )


def forces_tool(request: GenerateRequest) -> bool:
    """Return True if a tool call is required."""
    choice = request.tool_choice
    return choice is not None and choice.mode in {ToolChoiceMode.ANY, ToolChoiceMode.NAMED}


def forced_tool(call: Call) -> Iterator[FieldViolation]:
    """Yield the violation of a required tool call, for models that do not support it."""
    if forces_tool(call.request) and not call.data.traits.forced_tool_choice:
        reason = "cannot require a tool call of this model; leave the choice to it, or use another model"
        yield FieldViolation("tool_choice.mode", reason)


def one_call_at_a_time(request: GenerateRequest) -> Iterator[FieldViolation]:
    """Yield the violation of one call at a time, for providers that do not support it."""
    choice = request.tool_choice or ToolChoice()
    if choice.disable_parallel and choice.mode is not ToolChoiceMode.NONE:
        reason = "cannot be set for this model; remove it, or use another model"
        yield FieldViolation("tool_choice.disable_parallel", reason)


def too_many_stops(request: GenerateRequest, most: int) -> Iterator[FieldViolation]:
    """Yield the violation of more stop sequences than a provider accepts."""
    if len(request.stop_sequences) > most:
        yield FieldViolation("stop_sequences", f"must be at most {most} for this model; remove some")
