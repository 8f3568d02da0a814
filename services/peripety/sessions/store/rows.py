"""Mapping between table rows and domain objects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from peripety.sessions.events import decode, encode, event_of
from peripety.sessions.model import CommittedTurn, Session, SessionSummary
from peripety.sessions.remembered import decode_changes, encode_changes
from peripety.sessions.store.tables import sessions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import Row

    from peripety.sessions.model import Kept, Memory

__all__ = [
    "SESSION",
    "SUMMARY",
    "committed",
    "memories_of",
    "memory_changes",
    "session_columns",
    "session_of",
    "summary_of",
    "turn_columns",
]

_STRUCTURED = ("status", "usage", "memories", "narrator", "table", "parent")

SESSION = [sessions.c[name] for name in Session.__dataclass_fields__]
"""Columns of a session."""

SUMMARY = [sessions.c[name] for name in SessionSummary.__dataclass_fields__]
"""Columns of a session summary."""


def session_columns(session: Session) -> dict[str, Any]:
    """Convert a session to columns."""
    plain = {name: getattr(session, name) for name in Session.__dataclass_fields__}
    return plain | {
        name: None if plain[name] is None else _dumps(encode(plain[name])) for name in _STRUCTURED
    }


def session_of(row: Row[Any]) -> Session:
    """Convert a row to a session."""
    return Session(**_parsed(row, Session.__dataclass_fields__))


def summary_of(row: Row[Any]) -> SessionSummary:
    """Convert a row to a session summary."""
    return SessionSummary(**_parsed(row, SessionSummary.__dataclass_fields__))


def _parsed(row: Row[Any], names: Iterable[str]) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in names}
    return {
        name: decode(name, json.loads(value)) if name in _STRUCTURED and value is not None else value
        for name, value in values.items()
    }


def turn_columns(line_id: str, turn: CommittedTurn) -> dict[str, Any]:
    """Convert a turn of a line to columns."""
    return {
        "line_id": line_id,
        "turn": turn.turn,
        "request_id": turn.request_id,
        "request_digest": turn.request_digest,
        "pov": turn.pov,
        "record": turn.record,
        "first_sequence": turn.first_sequence,
        "last_sequence": turn.last_sequence,
        "events": _dumps([encode(event) for event in turn.events]),
        "memories": None if turn.memories is None else _dumps(encode_changes(turn.memories)),
    }


def committed(row: Row[Any]) -> CommittedTurn:
    """Convert a row to a turn."""
    return CommittedTurn(
        turn=row.turn,
        request_id=row.request_id,
        request_digest=row.request_digest,
        pov=row.pov,
        record=row.record,
        first_sequence=row.first_sequence,
        events=tuple(event_of(event) for event in json.loads(row.events)),
        memories=memory_changes(row.memories),
    )


def memories_of(text: str) -> tuple[Memory, ...]:
    """Decode a column with all memories."""
    memories: tuple[Memory, ...] = decode("memories", json.loads(text))
    return memories


def memory_changes(text: str | None) -> tuple[Kept | Memory, ...] | None:
    """Decode a column with the memory diff of a turn."""
    return None if text is None else decode_changes(json.loads(text))


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
