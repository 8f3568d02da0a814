"""Variables that the rules of a scenario may read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from peripety.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.sim._pure.paths import Path
    from peripety.sim.checks.world import World

__all__ = ["RuleScope"]


@dataclass(frozen=True, slots=True)
class RuleScope:
    """Variables in scope of one rule.

    Attributes:
        world: the paths under `state`.
        params: the parameters of the action.
        derives: the derived values of the rule.
    """

    example: ClassVar[str] = "state.a"

    world: World
    params: frozenset[str] = frozenset()
    derives: frozenset[str] = frozenset()

    def check_variable(self, text: str, path: Path, place: str) -> Iterator[Finding]:
        """Yield the findings about a variable."""
        root = path[0]
        name = str(path[1]) if len(path) > 1 else None
        if root == "state":
            if not (self.world.exists(path) or self.world.may_grow(path)):
                message = f"'{text[:80]}' is not in the state, and no effect creates it"
                yield Finding("UNKNOWN_PATH", place, message)
        elif root in {"params", "derives"}:
            known = self.params if root == "params" else self.derives
            if name not in known:
                listed = f"known: {', '.join(sorted(known))}" if known else f"the rule has no {root}"
                yield Finding("UNKNOWN_PATH", place, f"'{text[:80]}' does not exist; {listed}")
        elif root not in {"turn", "entities"}:
            message = f"'{text[:80]}' must start with state, params, derives, turn or entities"
            yield Finding("UNKNOWN_PATH", place, message)
