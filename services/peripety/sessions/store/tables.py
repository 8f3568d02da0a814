"""Tables of sessions and of the lines of their turns."""

from __future__ import annotations

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

from peripety.storage import METADATA

__all__ = [
    "deletions",
    "lines",
    "rewinds",
    "sessions",
    "snapshots",
    "specs",
    "submissions",
    "taken_back",
    "turns",
]

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

taken_back = Table(
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
