"""Time and supplies of a plot in the units of the text.

A deadline or an amount of the text is never rounded. A thing that the text counts small is not used up one by
one, so its gauge is a share in percent.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.author.plots.plot import USUAL_TURNS, PlotNumbers, store_steps
from peripety.author.plots.slots import choose_supply
from peripety.author.text_analysis.reading import Deadline
from peripety.author.text_analysis.words import load_grammars

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.author.plots.plot import Plot
    from peripety.author.text_analysis.reading import Amount, Phrase, Reading

_TURNS = range(10, 21)
_WIDE_TURNS = range(8, 25)
"""Turns of a deadline that the usual ones divide into odd units only."""
_ROUND = {
    "minute": (1, 2, 3, 5, 10, 15, 20, 30, 45),
    "half_hour": (1, 2, 3),
    "hour": (1, 2, 3, 4, 6, 8, 12, 18, 24, 36),
    "half_day": (1, 2, 3, 5, 7),
}
"""Steps of a turn in units that people count in round numbers."""
_MIN_STORE = 12
_MIN_HOURS = 36
"""The least units of a supply whose duration is given: fewer are too coarse for a turn."""
_SHARE = 5
"""Percent for one step of a supply that is counted small."""
_NEAR = 3
_MINUTES = {
    "minute": 1,
    "half_hour": 30,
    "hour": 60,
    "half_day": 720,
    "day": 1440,
    "week": 10080,
    "month": 43200,
    "year": 525600,
}
_SMALLER = {
    "year": ("month", 12),
    "month": ("day", 30),
    "week": ("day", 7),
    "day": ("hour", 24),
    "hour": ("minute", 60),
}
_HALVES = {"day": "half_day", "hour": "half_hour"}
_ISO = {"minute": "PT{}M", "hour": "PT{}H", "day": "P{}D", "week": "P{}W"}


@dataclass(frozen=True, slots=True)
class PlotClock:
    """Time of a scenario.

    Attributes:
        turns: the number of turns.
        step: the units of a turn.
        unit: the unit, singular; empty without a known deadline.
    """

    turns: int = USUAL_TURNS
    step: int = 1
    unit: str = ""

    @property
    def minutes(self) -> int:
        """The minutes of a turn; 0 if it has no unit."""
        return _MINUTES.get(self.unit, 0) * self.step

    @property
    def duration(self) -> str:
        """The duration of a turn; empty if it has no unit."""
        if self.unit in _ISO:
            return _ISO[self.unit].format(self.step)
        if self.minutes % 1440:
            return f"PT{self.minutes}M"
        return f"P{self.minutes // 1440}D" if self.minutes else ""


@dataclass(frozen=True, slots=True)
class PlotStore:
    """First supply of a text.

    Attributes:
        amount: the amount at the start, in its unit; 0 if the text gives none that can be counted down.
        unit: the unit: of time, `%`, or empty.
        is_scarce: the text counts it small, or calls it scarce.
    """

    amount: int = 0
    unit: str = ""
    is_scarce: bool = False


def read_clock(deadline: Deadline | None, least: int = 0) -> PlotClock:
    """Return the clock of a deadline: as many turns as divide it into whole units.

    Args:
        deadline: the deadline; a night or an evening without an amount is played in half hours.
        least: the least number of units; 0 allows halves of a day or an hour.
    """
    if deadline is not None and deadline.unit in ("night", "evening") and deadline.amount <= 1:
        return PlotClock(unit="half_hour")
    if deadline is None or deadline.amount <= 0 or deadline.amount != int(deadline.amount):
        return PlotClock()
    clocks = (_divide(deadline, least, turns) for turns in (_TURNS, _WIDE_TURNS))
    return next((clock for clock in clocks if clock is not None), PlotClock())


def _divide(deadline: Deadline, least: int, usual: range) -> PlotClock | None:
    """Return the clock that divides a deadline into one of some numbers of turns; None if none is round."""
    amount, unit = int(deadline.amount), deadline.unit
    while unit in _MINUTES:
        for part, many in ((unit, 1), (_HALVES.get(unit, ""), 2)):
            fitting = [
                turns
                for turns in usual
                if amount * many % turns == 0
                and (part not in _ROUND or amount * many // turns in _ROUND[part])
            ]
            if fitting and amount >= least and part and not (least and many > 1):
                turns = min(fitting, key=lambda turns: abs(turns - USUAL_TURNS))
                return PlotClock(turns, amount * many // turns, part)
        if unit not in _SMALLER:
            break
        unit, many = _SMALLER[unit]
        amount *= many
    return None


def find_clock(reading: Reading) -> PlotClock:
    """Return the clock of a reading: of its deadline, else of the time that its first supply lasts."""
    lasting = _find_lasting(reading)
    if lasting is None:
        return read_clock(reading.deadline)
    is_timed = reading.deadline is not None and reading.deadline.amount > 0
    return read_clock(reading.deadline if is_timed else lasting, _MIN_HOURS)


def find_store(reading: Reading, clock: PlotClock) -> PlotStore:
    """Return the first supply of a reading.

    Args:
        reading: the reading.
        clock: its clock, whose unit is the one of a supply that lasts for a time.
    """
    supply = choose_supply(reading)
    if supply is None:
        return PlotStore()
    lasting = _find_lasting(reading)
    if lasting is not None:
        units = lasting.amount * _MINUTES[lasting.unit] / _MINUTES.get(clock.unit, 1)
        is_exact = bool(clock.unit) and units == int(units) and units >= _MIN_HOURS
        return PlotStore(int(units) if is_exact else 0, clock.unit if is_exact else "", is_scarce=True)
    is_scarce = _is_called_scarce(supply, reading)
    for amount in _amounts_of(supply, reading):
        if amount.value >= _MIN_STORE:
            unit = "%" if amount.unit == "percent" else ""
            return PlotStore(int(amount.value), unit, is_scarce)
        if not amount.unit and clock.turns <= USUAL_TURNS:
            return PlotStore(0, "%", is_scarce=True)
        is_scarce = True
    return PlotStore(is_scarce=is_scarce)


def find_scale(plot: Plot, clock: PlotClock, store: PlotStore) -> PlotNumbers:
    """Return the scale of a plot before calibration."""
    factors: dict[str, int | float] = {}
    for name, gauge in plot.gauges.items():
        if gauge.is_clock:
            factors[name] = clock.step
        elif gauge.is_store and store.amount:
            factors[name] = store.amount / store_steps(gauge.start, clock.turns)
        elif gauge.is_store and store.unit:
            factors[name] = _SHARE
    return PlotNumbers(clock.turns, factors)


def _amounts_of(supply: Phrase, reading: Reading) -> Iterator[Amount]:
    """Yield the whole amounts of a supply."""
    for amount in reading.amounts:
        if amount.of is not None and amount.of.head == supply.head and amount.value == int(amount.value):
            yield amount


def _find_lasting(reading: Reading) -> Deadline | None:
    """Return how long the first supply lasts, if the text gives it beside the supply."""
    supply, grammar = choose_supply(reading), load_grammars().get(reading.language)
    if supply is None or grammar is None:
        return None
    head, lasting = re.escape(supply.head), _any_of(grammar.words("things", "lasting"))
    if reading.language == "zh":
        before, after = rf"{head}\w?{lasting}\w?", rf"\u7684?{head}"
    else:
        before = rf"\b{head}\w*\s+(?:\w+\s+)?{lasting}\s+(?:\w+\s+)?"
        after = rf"\s+{_any_of(grammar.words('things', 'of'))}\s+{head}"
    times = [Deadline(one.value, one.unit, one.text) for one in reading.amounts]
    for time in (*times, *([reading.deadline] if reading.deadline else [])):
        # The text of a deadline may begin with the word that links it to the supply.
        words = re.escape(re.sub(rf"^{lasting}\s+", "", time.text))
        is_whole = time.amount >= 1 and time.amount == int(time.amount) and time.unit in _MINUTES
        if is_whole and re.search(rf"{before}{words}|{words}{after}", reading.text, re.IGNORECASE):
            return time
    return None


def _any_of(words: frozenset[str] | set[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, sorted(words)))})"


def _is_called_scarce(supply: Phrase, reading: Reading) -> bool:
    """Return True if one of the words before a supply means that there is little or none."""
    grammar = load_grammars().get(reading.language)
    if grammar is None:
        return False
    words = _any_of(grammar.words("things", "stock") | grammar.words("things", "none"))
    gap = r"\w{0,2}" if reading.language == "zh" else rf"\s+(?:\w+\s+){{0,{_NEAR - 1}}}"
    edge = "" if reading.language == "zh" else r"\b"
    return bool(re.search(rf"{edge}{words}{gap}{re.escape(supply.head)}", reading.text, re.IGNORECASE))
