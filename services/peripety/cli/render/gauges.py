"""Quantities as a reader sees them: the labels of a specification, bands, bars, rounded numbers and changes.

A path of the state is never shown. A quantity has the name of its label, or else the words of its key.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.cli.output import one_line
from peripety.cli.render.game_words import GameWords
from peripety.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from peripety.api.common.v1 import engine_pb2


_Path = tuple[str | int, ...]

_CELLS = 3
_MINUS = "\N{MINUS SIGN}"
_HIDDEN_TREES = frozenset({"hidden", "private"})
_STORY_TREES = frozenset({"clues", "statements", "promises", "places"})
_COMPARISONS = frozenset({"<", "<=", ">", ">="})
_SHOWN_TEXT = 60
_WHOLE_FROM, _TENTHS_FROM = 10, 1
_UNIT_MINUTES = (("day", 24 * 60), ("hour", 60), ("minute", 1))
_DURATION_UNITS = {"W": 7 * 24 * 60, "D": 24 * 60, "H": 60, "M": 1}


@dataclass(frozen=True, slots=True)
class ShownGauge:
    """A visible number.

    Attributes:
        name: its name.
        value: its value.
        unit: its unit; empty for none.
        band: the word for its value; empty for none.
        share: its place on its scale, 0 to 1; None without a scale.
    """

    name: str
    value: float
    unit: str
    band: str
    share: float | None

    @property
    def amount(self) -> str:
        """The rounded value with its unit."""
        return _with_unit(format_number(self.value, self.value), self.unit)

    def bar(self, cells: str) -> str:
        """Return the bar; empty without a scale."""
        return "" if self.share is None else draw_bar(self.share, cells)

    def describe(self, cells: str) -> str:
        """Return the name, the bar and the band; the amount without a scale, or with a unit but no band."""
        bar = self.bar(cells)
        amount = self.amount if not bar or (self.unit and not self.band) else ""
        return " ".join(filter(None, (self.name, bar, amount, self.band)))


@dataclass(slots=True)
class ChangeSummary:
    """The changes of a turn for a reader.

    Attributes:
        learned: texts that are new to the reader: the speaker, or "" for a clue; and the words.
        parts: the named changes of quantities, each a few words.
    """

    learned: list[tuple[str, str]] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)


BAR_CELLS = "▁▃▆"
"""The cells of a bar: empty, half, full."""
PLAIN_BAR_CELLS = ".-#"
"""The cells of a bar for a terminal without block characters."""


def draw_bar(share: float, cells: str) -> str:
    """Return a bar of three cells. Only a full quantity fills it, and only an empty one leaves it empty."""
    halves = round(share * 2 * _CELLS)
    halves = max(halves, 1) if share > 0 else 0
    halves = min(halves, 2 * _CELLS - 1) if share < 1 else 2 * _CELLS
    full, half = divmod(halves, 2)
    return (cells[2] * full + cells[1] * half).ljust(_CELLS, cells[0])


def format_number(number: float, beside: float) -> str:
    """Round a number as its quantity is read: whole from 10 on, tenths from 1 on, else two digits.

    Args:
        number: the number, such as a difference.
        beside: the greatest number of the same quantity.
    """
    size = abs(beside)
    if size >= _WHOLE_FROM:
        return f"{round(number):,}"
    text = f"{number:.1f}" if size >= _TENTHS_FROM else f"{number:.2g}"
    text = text.removesuffix(".0")
    return "0" if float(text) == 0 else text


class ScenarioNames:
    """Names of a scenario for readers, and the scales and bands of its quantities.

    Args:
        spec: the specification; an empty one leaves each quantity with the words of its key.
    """

    def __init__(self, spec: Mapping[str, Any]) -> None:
        self.spec = spec
        self._labels = _by_path(spec.get("labels") or {})
        self._bounds = _by_path(spec.get("bounds") or {})
        self._start = dict(_numbers(spec.get("state") or {}, ("state",)))
        self._limits = _condition_limits(spec)

    @cached_property
    def words(self) -> GameWords:
        """The words of the terminal in the language of the scenario."""
        return GameWords.of_scenario(self.spec)

    @property
    def title(self) -> str:
        """The name of the scenario."""
        return one_line(self.spec.get("name") or "")

    @property
    def premise(self) -> str:
        """The premise; empty for none."""
        premise = self.spec.get("premise") or ""
        return premise if isinstance(premise, str) else str(premise.get("text", ""))

    def message(self, condition: str) -> str:
        """Return the message of an end condition; empty for none."""
        conditions = [*(self.spec.get("loss_conditions") or ()), *(self.spec.get("win_conditions") or ())]
        return next((one.get("message") or "" for one in conditions if one["id"] == condition), "")

    def gauges(self, state: Mapping[str, Any]) -> list[ShownGauge]:
        """Return the visible numbers that have a label; without labels all visible numbers."""
        found = dict(_numbers(state, ("state",)))
        paths = [path for path in self._labels if path in found] or [
            path for path in found if path[1] not in _HIDDEN_TREES | _STORY_TREES
        ]
        return [self._gauge(path, found[path]) for path in paths]

    def name(self, path: _Path) -> str:
        """Return the name of a value."""
        label = self._labels.get(path)
        return one_line(label["name"]) if label else _to_words(path[-1])

    def entity(self, entity_id: str) -> str:
        """Return the name of an entity."""
        names = {entity["id"]: entity.get("name") for entity in self.spec.get("entities") or ()}
        return one_line(names.get(entity_id) or _to_words(entity_id))

    def place(self, place_id: str) -> str:
        """Return the name of a place."""
        place = (self.spec.get("places") or {}).get(place_id) or {}
        return one_line(place.get("name") or _to_words(place_id))

    @cached_property
    def _countdown(self) -> tuple[_Path, float] | None:
        """The quantity that counts the turns down to the horizon, and its step; events can lower it too."""
        horizon = self.spec.get("horizon") or 0
        budget = self.spec.get("negativity_budget") or {}
        steps = _by_path(budget.get("decay_per_turn") or {})
        found = (path for path, step in steps.items() if horizon and self._start.get(path) == step * horizon)
        return next(((path, steps[path]) for path in found if path in self._labels), None)

    def time_left(self, turn: int, state: Mapping[str, Any]) -> str:
        """Return the time that is left, such as `14 days` or `9 turns`; empty without a horizon.

        Args:
            turn: the number of turns that are played.
            state: the state, whose countdown may be below the horizon.
        """
        horizon = self.spec.get("horizon")
        if not isinstance(horizon, int | float) or turn >= horizon:
            return ""
        left = int(horizon) - turn
        if self._countdown is not None:
            path, step = self._countdown
            left = min(left, max(math.ceil(dict(_numbers(state, ("state",))).get(path, 0) / step), 0))
        minutes = left * _duration_minutes((self.spec.get("clock") or {}).get("turn") or "")
        parts = []
        for unit, size in _UNIT_MINUTES:
            if minutes >= size:
                parts.append(self.words.count(minutes // size, unit))
                minutes %= size
        return " ".join(parts[:2]) or self.words.count(left, "turn")

    def status_parts(self, state: Mapping[str, Any], turn: int, cells: str) -> list[str]:
        """Return the parts of the status line: the gauges and the time that is left."""
        return [
            *(gauge.describe(cells) for gauge in self.gauges(state)),
            *filter(None, [self.time_left(turn, state)]),
        ]

    def summarize(self, changes: Iterable[engine_pb2.Change]) -> ChangeSummary:
        """Summarize the changes of a turn, the net change of each path."""
        first: dict[_Path, Any] = {}
        last: dict[_Path, Any] = {}
        for change in changes:
            path = _parse(change.path)
            first.setdefault(path, json.loads(change.before) if change.HasField("before") else None)
            last[path] = json.loads(change.after) if change.HasField("after") else None
        summary = ChangeSummary()
        for path, after in last.items():
            if path is not None and len(path) > 1:
                self._add_change(summary, path, first[path], after)
        return summary

    def _add_change(self, summary: ChangeSummary, path: _Path, before: Any, after: Any) -> None:
        if path[1] in _STORY_TREES and len(path) == 3:  # noqa: PLR2004 - state, tree, id
            if before != after:
                self._add_story_change(summary, str(path[1]), str(path[2]), after)
        elif path[1] in _HIDDEN_TREES and path not in self._labels:
            return
        elif _is_number(before) and _is_number(after):
            summary.parts.extend(self._describe_number(path, before, after))
        elif isinstance(before, list) and isinstance(after, list):
            summary.parts.extend(self._describe_list(path, before, after))
        elif before != after and isinstance(after, bool | str):
            shown = {True: "yes", False: "no"}.get(after) if isinstance(after, bool) else self._value(after)
            summary.parts.append(f"{self.name(path)}: {(shown or '')[:_SHOWN_TEXT]}")

    def _value(self, text: str) -> str:
        """Return a text of the state; the name of the entity if it is the id of one."""
        is_entity = any(entity["id"] == text for entity in self.spec.get("entities") or ())
        return self.entity(text) if is_entity else one_line(text)

    def _add_story_change(self, summary: ChangeSummary, tree: str, key: str, after: Any) -> None:
        if not isinstance(after, str) or not after:
            return
        if tree == "clues":
            summary.learned.append(("", after))
        elif tree == "statements":
            statement = (self.spec.get("statements") or {}).get(key) or {}
            summary.learned.append((self.entity(statement.get("by", key)), after))
        elif tree == "places":
            summary.parts.append(f"{self.entity(key)} → {self.place(after)}")
        else:
            promise = (self.spec.get("promises") or {}).get(key) or {}
            summary.parts.append(
                f"{self.words.say('promise', name=self.entity(promise.get('to', key)))}: {one_line(after)}"
            )

    def _describe_number(self, path: _Path, before: float, after: float) -> Iterator[str]:
        amount = format_number(abs(after - before), max(abs(before), abs(after)))
        if amount == "0":
            return
        label = self._labels.get(path) or {}
        unit = one_line(label.get("unit") or "")
        was, now = _band(label, before), _band(label, after)
        change = f"{self.name(path)} {'+' if after > before else _MINUS}{_with_unit(amount, unit)}"
        yield f"{change} ({now})" if was != now else change

    def _describe_list(self, path: _Path, before: Sequence[Any], after: Sequence[Any]) -> Iterator[str]:
        added = [item for item in after if item not in before and isinstance(item, str)]
        removed = [item for item in before if item not in after and isinstance(item, str)]
        shown = [
            *(f"+ {one_line(item)}" for item in added),
            *(f"{_MINUS} {one_line(item)}" for item in removed),
        ]
        if shown:
            yield f"{self.name(path)} {', '.join(shown)}"[:_SHOWN_TEXT]

    def _gauge(self, path: _Path, value: float) -> ShownGauge:
        label = self._labels.get(path) or {}
        return ShownGauge(
            self.name(path),
            value,
            one_line(label.get("unit") or ""),
            _band(label, value),
            self._share(path, value),
        )

    def _share(self, path: _Path, value: float) -> float | None:
        """Return the place of a value on its scale: its bounds, or its start and limits."""
        bounds: Mapping[str, float] = self._bounds.get(path) or {}
        bands = (self._labels.get(path) or {}).get("bands") or ()
        start = self._start.get(path, 0)
        low: float = bounds.get("min", min(0, start, value))
        ends = [start, *self._limits.get(path, ()), *(band["upto"] for band in bands if "upto" in band)]
        high: float = bounds.get("max", max([*ends, value]))
        # A quantity that starts at nothing has a scale only if something names its other end.
        if high <= low or ("max" not in bounds and max(ends) <= low):
            return None
        return min(1.0, max(0.0, (value - low) / (high - low)))


def _with_unit(amount: str, unit: str) -> str:
    """Return an amount with its unit; a unit of words is a plural, so 1 has none."""
    return amount if amount == "1" and any(map(str.isalpha, unit)) else f"{amount} {unit}".strip()


def _band(label: Mapping[str, Any], value: float) -> str:
    words = (band["word"] for band in label.get("bands") or () if value <= band.get("upto", value))
    return one_line(next(words, ""))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers(value: Any, path: _Path) -> Iterator[tuple[_Path, float]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, (*path, key))
    elif _is_number(value):
        yield path, value


def _parse(path: str) -> _Path:
    try:
        return engine.parse_path(path)
    except InvalidArgumentError:
        return (path,)


def _by_path(keyed: Mapping[str, Any]) -> dict[_Path, Any]:
    return {_parse(path): value for path, value in keyed.items()}


def _condition_limits(spec: Mapping[str, Any]) -> dict[_Path, list[float]]:
    """Return the numbers that end conditions compare paths with."""
    limits: dict[_Path, list[float]] = {}
    for section in ("loss_conditions", "win_conditions"):
        for condition in spec.get(section) or ():
            for variable, number in _compared(condition.get("when")):
                path = engine.variable_to_path(variable)
                limits.setdefault(_parse(path) if path else (), []).append(number)
    return limits


def _compared(logic: Any) -> Iterator[tuple[str, float]]:
    if isinstance(logic, list):
        for inner in logic:
            yield from _compared(inner)
    elif isinstance(logic, dict):
        for operator, operands in logic.items():
            match operands:
                case [{"var": str(name)}, number] if operator in _COMPARISONS and _is_number(number):
                    yield name, number
                case _:
                    yield from _compared(operands)


def _duration_minutes(text: str) -> int:
    """Return the minutes of a valid duration such as 6h, P1D or PT30M; 0 for any other text."""
    minutes, number = 0, ""
    for character in text.upper():
        if character.isdecimal():
            number += character
        elif number:
            minutes += int(number) * _DURATION_UNITS.get(character, 0)
            number = ""
    return minutes


def _to_words(key: str | int) -> str:
    words = one_line(str(key)).replace("_", " ").strip()
    return words[:1].upper() + words[1:]
