"""Specifications that were generated over HTTP, by the id in them, until they are compiled.

`POST /scenarios/generate` returns the specification and nothing else, so its `id` is the only name that a
client has for it. The service stores no generated specification; this table does, for a day.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sqlalchemy import Column, Float, LargeBinary, String, Table, delete, select

from peripety.core.storage.database import METADATA
from peripety.errors import AlreadyExistsError, NotFoundError

if TYPE_CHECKING:
    from peripety.core.storage.database import Database

KEPT_SECONDS = 86_400.0
"""Seconds until a generated specification expires."""

_table = Table(
    "edge_generated_specs",
    METADATA,
    Column("spec_hash", String(64), primary_key=True),
    Column("spec_id", String(200), nullable=False, index=True),
    Column("document", LargeBinary, nullable=False),
    Column("create_time", Float, nullable=False, index=True),
)


class GeneratedSpecs:
    """Store of generated specifications."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, spec_id: str, spec_hash: str, document: bytes) -> None:
        """Store a specification, and delete those that have expired."""
        now = time.time()
        async with self._database.write() as connection:
            await connection.execute(
                delete(_table).where(
                    (_table.c.create_time < now - KEPT_SECONDS) | (_table.c.spec_hash == spec_hash)
                )
            )
            await connection.execute(
                _table.insert().values(
                    spec_hash=spec_hash, spec_id=spec_id, document=document, create_time=now
                )
            )

    async def find(self, spec_id: str) -> bytes:
        """Return the document with an id.

        Raises:
            NotFoundError: no specification with this id was generated within the last day.
            AlreadyExistsError: several different ones were.
        """
        query = select(_table.c.document).where(
            _table.c.spec_id == spec_id, _table.c.create_time >= time.time() - KEPT_SECONDS
        )
        async with self._database.read() as connection:
            documents: list[bytes] = list((await connection.scalars(query.limit(2))).all())
        if not documents:
            raise NotFoundError(
                "no specification with this id was generated within the last day; send it as the body",
                code="SCENARIO_NOT_FOUND",
            )
        if len(documents) > 1:
            raise ambiguous_id_error()
        return documents[0]

    async def check_unambiguous(self, spec_id: str, spec_hash: str) -> None:
        """Raise unless every stored specification with an id is the one with a hash.

        Raises:
            AlreadyExistsError: another one has the id.
        """
        query = select(_table.c.spec_hash).where(
            _table.c.spec_id == spec_id,
            _table.c.spec_hash != spec_hash,
            _table.c.create_time >= time.time() - KEPT_SECONDS,
        )
        async with self._database.read() as connection:
            if await connection.scalar(query.limit(1)) is not None:
                raise ambiguous_id_error()


def ambiguous_id_error() -> AlreadyExistsError:
    """Return the error of an id that more than one document has."""
    return AlreadyExistsError(
        "another specification has this id; change the `id` in the document, or compile it over"
        " /rpc/ScenarioService/CompileScenario",
        code="SCENARIO_ID_TAKEN",
    )
