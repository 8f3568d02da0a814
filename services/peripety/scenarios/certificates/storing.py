"""Certificate store of stored scenarios, by hash."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    String,
    Table,
    delete,
    insert,
    select,
)

from peripety.errors import NotFoundError
from peripety.scenarios.certificates.document import certificate_hash, decode, encode
from peripety.storage import METADATA

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, ScalarSelect
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.scenarios.certificates.model import Certificate

__all__ = ["find", "forget", "keep", "latest", "latest_hash"]

_certificates = Table(
    "scenario_certificates",
    METADATA,
    # The greatest number of a version is its latest certificate; see the table of versions.
    Column("position", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("scenario_id", String(64), nullable=False),
    Column("spec_hash", String(64), nullable=False),
    Column("certificate_hash", String(64), nullable=False, index=True),
    Column("document", LargeBinary, nullable=False),
    Column("create_time", Float, nullable=False),
    Index("scenario_certificates_of_version", "scenario_id", "spec_hash"),
    sqlite_autoincrement=True,
)
_columns = _certificates.c


async def keep(scenario_id: str, certificate: Certificate, connection: AsyncConnection) -> str:
    """Store a certificate as the latest one of its version, and return its hash.

    An equal certificate replaces the stored one.
    """
    document = encode(certificate)
    name = certificate_hash(document)
    same = (_columns.scenario_id == scenario_id, _columns.certificate_hash == name)
    await connection.execute(delete(_certificates).where(*same))
    await connection.execute(
        insert(_certificates).values(
            scenario_id=scenario_id,
            spec_hash=certificate.spec_hash,
            certificate_hash=name,
            document=document,
            create_time=time.time(),
        )
    )
    return name


async def find(name: str, connection: AsyncConnection) -> Certificate:
    """Return a stored certificate by its hash.

    Raises:
        NotFoundError: the certificate does not exist.
    """
    query = select(_columns.document).where(_columns.certificate_hash == name).limit(1)
    document = await connection.scalar(query)
    if document is None:
        raise NotFoundError(
            f"Certificate {name} does not exist; CertifyScenario stores those of stored scenarios",
            code="CERTIFICATE_NOT_FOUND",
        )
    return decode(document)


async def latest(scenario_id: str, spec_hash: str, connection: AsyncConnection) -> bytes | None:
    """Return the document of the latest certificate of a version; None without one."""
    query = select(_columns.document).where(
        _columns.scenario_id == scenario_id, _columns.spec_hash == spec_hash
    )
    document: bytes | None = await connection.scalar(query.order_by(_columns.position.desc()).limit(1))
    return document


def latest_hash(
    scenario_id: ColumnElement[str] | str, spec_hash: ColumnElement[str] | str
) -> ScalarSelect[str]:
    """Return a subquery for the hash of the latest certificate of a version; null without one."""
    return (
        select(_columns.certificate_hash)
        .where(_columns.scenario_id == scenario_id, _columns.spec_hash == spec_hash)
        .order_by(_columns.position.desc())
        .limit(1)
        .scalar_subquery()
    )


async def forget(scenario_id: str, connection: AsyncConnection) -> None:
    """Delete the certificates of a scenario, in the transaction of its deletion."""
    await connection.execute(delete(_certificates).where(_columns.scenario_id == scenario_id))
