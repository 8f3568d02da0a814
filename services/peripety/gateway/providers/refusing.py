"""Requests that make sense, and that a model has no way to be asked."""

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


def forces_tool(request: GenerateRequest) -> bool:
    """Whether a tool has to be called."""
    choice = request.tool_choice
    return choice is not None and choice.mode in {ToolChoiceMode.ANY, ToolChoiceMode.NAMED}


def forced_tool(call: Call) -> Iterator[FieldViolation]:
    """The demand for a call of a tool, where the model takes none."""
    if forces_tool(call.request) and not call.data.traits.forced_tool_choice:
        reason = "cannot demand a tool of this model; leave the choice to it, or ask another model"
        yield FieldViolation("tool_choice.mode", reason)


def one_call_at_a_time(request: GenerateRequest) -> Iterator[FieldViolation]:
    """The wish for one call at a time, for providers that cannot be told it."""
    choice = request.tool_choice or ToolChoice()
    if choice.disable_parallel and choice.mode is not ToolChoiceMode.NONE:
        reason = "cannot be set for this model; leave it out, or ask another model"
        yield FieldViolation("tool_choice.disable_parallel", reason)


def too_many_stops(request: GenerateRequest, most: int) -> Iterator[FieldViolation]:
    """More texts that end the answer than a provider takes."""
    if len(request.stop_sequences) > most:
        yield FieldViolation("stop_sequences", f"may be {most} at most for this model; leave some out")
