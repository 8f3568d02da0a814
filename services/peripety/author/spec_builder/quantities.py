"""Sized blueprint: quantities as numbers of the state, identifiers, the time scale and conditions on them.

A quantity has a path, a step size, a start and a limit. An identifier is a slug for names with a Latin
transliteration, else a numbered one. Time spans are converted to turns of a round length. Each condition
has a language-neutral label.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from peripety.author.blueprint import Quantity, Role, Size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.author.blueprint import Blueprint, Flow


Logic = dict[str, Any]

_SIGNS = {">=": "\u2265", "<=": "\u2264", ">": ">", "<": "<"}


@dataclass(frozen=True, slots=True)
class LabelledCondition:
    """Condition of a rule, with its label in symbols."""

    logic: Logic
    label: str


def read_variable(path: str) -> Logic:
    """Return the expression that reads the value at a path."""
    return {"var": path}


def compare_value(path: str, label: str, operator: str, amount: float) -> LabelledCondition:
    """Return the condition that compares a value with a number.

    Args:
        path: path of the value.
        label: the label of the value.
        operator: `>=`, `<=`, `>` or `<`.
        amount: the number on the right-hand side.
    """
    return LabelledCondition(
        {operator: [read_variable(path), amount]},
        f"{label} {_SIGNS[operator]} {amount}",
    )


def all_of(*conditions: LabelledCondition) -> LabelledCondition:
    """Return the conjunction of the conditions; always true for an empty list."""
    if len(conditions) == 1:
        return conditions[0]
    logic = {"and": [condition.logic for condition in conditions]} if conditions else {}
    return LabelledCondition(logic, ", ".join(condition.label for condition in conditions))


PUBLIC, HIDDEN, PRIVATE = "state", "state.hidden", "state.private"

STEPS = {Size.SMALL: 1, Size.MEDIUM: 2, Size.LARGE: 4}
"""The number of steps of a change, by size."""

_MAX_MULTIPLE = 1.5
"""The maximum of a supply or ward, as a multiple of its start."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class QuantityScale:
    """Numbers of one quantity.

    Attributes:
        unit: the size of one step.
        start: the value at the start.
        end: the value that loses, or for a goal wins; for a quantity without a loss condition, the value that
            counts as high.
    """

    unit: float
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class StateGauge:
    """Quantity as a number of the state.

    Attributes:
        quantity: the quantity of the blueprint.
        scale: its numbers.
        parent: the path of the object that contains it.
    """

    quantity: Quantity
    scale: QuantityScale
    parent: str = PUBLIC

    @property
    def name(self) -> str:
        """Return its name, which is its key in the parent object."""
        return self.quantity.name

    @property
    def role(self) -> Role:
        """Return its role for the player."""
        return self.quantity.role

    @property
    def term(self) -> str:
        """Return its name in sentences."""
        return self.quantity.term or self.quantity.name

    @property
    def is_public(self) -> bool:
        """Return True if it is visible to all."""
        return self.parent == PUBLIC

    @property
    def path(self) -> str:
        """Return its path; names contain neither quotes nor backslashes."""
        return (
            f"{self.parent}.{self.name}"
            if _IDENTIFIER.fullmatch(self.name)
            else f'{self.parent}["{self.name}"]'
        )

    def to_amount(self, steps: float) -> float:
        """Return a number of steps as an amount."""
        return to_integer_if_whole(steps * self.scale.unit)

    def compare_with(self, operator: str, amount: float) -> LabelledCondition:
        """Return the condition that compares it with an amount."""
        return compare_value(self.path, self.name, operator, to_integer_if_whole(amount))

    def value_at(self, share: float) -> float:
        """Return the value at a share of the way from nothing, or from the start, to the limit.

        For a supply or ward, the way leads from nothing to the start.
        """
        if self.role in (Role.SUPPLY, Role.WARD):
            return self._in_units(share * self.scale.start)
        return self._in_units(self.scale.start + share * (self.scale.end - self.scale.start))

    def room_condition(self, amount: float) -> LabelledCondition:
        """Return the condition that a gain stays within the best value and does not go below zero.

        Without it, a lucky run would gain without limit and lose its risk.
        """
        if self.role is Role.THREAT:
            return self.compare_with(">=", amount)
        return self.compare_with(
            "<=",
            max(self._in_units(_MAX_MULTIPLE * self.scale.start) - amount, self.scale.start),
        )

    def _in_units(self, amount: float) -> float:
        return to_integer_if_whole(round(amount / self.scale.unit) * self.scale.unit)


