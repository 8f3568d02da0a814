"""Rules under construction: what they do, when they may, and how far they move gauges."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peripety.scenarios.random_specs.world import Gauge, Guard, Stock

__all__ = ["Amount", "Move", "Rule"]

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Amount:
    """How many steps an effect moves a gauge.

    Attributes:
        mean: as a guess.
        most: never more.
        value: what the effect holds: a number, or the name of a derived value.
    """

    mean: float
    most: float
    value: Any


@dataclass(frozen=True, slots=True)
class Move:
    """What a rule does to a gauge: steps away from losing, or, when negative, towards it."""

    gauge: Gauge
    mean: float
    most: float


@dataclass(slots=True)
class Rule:
    """An action or an event.

    Attributes:
        moves: what it does to gauges.
        weight: of an event: how likely it is in a turn, in hundredths.
        turns: of an event: how many turns it lasts.
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
        """How often its guards hold, as a guess."""
        product = 1.0
        for guard in self.guards:
            product *= guard.likely
        return product

    def condition(self) -> Json:
        """Its guards as one expression."""
        terms = [guard.logic() for guard in self.guards]
        return {} if not terms else terms[0] if len(terms) == 1 else {"and": terms}

    def derive(self, kind: str, expression: Any) -> str:
        """Name a derived value."""
        name = f"{kind}_{len(self.derives) + 1}"
        self.derives[name] = expression
        return name

    def add(self, path: str, amount: Any) -> None:
        """Raise a number."""
        self.effects.append({"op": "inc", "path": path, "value": amount})

    def relieve(self, gauge: Gauge, amount: Amount) -> None:
        """Move a gauge away from losing."""
        self.moves.append(Move(gauge, amount.mean, amount.most))
        self._move(gauge, amount, "inc" if gauge.sense > 0 else "dec")

    def harm(self, gauge: Gauge, amount: Amount) -> None:
        """Move a gauge towards losing."""
        self.moves.append(Move(gauge, -amount.mean, -amount.most))
        self._move(gauge, amount, "dec" if gauge.sense > 0 else "inc")

    def _move(self, gauge: Gauge, amount: Amount, op: str) -> None:
        self.effects.append({"op": op, "path": gauge.path, "value": amount.value})

    def later(self, name: str, after: int | str) -> None:
        """Let the last effect happen later instead."""
        self.effects[-1] = {"op": "schedule", "id": name, "after": after, "effects": [self.effects[-1]]}

    def spend(self, stock: Stock, amount: Any) -> None:
        """Take from a stock, which the rule then has to afford; an expression is derived."""
        self.guards.append(stock.affords(amount))
        value = amount if isinstance(amount, int) else self.derive("cost", amount)
        self.effects.append({"op": "dec", "path": stock.path, "value": value})
