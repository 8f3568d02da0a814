"""JSON codec of the columns of the conversation tables."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from peripety.gateway.conversations.conversation import Turn
from peripety.gateway.conversations.model import Charter
from peripety.gateway.conversations.window import HistoryPolicy, HistoryStrategy
from peripety.gateway.model import Budget, Spent, Usage
from peripety.gateway.writing import (
    dumps,
    read_completion,
    read_message,
    read_tool,
    write_completion,
    write_message,
    write_tool,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "read_charter",
    "read_history",
    "read_spent",
    "read_turn",
    "write_charter",
    "write_history",
    "write_spent",
    "write_turn",
]


def write_charter(charter: Charter) -> str:
    """Encode the immutable configuration of a conversation."""
    return dumps(
        {
            "system": charter.system,
            "tools": [write_tool(tool) for tool in charter.tools],
            "history": write_history(charter.history),
            "budget": None if charter.budget is None else asdict(charter.budget),
        }
    )


def read_charter(text: str) -> Charter:
    """Decode a configuration; inverse of `write_charter`."""
    written = json.loads(text)
    return Charter(
        system=written["system"],
        tools=tuple(map(read_tool, written["tools"])),
        history=read_history(written["history"]),
        budget=None if written["budget"] is None else Budget(**written["budget"]),
    )


def write_history(history: HistoryPolicy) -> list[Any]:
    """Encode a history policy."""
    return [history.strategy.value, history.max_turns, history.max_input_tokens]


def read_history(written: Sequence[Any]) -> HistoryPolicy:
    """Decode a history policy; inverse of `write_history`."""
    strategy, max_turns, max_input_tokens = written
    return HistoryPolicy(HistoryStrategy(strategy), max_turns, max_input_tokens)


def write_spent(spent: Spent) -> str:
    """Encode usage."""
    return dumps(asdict(spent))


def read_spent(text: str) -> Spent:
    """Decode usage; inverse of `write_spent`."""
    written = json.loads(text)
    return Spent(**{**written, "usage": Usage(**written["usage"])})


def write_turn(turn: Turn) -> str:
    """Encode a turn."""
    said = [write_message(message) for message in turn.said]
    return dumps({"said": said, "completion": write_completion(turn.completion)})


def read_turn(text: str) -> Turn:
    """Decode a turn; inverse of `write_turn`."""
    written = json.loads(text)
    return Turn(tuple(map(read_message, written["said"])), read_completion(written["completion"]))