@dataclass(frozen=True, slots=True)
class GaugeMove:
    """Change of a gauge.

    Attributes:
        gauge: the gauge.
        steps: the number of steps; for a derived amount only the sign counts.
        derived: name of the derived value that is the amount; empty if the amount is fixed.
        derived_label: the label of a derived amount.
    """

    gauge: StateGauge
    steps: float
    derived: str = ""
    derived_label: str = ""

    def effect(self) -> dict[str, Any]:
        """Return the effect, as the specification writes it."""
        value = self.derived or self.gauge.to_amount(abs(self.steps))
        return {"op": "inc" if self.steps > 0 else "dec", "path": self.gauge.path, "value": value}

    @property
    def is_gain(self) -> bool:
        """Return True if it improves a public quantity."""
        return self.gauge.is_public and is_beneficial(self.gauge.role, rises=self.steps > 0)

    @property
    def label(self) -> str:
        """Return its label in symbols."""
        sign = "+" if self.steps > 0 else "\u2212"
        return f"{self.gauge.name} {sign}{self.derived_label or self.gauge.to_amount(abs(self.steps))}"


def is_beneficial(role: Role, *, rises: bool) -> bool:
    """Return True if the change leads away from a loss or towards a win."""
    return rises is not (role is Role.THREAT)


def to_integer_if_whole(number: float) -> float:
    """Return the number, as an integer if it is whole."""
    return int(number) if float(number).is_integer() else number


def build_state(gauges: Iterable[StateGauge]) -> dict[str, Any]:
    """Return the initial state as nested objects."""
    root: dict[str, Any] = {}
    for gauge in gauges:
        node = root
        for key in gauge.parent.split(".")[1:]:
            node = node.setdefault(key, {})
        node[gauge.name] = to_integer_if_whole(gauge.scale.start)
    return root


PLAYER_ID = "player"
"""The id of the player's entity."""

_LIMIT = 40
_BETWEEN = re.compile(r"[^a-z0-9]+")


def slugify(name: str) -> str:
    """Return the name as an ASCII slug, cut between words; empty if letters would be lost."""
    bare = "".join(
        char for char in unicodedata.normalize("NFKD", name) if not unicodedata.category(char).startswith("M")
    )
    if any(char.isalnum() and not char.isascii() for char in bare):
        return ""
    words = _BETWEEN.sub("_", bare.lower()).strip("_")
    return words if len(words) <= _LIMIT else words[: _LIMIT + 1].rpartition("_")[0] or words[:_LIMIT]


def assign_identifiers(prefix: str, names: Iterable[str], used_ids: Iterable[str] = ()) -> Mapping[str, str]:
    """Return a unique identifier for each name; the prefix is for those without a letter at the start."""
    used = set(used_ids)
    ids: dict[str, str] = {}
    for place, name in enumerate(names):
        word = slugify(name)
        if not word[:1].isalpha():
            word = f"{prefix}{word or place}"
        ids[name] = next(one for one in chain([word], _number_suffix(word)) if one not in used)
        used.add(ids[name])
    return ids


def _number_suffix(word: str) -> Iterator[str]:
    return (f"{word}_{number}" for number in count(2))


