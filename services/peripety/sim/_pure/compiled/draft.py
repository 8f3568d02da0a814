"""What a program under construction knows beside its lines: constants, bounds, and what a turn may cost."""

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

# The longest horizon that the schema allows.
MAX_TURNS = 1000


@dataclass
class _Growth:
    """How far the numbers of a slot can get: all that is put there, added and multiplied in one turn.

    Of texts, which are only ever put there, it is how long they can get.
    """

    start: float = 0.0
    added: float = 0.0
    factor: float = 1.0

    def bound(self) -> float:
        """The largest magnitude within any run.

        Each effect is applied at most once a turn. In whatever order they come, nothing is added that is
        not then multiplied by at most all factors.
        """
        try:
            return (self.start + MAX_TURNS * self.added) * float(self.factor**MAX_TURNS)
        except OverflowError:
            return float("inf")


class Draft:
    """One attempt to lower a scenario.

    Args:
        capacity: the most items that an array of a compiled run may have.
        bounds: how large the numbers of slots can get, by name, as an earlier attempt found; those that are
            not there are guarded at every write.

    Attributes:
        names: the constants that the source refers to.
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
        """The name of a constant: what stands in the document never stands in the source."""
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def literal(self, value: Any) -> Code:
        """A JSON value of the document: a leaf, or an array of leaves of one kind."""
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
        """The present value of a slot or an element."""
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
        """Whether the numbers of a slot must be held to the limit when they are written."""
        return self._bounds.get(slot.name, LIMIT) >= LIMIT

    def grows(self, slot: Slot, *, to: float = 0.0, by: float = 0.0, times: float = 1.0) -> None:
        """Note what an effect can make of the numbers of a slot."""
        growth = self._growth.setdefault(slot.name, _Growth())
        growth.start = max(growth.start, to)
        growth.added += by
        growth.factor *= max(1.0, times)

    def bounds(self) -> dict[str, float]:
        """How large the numbers of each slot can get, where that is known to be small."""
        bounds = {name: growth.bound() for name, growth in self._growth.items()}
        return {name: bound for name, bound in bounds.items() if bound < LIMIT}

    # --- costs ---

    def held(self, code: Code) -> Code:
        """A number or text that is known to be within the limit, or else leaves the compiled run."""
        name, limit = ("brief", LONGEST_TEXT) if code.kind is Kind.TEXT else ("held", LIMIT)
        if code.bound <= limit:
            return code
        return replace(code, text=f"{name}({code.text})", bound=limit, fails=True, atom=True)

    def evaluation(self, code: Code, times: int = 1) -> Code:
        """An expression as a whole, evaluated so often in a turn; its fuel cannot run out."""
        if code.steps > FUEL:
            raise NotLoweredError("an expression that may run out of fuel")
        self.charge((code.steps + code.length) * times)
        return code

    def charge(self, steps: int) -> None:
        """Add to what a turn may cost in all; then none of its calls can reach the limit of a call."""
        self._steps += steps
        if self._steps > TURN_LIMIT:
            raise NotLoweredError("a turn that may cost too many steps")
