"""Checks of a scenario with players that read its rules: solutions, curiosity, lookahead.

The fail rate of a player without skill shows the cost of chance and neglect. It does not show if a player who
thinks can win, or if a winner has anything to do. From version 1.1 on, these players show it:

- With `solutions`, `par` follows them and `curious` tries everything once. A solution wins often, and trying
  everything wins sometimes.
- Without, `greedy` and `planner` look ahead, and lose neither rarely nor often; `idle` loses.

Each rate is compared with its limits as the gate compares the fail rate: a sequential test in blocks, where
the point estimate decides at the maximum number of runs.

A document of version 1.0 must only not be won at once, and only while it is generated (`check_new_document`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from peripety.errors import Finding, Severity
from peripety.scenario.dry_run.rate_interval import ThresholdSide, compare_to_threshold, rate_interval
from peripety.scenario.dry_run.simulation import MAX_SECONDS, SimulationRunner
from peripety.scenario.types import DryRunOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.core.concurrency import Executor
    from peripety.engine import DryRunReport, Persona, Program

BLOCK = 64
"""The number of runs between two tests of a rate."""

_MAX_RUNS = 512
# The planner plays dozens of turns for each of its own.
_MAX_PLANNED_RUNS = 128
_PATH_RUNS = 64
_AT_ONCE_TURNS = 2
_NEARLY_ALL = 0.9
_MAX_PATH = 12
_MAX_CAUSES = 3


@dataclass(frozen=True, slots=True)
class _Limit:
    """Limit of a rate of a persona.

    Attributes:
        code: the code of the finding if it is missed.
        path: the place of the finding.
        persona: the persona.
        counted: the counted outcome.
        rate: the limit.
        missed: the side of the limit on which a rate misses it.
        severity: the severity of the finding.
    """

    code: str
    path: str
    persona: Persona
    counted: Literal["won", "lost"]
    rate: float
    missed: ThresholdSide
    severity: Severity = Severity.ERROR


def _at_least(code: str, path: str, persona: Persona, counted: Literal["won", "lost"], rate: float) -> _Limit:
    return _Limit(code, path, persona, counted, rate, ThresholdSide.BELOW)


def _at_most(code: str, path: str, persona: Persona, counted: Literal["won", "lost"], rate: float) -> _Limit:
    return _Limit(code, path, persona, counted, rate, ThresholdSide.ABOVE)


_WITH_SOLUTIONS = (
    _at_least("SOLUTION_FAILS", "/solutions", "par", "won", 0.6),
    replace(_at_most("SOLUTION_CERTAIN", "/solutions", "par", "won", 0.95), severity=Severity.WARNING),
    _at_least("CURIOUS_LOSES", "/actions", "curious", "won", 0.15),
    _at_most("CURIOUS_WINS", "/actions", "curious", "won", 0.5),
)
_WITHOUT_SOLUTIONS = (
    _at_least("SKILL_TOO_SAFE", "/loss_conditions", "greedy", "lost", 0.2),
    _at_most("SKILL_IN_VAIN", "/loss_conditions", "greedy", "lost", 0.45),
    _at_least("SKILL_TOO_SAFE", "/loss_conditions", "planner", "lost", 0.2),
    _at_most("SKILL_IN_VAIN", "/loss_conditions", "planner", "lost", 0.45),
    _at_least("IDLE_SURVIVES", "/loss_conditions", "idle", "lost", 0.5),
)


@dataclass(frozen=True, slots=True)
class PlayerVerdict:
    """Verdict of the players.

    Attributes:
        findings: errors and warnings.
        is_chance: True if no player that thinks loses clearly less often than the random one, so that chance
            is the game.
    """

    findings: tuple[Finding, ...]
    is_chance: bool


async def check_players(
    program: Program,
    random: DryRunReport,
    options: DryRunOptions,
    workers: Executor,
    most_seconds: float = MAX_SECONDS,
) -> PlayerVerdict:
    """Measure the players of a document of version 1.1.

    Args:
        program: the scenario.
        random: the runs of the random persona.
        options: simulation options; the persona is ignored.
        workers: worker pool.
        most_seconds: time limit of each player.

    Raises:
        ResourceExhaustedError: the runs exceed the time limit.
    """
    has_solutions = "solutions" in program.spec
    limits = _WITH_SOLUTIONS if has_solutions else _WITHOUT_SOLUTIONS
    thinking: tuple[Persona, ...] = ("greedy", "planner", "curious", *(("par",) if has_solutions else ()))
    players = _Players(program, options, workers, random.first_run, most_seconds)
    findings: list[Finding] = []
    reports: list[DryRunReport] = []
    for persona in dict.fromkeys((*(limit.persona for limit in limits), *thinking)):
        own = [limit for limit in limits if limit.persona == persona]
        report = await players.sample(persona, own)
        if persona in thinking:
            reports.append(report)
            findings += await players.find_win_at_once(report)
        findings += await players.find_missed_limits(own, report)
    low, _ = rate_interval(random.lost, random.runs)
    skilled = [report for report in reports if report.persona != "curious"]
    is_chance = all(rate_interval(report.lost, report.runs)[1] >= low for report in skilled)
    return PlayerVerdict(tuple(findings), is_chance)


async def check_new_document(
    program: Program,
    random: DryRunReport,
    options: DryRunOptions,
    workers: Executor,
    most_seconds: float = MAX_SECONDS,
) -> tuple[tuple[Finding, ...], frozenset[str]]:
    """Return a warning for each player that wins at once, and codes of a certificate that do not apply.

    A certificate of version 1.0 does not contain the curious persona. If that one wins, a win is possible; if
    it does clearly better or worse than the random one, choices matter.
    """
    players = _Players(program, options, workers, random.first_run, most_seconds)
    findings = await players.find_win_at_once(await players.sample("greedy", ()))
    curious = await players.sample("curious", ())
    findings += await players.find_win_at_once(curious)
    refuted = {"NEVER_WON"} if curious.won else set()
    pairs = ((curious.lost, random.lost), (curious.won, random.won))
    if any(_are_apart((one, curious.runs), (other, random.runs)) for one, other in pairs):
        refuted.add("CHOICES_DO_NOT_MATTER")
    return tuple(findings), frozenset(refuted)


def _are_apart(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return True if the intervals of two counts with their totals do not overlap."""
    (low, high), (other_low, other_high) = rate_interval(*one), rate_interval(*other)
    return low > other_high or other_low > high


