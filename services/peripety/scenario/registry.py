"""Scenario registry: content-addressed storage of compiled scenarios, their versions and certificates.

`ProgramCache` is an LRU cache of compiled scenarios, one program per version.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import nullcontext
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    Column,
    Float,
    Index,
    LargeBinary,
    String,
    Table,
    Text,
    delete,
    func,
    insert,
    select,
)

from peripety import engine
from peripety.certification.types import certificate_hash, decode, encode
from peripety.core.lru import LruCache
from peripety.core.storage.database import METADATA
from peripety.core.storage.versioned_store import (
    AUTOINCREMENT,
    VersionedStore,
    derive_id,
    to_datetime,
    versions_table,
)
from peripety.core.validation import Page
from peripety.engine import DryRunReport
from peripety.errors import (
    ConflictError,
    FailedPreconditionError,
    Finding,
    NotFoundError,
    Severity,
    current_code,
)
from peripety.scenario.types import NumberEdit, Scenario, ScenarioRecord, ScenarioSummary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement, ScalarSelect, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.certification.types import Certificate
    from peripety.core.storage.database import Database
    from peripety.engine import Program


_certificates = Table(
    "scenario_certificates",
    METADATA,
    # The greatest number of a version is its latest certificate; see the table of versions.
    Column("position", AUTOINCREMENT, primary_key=True, autoincrement=True),
    Column("scenario_id", String(64), nullable=False),
    Column("spec_hash", String(64), nullable=False),
    Column("certificate_hash", String(64), nullable=False, index=True),
    Column("document", LargeBinary, nullable=False),
    Column("create_time", Float, nullable=False),
    Index("scenario_certificates_of_version", "scenario_id", "spec_hash"),
    sqlite_autoincrement=True,
)
_certificate_columns = _certificates.c


async def put_certificate(scenario_id: str, certificate: Certificate, connection: AsyncConnection) -> str:
    """Store a certificate as the latest one of its version, and return its hash.

    An equal certificate replaces the stored one.
    """
    document = encode(certificate)
    name = certificate_hash(document)
    same = (_certificate_columns.scenario_id == scenario_id, _certificate_columns.certificate_hash == name)
    await connection.execute(delete(_certificates).where(*same))
    await connection.execute(
        insert(_certificates).values(
            scenario_id=scenario_id,
            spec_hash=certificate.spec_hash,
            certificate_hash=name,
            document=document,
            create_time=time.time(),
        ),
    )
    return name


async def get_certificate(name: str, connection: AsyncConnection) -> Certificate:
    """Return a stored certificate by its hash.

    Raises:
        NotFoundError: the certificate does not exist.
    """
    query = (
        select(_certificate_columns.document).where(_certificate_columns.certificate_hash == name).limit(1)
    )
    document = await connection.scalar(query)
    if document is None:
        raise NotFoundError(
            f"Certificate {name} does not exist; CertifyScenario stores those of stored scenarios",
            code="CERTIFICATE_NOT_FOUND",
        )
    return decode(document)


async def get_latest_document(scenario_id: str, spec_hash: str, connection: AsyncConnection) -> bytes | None:
    """Return the document of the latest certificate of a version; None without one."""
    query = select(_certificate_columns.document).where(
        _certificate_columns.scenario_id == scenario_id,
        _certificate_columns.spec_hash == spec_hash,
    )
    document: bytes | None = await connection.scalar(
        query.order_by(_certificate_columns.position.desc()).limit(1),
    )
    return document


def latest_hash_query(
    scenario_id: ColumnElement[str] | str,
    spec_hash: ColumnElement[str] | str,
) -> ScalarSelect[str]:
    """Return a subquery for the hash of the latest certificate of a version; null without one."""
    return (
        select(_certificate_columns.certificate_hash)
        .where(_certificate_columns.scenario_id == scenario_id, _certificate_columns.spec_hash == spec_hash)
        .order_by(_certificate_columns.position.desc())
        .limit(1)
        .scalar_subquery()
    )


async def delete_certificates(scenario_id: str, connection: AsyncConnection) -> None:
    """Delete the certificates of a scenario, in the transaction of its deletion."""
    await connection.execute(delete(_certificates).where(_certificate_columns.scenario_id == scenario_id))


_holders = Table(
    "scenario_holders",
    METADATA,
    Column("scenario_id", String(64), primary_key=True),
    Column("holder", String(64), primary_key=True),
)


async def _read_holders(scenario_id: str, connection: AsyncConnection) -> list[str]:
    query = select(_holders.c.holder).where(_holders.c.scenario_id == scenario_id)
    return sorted(await connection.scalars(query))


_DEFAULT_CAPACITY = 64


class ProgramCache:
    """LRU cache of compiled versions, by the hash of their content.

    A program is immutable, so one instance serves the whole process. It also shares what it has computed
    about itself, such as its proofs and the compiled form of its dry-runs.

    Args:
        most: the capacity.
    """

    def __init__(self, most: int = _DEFAULT_CAPACITY) -> None:
        self._programs: LruCache[str, Program] = LruCache(most)

    def get(self, spec_hash: str) -> Program | None:
        """Return the cached program of a version; None on a miss."""
        return self._programs.get(spec_hash)

    async def load(self, spec_hash: str, document: bytes) -> Program:
        """Return the program of a version; compile it on a miss.

        Args:
            spec_hash: the hash of the version.
            document: the stored document: valid and canonical.
        """
        return self.get(spec_hash) or self.put(await asyncio.to_thread(engine.compile_trusted, document))

    def put(self, program: Program) -> Program:
        """Store a program that was compiled elsewhere; return the cached one, which may be an earlier one."""
        return self._programs.put_if_absent(program.spec_hash, program)


_table = versions_table(
    "scenario_versions",
    "scenario_id",
    "spec_hash",
    Column("name", Text, nullable=False),
    Column("document", LargeBinary, nullable=False),
    Column("dry_run", Text, nullable=False),
    Column("fail_rate", Float, nullable=False),
    Column("edits", Text, nullable=False),
    Column("findings", Text, nullable=False),
)
_scenario_columns = _table.c
_versions = VersionedStore.from_table(_table, "scenario_id", "spec_hash")
_certificate = latest_hash_query(_scenario_columns.scenario_id, _scenario_columns.spec_hash).label(
    "certificate_hash",
)


class ScenarioRegistry:
    """Registry of compiled scenarios in the database of the process; implements `ScenarioSource`.

    Args:
        database: the database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def save(
        self,
        program: Program,
        dry_run: DryRunReport,
        edits: Sequence[NumberEdit],
        findings: Sequence[Finding],
        *,
        version_of: str | None = None,
        follows: str | None = None,
        certificate: Certificate | None = None,
        connection: AsyncConnection | None = None,
    ) -> ScenarioRecord:
        """Store a scenario as its latest version.

        Equal content replaces the stored version, and preserves its first creation time. The stored dry-run
        is preserved, too, if the new one is of the same kind and has fewer runs.

        Args:
            program: the scenario.
            dry_run: the dry-run that it passed.
            edits: the numbers that the repair moved.
            findings: remaining warnings.
            version_of: the scenario of the version; by default derived from the content.
            follows: with `version_of`, the expected hash of its latest version (optimistic locking).
            certificate: its certificate, to be stored with it.
            connection: the transaction; a new one by default.

        Raises:
            ConflictError: the latest version is another one.
            NotFoundError: the scenario `version_of` does not exist, or was deleted meanwhile.
        """
        scenario_id = version_of or derive_id("scn", program.spec_hash)
        same = _versions.is_version(scenario_id, program.spec_hash)
        async with self._database.write() if connection is None else nullcontext(connection) as within:
            if version_of is not None:
                await _require_latest(version_of, follows, within)
            replaced = (await within.execute(_select_versions().where(*same))).first()
            before = None if replaced is None else _row_to_record(replaced)
            await within.execute(delete(_table).where(*same))
            scenario = Scenario(
                scenario_id=scenario_id,
                name=program.spec["name"],
                spec_hash=program.spec_hash,
                document=program.document,
                create_time=before.scenario.create_time if before else datetime.now(UTC),
            )
            record = ScenarioRecord(
                scenario,
                dry_run,
                tuple(edits),
                tuple(findings),
                before.certificate_hash if before else None,
            )
            if before is not None and _is_stronger(before.dry_run, dry_run):
                record = replace(before, scenario=scenario)
            await within.execute(insert(_table).values(_record_to_row(record)))
            if certificate is not None:
                name = await put_certificate(scenario_id, certificate, within)
                record = replace(record, certificate_hash=name)
        return record

    async def get(self, scenario_id: str, spec_hash: str | None = None) -> ScenarioRecord:
        """Return a stored scenario, in its latest version by default.

        Raises:
            NotFoundError: the scenario or version does not exist.
        """
        async with self._database.read() as connection:
            row = await _versions.find(_select_versions(), scenario_id, spec_hash, connection)
        if row is None:
            raise _not_found_error(scenario_id, spec_hash)
        return _row_to_record(row)

    async def get_scenario(self, scenario_id: str, spec_hash: str | None = None) -> Scenario:
        """Return the version to play, by default the latest."""
        return (await self.get(scenario_id, spec_hash)).scenario

    async def get_certificate_document(self, scenario_id: str, spec_hash: str) -> bytes | None:
        """Return the document of the latest certificate of a version; None without one."""
        async with self._database.read() as connection:
            return await get_latest_document(scenario_id, spec_hash, connection)

    async def list_scenarios(
        self,
        page_size: int = 0,
        page_token: str = "",
        name_contains: str = "",
    ) -> Page[ScenarioSummary]:
        """Return a page of the scenarios, each in its latest version.

        Args:
            page_size: maximum number of scenarios; 0 for the default.
            page_token: token of the page; empty for the first one.
            name_contains: only scenarios whose name contains this text, in either case; empty for all.

        Raises:
            InvalidArgumentError: the size is negative, or the token is invalid.
        """
        which = _versions.is_latest
        if name_contains:
            name = func.lower(_scenario_columns.name)
            which &= name.contains(name_contains.lower(), autoescape=True)
        return await self._page(which, page_size, page_token)

    async def list_versions(
        self,
        scenario_id: str,
        page_size: int = 0,
        page_token: str = "",
    ) -> Page[ScenarioSummary]:
        """Return a page of the versions of a scenario.

        Raises:
            InvalidArgumentError: the size is negative, or the token is invalid.
            NotFoundError: the scenario does not exist.
        """
        page = await self._page(_scenario_columns.scenario_id == scenario_id, page_size, page_token)
        if not page.items and not page_token:
            raise _not_found_error(scenario_id)
        return page

    async def get_holders(self, scenario_id: str) -> list[str]:
        """Return the holders of a scenario, sorted."""
        async with self._database.read() as connection:
            return await _read_holders(scenario_id, connection)

    async def retain(self, scenario_id: str, holder: str, connection: AsyncConnection) -> None:
        """Add a holder of a scenario, which prevents its deletion, unless it is one already.

        Raises:
            NotFoundError: the scenario does not exist.
        """
        await _require_latest(scenario_id, None, connection)
        if holder not in await _read_holders(scenario_id, connection):
            await connection.execute(insert(_holders).values(scenario_id=scenario_id, holder=holder))

    async def release(self, scenario_id: str, holder: str, connection: AsyncConnection) -> None:
        """Remove a holder of a scenario, if it is one.

        Raises:
            NotFoundError: the scenario does not exist.
        """
        await _require_latest(scenario_id, None, connection)
        held = (_holders.c.scenario_id == scenario_id, _holders.c.holder == holder)
        await connection.execute(delete(_holders).where(*held))

    async def delete(self, scenario_id: str, connection: AsyncConnection) -> None:
        """Delete a scenario with all its versions and their certificates.

        Args:
            scenario_id: the scenario.
            connection: the transaction.

        Raises:
            FailedPreconditionError: a holder retains the scenario.
            NotFoundError: the scenario does not exist.
        """
        if holders := await _read_holders(scenario_id, connection):
            raise FailedPreconditionError(
                f"Scenario {scenario_id} is retained by {', '.join(holders)}; it can be deleted when each of"
                " them has called ReleaseScenario",
                code="SCENARIO_RETAINED",
            )
        done = await connection.execute(delete(_table).where(_scenario_columns.scenario_id == scenario_id))
        if not done.rowcount:
            raise _not_found_error(scenario_id)
        await delete_certificates(scenario_id, connection)

    async def add_certificate(self, scenario_id: str, certificate: Certificate) -> None:
        """Store a certificate as the latest one of its version.

        Raises:
            NotFoundError: the scenario or version does not exist.
        """
        same = _versions.is_version(scenario_id, certificate.spec_hash)
        async with self._database.write() as connection:
            if await connection.scalar(select(_scenario_columns.position).where(*same)) is None:
                raise _not_found_error(scenario_id, certificate.spec_hash)
            await put_certificate(scenario_id, certificate, connection)

    async def get_certificate(self, certificate_hash: str) -> Certificate:
        """Return a certificate that is stored with a scenario.

        Raises:
            NotFoundError: the certificate does not exist.
        """
        async with self._database.read() as connection:
            return await get_certificate(certificate_hash, connection)

    async def _page(
        self,
        which: ColumnElement[bool],
        page_size: int,
        page_token: str,
    ) -> Page[ScenarioSummary]:
        query = select(
            _scenario_columns.position,
            _scenario_columns.scenario_id,
            _scenario_columns.name,
            _scenario_columns.spec_hash,
            _scenario_columns.fail_rate,
            _scenario_columns.create_time,
            _certificate,
        ).where(which)
        async with self._database.read() as connection:
            page = await _versions.list_page(query, page_size, page_token, connection)
        return Page(tuple(map(_row_to_summary, page.items)), page.next_page_token)


