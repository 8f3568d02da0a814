"""Tables of one kind of runs."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Table, Text

from peripety.durable.requests import request_table
from peripety.storage import METADATA

__all__ = ["RunTables", "run_tables"]


class RunTables(NamedTuple):
    """Tables of one kind of runs.

    Attributes:
        runs: the runs.
        events: the events of the runs.
        requests: the requests that started and changed the runs.
    """

    runs: Table
    events: Table
    requests: Table


def run_tables(kind: str, *columns: Column[Any]) -> RunTables:
    """Declare the tables of a kind of runs.

    Args:
        kind: prefix of the table names.
        columns: extra columns of a run.
    """
    runs = Table(
        f"{kind}_runs",
        METADATA,
        Column("run_id", Text, primary_key=True),
        *columns,
        Column("state", Text, nullable=False),
        Column("last_sequence", BigInteger, nullable=False),
        Column("lease", Text),
        Column("leased_until", BigInteger, nullable=False),
        Column("created", BigInteger, nullable=False),
        Column("updated", BigInteger, nullable=False),
        Index(f"{kind}_runs_newest_first", "created", "run_id"),
    )
    events = Table(
        f"{kind}_events",
        METADATA,
        Column("run_id", Text, ForeignKey(runs.c.run_id, ondelete="CASCADE"), primary_key=True),
        Column("sequence", BigInteger, primary_key=True),
        Column("kind", Text, nullable=False),
        Column("body", Text, nullable=False),
    )
    requests = request_table(
        f"{kind}_requests",
        Column("run_id", Text, nullable=False),
        Column("sequence", BigInteger, nullable=False),
    )
    return RunTables(runs, events, requests)
