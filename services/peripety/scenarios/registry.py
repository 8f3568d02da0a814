"""Where compiled scenarios are kept: every version by the hash of its content."""

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
    """Compiled scenarios in the database of the process; also a `ScenarioSource`.

    Args:
        database: has the table.
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

        The same content replaces what was stored of it, and keeps the time at which that was first stored,
        and the dry-run too when the new one answers the same question with fewer runs.

        Args:
            program: the scenario.
            dry_run: the dry-run that it passed.
            edits: the numbers that were moved for that.
            findings: warnings that remain.
            version_of: the scenario that it is a version of; by default one that its content names.
            follows: with `version_of`, hash of the version that has to be its latest until then.
            certificate: its certificate, to be kept with it.
            connection: the transaction in which this is done; one of its own by default.

        Raises:
            ConflictError: another version has become the latest.
            NotFoundError: there is no scenario `version_of`, or not any more.
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
        """A stored scenario, in its latest version unless a version is named.

        Raises:
            NotFoundError: there is no such scenario or version.
        """
        async with self._database.read() as connection:
            row = await _versions.find(_stored(), scenario_id, spec_hash, connection)
        if row is None:
            raise _not_found(scenario_id, spec_hash)
        return _record(row)

    async def compiled(self, scenario_id: str, spec_hash: str | None = None) -> CompiledScenario:
        """See `ScenarioSource.compiled`."""
        return (await self.get(scenario_id, spec_hash)).scenario

    async def certificate_of(self, scenario_id: str, spec_hash: str) -> bytes | None:
        """See `ScenarioSource.certificate_of`."""
        async with self._database.read() as connection:
            return await storing.latest(scenario_id, spec_hash, connection)

    async def scenarios(self, asked_size: int = 0, page_token: str = "") -> Page[ScenarioSummary]:
        """A page of all scenarios, each in its latest version.

        Raises:
            InvalidArgumentError: the size is negative, or the token is none of ours.
        """
        return await self._page(_versions.latest, asked_size, page_token)

    async def versions(
        self, scenario_id: str, asked_size: int = 0, page_token: str = ""
    ) -> Page[ScenarioSummary]:
        """A page of the versions of a scenario.

        Raises:
            InvalidArgumentError: the size is negative, or the token is none of ours.
            NotFoundError: there is no such scenario.
        """
        page = await self._page(_columns.scenario_id == scenario_id, asked_size, page_token)
        if not page.items and not page_token:
            raise _not_found(scenario_id)
        return page

    async def delete(self, scenario_id: str, connection: AsyncConnection) -> None:
        """Forget a scenario with all its versions and their certificates.

        Args:
            scenario_id: the scenario.
            connection: the transaction in which this is done.

        Raises:
            NotFoundError: there is no such scenario.
        """
        done = await connection.execute(delete(_table).where(_columns.scenario_id == scenario_id))
        if not done.rowcount:
            raise _not_found(scenario_id)
        await storing.forget(scenario_id, connection)

    async def certify(self, scenario_id: str, certificate: Certificate) -> None:
        """Keep a certificate as the latest one of the version that it is about.

        Raises:
            NotFoundError: there is no such scenario or version.
        """
        same = _versions.same(scenario_id, certificate.spec_hash)
        async with self._database.write() as connection:
            if await connection.scalar(select(_columns.position).where(*same)) is None:
                raise _not_found(scenario_id, certificate.spec_hash)
            await storing.keep(scenario_id, certificate, connection)

    async def certificate(self, certificate_hash: str) -> Certificate:
        """A certificate that is kept with a scenario.

        Raises:
            NotFoundError: there is none of that hash.
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
    """The error for a change of a version that is no longer the latest."""
    return ConflictError(
        f"The latest version of {scenario_id} is {latest}, and the change is for another one; look at it and"
        " ask again",
        code="VERSION_CHANGED",
    )


async def _require_latest(scenario_id: str, spec_hash: str | None, connection: AsyncConnection) -> None:
    """Refuse a scenario that is not there, or whose latest version is not the one of a hash."""
    latest = await _versions.latest_hash(scenario_id, connection)
    if latest is None:
        raise _not_found(scenario_id)
    if spec_hash not in {None, latest}:
        raise version_changed(scenario_id, latest)


def _stored() -> Select[Any]:
    """All of a version, and what its latest certificate is called."""
    return select(_table, _certificate)


def _is_stronger(one: DryRunReport, other: DryRunReport) -> bool:
    """Whether a dry-run says more than another one of the same kind."""
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
        f"There is no scenario {scenario_id}{version}; compile one, or list those that are stored",
        code="SCENARIO_NOT_FOUND",
    )
