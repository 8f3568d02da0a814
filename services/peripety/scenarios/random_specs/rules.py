"""Rules under construction: effects, conditions, and moves of gauges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peripety.scenarios.random_specs.world import Gauge, Guard, Stock

__all__ = ["Amount", "Move", "Rule"]

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Amount:
    """Amount of a change, in steps.

    Attributes:
        mean: the estimated mean.
        most: the maximum.
        value: the value of the effect: a number, or the name of a derived value.
    """

    mean: float
    most: float
    value: Any


@dataclass(frozen=True, slots=True)
class Move:
    """Change of a gauge by a rule: steps away from a loss, negative towards it."""

    gauge: Gauge
    mean: float
    most: float


@dataclass(slots=True)
class Rule:
    """Action or event under construction.

    Attributes:
        moves: its changes of gauges.
        weight: for an event: its chance per turn, in hundredths.
        turns: for an event: its duration in turns.
    """

    effects: list[Json] = field(default_factory=list)
    params: dict[str, Json] = field(default_factory=dict)
    derives: dict[str, Any] = field(default_factory=dict)
    guards: list[Guard] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    weight: int = 0
    turns: int = 1

    @property
    def likely(self) -> float:
        """Estimate the probability that its conditions hold."""
        product = 1.0
        for guard in self.guards:
            product *= guard.likely
        return product

    def condition(self) -> Json:
        """Return its conditions as one expression."""
        terms = [guard.logic() for guard in self.guards]
        return {} if not terms else terms[0] if len(terms) == 1 else {"and": terms}

    def derive(self, kind: str, expression: Any) -> str:
        """Add a derived value; return its name."""
        name = f"{kind}_{len(self.derives) + 1}"
        self.derives[name] = expression
        return name

    def add(self, path: str, amount: Any) -> None:
        """Add an effect that increases a number."""
        self.effects.append({"op": "inc", "path": path, "value": amount})

    def relieve(self, gauge: Gauge, amount: Amount) -> None:
        """Add an effect that moves a gauge away from a loss."""
        self.moves.append(Move(gauge, amount.mean, amount.most))
        self._move(gauge, amount, "inc" if gauge.sense > 0 else "dec")

    def harm(self, gauge: Gauge, amount: Amount) -> None:
        """Add an effect that moves a gauge towards a loss."""
        self.moves.append(Move(gauge, -amount.mean, -amount.most))
        self._move(gauge, amount, "dec" if gauge.sense > 0 else "inc")

    def _move(self, gauge: Gauge, amount: Amount, op: str) -> None:
        self.effects.append({"op": op, "path": gauge.path, "value": amount.value})

    def later(self, name: str, after: int | str) -> None:
        """Schedule the last effect for later."""
        self.effects[-1] = {"op": "schedule", "id": name, "after": after, "effects": [self.effects[-1]]}

    def spend(self, stock: Stock, amount: Any) -> None:
        """Add a price from a stock, with its precondition; an expression becomes a derived value."""
        self.guards.append(stock.affords(amount))
        value = amount if isinstance(amount, int) else self.derive("cost", amount)
        self.effects.append({"op": "dec", "path": stock.path, "value": value})
