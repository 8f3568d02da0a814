"""What is wrong with a document, as far as one wants to know."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety import sim
from peripety.errors import SpecError
from peripety.scenarios.gate import verdict_of
from peripety.scenarios.model import Level, errors_among
from peripety.sim.schema import check
from peripety.sim.schemas import SCENARIO_SPEC, schema_document

if TYPE_CHECKING:
    from peripety.errors import Finding
    from peripety.scenarios.model import DryRunOptions
    from peripety.scenarios.workers import Workers
    from peripety.sim import DryRunReport, Program

__all__ = ["Inspection", "inspect", "load", "problems"]


@dataclass(frozen=True, slots=True)
class Inspection:
    """What came of checking a document.

    Attributes:
        findings: errors and warnings.
        spec_hash: names the content; empty when the document is not acceptable JSON.
        dry_run: the runs, when it came to them.
    """

    findings: tuple[Finding, ...]
    spec_hash: str
    dry_run: DryRunReport | None = None

    @property
    def accepted(self) -> bool:
        """Whether the document passed everything that was asked for."""
        return not errors_among(self.findings)


def problems(document: bytes, level: Level) -> list[Finding]:
    """Everything that is wrong with a document short of playing it."""
    if level > Level.SCHEMA:
        return sim.validate(document)
    try:
        return check(schema_document(SCENARIO_SPEC), sim.parse(document))
    except SpecError as error:
        return list(error.findings)


def load(document: bytes) -> Program:
    """Compile a document in which nothing is wrong, without checking it again."""
    return sim.load(sim.canonical(sim.parse(document)))


async def inspect(document: bytes, level: Level, options: DryRunOptions, workers: Workers) -> Inspection:
    """Check a document up to a level.

    Raises:
        ResourceExhaustedError: the dry-run takes longer than there is time.
    """
    found = await workers.run(_inspected, document, level)
    if not found.accepted or level < Level.DRY_RUN:
        return found
    program = await workers.run(load, document)
    verdict = await verdict_of(program, options, workers)
    return Inspection((*found.findings, *verdict.findings), found.spec_hash, verdict.report)


def _inspected(document: bytes, level: Level) -> Inspection:
    try:
        spec_hash = hashlib.sha256(sim.canonical(sim.parse(document))).hexdigest()
    except SpecError as error:
        return Inspection(error.findings, "")
    return Inspection(tuple(problems(document, level)), spec_hash)
