"""Scenario registry: content-addressed storage of compiled scenarios and their versions."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, Float, LargeBinary, Text, delete, insert, select

from peripety.errors import ConflictError, Finding, NotFoundError, Severity, current_code
from peripety.pages import Page
from peripety.scenarios.certificates import storing
from peripety.scenarios.model import (
    CompiledScenario,
    NumberEdit,
    ScenarioRecord,
    ScenarioSummary,
)
from peripety.sim import DryRunReport
from peripety.versions import Versions, moment, named_by, versions_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import ColumnElement, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.scenarios.certificates.model import Certificate
    from peripety.sim import Program
    from peripety.storage import Database

__all__ = ["ScenarioRegistry", "version_changed"]

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
_columns = _table.c
_versions = Versions.of(_table, "scenario_id", "spec_hash")
_certificate = storing.latest_hash(_columns.scenario_id, _columns.spec_hash).label("certificate_hash")


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
        scenario_id = version_of or named_by("scn", program.spec_hash)
        same = _versions.same(scenario_id, program.spec_hash)
        async with self._database.write() if connection is None else nullcontext(connection) as within:
            if version_of is not None:
                await _require_latest(version_of, follows, within)
            replaced = (await within.execute(_stored().where(*same))).first()
            before = None if replaced is None else _record(replaced)
            await within.execute(delete(_table).where(*same))
            scenario = CompiledScenario(
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
            await within.execute(insert(_table).values(_row(record)))
            if certificate is not None:
                name = await storing.keep(scenario_id, certificate, within)
                record = replace(record, certificate_hash=name)
        return record

    async def get(self, scenario_id: str, spec_hash: str | None = None) -> ScenarioRecord:
        """Return a stored scenario, in its latest version by default.

        Raises:
            NotFoundError: the scenario or version does not exist.
        """
        async with self._database.read() as connection:
            row = await _versions.find(_stored(), scenario_id, spec_hash, connection)
        if row is None:
            raise _not_found(scenario_id, spec_hash)
        return _record(row)

    async def compiled(self, scenario_id: str, spec_hash: str | None = None) -> CompiledScenario:
        """Return the version to play, by default the latest."""
        return (await self.get(scenario_id, spec_hash)).scenario

    async def certificate_of(self, scenario_id: str, spec_hash: str) -> bytes | None:
        """Return the document of the latest certificate of a version; None without one."""
        async with self._database.read() as connection:
            return await storing.latest(scenario_id, spec_hash, connection)

    async def scenarios(self, asked_size: int = 0, page_token: str = "") -> Page[ScenarioSummary]:
        """Return a page of all scenarios, each in its latest version.

        Raises:
            InvalidArgumentError: the size is negative, or the token is invalid.
        """
        return await self._page(_versions.latest, asked_size, page_token)

    async def versions(
        self, scenario_id: str, asked_size: int = 0, page_token: str = ""
    ) -> Page[ScenarioSummary]:
        """Return a page of the versions of a scenario.

        Raises:
            InvalidArgumentError: the size is negative, or the token is invalid.
            NotFoundError: the scenario does not exist.
        """
        page = await self._page(_columns.scenario_id == scenario_id, asked_size, page_token)
        if not page.items and not page_token:
            raise _not_found(scenario_id)
        return page

    async def delete(self, scenario_id: str, connection: AsyncConnection) -> None:
        """Delete a scenario with all its versions and their certificates.

        Args:
            scenario_id: the scenario.
            connection: the transaction.

        Raises:
            NotFoundError: the scenario does not exist.
        """
        done = await connection.execute(delete(_table).where(_columns.scenario_id == scenario_id))
        if not done.rowcount:
            raise _not_found(scenario_id)
        await storing.forget(scenario_id, connection)

    async def certify(self, scenario_id: str, certificate: Certificate) -> None:
        """Store a certificate as the latest one of its version.

        Raises:
            NotFoundError: the scenario or version does not exist.
        """
        same = _versions.same(scenario_id, certificate.spec_hash)
        async with self._database.write() as connection:
            if await connection.scalar(select(_columns.position).where(*same)) is None:
                raise _not_found(scenario_id, certificate.spec_hash)
            await storing.keep(scenario_id, certificate, connection)

    async def certificate(self, certificate_hash: str) -> Certificate:
        """Return a certificate that is stored with a scenario.

        Raises:
            NotFoundError: the certificate does not exist.
        """
        async with self._database.read() as connection:
            return await storing.find(certificate_hash, connection)

    async def _page(
        self, which: ColumnElement[bool], asked_size: int, page_token: str
    ) -> Page[ScenarioSummary]:
        query = select(
            _columns.position,
            _columns.scenario_id,
            _columns.name,
            _columns.spec_hash,
            _columns.fail_rate,
            _columns.create_time,
            _certificate,
        ).where(which)
        async with self._database.read() as connection:
            page = await _versions.page(query, asked_size, page_token, connection)
        return Page(tuple(map(_summary, page.items)), page.next_page_token)


def version_changed(scenario_id: str, latest: str) -> ConflictError:
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
        raise _not_found(scenario_id)
    if spec_hash not in {None, latest}:
        raise version_changed(scenario_id, latest)


def _stored() -> Select[Any]:
    """Return a query for the versions with the hash of their latest certificate."""
    return select(_table, _certificate)


def _is_stronger(one: DryRunReport, other: DryRunReport) -> bool:
    """Return True if a dry-run is of the same kind as another and has more runs."""
    same_kind = (one.persona, one.horizon) == (other.persona, other.horizon)
    return same_kind and one.runs > other.runs


def _row(record: ScenarioRecord) -> dict[str, Any]:
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


def _record(row: Any) -> ScenarioRecord:
    scenario = CompiledScenario(
        row.scenario_id, row.name, row.spec_hash, row.document, moment(row.create_time)
    )
    findings = [
        {**f, "code": current_code(f["code"]), "severity": Severity(f["severity"])}
        for f in json.loads(row.findings)
    ]
    return ScenarioRecord(
        scenario,
        DryRunReport.of(json.loads(row.dry_run)),
        tuple(NumberEdit(**edit) for edit in json.loads(row.edits)),
        tuple(Finding(**finding) for finding in findings),
        row.certificate_hash,
    )


def _summary(row: Any) -> ScenarioSummary:
    return ScenarioSummary(
        row.scenario_id,
        row.name,
        row.spec_hash,
        row.fail_rate,
        moment(row.create_time),
        row.certificate_hash,
    )


def _not_found(scenario_id: str, spec_hash: str | None = None) -> NotFoundError:
    version = f" with the version {spec_hash}" if spec_hash else ""
    return NotFoundError(
        f"Scenario {scenario_id}{version} does not exist; compile one, or list the stored ones",
        code="SCENARIO_NOT_FOUND",
    )
