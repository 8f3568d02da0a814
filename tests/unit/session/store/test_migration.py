"""Migration of a database of version 1, in which sessions own turns: open, continue, fork and verify."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import inspect, text

from peripety.core.storage.database import METADATA, Database
from peripety.core.storage.postgresql import PostgresqlServer
from peripety.core.storage.sqlite import SqliteFile
from peripety.errors import AlreadyExistsError
from peripety.session.branches import state_at
from peripety.session.store.session_store import SessionStore
from peripety.session.store.turn_commit import SNAPSHOT_TURNS
from peripety.session.types import NewSession, SessionListing
from support.gateway.fake_gateway import FakeGateway
from support.session.sessions import (
    FATEFUL,
    OneScenario,
    forked,
    new_id,
    outcome,
    rewound,
    rulesets,
    sessions_over,
    standing_rows,
    table,
    turns_of,
    verified,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.session.types import CommittedTurn, Session


pytestmark = pytest.mark.postgresql


OLD = """
CREATE TABLE peripety_schema (version INTEGER NOT NULL PRIMARY KEY);
INSERT INTO peripety_schema VALUES (1);
CREATE TABLE session_specs (spec_hash TEXT NOT NULL PRIMARY KEY, document {bytes} NOT NULL);
CREATE TABLE sessions (
    session_id TEXT NOT NULL PRIMARY KEY,
    request_id TEXT NOT NULL UNIQUE,
    request_digest TEXT NOT NULL,
    scenario_id TEXT NOT NULL,
    spec_hash TEXT NOT NULL REFERENCES session_specs (spec_hash),
    seed BIGINT NOT NULL,
    turn BIGINT NOT NULL,
    status TEXT NOT NULL,
    snapshot {bytes} NOT NULL,
    state_hash TEXT NOT NULL,
    chain_hash TEXT NOT NULL,
    last_sequence BIGINT NOT NULL,
    usage TEXT NOT NULL,
    created BIGINT NOT NULL,
    updated BIGINT NOT NULL
);
CREATE INDEX ix_sessions_scenario_id ON sessions (scenario_id);
CREATE INDEX sessions_newest_first ON sessions (created, session_id);
CREATE TABLE session_turns (
    session_id TEXT NOT NULL REFERENCES sessions (session_id) ON DELETE CASCADE,
    turn BIGINT NOT NULL,
    request_id TEXT NOT NULL,
    request_digest TEXT NOT NULL,
    pov TEXT,
    record {bytes} NOT NULL,
    first_sequence BIGINT NOT NULL,
    events TEXT NOT NULL,
    narrative TEXT NOT NULL,
    PRIMARY KEY (session_id, turn),
    UNIQUE (session_id, request_id)
);
CREATE TABLE session_deletions (session_id TEXT NOT NULL PRIMARY KEY, request_id TEXT NOT NULL)
"""
COLUMNS = {
    "session_specs": "spec_hash document",
    "sessions": "session_id request_id request_digest scenario_id spec_hash seed turn status snapshot"
    " state_hash chain_hash last_sequence usage created updated",
    "session_turns": "session_id turn request_id request_digest pov record first_sequence events narrative",
}
LATER = ("conduct", "next_seat_id", "entity_id")
TURNS = SNAPSHOT_TURNS + 3


async def played(directory: Path) -> tuple[dict[str, list[dict[str, Any]]], Session, list[CommittedTurn]]:
    """Return the version 1 rows of two sessions, and the session and the turns of the played one."""
    async with table(f"sqlite:///{directory}/new.db", FATEFUL) as game:
        await game.sessions.create(NewSession(new_id(), "scenario"))
        for turn in range(1, TURNS + 1):
            await game.play(turn, *(["act"] if turn % 2 else []))
        rows: dict[str, list[dict[str, Any]]] = {}
        async with game.database.read() as connection:
            for name in COLUMNS:
                found = await connection.execute(METADATA.tables[name].select())
                rows[name] = [dict(row._mapping) for row in found]
        session = await game.store.get_session(game.session_id)
        turns = await turns_of(game.store, game.session_id)
    for row in rows["session_turns"]:
        row |= {"session_id": session.session_id, "narrative": "what was told"}
        events = json.loads(row["events"])
        without = [{k: v for k, v in event.items() if k not in LATER} for event in events]
        row["events"] = json.dumps(without)
    return rows, session, turns


async def store_as_version_1(url: str, rows: dict[str, list[dict[str, Any]]]) -> None:
    """Make a database as version 1 left it."""
    sqlite = url.startswith("sqlite")
    old = Database(SqliteFile(url) if sqlite else PostgresqlServer(url))
    try:
        async with old.write() as connection:
            for statement in OLD.format(bytes="BLOB" if sqlite else "BYTEA").split(";"):
                await connection.execute(text(statement))
            for name, columns in COLUMNS.items():
                await insert(connection, name, columns.split(), rows[name])
    finally:
        await old.close()


async def insert(
    connection: AsyncConnection,
    name: str,
    columns: list[str],
    rows: list[dict[str, Any]],
) -> None:
    values = ", ".join(f":{column}" for column in columns)
    statement = text(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({values})")  # noqa: S608
    for row in rows:
        await connection.execute(statement, {column: row[column] for column in columns})


@asynccontextmanager
async def reopened(url: str) -> AsyncIterator[SessionStore]:
    database = await Database.open(url)
    try:
        yield SessionStore(database)
    finally:
        await database.close()


async def test_sessions_of_version_1_are_what_they_were_and_go_on(database_url: str, tmp_path: Path) -> None:
    rows, session, turns = await played(tmp_path)
    await store_as_version_1(database_url, rows)
    async with reopened(database_url) as store:
        migrated = await store.get_session(session.session_id)
        assert (migrated.turn, migrated.chain_hash, migrated.snapshot) == (
            TURNS,
            session.chain_hash,
            session.snapshot,
        )
        assert (migrated.first_seed, migrated.memories, migrated.parent) == (session.seed, (), None)
        assert migrated.narrator == session.narrator
        assert await verified(store, session.session_id) == turns
        assert await store.find_turn(session.session_id, turns[4].request_id) == turns[4]
        assert len(await store.list_sessions(SessionListing(), None, 10)) == 2
        sessions = sessions_over(store, OneScenario(FATEFUL), FakeGateway(outcome()))
        for row in rows["sessions"]:
            with pytest.raises(AlreadyExistsError):
                await sessions.create(NewSession(row["request_id"], "scenario", seed=99))


async def test_sessions_of_version_1_can_be_forked_and_rewound(database_url: str, tmp_path: Path) -> None:
    rows, session, turns = await played(tmp_path)
    await store_as_version_1(database_url, rows)
    async with reopened(database_url) as store:
        sessions = sessions_over(store, OneScenario(FATEFUL), FakeGateway(outcome()))
        fork = (await forked(sessions, session.session_id, 5)).session
        assert await verified(store, fork.session_id) == turns[:5]
        await rewound(sessions, session.session_id, 3)
        assert await verified(store, session.session_id) == turns[:3]
        assert await verified(store, fork.session_id) == turns[:5]
        then = await state_at(store, rulesets(store), fork.session_id, 2)
        assert then.state_hash == turns[1].events[-1].state_hash  # type: ignore[union-attr]


async def test_a_migrated_database_has_the_columns_and_indexes_of_a_new_one(
    database_url: str,
    tmp_path: Path,
) -> None:
    await store_as_version_1(database_url, (await played(tmp_path))[0])
    async with reopened(database_url) as old, reopened(f"sqlite:///{tmp_path}/other.db") as new:
        assert await shape_of(old) == await shape_of(new)


async def test_nothing_of_a_migrated_session_stays_when_it_is_deleted(
    database_url: str,
    tmp_path: Path,
) -> None:
    rows, _, _ = await played(tmp_path)
    await store_as_version_1(database_url, rows)
    async with reopened(database_url) as store:
        for row in rows["sessions"]:
            await store.delete(row["session_id"], new_id())
        assert set((await standing_rows(store._database)).values()) == {0}


async def shape_of(store: SessionStore) -> dict[str, Any]:
    """The columns, keys and indexes of the tables of sessions."""

    def shape(connection: Any) -> dict[str, Any]:
        look = inspect(connection)
        return {
            name: (
                {column["name"]: column["nullable"] for column in look.get_columns(name)},
                look.get_pk_constraint(name)["constrained_columns"],
                sorted(
                    unique["column_names"]
                    for unique in look.get_unique_constraints(name)
                    if unique["column_names"]
                ),
                sorted(
                    (index["name"], index["column_names"])
                    for index in look.get_indexes(name)
                    if not index["unique"]
                ),
                sorted(key["constrained_columns"] for key in look.get_foreign_keys(name)),
            )
            for name in METADATA.tables
            if name.startswith("session")
        }

    async with store._database.read() as connection:
        found: dict[str, Any] = await connection.run_sync(shape)
        return found
