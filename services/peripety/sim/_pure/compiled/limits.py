"""Whether a state could outgrow its limits: in a compiled run it must not even come near them."""

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
    """Hold the largest state that a compiled run can have to the limits.

    Raises:
        NotLoweredError: it may exceed them.
    """
    tree = rules.initial_size
    kinds = [slot.kind for slot in layout.slots.values()]
    # An entry of a schedule is pending once at most. A text in it may stand for a derived value of any kind.
    schedules = [effect for effect, _ in all_effects(rules) if effect["op"] == "schedule"]
    entries = measure(schedules)
    derived = sum(_texts(effect["effects"]) for effect in schedules)
    arrays = sum(kind.is_list for kind in kinds) + derived
    # The key of a leaf that is not there at first counts as well.
    texts = 2 * len(kinds) + capacity * (kinds.count(Kind.TEXTS) + derived)
    if (
        tree.nodes + len(kinds) + entries.nodes + arrays * capacity > MAX_STATE_NODES
        or tree.text + entries.text + texts * LONGEST_TEXT > MAX_STATE_TEXT
        or tree.deepest > MAX_DEPTH
        or len(schedules) > MAX_PENDING
    ):
        raise NotLoweredError("a state that may outgrow its limits")


def _texts(effects: list[Any]) -> int:
    """How many effects have a text as their value, those inside others included."""
    return sum(isinstance(effect.get("value"), str) + _texts(effect.get("effects", [])) for effect in effects)
