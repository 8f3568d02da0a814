"""Proofs: what holds in every run of a scenario, found without playing one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peripety.sim._core import CoreProgram
    from peripety.sim.types import Proof

__all__ = ["prove"]


def prove(_document: bytes, _core: CoreProgram, _horizon: int) -> tuple[Proof, ...]:
    """What can be proved of a scenario within a horizon; the core plays the examples."""
    return ()
