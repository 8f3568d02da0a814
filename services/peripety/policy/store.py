"""Policy store: compiled policies, with one version per content hash, and the codec of results."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from sqlalchemy import Column, Integer, LargeBinary, String, Text, delete, insert, select

from peripety.core.concurrency import run_in_thread_if_large
from peripety.core.mutation_testing import Coverage, Mutant, MutationScore
from peripety.core.storage.versioned_store import VersionedStore, derive_id, to_datetime, versions_table
from peripety.core.validation import Page
from peripety.engine import loads
from peripety.errors import Finding, NotFoundError
from peripety.gateway.types.response import UsageTotal
from peripety.policy import types
from peripety.policy.types import CompiledPolicy, PolicySummary

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.core.storage.database import Database
    from peripety.policy.types import PolicyCompiled


_RESULT_ADAPTER: TypeAdapter[types.PolicyCompiled] = TypeAdapter(types.PolicyCompiled)
# The model imports these names for type checkers only.
_RESULT_ADAPTER.rebuild(
    _types_namespace={
        **vars(types),
        **{kind.__name__: kind for kind in (Mapping, Finding, Coverage, Mutant, MutationScore, UsageTotal)},
    },
)


def encode_result(compiled: types.PolicyCompiled) -> bytes:
    """Encode a result."""
    return _RESULT_ADAPTER.dump_json(compiled)


def decode_result(written: bytes) -> types.PolicyCompiled:
    """Decode a result."""
    return _RESULT_ADAPTER.validate_json(written)


_table = versions_table(
    "policy_versions",
    "policy_id",
    "policy_hash",
    Column("input_hash", String(64), nullable=False),
    Column("result", LargeBinary, nullable=False),
    Column("rules", Integer, nullable=False),
    Column("scenarios", Integer, nullable=False),
    Column("name", Text, nullable=False, server_default=""),
)
_columns = _table.c
_versions = VersionedStore.from_table(_table, "policy_id", "policy_hash")


class PolicyStore:
    """Compiled policies in the database.

    Args:
        database: the database with the table.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(
        self,
        compiled: PolicyCompiled,
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
            await _find_hash(version_of, None, connection)
        policy_hash = sha256(compiled.document).hexdigest()
        policy_id = version_of or derive_id("pol", policy_hash)
        same = _versions.is_version(policy_id, policy_hash)
        first_stored = await connection.scalar(select(_columns.create_time).where(*same))
        now = datetime.now(UTC) if first_stored is None else to_datetime(first_stored)
        stored = CompiledPolicy(policy_id, policy_hash, compiled, input_hash, now)
        await connection.execute(delete(_table).where(*same))
        await connection.execute(insert(_table).values(_to_row(stored)))
        return stored

    async def get(self, policy_id: str, policy_hash: str | None = None) -> CompiledPolicy:
        """Return a stored policy, in its latest version by default.

        Raises:
            NotFoundError: the policy or version does not exist.
        """
        async with self._database.read() as connection:
            row = await _versions.find(select(_table), policy_id, policy_hash, connection)
        if row is None:
            raise _policy_not_found(policy_id, policy_hash)
        return await run_in_thread_if_large(partial(_policy_from_row, row), len(row.result))

    async def document(self, policy_id: str) -> bytes:
        """Return the document of a policy; see `StoredPolicies.document`."""
        return (await self.get(policy_id)).compiled.document

    async def find_hash(self, policy_id: str, policy_hash: str | None = None) -> str:
        """Return the hash of a version of a policy, of the latest one by default.

        Raises:
            NotFoundError: the policy or version does not exist.
        """
        async with self._database.read() as connection:
            return await _find_hash(policy_id, policy_hash, connection)

    async def list_policies(self, page_size: int = 0, page_token: str = "") -> Page[PolicySummary]:
        """Return a page of all policies, each in its latest version, newest first.

        Raises:
            InvalidArgumentError: the size is negative, or the token is invalid.
        """
        return await self._list(_versions.is_latest, page_size, page_token)

    async def list_versions(
        self, policy_id: str, page_size: int = 0, page_token: str = ""
    ) -> Page[PolicySummary]:
        """Return a page of the versions of a policy, newest first.

        Raises:
            InvalidArgumentError: the size is negative, or the token is invalid.
            NotFoundError: the policy does not exist.
        """
        page = await self._list(_columns.policy_id == policy_id, page_size, page_token)
        if not page.items and not page_token:
            raise _policy_not_found(policy_id)
        return page

    async def _list(
        self, condition: ColumnElement[bool], page_size: int, page_token: str
    ) -> Page[PolicySummary]:
        query = select(
            _columns.position,
            _columns.policy_id,
            _columns.policy_hash,
            _columns.rules,
            _columns.scenarios,
            _columns.create_time,
            _columns.name,
        ).where(condition)
        async with self._database.read() as connection:
            page = await _versions.list_page(query, page_size, page_token, connection)
        return Page(tuple(map(_summary_from_row, page.items)), page.next_page_token)

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
            raise _policy_not_found(policy_id)


async def _find_hash(policy_id: str, policy_hash: str | None, connection: AsyncConnection) -> str:
    """Return the hash of a version that must exist."""
    row = await _versions.find(select(_columns.policy_hash), policy_id, policy_hash, connection)
    if row is None:
        raise _policy_not_found(policy_id, policy_hash)
    return str(row.policy_hash)


def _to_row(stored: CompiledPolicy) -> dict[str, Any]:
    compiled = stored.compiled
    document = loads(compiled.document)
    return {
        "policy_id": stored.policy_id,
        "policy_hash": stored.policy_hash,
        "input_hash": stored.input_hash,
        "result": encode_result(compiled),
        "rules": len(document["rules"]),
        "scenarios": len(compiled.scenarios),
        "create_time": stored.create_time.timestamp(),
        "name": document["name"],
    }


def _policy_from_row(row: Any) -> CompiledPolicy:
    compiled = decode_result(row.result)
    return CompiledPolicy(
        row.policy_id,
        row.policy_hash,
        compiled,
        row.input_hash,
        to_datetime(row.create_time),
    )


def _summary_from_row(row: Any) -> PolicySummary:
    return PolicySummary(
        row.policy_id,
        row.policy_hash,
        row.rules,
        row.scenarios,
        to_datetime(row.create_time),
        row.name,
    )


def _policy_not_found(policy_id: str, policy_hash: str | None = None) -> NotFoundError:
    version = f" with the version {policy_hash}" if policy_hash else ""
    return NotFoundError(
        f"policy {policy_id}{version} does not exist; list the stored policies, or compile one",
        code="POLICY_NOT_FOUND",
    )
