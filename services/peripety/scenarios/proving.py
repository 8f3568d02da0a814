"""Findings from proofs, before any simulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.sim import Program, Proof

__all__ = ["findings_of", "proved"]


def proved(program: Program) -> tuple[Finding, ...]:
    """Return the findings from proofs over all runs, up to the scenario's own horizon."""
    return findings_of(program.proofs())


def findings_of(proofs: Iterable[Proof]) -> tuple[Finding, ...]:
    """Convert proofs to findings, with their explanations as messages."""
    return tuple(Finding(proof.code, proof.path, proof.argument, proof.severity) for proof in proofs)
