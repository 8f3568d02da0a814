"""Where compiled policies are kept: every version by the hash of its content."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, Integer, LargeBinary, String, delete, insert, select

from peripety.errors import NotFoundError
from peripety.pages import Page
from peripety.policies.model import CompiledPolicy, PolicySummary
from peripety.policies.writing import read, write
from peripety.sim import loads
from peripety.tasks import aside
from peripety.versions import Versions, moment, named_by, versions_table

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.policies.model import Compiled
    from peripety.storage import Database

__all__ = ["PolicyStore"]

_table = versions_table(
    "policy_versions",
    "policy_id",
    "policy_hash",
    Column("input_hash", String(64), nullable=False),
    Column("result", LargeBinary, nullable=False),
    Column("rules", Integer, nullable=False),
    Column("scenarios", Integer, nullable=False),
)
_columns = _table.c
_versions = Versions.of(_table, "policy_id", "policy_hash")


class PolicyStore:
    """Compiled policies in the database of the process.

    Args:
        database: has the table.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(
        self,
        compiled: Compiled,
        input_hash: str,
        connection: AsyncConnection,
        *,
        version_of: str | None = None,
    ) -> CompiledPolicy:
        """Store a policy as its latest version.

        The same content replaces what was stored of it, and keeps the time at which that was first stored.

        Args:
            compiled: the policy.
            input_hash: names what it was compiled from, and how.
            connection: the transaction in which this is done.
            version_of: the policy that it is a version of; by default one that its content names.

        Raises:
            NotFoundError: there is no policy `version_of`, or not any more.
        """
        if version_of is not None:
            await _require(version_of, connection)
        policy_hash = sha256(compiled.document).hexdigest()
        policy_id = version_of or named_by("pol", policy_hash)
        same = _versions.same(policy_id, policy_hash)
        first_stored = await connection.scalar(select(_columns.create_time).where(*same))
        now = datetime.now(UTC) if first_stored is None else moment(first_stored)
        stored = CompiledPolicy(policy_id, policy_hash, compiled, input_hash, now)
        await connection.execute(delete(_table).where(*same))
        await connection.execute(insert(_table).values(_row(stored)))
        return stored

    async def get(self, policy_id: str, policy_hash: str | None = None) -> CompiledPolicy:
        """A stored policy, in its latest version unless a version is named.

        Raises:
            NotFoundError: there is no such policy or version.
        """
        async with self._database.read() as connection:
            row = await _versions.find(select(_table), policy_id, policy_hash, connection)
        if row is None:
            raise _not_found(policy_id, policy_hash)
        return await aside(partial(_policy, row), len(row.result))

    async def document(self, policy_id: str) -> bytes:
        """The document of a policy; see `StoredPolicies.document`."""
        return (await self.get(policy_id)).compiled.document

    async def latest_hash(self, policy_id: str) -> str:
        """The hash of the latest version of a policy.

        Raises:
            NotFoundError: there is no such policy.
        """
        async with self._database.read() as connection:
            return await _require(policy_id, connection)

    async def policies(self, asked_size: int = 0, page_token: str = "") -> Page[PolicySummary]:
        """A page of all policies, each in its latest version, newest first.

        Raises:
            InvalidArgumentError: the size is negative, or the token is none of ours.
        """
        query = select(
            _columns.position,
            _columns.policy_id,
            _columns.policy_hash,
            _columns.rules,
            _columns.scenarios,
            _columns.create_time,
        ).where(_versions.latest)
        async with self._database.read() as connection:
            page = await _versions.page(query, asked_size, page_token, connection)
        return Page(tuple(map(_summary, page.items)), page.next_page_token)

    async def delete(self, policy_id: str, connection: AsyncConnection) -> None:
        """Forget a policy with all its versions.

        Args:
            policy_id: the policy.
            connection: the transaction in which this is done.

        Raises:
            NotFoundError: there is no such policy.
        """
        done = await connection.execute(delete(_table).where(_columns.policy_id == policy_id))
        if not done.rowcount:
            raise _not_found(policy_id)


async def _require(policy_id: str, connection: AsyncConnection) -> str:
    """The hash of the latest version of a policy, which has to be there."""
    latest = await _versions.latest_hash(policy_id, connection)
    if latest is None:
        raise _not_found(policy_id)
    return latest


def _row(stored: CompiledPolicy) -> dict[str, Any]:
    compiled = stored.compiled
    return {
        "policy_id": stored.policy_id,
        "policy_hash": stored.policy_hash,
        "input_hash": stored.input_hash,
        "result": write(compiled),
        "rules": len(loads(compiled.document)["rules"]),
        "scenarios": len(compiled.scenarios),
        "create_time": stored.create_time.timestamp(),
    }


def _policy(row: Any) -> CompiledPolicy:
    compiled = read(row.result)
    return CompiledPolicy(row.policy_id, row.policy_hash, compiled, row.input_hash, moment(row.create_time))


def _summary(row: Any) -> PolicySummary:
    return PolicySummary(row.policy_id, row.policy_hash, row.rules, row.scenarios, moment(row.create_time))


def _not_found(policy_id: str, policy_hash: str | None = None) -> NotFoundError:
    version = f" with the version {policy_hash}" if policy_hash else ""
    return NotFoundError(
        f"There is no policy {policy_id}{version}; compile one, or list those that are stored",
        code="POLICY_NOT_FOUND",
    )
