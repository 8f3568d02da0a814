"""Proofs: what holds in every run of a scenario, found without playing one.

All runs are followed at once, turn by turn: for each place of the state an interval, or what else may stand
there (`turns`). What is never met in that course is met in no run (`claims`). Where only an example can show
something, one is played (`plays`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peripety.sim._pure.state import Rules
from peripety.sim.proofs.budget import Budget, SpentError
from peripety.sim.proofs.claims import claims
from peripety.sim.proofs.turns import course_of

if TYPE_CHECKING:
    from peripety.sim._core import CoreProgram
    from peripety.sim.types import Proof

__all__ = ["prove"]

_STEPS = 40_000
"""About a second; a specification of 4 KB takes a tenth of them."""


def prove(document: bytes, core: CoreProgram, seed: int, horizon: int) -> tuple[Proof, ...]:
    """What can be proved of a scenario within a horizon; nothing, when that takes too much work.

    Args:
        document: the scenario, canonical.
        core: the same, to play examples.
        seed: the seed of the examples.
        horizon: for how many turns.
    """
    rules = Rules(document)
    try:
        course = course_of(rules, horizon, Budget(_STEPS))
    except SpentError:
        return ()
    return tuple(claims(rules, course, core, seed, horizon))
