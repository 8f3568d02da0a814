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
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Literal

from peripety.errors import Finding, Severity
from peripety.scenario.dry_run.rate_interval import ThresholdSide, compare_to_threshold, rate_interval
from peripety.scenario.dry_run.simulation import MAX_SECONDS, SimulationRunner
from peripety.scenario.types import DryRunOptions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
class _RateRule:
    """Limits of a rate of a persona.

    Attributes:
        persona: the persona.
        counted: the counted outcome.
        least: the minimum of the rate.
        most: the maximum of the rate.
        below_code: the code of the finding for a rate below the minimum.
        above_code: the code of the finding for a rate above the maximum.
        path: the place of the finding.
        is_warning: True if a rate above the maximum does not reject the scenario.
    """

    persona: Persona
    counted: Literal["won", "lost"]
    least: float
    most: float
    below_code: str
    above_code: str
    path: str
    is_warning: bool = False


_WITH_SOLUTIONS = (
    _RateRule("par", "won", 0.6, 0.95, "SOLUTION_FAILS", "SOLUTION_CERTAIN", "/solutions", is_warning=True),
    _RateRule("curious", "won", 0.15, 0.5, "CURIOUS_LOSES", "CURIOUS_WINS", "/actions"),
)
_WITHOUT_SOLUTIONS = (
    _RateRule("greedy", "lost", 0.2, 0.45, "SKILL_TOO_SAFE", "SKILL_IN_VAIN", "/loss_conditions"),
    _RateRule("planner", "lost", 0.2, 0.45, "SKILL_TOO_SAFE", "SKILL_IN_VAIN", "/loss_conditions"),
    _RateRule("idle", "lost", 0.5, 1.0, "IDLE_SURVIVES", "", "/loss_conditions"),
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
    rules = {rule.persona: rule for rule in (_WITH_SOLUTIONS if has_solutions else _WITHOUT_SOLUTIONS)}
    thinking: tuple[Persona, ...] = ("greedy", "planner", "curious", *(("par",) if has_solutions else ()))
    players = _Players(program, options, workers, random.first_run, most_seconds)
    findings: list[Finding] = []
    reports: list[DryRunReport] = []
    for persona in dict.fromkeys((*rules, *thinking)):
        rule = rules.get(persona)
        report = await players.sample(persona, rule)
        if persona in thinking:
            reports.append(report)
            findings += await players.find_win_at_once(report)
        if rule is not None:
            findings += await players.find_missed_limit(rule, report)
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
    findings = await players.find_win_at_once(await players.sample("greedy", None))
    curious = await players.sample("curious", None)
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

    async def sample(self, persona: Persona, rule: _RateRule | None) -> DryRunReport:
        """Return detailed runs of a persona: a block, or as many as its limits need."""
        most = min(self._options.max_runs, _MAX_PLANNED_RUNS if persona == "planner" else _MAX_RUNS)
        how = DryRunOptions(persona, self._options.seed, most, self._options.horizon)
        runner = SimulationRunner(self._program, how, self._workers, self._most_seconds)
        report = await runner.run(self._first_run, min(BLOCK, most), {})
        while rule is not None and report.runs < most and not self._is_decided(rule, report):
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

    async def find_missed_limit(self, rule: _RateRule, report: DryRunReport) -> list[Finding]:
        """Return a finding if a rate misses one of its limits."""
        count = self._count(rule, report)
        rate = count / report.runs
        if self._is_missed(count, report.runs, rule.least, ThresholdSide.BELOW):
            code, limit, severity = rule.below_code, f"at least {rule.least:.0%} is required", Severity.ERROR
        elif self._is_missed(count, report.runs, rule.most, ThresholdSide.ABOVE):
            code, limit = rule.above_code, f"at most {rule.most:.0%} is required"
            severity = Severity.WARNING if rule.is_warning else Severity.ERROR
        else:
            return []
        low, high = rate_interval(count, report.runs)
        verb = ("wins" if self._has_wins else "survives") if rule.counted == "won" else "loses"
        why = await explain(self._program, report, self._options, self._workers)
        message = (
            f"the {rule.persona} persona {verb} {rate:.1%} of {report.runs} runs (95 % interval {low:.1%} to"
            f" {high:.1%}), and {limit}: {why}"
        )
        return [Finding(code, rule.path, message, severity)]

    def _count(self, rule: _RateRule, report: DryRunReport) -> int:
        if rule.counted == "lost":
            return report.lost
        return report.won if self._has_wins else report.survived

    def _is_decided(self, rule: _RateRule, report: DryRunReport) -> bool:
        count = self._count(rule, report)
        limits = [limit for limit in (rule.least, rule.most) if limit < 1]
        return all(compare_to_threshold(count, report.runs, limit) is not None for limit in limits)

    @staticmethod
    def _is_missed(count: int, runs: int, limit: float, side: ThresholdSide) -> bool:
        """Return True if a rate is on a side of a limit by the test, or by the estimate if it is open."""
        rate = count / runs
        estimated = rate < limit if side is ThresholdSide.BELOW else rate > limit
        return limit < 1 and estimated and compare_to_threshold(count, runs, limit) in {side, None}


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
