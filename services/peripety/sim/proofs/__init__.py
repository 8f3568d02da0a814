"""Abstract interpretation of scenarios: claims that hold in every run, found without simulating one.

Dry-runs sample runs, so they cannot show that something never happens. The static analysis can: it follows
all runs at once. The state is replaced by an abstract value (`domain`): for each path an interval of numbers,
a small set of strings, or the possible kinds. One abstract turn (`turns`) does to it what a turn does to a
state. Every choice of the player, every event and every schedule is joined with the case that it does not
happen. The result covers the reachable states of each turn. A condition that may not hold in them holds in no
run; `claims` turns that into findings.

Properties:

- Sound, not complete. A claim is never wrong within its assumptions: at most one action a turn, and no
  changes by the narrator. A missing claim means nothing.
- Errors of rules and growth beyond limits cannot be claimed from an over-approximation. `plays` searches for
  a concrete example on the engine instead, and the finding carries it as a witness.
- Bounds need no outward rounding: the engine's own operations are monotone in floating point, so the same
  operations on the bounds give bounds.
- The work has a budget. When it is spent, nothing is claimed, because a partial result would not cover all
  runs.
- The domain is not relational: of two paths that change together, each has its own interval. Conditions
  refine single paths only.
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
"""Steps of the analysis, about a second; a specification of 4 KB needs a tenth of them."""


def prove(document: bytes, core: CoreProgram, seed: int, horizon: int) -> tuple[Proof, ...]:
    """Return the claims about a scenario within a horizon; none if the budget is spent.

    Args:
        document: the scenario in canonical form.
        core: the compiled scenario, for examples.
        seed: seed of the examples.
        horizon: number of turns.
    """
    rules = Rules(document)
    try:
        course = course_of(rules, horizon, Budget(_STEPS))
    except SpentError:
        return ()
    return tuple(claims(rules, course, core, seed, horizon))
