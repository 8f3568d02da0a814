"""Coalescing of neighbouring deltas of an answer into one recorded event."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.gateway.model import ReasoningDelta, TextDelta, ToolCallDelta

if TYPE_CHECKING:
    from peripety.gateway.agents.model import RunEvent

__all__ = ["joined"]


def joined(before: RunEvent, after: RunEvent) -> RunEvent | None:
    """Return two deltas of the same text as one; None if they cannot be joined."""
    match before, after:
        case (TextDelta(), TextDelta()):
            return TextDelta(before.text + after.text)
        case (ReasoningDelta(), ReasoningDelta()):
            return ReasoningDelta(before.text + after.text)
        case (ToolCallDelta(), ToolCallDelta()) if before.call_id == after.call_id:
            return replace(before, arguments_text=before.arguments_text + after.arguments_text)
    return None