_MIN_TURNS, _MAX_TURNS, _USUAL = 14, 30, 20
_OPEN = (18, 20, 24)
_EARLIEST_DUE = 5
_LEFT_AFTER_DUE = 4
_MINUTES = 60
_HOUR, _DAY = 60, 24 * 60
_LENGTHS = (
    *(1, 2, 5, 10, 15, 20, 30),
    *(hours * _HOUR for hours in (1, 2, 3, 4, 6, 8, 12)),
    *(days * _DAY for days in (1, 2, 3, 4, 5, 7, 10, 14, 21, 30, 60, 90, 180, 365, 730, 1_825, 3_650)),
)


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Turn length and number of turns.

    Attributes:
        minutes: minutes per turn; 0 if unspecified.
        horizon: the number of turns.
        due: the turn of the deadline; 0 for none.
    """

    minutes: int
    horizon: int
    due: int

    def format_duration(self, turns: int) -> str:
        """Return the duration of a number of turns, as the specification writes it."""
        return _format_duration(turns * (self.minutes or _HOUR))


def time_scale(blueprint: Blueprint, choice: int) -> TimeScale:
    """Return the time scale of a blueprint.

    Args:
        blueprint: its spans are used if turns of some round length fit into them.
        choice: seeded number that decides the rest.
    """
    whole = blueprint.hours * _MINUTES
    fitting = [length for length in _LENGTHS if _MIN_TURNS <= whole / length <= _MAX_TURNS]
    minutes = min(fitting, key=lambda length: abs(whole / length - _USUAL), default=0)
    horizon = round(whole / minutes) if minutes else _OPEN[choice % len(_OPEN)]
    if not blueprint.has_deadline:
        return TimeScale(minutes, horizon, 0)
    length = minutes or _HOUR
    due = round(blueprint.due_hours * _MINUTES / length) or horizon * 3 // 5
    return TimeScale(minutes, horizon, max(_EARLIEST_DUE, min(due, horizon - _LEFT_AFTER_DUE)))


def _format_duration(minutes: int) -> str:
    days, rest = divmod(minutes, _DAY)
    hours, rest = divmod(rest, _HOUR)
    time = "".join(f"{count}{unit}" for count, unit in ((hours, "H"), (rest, "M")) if count)
    return "P" + (f"{days}D" if days else "") + (f"T{time}" if time else "")


@dataclass(frozen=True, slots=True)
class SizedBlueprint:
    """Blueprint with numbers and identifiers.

    Attributes:
        blueprint: the complete blueprint.
        gauges: its quantities, by name.
        use_counters: for each delayed or one-time action, by name: a private counter of the player, with
            the number
            of pending or completed uses.
        people: the identifier of each person, by name.
        actions: the identifier of each action, by name.
        events: the identifier of each event, by name.
        time_scale: the time scale.
        due: the share of the goal that the deadline requires.
        pressures: factor of the weight of harmful events, by the name of the harmed quantity.
    """

    blueprint: Blueprint
    gauges: Mapping[str, StateGauge]
    use_counters: Mapping[str, StateGauge]
    people: Mapping[str, str]
    actions: Mapping[str, str]
    events: Mapping[str, str]
    time_scale: TimeScale
    due: float
    pressures: Mapping[str, float]

    @property
    def ids(self) -> frozenset[str]:
        """Return all identifiers in use."""
        return frozenset((*self.people.values(), *self.actions.values(), *self.events.values()))

    def gauges_of_role(self, *roles: Role) -> list[StateGauge]:
        """Return the public gauges of these roles, in the order of the blueprint."""
        return [gauge for gauge in self.gauges.values() if gauge.is_public and gauge.role in roles]

    def to_moves(self, flows: Iterable[Flow]) -> list[GaugeMove]:
        """Return flows as changes of gauges."""
        return [
            GaugeMove(self.gauges[flow.quantity], STEPS[flow.size] * (1 if flow.rises else -1))
            for flow in flows
        ]

    def format_phrase(self, phrase_key: str, term: str) -> str:
        """Return a phrase filled with a term."""
        return self.blueprint.phrases[phrase_key].format(a=term, b=term)


def build_sized_blueprint(
    blueprint: Blueprint,
    scales: Mapping[str, QuantityScale],
    timing: TimeScale,
    due: float,
    pressures: Mapping[str, float],
) -> SizedBlueprint:
    """Return the world of a complete blueprint, in the given numbers."""
    people = assign_identifiers("p", blueprint.people, [PLAYER_ID])
    actions = assign_identifiers("a", [action.name for action in blueprint.actions], people.values())
    taken = [*people.values(), *actions.values()]
    mine = f"{PRIVATE}.{PLAYER_ID}"
    return SizedBlueprint(
        blueprint=blueprint,
        gauges={
            one.name: StateGauge(one, scales[one.name], _parent_path(one, people))
            for one in blueprint.quantities
        },
        use_counters={
            action.name: StateGauge(Quantity(action.name, Role.THREAT), QuantityScale(1, 0, 1), mine)
            for action in blueprint.actions
            if action.is_delayed or action.is_final
        },
        people=people,
        actions=actions,
        events=assign_identifiers("e", [event.name for event in blueprint.events], taken),
        time_scale=timing,
        due=due,
        pressures=pressures,
    )


def _parent_path(quantity: Quantity, people: Mapping[str, str]) -> str:
    if quantity.is_hidden:
        return HIDDEN
    return f"{PRIVATE}.{people[quantity.holder]}" if quantity.holder else PUBLIC