def version_changed_error(scenario_id: str, latest: str) -> ConflictError:
    """Return the error for a change of an outdated version."""
    return ConflictError(
        f"The latest version of {scenario_id} is {latest}, but the change is for another one; read it and"
        " retry",
        code="VERSION_CHANGED",
    )


async def _require_latest(scenario_id: str, spec_hash: str | None, connection: AsyncConnection) -> None:
    """Raise an error if a scenario does not exist, or its latest version is not the expected one."""
    latest = await _versions.latest_hash(scenario_id, connection)
    if latest is None:
        raise _not_found_error(scenario_id)
    if spec_hash not in {None, latest}:
        raise version_changed_error(scenario_id, latest)


def _select_versions() -> Select[Any]:
    """Return a query for the versions with the hash of their latest certificate."""
    return select(_table, _certificate)


def _is_stronger(one: DryRunReport, other: DryRunReport) -> bool:
    """Return True if a dry-run is of the same kind as another and has more runs."""
    same_kind = (one.persona, one.horizon) == (other.persona, other.horizon)
    return same_kind and one.runs > other.runs


def _record_to_row(record: ScenarioRecord) -> dict[str, Any]:
    scenario = record.scenario
    return {
        "scenario_id": scenario.scenario_id,
        "spec_hash": scenario.spec_hash,
        "name": scenario.name,
        "document": scenario.document,
        "dry_run": json.dumps(asdict(record.dry_run)),
        "fail_rate": record.dry_run.fail_rate,
        "edits": json.dumps([asdict(edit) for edit in record.edits]),
        "findings": json.dumps([{**asdict(f), "severity": f.severity.value} for f in record.findings]),
        "create_time": scenario.create_time.timestamp(),
    }


def _row_to_record(row: Any) -> ScenarioRecord:
    scenario = Scenario(row.scenario_id, row.name, row.spec_hash, row.document, to_datetime(row.create_time))
    findings = [
        {**f, "code": current_code(f["code"]), "severity": Severity(f["severity"])}
        for f in json.loads(row.findings)
    ]
    return ScenarioRecord(
        scenario,
        DryRunReport.from_json(json.loads(row.dry_run)),
        tuple(NumberEdit(**edit) for edit in json.loads(row.edits)),
        tuple(Finding(**finding) for finding in findings),
        row.certificate_hash,
    )


def _row_to_summary(row: Any) -> ScenarioSummary:
    return ScenarioSummary(
        row.scenario_id,
        row.name,
        row.spec_hash,
        row.fail_rate,
        to_datetime(row.create_time),
        row.certificate_hash,
    )


def _not_found_error(scenario_id: str, spec_hash: str | None = None) -> NotFoundError:
    version = f" with the version {spec_hash}" if spec_hash else ""
    return NotFoundError(
        f"Scenario {scenario_id}{version} does not exist; compile one, or list the stored ones",
        code="SCENARIO_NOT_FOUND",
    )
