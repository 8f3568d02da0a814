"""What is proved of a scenario before any dice, as findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.sim import Program, Proof

__all__ = ["findings_of", "proved"]


def proved(program: Program) -> tuple[Finding, ...]:
    """What holds in every run of a scenario, up to its own horizon: shorter dry-runs change nothing in it."""
    return findings_of(program.proofs())


def findings_of(proofs: Iterable[Proof]) -> tuple[Finding, ...]:
    """The claims, with their arguments as messages."""
    return tuple(Finding(proof.code, proof.path, proof.argument, proof.severity) for proof in proofs)