async def explain(
    program: Program,
    report: DryRunReport,
    options: DryRunOptions,
    workers: Executor,
) -> str:
    """Return a clause about a persona's losses by cause, and about the turn and path of its wins.

    Args:
        program: the scenario.
        report: its runs.
        options: their options.
        workers: worker pool.
    """
    play = partial(
        program.dry_run,
        runs=min(_PATH_RUNS, report.runs),
        first_run=report.first_run,
        seed=options.seed,
        horizon=options.horizon,
        persona=report.persona,
        threads=workers.threads,
        detail=True,
        paths=True,
    )
    sampled = await workers.run(play) if report.won else None
    told = [*_describe_losses(report)]
    if sampled is not None and sampled.detail is not None and sampled.won:
        turn = _median(sampled.detail.won_turns)
        told.append(
            f"it wins in turn {turn} at the median, mostly by {_shorten(sampled.detail.win_paths[0][0])}"
        )
    elif program.spec.get("win_conditions"):
        told.append("it never wins" if not report.won else "it hardly ever wins")
    return "; ".join(told)


class _Players:
    """Players of one scenario, on the same run numbers."""

    def __init__(
        self,
        program: Program,
        options: DryRunOptions,
        workers: Executor,
        first_run: int,
        most_seconds: float,
    ) -> None:
        self._program = program
        self._options = options
        self._workers = workers
        self._first_run = first_run
        self._most_seconds = most_seconds
        self._has_wins = bool(program.spec.get("win_conditions"))

    async def sample(self, persona: Persona, limits: Sequence[_Limit]) -> DryRunReport:
        """Return detailed runs of a persona: a block, or as many as its limits need."""
        most = min(self._options.max_runs, _MAX_PLANNED_RUNS if persona == "planner" else _MAX_RUNS)
        how = DryRunOptions(persona, self._options.seed, most, self._options.horizon)
        runner = SimulationRunner(self._program, how, self._workers, self._most_seconds)
        report = await runner.run(self._first_run, min(BLOCK, most), {})
        while report.runs < most and any(self._side(limit, report) is None for limit in limits):
            first = self._first_run + report.runs
            report = report.merge(await runner.run(first, min(BLOCK, most - report.runs), {}))
        return report

    async def find_win_at_once(self, report: DryRunReport) -> list[Finding]:
        """Return a warning if a persona wins nearly every run in its first turns."""
        detail = report.detail
        if detail is None or report.horizon <= _AT_ONCE_TURNS:
            return []
        quick = sum(count for turn, count in detail.won_turns.items() if turn <= _AT_ONCE_TURNS)
        if quick < _NEARLY_ALL * report.runs:
            return []
        why = await explain(self._program, report, self._options, self._workers)
        message = (
            f"the {report.persona} persona wins {quick} of {report.runs} runs within {_AT_ONCE_TURNS} turns"
            f": {why}"
        )
        return [Finding("WON_AT_ONCE", "/win_conditions", message, Severity.WARNING)]

    async def find_missed_limits(self, limits: Sequence[_Limit], report: DryRunReport) -> list[Finding]:
        """Return a finding for each limit that a rate misses."""
        missed = [limit for limit in limits if self._is_missed(limit, report)]
        if not missed:
            return []
        why = await explain(self._program, report, self._options, self._workers)
        return [self._to_finding(limit, report, why) for limit in missed]

    def _to_finding(self, limit: _Limit, report: DryRunReport, why: str) -> Finding:
        count = self._count(limit, report)
        low, high = rate_interval(count, report.runs)
        verb = ("wins" if self._has_wins else "survives") if limit.counted == "won" else "loses"
        side = "at least" if limit.missed is ThresholdSide.BELOW else "at most"
        demand = "required" if limit.severity is Severity.ERROR else "advised"
        message = (
            f"the {limit.persona} persona {verb} {count / report.runs:.1%} of {report.runs} runs (95 %"
            f" interval {low:.1%} to {high:.1%}), and {side} {limit.rate:.0%} is {demand}: {why}"
        )
        return Finding(limit.code, limit.path, message, limit.severity)

    def _count(self, limit: _Limit, report: DryRunReport) -> int:
        if limit.counted == "lost":
            return report.lost
        return report.won if self._has_wins else report.survived

    def _side(self, limit: _Limit, report: DryRunReport) -> ThresholdSide | None:
        return compare_to_threshold(self._count(limit, report), report.runs, limit.rate)

    def _is_missed(self, limit: _Limit, report: DryRunReport) -> bool:
        """Return True if the test and the estimate miss a limit; the estimate decides an open test."""
        rate = self._count(limit, report) / report.runs
        estimated = rate < limit.rate if limit.missed is ThresholdSide.BELOW else rate > limit.rate
        return estimated and self._side(limit, report) in {limit.missed, None}


def _describe_losses(report: DryRunReport) -> Iterator[str]:
    causes = Counter(report.losses).most_common(_MAX_CAUSES)
    told = [f"{count / report.lost:.0%} by '{name}'" for name, count in causes if count]
    if told:
        yield f"of its losses {', '.join(told)}"


def _median(turns: Mapping[int, int]) -> int:
    """Return the turn by which half of the counted runs have ended."""
    half, seen = sum(turns.values()) / 2, 0
    for turn, count in sorted(turns.items()):
        seen += count
        if seen >= half:
            return turn
    return 0


def _shorten(path: tuple[str, ...]) -> str:
    """Return a path with repeated actions counted, and cut at its end."""
    steps = [
        f"{name} {count} times" if count > 1 else name
        for name, count in ((name, len([*run])) for name, run in groupby(path))
    ]
    told = ", ".join(steps[:_MAX_PATH])
    return f"{told}, …" if len(steps) > _MAX_PATH else told or "no action"
