"""Schema migrations: steps that upgrade the database of an older version.

The steps are listed in the order in which they were added, and use the table names of their time. A process
upgrades a database whichever services it serves, so a step must not depend on modules that only some services
import. docs/explanation/decisions/0004-storage.md explains how to add a step.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, Boolean, Column, MetaData, Table, Text, inspect, text
from sqlalchemy.schema import CreateColumn

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection


def add_column(connection: Connection, table: str, column: Column[Any]) -> None:
    """Add a column to a table, unless the table does not exist yet: it is then created with all its columns.

    Args:
        connection: in the transaction of the migration.
        table: name of the table.
        column: nullable, or with a `server_default`, which existing rows get, and rows that an older program
            still inserts. Constraints and indexes are not added.
    """
    if not inspect(connection).has_table(table):
        return
    name = connection.dialect.identifier_preparer.format_table(Table(table, MetaData(), column))
    specification = CreateColumn(column).compile(dialect=connection.dialect)
    connection.exec_driver_sql(f"ALTER TABLE {name} ADD COLUMN {specification}")


def _introduce_history_lines(connection: Connection) -> None:
    """Introduce history segments: turns belong to lines, so sessions can be forked and rewound.

    An older program that still runs fails from then on when it plays a turn, and changes nothing.
    """
    if not inspect(connection).has_table("sessions"):
        return
    narrator = '{"model":null,"language":null,"turn_budget":null,"session_budget":null}'
    for column in (
        Column("first_seed", BigInteger, nullable=False, server_default="0"),
        Column("reseeded", Boolean, nullable=False, server_default=text("false")),
        Column("line_id", Text, nullable=False, server_default=""),
        Column("memories", Text, nullable=False, server_default="[]"),
        Column("narrator", Text, nullable=False, server_default=narrator),
        Column("table", Text),
        Column("parent", Text),
        Column("due", BigInteger),
    ):
        add_column(connection, "sessions", column)
    for statement in _LINES:
        connection.exec_driver_sql(statement.format(bytes=_BYTES[connection.dialect.name]))


_BYTES = {"sqlite": "BLOB", "postgresql": "BYTEA"}
_LINES = (
    "UPDATE sessions SET first_seed = seed, line_id = session_id",
    "CREATE INDEX sessions_by_line ON sessions (line_id)",
    "CREATE INDEX sessions_by_due ON sessions (due)",
    "ALTER TABLE session_turns RENAME TO session_turns_of_sessions",
    """
    CREATE TABLE session_lines (
        line_id TEXT NOT NULL PRIMARY KEY,
        parent_line TEXT REFERENCES session_lines (line_id),
        parent_turn BIGINT NOT NULL
    )
    """,
    "CREATE INDEX ix_session_lines_parent_line ON session_lines (parent_line)",
    """
    CREATE TABLE session_turns (
        line_id TEXT NOT NULL REFERENCES session_lines (line_id) ON DELETE CASCADE,
        turn BIGINT NOT NULL,
        request_id TEXT NOT NULL,
        request_digest TEXT NOT NULL,
        first_sequence BIGINT NOT NULL,
        last_sequence BIGINT NOT NULL,
        pov TEXT,
        record {bytes} NOT NULL,
        events TEXT NOT NULL,
        memories TEXT,
        PRIMARY KEY (line_id, turn),
        UNIQUE (line_id, request_id)
    )
    """,
    """
    CREATE TABLE session_snapshots (
        line_id TEXT NOT NULL REFERENCES session_lines (line_id) ON DELETE CASCADE,
        turn BIGINT NOT NULL,
        snapshot {bytes} NOT NULL,
        memories TEXT NOT NULL,
        PRIMARY KEY (line_id, turn)
    )
    """,
    "INSERT INTO session_lines SELECT line_id, NULL, 0 FROM sessions",
    """
    INSERT INTO session_turns
    SELECT
        old.session_id, old.turn, old.request_id, old.request_digest, old.first_sequence,
        COALESCE(following.first_sequence - 1, sessions.last_sequence),
        old.pov, old.record, old.events, NULL
    FROM session_turns_of_sessions AS old
    JOIN sessions ON sessions.session_id = old.session_id
    LEFT JOIN session_turns_of_sessions AS following
        ON following.session_id = old.session_id AND following.turn = old.turn + 1
    """,
    "DROP TABLE session_turns_of_sessions",
    # The current state of a session; earlier states are replayed from the start.
    """
    INSERT INTO session_snapshots
    SELECT line_id, turn, snapshot, memories FROM sessions WHERE turn > 0
    """,
)


def _index_sessions_by_update(connection: Connection) -> None:
    """Add the index for lists of sessions with the latest turn first."""
    if inspect(connection).has_table("sessions"):
        connection.exec_driver_sql("CREATE INDEX sessions_by_update ON sessions (updated, session_id)")


def _name_policies(connection: Connection) -> None:
    """Add the name of a policy to its summary, from the stored document."""
    if not inspect(connection).has_table("policy_versions"):
        return
    add_column(connection, "policy_versions", Column("name", Text, nullable=False, server_default=""))
    stored = text(
        "SELECT position, result FROM policy_versions WHERE position > :last ORDER BY position LIMIT 1"
    )
    rename = text("UPDATE policy_versions SET name = :name WHERE position = :position")
    last = -1
    # One at a time: a result can be many megabytes long.
    while (row := connection.execute(stored, {"last": last}).first()) is not None:
        last = row.position
        name = json.loads(json.loads(bytes(row.result))["document"])["name"]
        connection.execute(rename, {"name": name, "position": last})


STEPS: tuple[Callable[[Connection], None], ...] = (
    _introduce_history_lines,
    _index_sessions_by_update,
    _name_policies,
)
"""Step 0 upgrades version 1 to version 2. A released step is never changed, moved or removed."""
