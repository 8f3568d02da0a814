"""Store of compiled policies, with one version per content hash."""

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
    """Compiled policies in the database.

    Args:
        database: the database with the table.
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

        Equal content replaces the stored version, but its first time of storage remains.

        Args:
            compiled: the policy.
            input_hash: digest of the inputs.
            connection: the transaction.
            version_of: the policy to add a version to; by default one identified by its content.

        Raises:
            NotFoundError: the policy `version_of` does not exist.
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
        """Return a stored policy, in its latest version by default.

        Raises:
            NotFoundError: the policy or version does not exist.
        """
        async with self._database.read() as connection:
            row = await _versions.find(select(_table), policy_id, policy_hash, connection)
        if row is None:
            raise _not_found(policy_id, policy_hash)
        return await aside(partial(_policy, row), len(row.result))

    async def document(self, policy_id: str) -> bytes:
        """Return the document of a policy; see `StoredPolicies.document`."""
        return (await self.get(policy_id)).compiled.document

    async def latest_hash(self, policy_id: str) -> str:
        """Return the hash of the latest version of a policy.

        Raises:
            NotFoundError: the policy does not exist.
        """
        async with self._database.read() as connection:
            return await _require(policy_id, connection)

    async def policies(self, asked_size: int = 0, page_token: str = "") -> Page[PolicySummary]:
        """Return a page of all policies, each in its latest version, newest first.

        Raises:
            InvalidArgumentError: the size is negative, or the token is invalid.
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
        """Delete a policy with all its versions.

        Args:
            policy_id: the policy.
            connection: the transaction.

        Raises:
            NotFoundError: the policy does not exist.
        """
        done = await connection.execute(delete(_table).where(_columns.policy_id == policy_id))
        if not done.rowcount:
            raise _not_found(policy_id)


async def _require(policy_id: str, connection: AsyncConnection) -> str:
    """Return the hash of the latest version of a policy that must exist."""
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
        f"policy {policy_id}{version} does not exist; list the stored policies, or compile one",
        code="POLICY_NOT_FOUND",
    )
