"""Mutants of a scenario: documents with one small change each, compiled once and cached."""

from __future__ import annotations

from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from peripety import sim
from peripety.errors import SpecError
from peripety.mutations.changes import GONE, changed
from peripety.quality import Mutant, MutantOutcome
from peripety.sim.schema import pointer
from peripety.testgen.subjects.scenario.operators import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.mutations.changes import Change, Place

__all__ = ["MOST_BYTES", "MOST_MUTANTS", "ScenarioMutants"]

MOST_MUTANTS = 2_000
"""Limit of mutants; a larger document is sampled deterministically."""

MOST_BYTES = 16 * 1024 * 1024
"""Total size limit of all mutants; each is a complete document that is compiled and cached."""


class ScenarioMutants:
    """The mutants of a scenario.

    Invalid documents are left out, and so are duplicates.

    Args:
        program: the scenario.
    """

    def __init__(self, program: sim.Program) -> None:
        self._program = program

    @property
    def mutants(self) -> tuple[Mutant, ...]:
        """The mutants, in the order of the operators."""
        return tuple(mutant for mutant, _ in self._compiled.values())

    def program(self, mutant_id: str) -> sim.Program:
        """Return the program of a mutant."""
        return self._compiled[mutant_id][1]

    @cached_property
    def _compiled(self) -> dict[str, tuple[Mutant, sim.Program]]:
        spec, compiled, seen = self._program.spec, {}, {self._program.document}
        for mutant_id, (operator, change) in self._sampled().items():
            document = sim.canonical(changed(spec, change.place, change.after))
            if document in seen:
                continue
            seen.add(document)
            try:
                compiled[mutant_id] = (_mutant(mutant_id, operator, change), sim.compile(document))
            except SpecError:
                continue
        return compiled

    def _sampled(self) -> dict[str, tuple[str, Change]]:
        """Return changes with their operators by mutant id; a sample if there are too many."""
        made = {mutant_id: (operator, change) for mutant_id, operator, change in self._made()}
        most = min(MOST_MUTANTS, MOST_BYTES // len(self._program.document))
        if len(made) <= most:
            return made
        by_chance = sorted(made, key=lambda mutant_id: sha256(mutant_id.encode()).digest())
        kept = {*by_chance[:most]}
        return {mutant_id: change for mutant_id, change in made.items() if mutant_id in kept}

    def _made(self) -> Iterator[tuple[str, str, Change]]:
        for operator, changes in OPERATORS.items():
            counts: dict[Place, int] = {}
            for change in changes(self._program.spec):
                number = counts[change.place] = counts.get(change.place, 0) + 1
                yield f"{operator}:{pointer(change.place)}:{number}", operator, change


def _mutant(mutant_id: str, operator: str, change: Change) -> Mutant:
    return Mutant(
        mutant_id,
        operator,
        pointer(change.place),
        sim.canonical(change.before),
        None if change.after is GONE else sim.canonical(change.after),
        MutantOutcome.SURVIVED,
    )
