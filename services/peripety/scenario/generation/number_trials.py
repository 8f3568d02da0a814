"""Trials of numbers: what a few changes would do to the rates of the players.

An author cannot simulate. Without these figures a repair is a guess, and usually goes too far. A trial
moves a number by a step and plays the same runs. If no single move is enough, further ones follow the best,
up to six together. The best are confirmed on fresh runs and offered in the repair message. The author
decides, and the document is not changed.
"""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.certification.player_checks import PlayerLimit, list_limits
from peripety.certification.player_texts import format_rate
from peripety.certification.rate_interval import ThresholdSide
from peripety.engine.rule_text import describe_expression
from peripety.errors import PeripetyError, Severity
from peripety.scenario.balance.candidate_runs import FIRST_FRESH_RUN
from peripety.scenario.balance.parameters import (
    WEIGHT_BOUNDS,
    NumberKind,
    TunableNumber,
    describe_number_change,
    select_for_balance,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from peripety.engine import Persona, Program
    from peripety.engine.executor import Executor

_RUNS = 48
_CONFIRMING_RUNS = 256
_MAX_NUMBERS = 60
_MAX_CHANGES = 6
_MAX_CONFIRMED = 4
_MAX_TOLD = 3
# Up to here an integer moves by 1, and above by a quarter.
_SMALL = 6
_FACTORS = (0.75, 1.25)
_WEIGHT_FACTORS = (0.6, 1.5)
_SECTIONS = {"loss_conditions": "loss", "win_conditions": "win", "actions": "action"}
_ORDERS = frozenset({"<", "<=", ">", ">="})
_ROOM = {"min": min, "max": max}
_SIDES = {ThresholdSide.BELOW: "at least", ThresholdSide.ABOVE: "at most"}
_VERBS = {"won": "wins", "lost": "loses"}
_DIGITS = re.compile(r"[0-9]{1,15}(?:\.[0-9]{1,9})?", re.ASCII)
_LETTERS = re.compile(r"[a-z]+")
_WORDS = {
    word: float(number)
    for number, word in enumerate(
        ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"), start=2
    )
}
# A few runs are inside by chance, so they must be inside by this much.
_MARGIN = 0.05
# A distance that is not at least this much smaller is noise.
_USEFUL = 0.9


@dataclass(frozen=True, slots=True)
class _Trial:
    """Changed numbers with the resulting rates.

    Attributes:
        values: the changed numbers with their new values.
        distance: the sum of the distances of the rates from their bands.
    """

    values: Mapping[TunableNumber, float]
    distance: float

    @property
    def rank(self) -> tuple[float, float]:
        """Return a key that is less for a better trial: its distance, then how far numbers move."""
        moves = (abs(value / number.value - 1) for number, value in self.values.items())
        return round(self.distance, 2), sum(moves)


async def try_numbers(program: Program, workers: Executor) -> tuple[str, ...]:
    """Return a line about each of the most useful changes of numbers; none if no change is useful.

    The trials of one number are one piece of work, between which it can be cancelled.

    Args:
        program: a scenario with rates of players outside their bands.
        workers: runs the trials.
    """
    return await _NumberTrials(program, workers).describe_best()


class _NumberTrials:
    def __init__(self, program: Program, workers: Executor) -> None:
        self._workers = workers
        self._spec = program.spec
        least = program.spec["negativity_budget"]["min_fail_rate"]
        budget = PlayerLimit("TOO_EASY", "", "random", "lost", least, ThresholdSide.BELOW)
        players = [limit for limit in list_limits(program.spec) if limit.severity is Severity.ERROR]
        self._limits = [*players, budget]
        measured = {(limit.persona, limit.counted) for limit in self._limits}
        self._advised = [
            limit
            for limit in list_limits(program.spec)
            if limit.severity is not Severity.ERROR and (limit.persona, limit.counted) in measured
        ]
        numbers = [*_list_thresholds(program.spec), *select_for_balance(program.spec)]
        self._numbers = numbers[:_MAX_NUMBERS]
        self._named = _find_named_numbers(program.spec)
        self._personas: tuple[Persona, ...] = tuple(dict.fromkeys(limit.persona for limit in self._limits))

    async def describe_best(self) -> tuple[str, ...]:
        """Return the lines about the best trials, those with all rates inside first."""
        present = await self._workers.run(self._try, {})
        found: list[tuple[_Trial, str]] = []
        for count in range(1, _MAX_CHANGES + 1):
            if present is None or present.distance == 0:
                break
            useful = await self._extend(present)
            if not useful:
                break
            for trial in useful[: _MAX_CONFIRMED if count == 1 else 1]:
                found += await self._workers.run(self._confirm, trial)
            if any(trial.distance == 0 for trial, _ in found):
                break
            present = useful[0]
        found.sort(key=lambda one: one[0].rank)
        return tuple(line for _, line in found[:_MAX_TOLD])

    async def _extend(self, present: _Trial) -> list[_Trial]:
        """Return the useful trials with one more move than another one, the best first."""
        trials: list[_Trial] = []
        for number in self._numbers:
            trials += await self._workers.run(self._try_steps, present, number)
        useful = [trial for trial in trials if trial.distance < _USEFUL * present.distance]
        return sorted(useful, key=lambda trial: trial.rank)

    def _try_steps(self, present: _Trial, number: TunableNumber) -> list[_Trial]:
        steps = _list_steps(number, present.values.get(number, number.value))
        trials = [self._try({**present.values, number: step}) for step in steps]
        return [trial for trial in trials if trial is not None]

    def _confirm(self, trial: _Trial) -> list[tuple[_Trial, str]]:
        """Return a trial on fresh runs with a line about it; none for a document that is not valid."""
        rates = self._measure(self._change(trial.values), FIRST_FRESH_RUN, _CONFIRMING_RUNS, validates=True)
        if rates is None:
            return []
        distance = self._distance(rates)
        told = ", ".join(
            f"{limit.persona} {_VERBS[limit.counted]} {rates[limit]:.1%}" for limit in self._first_limits()
        )
        inside = "all inside" if distance == 0 else "not all inside"
        for advised in self._advised:
            rate = next(
                rate
                for limit, rate in rates.items()
                if (limit.persona, limit.counted) == (advised.persona, advised.counted)
            )
            if advised.distance(rate):
                inside += (
                    f"; {_SIDES[advised.missed]} {format_rate(advised.rate)} is advised for {advised.persona}"
                )
        named = sorted({abs(number.value) for number in trial.values} & self._named)
        inside += "".join(f"; the texts name {value:.15g}" for value in named)
        changes = (_describe_change(self._spec, number, value) for number, value in trial.values.items())
        return [(_Trial(trial.values, distance), f"{', '.join(changes)}: {told} ({inside})")]

    def _first_limits(self) -> list[PlayerLimit]:
        """Return one limit of each persona."""
        return [
            next(limit for limit in self._limits if limit.persona == persona) for persona in self._personas
        ]

    def _try(self, values: Mapping[TunableNumber, float]) -> _Trial | None:
        rates = self._measure(self._change(values), 0, _RUNS)
        return None if rates is None else _Trial(values, self._distance(rates, _MARGIN))

    def _change(self, values: Mapping[TunableNumber, float]) -> dict[str, Any]:
        """Return the document with other numbers; bounds make room for initial values."""
        spec = deepcopy(self._spec)
        for number, value in values.items():
            *parents, last = number.segments
            holder: Any = spec
            for segment in parents:
                holder = holder[segment]
            holder[last] = value
        for number, value in values.items():
            for path, limit in spec.get("bounds", {}).items():
                if engine.parse_path(path) == number.segments:
                    limit |= {key: pick(limit[key], value) for key, pick in _ROOM.items() if key in limit}
        return spec

    def _measure(
        self,
        spec: dict[str, Any],
        first_run: int,
        runs: int,
        *,
        validates: bool = False,
    ) -> dict[PlayerLimit, float] | None:
        """Return the rate of each limit; None for a document that is not valid or whose rules fail."""
        document = engine.canonicalize(spec)
        try:
            program = engine.compile(document) if validates else engine.compile_trusted(document)
        except PeripetyError:
            return None
        reports = {
            persona: program.dry_run(runs=runs, first_run=first_run, persona=persona)
            for persona in self._personas
        }
        if any(report.errors for report in reports.values()):
            return None
        return {limit: limit.count(program, reports[limit.persona]) / runs for limit in self._limits}

    def _distance(self, rates: Mapping[PlayerLimit, float], margin: float = 0) -> float:
        return sum(limit.distance(rate, margin) for limit, rate in rates.items())


def _list_steps(number: TunableNumber, present: float) -> list[float]:
    """Return the values to try in the place of a number's present value."""
    if number.kind is NumberKind.WEIGHT:
        low, high = WEIGHT_BOUNDS
        steps = [round(min(max(present * factor, low), high), 2) for factor in _WEIGHT_FACTORS]
    elif float(number.value).is_integer() and number.kind is NumberKind.AMOUNT:
        by = 1 if abs(present) <= _SMALL else round(abs(present) / 4)
        steps = [present - by, present + by]
    else:
        steps = [float(f"{present * factor:.2g}") for factor in _FACTORS]
    return [step for step in steps if step not in {0, present, number.value}]


def _find_named_numbers(spec: dict[str, Any]) -> frozenset[float]:
    """Return the numbers that texts for players name, in digits or as English words from two to twelve.

    A number of the rules that a text names is a promise to the player. It can be moved only with the text.
    """
    premise = spec.get("premise", "")
    texts = [
        premise["text"] if isinstance(premise, dict) else premise,
        spec.get("opening", ""),
        *(
            rule.get(key, "")
            for section in ("actions", "loss_conditions", "win_conditions", "entities")
            for rule in spec.get(section, [])
            for key in ("name", "description", "message")
        ),
    ]
    told = " ".join(texts).casefold()
    words = {_WORDS[word] for word in _LETTERS.findall(told) if word in _WORDS}
    return frozenset(words | {float(digits) for digits in _DIGITS.findall(told)})


_CONDITIONS = (("loss_conditions", "when"), ("win_conditions", "when"), ("actions", "preconditions"))


def _list_thresholds(spec: dict[str, Any]) -> Iterator[TunableNumber]:
    """Yield the numbers with which endings and actions compare quantities."""
    for section, key in _CONDITIONS:
        for index, rule in enumerate(spec.get(section, [])):
            for place, value in _find_thresholds(rule[key], (section, index, key)):
                yield TunableNumber(place, value, NumberKind.AMOUNT)


def _find_thresholds(
    logic: Any,
    place: tuple[str | int, ...],
) -> Iterator[tuple[tuple[str | int, ...], float]]:
    parts: Iterable[tuple[str | int, Any]] = ()
    if isinstance(logic, dict):
        parts = logic.items()
    elif isinstance(logic, list):
        parts = enumerate(logic)
    for key, part in parts:
        match part:
            case [{"var": _}, int() | float() as value] if key in _ORDERS and value and value is not True:
                yield (*place, key, 1), value
            case _:
                yield from _find_thresholds(part, (*place, key))


def _describe_change(spec: dict[str, Any], number: TunableNumber, value: float) -> str:
    match number.segments:
        case str(section), int(index), ("when" | "preconditions") as key, *inside:
            comparison = spec[section][index][key]
            for segment in inside[:-2]:
                comparison = comparison[segment]
            rule = spec[section][index]["id"]
            return f"{_SECTIONS[section]} '{rule}': {describe_expression(comparison)} → {value:.15g}"
        case _:
            return describe_number_change(spec, number.segments, number.value, value)
