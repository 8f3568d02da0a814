"""Where compiled policies are kept: every version by the hash of its content."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Integer,
    LargeBinary,
    String,
    Table,
    UniqueConstraint,
    delete,
    func,
    insert,
    select,
)

from peripety.errors import NotFoundError
from peripety.pages import Page, Position, page_of, page_size, position_in
from peripety.policies.model import CompiledPolicy, PolicySummary
from peripety.policies.writing import read, write
from peripety.sim import loads
from peripety.storage import METADATA
from peripety.tasks import aside

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.policies.model import Compiled
    from peripety.storage import Database

__all__ = ["PolicyStore"]

_ID_DIGITS = 24

_versions = Table(
    "policy_versions",
    METADATA,
    # Counts up and is never used again: the greatest of a policy is its latest version.
    # SQLite counts up only what it calls INTEGER, which has 64 bits there.
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("policy_id", String(64), nullable=False),
    Column("policy_hash", String(64), nullable=False),
    Column("input_hash", String(64), nullable=False),
    Column("result", LargeBinary, nullable=False),
    Column("rules", Integer, nullable=False),
    Column("scenarios", Integer, nullable=False),
    Column("create_time", Float, nullable=False),
    UniqueConstraint("policy_id", "policy_hash"),
    sqlite_autoincrement=True,
)
_columns = _versions.c


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
        policy_id = version_of or f"pol_{policy_hash[:_ID_DIGITS]}"
        same = (_columns.policy_id == policy_id, _columns.policy_hash == policy_hash)
        first_stored = await connection.scalar(select(_columns.create_time).where(*same))
        now = datetime.now(UTC) if first_stored is None else _moment(first_stored)
        stored = CompiledPolicy(policy_id, policy_hash, compiled, input_hash, now)
        await connection.execute(delete(_versions).where(*same))
        await connection.execute(insert(_versions).values(_row(stored)))
        return stored

    async def get(self, policy_id: str, policy_hash: str | None = None) -> CompiledPolicy:
        """A stored policy, in its latest version unless a version is named.

        Raises:
            NotFoundError: there is no such policy or version.
        """
        query = select(_versions).where(_columns.policy_id == policy_id)
        if policy_hash is not None:
            query = query.where(_columns.policy_hash == policy_hash)
        async with self._database.read() as connection:
            row = (await connection.execute(query.order_by(_columns.position.desc()).limit(1))).first()
        if row is None:
            raise _not_found(policy_id, policy_hash)
        return await aside(partial(_policy, row), len(row.result))

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
        size, before = page_size(asked_size), position_in(page_token)
        latest = select(func.max(_columns.position)).group_by(_columns.policy_id)
        query = select(
            _columns.position,
            _columns.policy_id,
            _columns.policy_hash,
            _columns.rules,
            _columns.scenarios,
            _columns.create_time,
        ).where(_columns.position.in_(latest))
        if before is not None:
            query = query.where(_columns.position < before.number)
        async with self._database.read() as connection:
            rows = (await connection.execute(query.order_by(_columns.position.desc()).limit(size + 1))).all()
        page = page_of(rows, size, lambda row: Position(row.position))
        return Page(tuple(map(_summary, page.items)), page.next_page_token)

    async def delete(self, policy_id: str, connection: AsyncConnection) -> None:
        """Forget a policy with all its versions.

        Args:
            policy_id: the policy.
            connection: the transaction in which this is done.

        Raises:
            NotFoundError: there is no such policy.
        """
        done = await connection.execute(delete(_versions).where(_columns.policy_id == policy_id))
        if not done.rowcount:
            raise _not_found(policy_id)


async def _require(policy_id: str, connection: AsyncConnection) -> str:
    """The hash of the latest version of a policy, which has to be there."""
    query = select(_columns.policy_hash).where(_columns.policy_id == policy_id)
    latest: str | None = await connection.scalar(query.order_by(_columns.position.desc()).limit(1))
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
    return CompiledPolicy(row.policy_id, row.policy_hash, compiled, row.input_hash, _moment(row.create_time))


def _summary(row: Any) -> PolicySummary:
    return PolicySummary(row.policy_id, row.policy_hash, row.rules, row.scenarios, _moment(row.create_time))


def _moment(timestamp: float) -> datetime:
    return datetime.fromtimestamp(timestamp, UTC)


def _not_found(policy_id: str, policy_hash: str | None = None) -> NotFoundError:
    version = f" with the version {policy_hash}" if policy_hash else ""
    return NotFoundError(
        f"There is no policy {policy_id}{version}; CompilePolicy stores one, ListPolicies lists them",
        code="POLICY_NOT_FOUND",
    )
