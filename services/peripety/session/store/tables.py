"""Tables of sessions and of the lines of their turns, and the mapping between rows and domain objects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    LargeBinary,
    Table,
    Text,
    UniqueConstraint,
)

from peripety.core.storage.database import METADATA
from peripety.session.events import decode_event, decode_member, encode_value
from peripety.session.memory import decode_diff, encode_diff
from peripety.session.types import CommittedTurn, Session, SessionSummary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy import ColumnElement, Row

    from peripety.session.types import NarratorMemory, UnchangedMemories


specs = Table(
    "session_specs",
    METADATA,
    Column("spec_hash", Text, primary_key=True),
    Column("document", LargeBinary, nullable=False),
)
"""Specifications of sessions."""

sessions = Table(
    "sessions",
    METADATA,
    Column("session_id", Text, primary_key=True),
    Column("request_id", Text, nullable=False, unique=True),
    Column("request_digest", Text, nullable=False),
    Column("scenario_id", Text, nullable=False, index=True),
    Column("spec_hash", Text, ForeignKey(specs.c.spec_hash), nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("first_seed", BigInteger, nullable=False),
    Column("reseeded", Boolean, nullable=False),
    Column("line_id", Text, nullable=False),
    Column("memories", Text, nullable=False),
    Column("narrator", Text, nullable=False),
    Column("table", Text),
    Column("parent", Text),
    Column("due", BigInteger),
    Column("turn", BigInteger, nullable=False),
    Column("status", Text, nullable=False),
    Column("snapshot", LargeBinary, nullable=False),
    Column("state_hash", Text, nullable=False),
    Column("chain_hash", Text, nullable=False),
    Column("last_sequence", BigInteger, nullable=False),
    Column("usage", Text, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("updated", BigInteger, nullable=False),
    Index("sessions_newest_first", "created", "session_id"),
    Index("sessions_by_update", "updated", "session_id"),
    Index("sessions_by_line", "line_id"),
    Index("sessions_by_due", "due"),
)
"""Current sessions."""

lines = Table(
    "session_lines",
    METADATA,
    Column("line_id", Text, primary_key=True),
    Column("parent_line", Text, ForeignKey("session_lines.line_id"), index=True),
    Column("parent_turn", BigInteger, nullable=False),
)
"""Lines; the turns of a line are numbered from `parent_turn` + 1. A line that starts at 0 has no parent."""

turns = Table(
    "session_turns",
    METADATA,
    Column("line_id", Text, ForeignKey(lines.c.line_id, ondelete="CASCADE"), primary_key=True),
    Column("turn", BigInteger, primary_key=True),
    Column("request_id", Text, nullable=False),
    Column("request_digest", Text, nullable=False),
    Column("first_sequence", BigInteger, nullable=False),
    Column("last_sequence", BigInteger, nullable=False),
    Column("pov", Text),
    Column("record", LargeBinary, nullable=False),
    Column("events", Text, nullable=False),
    Column("memories", Text),
    UniqueConstraint("line_id", "request_id"),
)
"""Committed turns; `memories` is their memory diff."""

snapshots = Table(
    "session_snapshots",
    METADATA,
    Column("line_id", Text, ForeignKey(lines.c.line_id, ondelete="CASCADE"), primary_key=True),
    Column("turn", BigInteger, primary_key=True),
    Column("snapshot", LargeBinary, nullable=False),
    Column("memories", Text, nullable=False),
)
"""Snapshots at some turns, so that replay does not start from the beginning."""

rewinds = Table(
    "session_rewinds",
    METADATA,
    Column("session_id", Text, ForeignKey(sessions.c.session_id, ondelete="CASCADE"), primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("turn", BigInteger, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("request_digest", Text, nullable=False),
    Column("time", BigInteger, nullable=False),
    UniqueConstraint("session_id", "request_id"),
)
"""Rewinds of sessions."""

rewound_turns = Table(
    "session_turns_taken_back",
    METADATA,
    Column("session_id", Text, ForeignKey(sessions.c.session_id, ondelete="CASCADE"), primary_key=True),
    Column("request_id", Text, primary_key=True),
    Column("turn", BigInteger, nullable=False),
)
"""Request ids of rewound turns, which must not be played a second time."""

submissions = Table(
    "session_submissions",
    METADATA,
    Column("session_id", Text, ForeignKey(sessions.c.session_id, ondelete="CASCADE"), primary_key=True),
    Column("after", BigInteger, primary_key=True),
    Column("seat_id", Text, primary_key=True),
    Column("request_id", Text),
    Column("request_digest", Text),
    Column("actions", Text, nullable=False),
    Column("input", Text, nullable=False),
    Column("time", BigInteger, nullable=False),
    UniqueConstraint("session_id", "request_id"),
)
"""Submissions of seats for the turn after a sequence; a row without a request is a timeout."""

deletions = Table(
    "session_deletions",
    METADATA,
    Column("session_id", Text, primary_key=True),
    Column("request_id", Text, nullable=False),
)
"""Deleted sessions, with the request that deleted them."""


_JSON_COLUMNS = ("status", "usage", "memories", "narrator", "table", "parent")

SESSION_COLUMNS = [sessions.c[name] for name in Session.__dataclass_fields__]
"""Columns of a session."""


def has_status(kind: str) -> ColumnElement[bool]:
    """Return the condition for sessions with a status; its kind comes first in the stored text."""
    return sessions.c.status.startswith(f'{{"kind":"{kind}",', autoescape=True)


SUMMARY_COLUMNS = [sessions.c[name] for name in SessionSummary.__dataclass_fields__]
"""Columns of a session summary."""


def session_to_columns(session: Session) -> dict[str, Any]:
    """Convert a session to columns."""
    plain = {name: getattr(session, name) for name in Session.__dataclass_fields__}
    return plain | {
        name: None if plain[name] is None else _dumps(encode_value(plain[name])) for name in _JSON_COLUMNS
    }


def session_from_row(row: Row[Any]) -> Session:
    """Convert a row to a session."""
    return Session(**_decode_columns(row, Session.__dataclass_fields__))


def summary_from_row(row: Row[Any]) -> SessionSummary:
    """Convert a row to a session summary."""
    return SessionSummary(**_decode_columns(row, SessionSummary.__dataclass_fields__))


def _decode_columns(row: Row[Any], names: Iterable[str]) -> dict[str, Any]:
    values = {name: getattr(row, name) for name in names}
    return {
        name: decode_member(name, json.loads(value)) if name in _JSON_COLUMNS and value is not None else value
        for name, value in values.items()
    }


def turn_to_columns(line_id: str, turn: CommittedTurn) -> dict[str, Any]:
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
        "events": _dumps([encode_value(event) for event in turn.events]),
        "memories": None if turn.memories is None else _dumps(encode_diff(turn.memories)),
    }


def turn_from_row(row: Row[Any]) -> CommittedTurn:
    """Convert a row to a turn."""
    return CommittedTurn(
        turn=row.turn,
        request_id=row.request_id,
        request_digest=row.request_digest,
        pov=row.pov,
        record=row.record,
        first_sequence=row.first_sequence,
        events=tuple(decode_event(event) for event in json.loads(row.events)),
        memories=decode_memory_diff(row.memories),
    )


def decode_memories(text: str) -> tuple[NarratorMemory, ...]:
    """Decode a column with all memories."""
    memories: tuple[NarratorMemory, ...] = decode_member("memories", json.loads(text))
    return memories


def decode_memory_diff(text: str | None) -> tuple[UnchangedMemories | NarratorMemory, ...] | None:
    """Decode a column with the memory diff of a turn."""
    return None if text is None else decode_diff(json.loads(text))


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
