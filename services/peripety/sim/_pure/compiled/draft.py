"""Context of code generation: constants, value bounds, and the cost of a turn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety.sim._pure.compiled.code import LIMIT, LONGEST_TEXT, Code, Kind, NotLoweredError
from peripety.sim._pure.compiled.slots import Element, items_kind, leaf_kind
from peripety.sim._pure.effects import TURN_LIMIT
from peripety.sim._pure.logic import FUEL
from peripety.sim._pure.paths import MISSING

if TYPE_CHECKING:
    from peripety.sim._pure.compiled.slots import Slot

__all__ = ["MAX_TURNS", "Draft"]

# The longest horizon of the schema.
MAX_TURNS = 1000


@dataclass
class _Growth:
    """Growth of a slot in one turn: values written, sums added and factors.

    Texts are only written, so their growth is a length.
    """

    start: float = 0.0
    added: float = 0.0
    factor: float = 1.0

    def bound(self) -> float:
        """Return the largest magnitude within any run.

        Each effect is applied at most once a turn. In any order, an added amount is multiplied by at most all
        factors.
        """
        try:
            return (self.start + MAX_TURNS * self.added) * float(self.factor**MAX_TURNS)
        except OverflowError:
            return float("inf")


class Draft:
    """One attempt to compile a scenario.

    Args:
        capacity: maximum length of an array in generated code.
        bounds: bounds of slots by name, from an earlier attempt; writes to other slots are guarded.

    Attributes:
        names: constants that the source refers to.
    """

    def __init__(self, capacity: int, bounds: dict[str, float] | None = None) -> None:
        self.capacity = capacity
        self.names: dict[str, Any] = {}
        self.uses_turn = False
        self._bounds = bounds or {}
        self._growth: dict[str, _Growth] = {}
        self._steps = 0

    # --- constants ---

    def constant(self, value: Any) -> str:
        """Return the name of a constant; texts of the document never become source."""
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def literal(self, value: Any) -> Code:
        """Return the code of a JSON literal: a leaf, or an array of leaves of one kind."""
        if isinstance(value, list):
            return self._literals(value)
        kind = leaf_kind(value)
        if kind is Kind.TEXT:
            size = self._text_size(value)
            return Code(self.constant(value), kind, bound=size, literal=value)
        bound = abs(float(value or 0))
        if bound > LIMIT:
            raise NotLoweredError("a number that large")
        return Code(repr(value), kind, bound=bound, literal=value)

    def _literals(self, items: list[Any]) -> Code:
        codes = [self.literal(item) for item in items]
        return Code(
            self.constant(tuple(items)),
            items_kind(items).many,
            bound=max((code.bound for code in codes), default=0.0),
            length=len(items),
        )

    @staticmethod
    def _text_size(text: str) -> int:
        size = len(text.encode("utf-8"))
        if size > LONGEST_TEXT:
            raise NotLoweredError("a text that long")
        return size

    # --- slots ---

    def read(self, place: Slot | Element) -> Code:
        """Return the code that reads a slot or an element."""
        if isinstance(place, Element):
            slot = place.slot
            bound = self._bound_of(slot)
            return Code(f"{slot.name}[{place.index}]", slot.kind.item, bound=bound, fails=True)
        return Code(
            place.name,
            place.kind,
            bound=self._bound_of(place),
            length=self.capacity if place.kind.is_list else 0,
            null=place.is_optional,
            absent=place.initial is MISSING,
        )

    def _bound_of(self, slot: Slot) -> float:
        limit = LONGEST_TEXT if slot.kind in {Kind.TEXT, Kind.TEXTS} else LIMIT
        return min(limit, self._bounds.get(slot.name, limit))

    def is_guarded(self, slot: Slot) -> bool:
        """Return True if writes to the slot must check the limit."""
        return self._bounds.get(slot.name, LIMIT) >= LIMIT

    def grows(self, slot: Slot, *, to: float = 0.0, by: float = 0.0, times: float = 1.0) -> None:
        """Record the growth that an effect causes in a slot."""
        growth = self._growth.setdefault(slot.name, _Growth())
        growth.start = max(growth.start, to)
        growth.added += by
        growth.factor *= max(1.0, times)

    def bounds(self) -> dict[str, float]:
        """Return the bounds of slots that stay within the limit."""
        bounds = {name: growth.bound() for name, growth in self._growth.items()}
        return {name: bound for name, bound in bounds.items() if bound < LIMIT}

    # --- costs ---

    def held(self, code: Code) -> Code:
        """Return a number or text within the limit, with a check if the bound is not sufficient."""
        name, limit = ("brief", LONGEST_TEXT) if code.kind is Kind.TEXT else ("held", LIMIT)
        if code.bound <= limit:
            return code
        return replace(code, text=f"{name}({code.text})", bound=limit, fails=True, atom=True)

    def evaluation(self, code: Code, times: int = 1) -> Code:
        """Charge for a whole expression, evaluated several times in a turn; its fuel must suffice."""
        if code.steps > FUEL:
            raise NotLoweredError("an expression that may run out of fuel")
        self.charge((code.steps + code.length) * times)
        return code

    def charge(self, steps: int) -> None:
        """Add to the maximum cost of a turn, so that no call can reach its limit."""
        self._steps += steps
        if self._steps > TURN_LIMIT:
            raise NotLoweredError("a turn that may cost too many steps")
