"""Balance search: the fewest and smallest moves that bring a fail rate into a goal.

Each number is first tried at its bounds. If one number alone reaches the goal, the smallest such move is
used. Otherwise as many of the strongest numbers as necessary are moved, each by the same share of its way.
Many numbers count in steps, so a rate may jump over the goal. Then the numbers are moved one after another to
find the one that jumps, and the others are moved around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.scenario.balance.candidate_runs import find_threshold
from peripety.scenario.balance.parameters import DIGITS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peripety.scenario.balance.candidate_runs import BalanceCandidate, CandidateRuns, Setting


_STEPS = 256
# Four runs of a candidate; a smaller effect is indistinguishable from none.
_NOTICEABLE = 0.002
_MAX_SINGLES = 3
_MAX_DISCONTINUITIES = 6
_MAX_ROUNDS = 8


@dataclass(frozen=True, slots=True)
class SearchTarget:
    """Goal of a search: a band of fail rates.

    Attributes:
        min_rate: the lower bound.
        max_rate: the upper bound.
        is_harder: True if the goal is above the present rate.
    """

    min_rate: float
    max_rate: float
    is_harder: bool

    def signed_progress(self, rate: float) -> float:
        """Return the signed position of a rate on the way to the goal; only differences are meaningful."""
        return rate if self.is_harder else -rate

    def is_reached(self, trial: BalanceCandidate) -> bool:
        """Return True if a candidate is in the goal, or beyond it."""
        return trial.rate >= self.min_rate if self.is_harder else trial.rate <= self.max_rate

    def is_exceeded(self, trial: BalanceCandidate) -> bool:
        """Return True if a candidate is beyond the goal."""
        return self.is_reached(trial) and not self.is_hit(trial)

    def is_hit(self, trial: BalanceCandidate) -> bool:
        """Return True if a candidate is in the goal."""
        return self.min_rate <= trial.rate <= self.max_rate


@dataclass(frozen=True, slots=True)
class _Direction:
    """Promising direction: the index of a tunable number, the bound to move it to, and the effect of that."""

    index: int
    bound: float
    effect: float


@dataclass(frozen=True, slots=True)
class Discontinuity:
    """Discontinuity: two candidates on either side of the goal that differ in one number, and its index."""

    below: BalanceCandidate
    above: BalanceCandidate
    index: int


class BalanceSearch:
    """Search for one goal.

    Args:
        candidates: the candidates.
        target: the goal.

    Attributes:
        closest: the candidate closest to the goal; None before the first one.
        discontinuity: the last discontinuity across the goal; None without one.
    """

    def __init__(self, candidates: CandidateRuns, target: SearchTarget) -> None:
        self._candidates = candidates
        self._target = target
        self.closest: BalanceCandidate | None = None
        self.discontinuity: Discontinuity | None = None

    async def search(self) -> BalanceCandidate | None:
        """Return a candidate in the goal; None if only `closest` was found.

        Raises:
            ResourceExhaustedError: the runs exceed the time limit.
        """
        start = await self._get(self._candidates.start_setting)
        if self._target.is_hit(start):
            return start
        base = start
        for _ in range(_MAX_ROUNDS):
            leads = await self._find_directions(base)
            found = await self._search_single(base, leads) or await self._search_multiple(base, leads)
            if found is not None or self.discontinuity is not None or self.closest is base:
                return found
            # Moves can cancel each other out. The next round starts from the best candidate of this one.
            base = self.closest or base
        return None

    async def _get(self, setting: Setting) -> BalanceCandidate:
        trial = await self._candidates.get(setting)
        if self.closest is None or self._distance(trial) < self._distance(self.closest):
            self.closest = trial
        return trial

    async def _move_one(self, base: BalanceCandidate, index: int, value: float) -> BalanceCandidate:
        """Return the candidate with one more number moved."""
        return await self._get(_replace_value(base.setting, index, value))

    def _distance(self, trial: BalanceCandidate) -> float:
        return max(self._target.min_rate - trial.rate, trial.rate - self._target.max_rate, 0.0)

    async def round_digits(self, trial: BalanceCandidate) -> BalanceCandidate:
        """Return a candidate in the goal with as few digits as possible."""
        for digits in range(1, DIGITS):
            setting = tuple(
                value if value == knob.value else knob.with_digits(value, digits)
                for knob, value in zip(self._candidates.numbers, trial.setting, strict=True)
            )
            candidate = await self._get(setting)
            if self._target.is_hit(candidate):
                return candidate
        return trial

    async def _find_directions(self, base: BalanceCandidate) -> list[_Direction]:
        """Return the promising directions, strongest first; then those that only the conditions suggest."""
        leads = []
        for index, knob in enumerate(self._candidates.numbers):
            found = []
            for bound in knob.bounds:
                if bound != base.setting[index]:
                    moved = await self._move_one(base, index, bound)
                    found.append(
                        _Direction(index, bound, self._target.signed_progress(moved.rate - base.rate)),
                    )
            if not found:
                continue
            worst, best = (choose(found, key=lambda lead: lead.effect) for choose in (min, max))
            way = knob.harder_direction if self._target.is_harder else -knob.harder_direction
            if best.effect >= _NOTICEABLE:
                leads.append(best)
            elif worst.effect <= -_NOTICEABLE:
                # It has no effect alone, because another condition ends the same runs, but its opposite has
                # one.
                leads.append(_Direction(index, self._opposite(worst).bound, 0.0))
            elif way:
                leads.append(_Direction(index, knob.bounds[way > 0], 0.0))
        return sorted(leads, key=lambda lead: -lead.effect)

    async def _search_single(
        self,
        base: BalanceCandidate,
        leads: Sequence[_Direction],
    ) -> BalanceCandidate | None:
        """Move one number: the smallest single move that reaches the goal."""
        reaching = [
            lead
            for lead in leads
            if self._target.is_reached(await self._move_one(base, lead.index, lead.bound))
        ]
        nearest = sorted(reaching, key=self._estimate_move)[:_MAX_SINGLES]
        tried = [
            await self._search_between(base.setting, _move_to_bounds(base.setting, [lead]))
            for lead in nearest
        ]
        return min((trial for trial in tried if trial), key=_total_move, default=None)

    def _estimate_move(self, lead: _Direction) -> float:
        """Estimate the necessary move of a number as a share of it, assuming a proportional effect."""
        knob = self._candidates.numbers[lead.index]
        return abs(lead.bound / knob.value - 1) / max(lead.effect, _NOTICEABLE)

    async def _search_multiple(
        self,
        base: BalanceCandidate,
        leads: Sequence[_Direction],
    ) -> BalanceCandidate | None:
        """Move a few numbers together, then work around each discontinuity."""
        few = await self._find_fewest(base.setting, leads, self._target.is_reached)
        trial = await self._search_between(base.setting, _move_to_bounds(base.setting, few)) if few else None
        for _ in range(_MAX_DISCONTINUITIES):
            if trial is None and self.discontinuity is not None:
                leads = [lead for lead in leads if lead.index != self.discontinuity.index]
                trial = await self._search_around(self.discontinuity, leads)
        return trial

    async def _find_fewest(
        self,
        base: Setting,
        leads: Sequence[_Direction],
        predicate: Callable[[BalanceCandidate], bool],
    ) -> Sequence[_Direction] | None:
        """Return the fewest numbers that satisfy a predicate at their bounds; None if not even all do."""

        async def first(count: int) -> BalanceCandidate:
            return await self._get(_move_to_bounds(base, leads[:count]))

        if not leads or not predicate(await first(len(leads))):
            return None
        count, _ = await find_threshold(first, len(leads), predicate)
        kept = list(leads[:count])
        for weakest in reversed(leads[: count - 1]):
            fewer = [lead for lead in kept if lead is not weakest]
            if predicate(await self._get(_move_to_bounds(base, fewer))):
                kept = fewer
        return kept

    async def _search_around(
        self,
        jump: Discontinuity,
        leads: Sequence[_Direction],
    ) -> BalanceCandidate | None:
        """Fix the discontinuous number on either side, and move the others."""
        below, above = jump.below.setting, jump.above.setting
        few = await self._find_fewest(below, leads, self._target.is_reached)
        if few is not None:
            return await self._search_between(below, _move_to_bounds(below, few))
        back = _replace_value(self._candidates.start_setting, jump.index, above[jump.index])
        if not self._target.is_reached(await self._get(back)):
            return await self._search_between(back, above)
        away = [self._opposite(lead) for lead in leads]
        few = await self._find_fewest(back, away, lambda trial: not self._target.is_exceeded(trial))
        return None if few is None else await self._search_between(_move_to_bounds(back, few), back)

    def _opposite(self, lead: _Direction) -> _Direction:
        low, high = self._candidates.numbers[lead.index].bounds
        return _Direction(lead.index, low if lead.bound == high else high, lead.effect)

    async def _search_between(self, low: Setting, high: Setting) -> BalanceCandidate | None:
        """Search between a setting below the goal and one in or beyond it; None without a candidate in it.

        If the first candidate that reaches the goal is beyond it, the numbers of that step are moved one by
        one. If that fails, `jump` records the discontinuity.
        """

        async def part(step: int) -> BalanceCandidate:
            return await self._get(self._interpolate(low, high, step / _STEPS))

        step, trial = await find_threshold(part, _STEPS, self._target.is_reached)
        if self._target.is_hit(trial):
            return trial
        below, above = self._interpolate(low, high, (step - 1) / _STEPS), trial.setting
        places = [place for place, (one, other) in enumerate(zip(below, above, strict=True)) if one != other]

        async def one_by_one(count: int) -> BalanceCandidate:
            return await self._get(_take_values(below, above, places[:count]))

        count, trial = await find_threshold(one_by_one, len(places), self._target.is_reached)
        if self._target.is_hit(trial):
            return trial
        self.discontinuity = Discontinuity(await one_by_one(count - 1), trial, places[count - 1])
        return None

    def _interpolate(self, low: Setting, high: Setting, share: float) -> Setting:
        return tuple(
            knob.with_value(one + share * (other - one))
            for knob, one, other in zip(self._candidates.numbers, low, high, strict=True)
        )


def _total_move(trial: BalanceCandidate) -> float:
    """Return the sum of all moves, as shares of the numbers."""
    return sum(abs(edit.after / edit.before - 1) for edit in trial.edits)


def _replace_value(setting: Setting, index: int, value: float) -> Setting:
    return (*setting[:index], value, *setting[index + 1 :])


def _move_to_bounds(setting: Setting, leads: Sequence[_Direction]) -> Setting:
    bounds = {lead.index: lead.bound for lead in leads}
    return tuple(bounds.get(index, value) for index, value in enumerate(setting))


def _take_values(below: Setting, above: Setting, places: Sequence[int]) -> Setting:
    """Return the lower setting, with some values of the upper one."""
    chosen = set(places)
    return tuple(above[index] if index in chosen else value for index, value in enumerate(below))
