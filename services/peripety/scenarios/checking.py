"""Validation of a document, up to a level."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety import sim
from peripety.errors import SpecError
from peripety.scenarios.model import Level
from peripety.sim.schema import check
from peripety.sim.schemas import SCENARIO_SPEC, schema_document

if TYPE_CHECKING:
    from peripety.errors import Finding
    from peripety.sim import Program

__all__ = ["load", "problems"]


def problems(document: bytes, level: Level) -> list[Finding]:
    """Return all findings of a document without simulation."""
    if level > Level.SCHEMA:
        return sim.validate(document)
    try:
        return check(schema_document(SCENARIO_SPEC), sim.parse(document))
    except SpecError as error:
        return list(error.findings)


def load(document: bytes) -> Program:
    """Compile a valid document without validating it again."""
    return sim.load(sim.canonical(sim.parse(document)))
