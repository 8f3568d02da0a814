"""Static check that a compiled run cannot exceed the limits of a state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.sim._pure.border import MAX_DEPTH
from peripety.sim._pure.compiled.code import LONGEST_TEXT, Kind, NotLoweredError
from peripety.sim._pure.compiled.slots import all_effects
from peripety.sim._pure.size import MAX_PENDING, MAX_STATE_NODES, MAX_STATE_TEXT, measure

if TYPE_CHECKING:
    from peripety.sim._pure.compiled.slots import Layout
    from peripety.sim._pure.state import Rules

__all__ = ["check_limits"]


def check_limits(rules: Rules, layout: Layout, capacity: int) -> None:
    """Compare the largest possible state of a compiled run with the limits.

    Raises:
        NotLoweredError: the state may exceed them.
    """
    tree = rules.initial_size
    kinds = [slot.kind for slot in layout.slots.values()]
    # A schedule has at most one pending entry. A text in it may refer to a derived value of any kind.
    schedules = [effect for effect, _ in all_effects(rules) if effect["op"] == "schedule"]
    entries = measure(schedules)
    derived = sum(_texts(effect["effects"]) for effect in schedules)
    arrays = sum(kind.is_list for kind in kinds) + derived
    # The key of an initially absent leaf counts as well.
    texts = 2 * len(kinds) + capacity * (kinds.count(Kind.TEXTS) + derived)
    if (
        tree.nodes + len(kinds) + entries.nodes + arrays * capacity > MAX_STATE_NODES
        or tree.text + entries.text + texts * LONGEST_TEXT > MAX_STATE_TEXT
        or tree.deepest > MAX_DEPTH
        or len(schedules) > MAX_PENDING
    ):
        raise NotLoweredError("a state that may outgrow its limits")


def _texts(effects: list[Any]) -> int:
    """Return the number of effects with a text as value, including nested ones."""
    return sum(isinstance(effect.get("value"), str) + _texts(effect.get("effects", [])) for effect in effects)
