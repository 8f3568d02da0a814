"""Checks of a scenario with players that read its rules: solutions, curiosity, lookahead.

The fail rate of a player without skill shows the cost of chance and neglect. It does not show if a player who
thinks can win, or if a winner has anything to do. From version 1.1 on, these players show it:

- With `solutions`, `par` follows them, `curious` tries everything once and `idle` does nothing. A solution
  wins often, without a guess about what is hidden: this shows that the scenario can be won by reading. Trying
  everything wins sometimes, and never often. Doing nothing hardly ever wins. `curious` does not read, takes a
  final step at any time, and does not repeat what helps. So its least rate is advice: a document that demands
  reading is not made easier for a player who does not. Where the win depends on a choice among n, it is right
  in one case of n at best, and the advice is less. A game with many moves ends before they are tried, and
  has no such advice. Where nothing is hidden, a win of a player who looks ahead
  counts as well; and if such a player hardly ever fails, it is advised to let something go wrong.
  If `par` does worse than such a player, the steps are wrong and not the numbers, and this is the only
  finding about both.
- Without, `greedy` and `planner` look ahead, and lose neither rarely nor often; `idle` loses.

Each rate is compared with its limits as the gate compares the fail rate: a sequential test in blocks. If the
test is open at the maximum number of runs, a limit inside the interval of the rate is not missed.

A document of version 1.0 must only not be won at once, and only while it is generated (`check_new_document`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, Literal

from peripety import engine
from peripety.certification.drift import list_written_paths
from peripety.certification.gate_thresholds import (
    CURIOUS_WINS_AT_LEAST,
    CURIOUS_WINS_AT_MOST,
    FORESIGHT_WINS_AT_MOST,
    IDLE_LOSES_AT_LEAST,
    IDLE_WINS_AT_MOST,
    SKILLED_LOSES_AT_LEAST,
    SKILLED_LOSES_AT_MOST,
    SOLVER_WINS_AT_LEAST,
)
from peripety.certification.options import BLOCK, DryRunOptions
from peripety.certification.player_texts import (
    describe_figures,
    describe_use,
    explain,
    format_rate,
)
from peripety.certification.rate_interval import ThresholdSide, compare_to_threshold, rate_interval
from peripety.certification.simulation import MAX_SECONDS, SimulationRunner
from peripety.certification.solution_trace import find_guesses, trace_solutions
from peripety.engine.lowering import lower
from peripety.errors import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.engine import DryRunReport, Persona, Program
    from peripety.engine.executor import Executor

_DEMANDS = {ThresholdSide.BELOW: "at least", ThresholdSide.ABOVE: "at most"}
_SIDES = {None: "inside", ThresholdSide.BELOW: "too low", ThresholdSide.ABOVE: "too high"}
_MAX_RUNS = 512
# The planner plays dozens of turns for each of its own.
_MAX_PLANNED_RUNS = 128
_AT_ONCE_TURNS = 2
_NEARLY_ALL = 0.9

_TRIED_SHARE = 2 / 3
"""The share of the turns within which every move must be tried for trying to have a chance of a win."""


@dataclass(frozen=True, slots=True)
class PlayerLimit:
    """Limit of a rate of a persona.

    Attributes:
        code: the code of the finding if it is missed.
        path: the place of the finding.
        persona: the persona.
        counted: the counted outcome.
        rate: the limit.
        missed: the side of the limit on which a rate misses it.
        severity: the severity of the finding.
        reason: the reason of an unusual limit.
    """

    code: str
    path: str
    persona: Persona
    counted: Literal["won", "lost"]
    rate: float
    missed: ThresholdSide
    severity: Severity = Severity.ERROR
    reason: str = ""

    def count(self, program: Program, report: DryRunReport) -> int:
        """Return the number of counted runs of a report; where nothing wins, a survived run is won."""
        if self.counted == "lost":
            return report.lost
        return report.won if program.spec.get("win_conditions") else report.survived

    def distance(self, rate: float, margin: float = 0) -> float:
        """Return the amount by which a rate misses the limit; 0 if it does not.

        Args:
            rate: the rate.
            margin: the amount by which the rate must be on the right side; at most half of the limit.
        """
        margin = min(margin, self.rate / 2)
        way = self.rate - rate if self.missed is ThresholdSide.BELOW else rate - self.rate
        return max(0.0, way + margin)


def _at_least(
    code: str, path: str, persona: Persona, counted: Literal["won", "lost"], rate: float
) -> PlayerLimit:
    return PlayerLimit(code, path, persona, counted, rate, ThresholdSide.BELOW)


def _at_most(
    code: str, path: str, persona: Persona, counted: Literal["won", "lost"], rate: float
) -> PlayerLimit:
    return PlayerLimit(code, path, persona, counted, rate, ThresholdSide.ABOVE)


def _advise(limit: PlayerLimit) -> PlayerLimit:
    return replace(limit, severity=Severity.WARNING)


_FORESEEING: tuple[Persona, ...] = ("greedy", "planner")
_LOGIC = {
    "actions": ("preconditions", "derives"),
    "random_events": ("when", "derives"),
    "loss_conditions": ("when",),
    "win_conditions": ("when",),
}


def _limits_with_solutions(spec: dict[str, Any]) -> tuple[PlayerLimit, ...]:
    least = _at_least("CURIOUS_LOSES", "/actions", "curious", "won", CURIOUS_WINS_AT_LEAST)
    decision = find_decision(spec)
    if decision is not None:
        name, count = decision
        # The share of a rate of 50 % that is advised for a document without such a choice.
        rate = min(CURIOUS_WINS_AT_LEAST, CURIOUS_WINS_AT_LEAST / CURIOUS_WINS_AT_MOST / count)
        reason = f"the win depends on '{name}', a choice among {count}, so trying is right in 1 of {count}"
        least = replace(least, rate=rate, reason=reason if rate < CURIOUS_WINS_AT_LEAST else "")
    return (
        _at_least("SOLUTION_FAILS", "/solutions", "par", "won", SOLVER_WINS_AT_LEAST),
        _advise(_at_most("SOLUTION_CERTAIN", "/solutions", "par", "won", FORESIGHT_WINS_AT_MOST)),
        _advise(least),
        _at_most("CURIOUS_WINS", "/actions", "curious", "won", CURIOUS_WINS_AT_MOST),
        _at_most("IDLE_WINS", "/win_conditions", "idle", "won", IDLE_WINS_AT_MOST),
        # Lookahead also sees hidden state, which no player sees.
        *(
            _advise(_at_most("FORESIGHT_WINS", "/loss_conditions", persona, "won", FORESIGHT_WINS_AT_MOST))
            for persona in (_FORESEEING if is_open(spec) else ())
        ),
    )


_WITHOUT_SOLUTIONS = (
    _at_least("SKILL_TOO_SAFE", "/loss_conditions", "greedy", "lost", SKILLED_LOSES_AT_LEAST),
    _at_most("SKILL_IN_VAIN", "/loss_conditions", "greedy", "lost", SKILLED_LOSES_AT_MOST),
    _at_least("SKILL_TOO_SAFE", "/loss_conditions", "planner", "lost", SKILLED_LOSES_AT_LEAST),
    _at_most("SKILL_IN_VAIN", "/loss_conditions", "planner", "lost", SKILLED_LOSES_AT_MOST),
    _at_least("IDLE_SURVIVES", "/loss_conditions", "idle", "lost", IDLE_LOSES_AT_LEAST),
)


def list_limits(spec: dict[str, Any]) -> tuple[PlayerLimit, ...]:
    """Return the limits of the players of a document of version 1.1."""
    return _limits_with_solutions(spec) if "solutions" in spec else _WITHOUT_SOLUTIONS


@dataclass(frozen=True, slots=True)
class PlayerVerdict:
    """Verdict of the players.

    Attributes:
        findings: errors and warnings.
        is_chance: True if no player that thinks loses clearly less often than the random one, so that chance
            is the game.
        figures: a line about each player, with its rate, its band and its losses, and one about the steps of
            solutions that fail. They are for the author alone.
    """

    findings: tuple[Finding, ...]
    is_chance: bool
    figures: tuple[str, ...]


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
    can_try_all = _count_moves(program.spec) <= _TRIED_SHARE * random.horizon
    limits = [limit for limit in list_limits(program.spec) if can_try_all or limit.code != "CURIOUS_LOSES"]
    thinking: tuple[Persona, ...] = (*(("par",) if has_solutions else ()), "curious", "greedy", "planner")
    players = _Players(program, options, workers, random.first_run, most_seconds)
    reports = {
        persona: await players.sample(persona, [limit for limit in limits if limit.persona == persona])
        for persona in (*thinking, "idle")
    }
    missed = [limit for limit in limits if players.is_missed(limit, reports[limit.persona])]
    foreseeing = [reports[persona] for persona in _FORESEEING] if is_open(program.spec) else []
    if any(players.reach_least(report) for report in foreseeing):
        missed = [limit for limit in missed if limit.code != "CURIOUS_LOSES"]
    figures = [players.describe(limits, missed, report) for report in reports.values()]
    findings: list[Finding] = []
    if has_solutions:
        findings += await players.find_guesses(reports["par"])
    if any(limit.code == "SOLUTION_FAILS" for limit in missed):
        figures.append(await players.trace(reports["par"]))
        better = players.find_better(reports["par"], reports["curious"], foreseeing)
        if better is not None:
            findings.append(await players.find_misleading_steps(reports["par"], better))
            missed = [limit for limit in missed if limit.persona not in {"par", "curious"}]
    for persona in (*thinking, "idle"):
        if persona in thinking:
            findings += await players.find_win_at_once(reports[persona])
        own = [limit for limit in missed if limit.persona == persona]
        findings += await players.to_findings(own, reports[persona])
    low, _ = rate_interval(random.lost, random.runs)
    skilled = [reports[persona] for persona in thinking if persona != "curious"]
    is_chance = all(rate_interval(report.lost, report.runs)[1] >= low for report in skilled)
    return PlayerVerdict(tuple(findings), is_chance, tuple(filter(None, figures)))


def find_decision(spec: dict[str, Any]) -> tuple[str, int] | None:
    """Return the action with the most values of a choice that every win depends on, and their number.

    Such an action has a parameter of texts or a boolean, and writes a path that each win condition reads. It
    happens once, or also writes a path that a loss condition reads: a wrong value has a price.
    """
    lowered = lower(spec).spec
    won, lost = (
        [set(engine.list_read_paths(end["when"])) for end in lowered.get(f"{kind}_conditions", [])]
        for kind in ("win", "loss")
    )
    found: list[tuple[str, int]] = []
    for written, action in zip(spec["actions"], lowered["actions"], strict=True):
        count = prod(map(_count_choices, action["params"].values()))
        paths = {path for variant in engine.list_variants(action) for path in list_written_paths(variant)}
        is_final = written.get("once") or any(engine.are_related(paths, read) for read in lost)
        if count > 1 and is_final and won and all(engine.are_related(paths, read) for read in won):
            found.append((action["id"], count))
    return max(found, key=lambda one: one[1], default=None)


def _count_moves(spec: dict[str, Any]) -> int:
    """Return the number of actions, each counted with each value of its choices."""
    return sum(prod(map(_count_choices, action["params"].values())) for action in spec["actions"])


def _count_choices(param: dict[str, Any]) -> int:
    """Return the number of the values of a choice; 1 for an amount."""
    if param["type"] == "boolean":
        return 2
    return len(set(param.get("enum", [""]))) if param["type"] == "string" else 1


def is_open(spec: dict[str, Any]) -> bool:
    """Return True if no rule reads what is hidden: players with lookahead see what any player sees."""
    if "deal" in spec or "visibility" in spec:
        return False
    rules = [
        rule.get(key)
        for section, keys in _LOGIC.items()
        for rule in lower(spec).spec.get(section, [])
        for key in keys
    ]
    paths = {path for logic in rules for path in engine.list_read_paths(logic)}
    return not any(
        path.startswith(("state.hidden", "state.private")) and not path.startswith("state.hidden.once")
        for path in paths
    )


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

    async def sample(self, persona: Persona, limits: Sequence[PlayerLimit]) -> DryRunReport:
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

    async def to_findings(self, missed: Sequence[PlayerLimit], report: DryRunReport) -> list[Finding]:
        """Return a finding for each missed limit of a persona."""
        if not missed:
            return []
        why = await explain(self._program, report, self._options, self._workers)
        return [self._to_finding(limit, report, why) for limit in missed]

    def _rate(self, report: DryRunReport) -> float:
        return (report.won if self._has_wins else report.survived) / report.runs

    def reach_least(self, report: DryRunReport) -> bool:
        """Return True if a persona wins as often as is required of the curious one."""
        return self._rate(report) >= CURIOUS_WINS_AT_LEAST

    def find_better(
        self,
        par: DryRunReport,
        curious: DryRunReport,
        foreseeing: Sequence[DryRunReport],
    ) -> DryRunReport | None:
        """Return the best runs of a player who does not know the solutions; None if those of par are better.

        Those of a player with lookahead, which are few, must be clearly better.
        """
        better = [curious] if self._rate(curious) > self._rate(par) else []
        better += [
            report
            for report in foreseeing
            if report.won > par.won * report.runs / par.runs
            and (_are_apart((report.won, report.runs), (par.won, par.runs)))
        ]
        return max(better, key=self._rate, default=None)

    async def find_misleading_steps(self, par: DryRunReport, better: DryRunReport) -> Finding:
        """Return the finding for solutions that win less often than a player who does not know them."""
        who = "tries everything" if better.persona == "curious" else "looks ahead"
        why = await explain(self._program, par, self._options, self._workers)
        message = (
            f"the steps win {self._rate(par):.1%} of {par.runs} runs, and a player who {who}"
            f" {self._rate(better):.1%} of {better.runs}: change the steps, not the numbers; of the steps:"
            f" {why}; the {better.persona} persona takes in a run {describe_use(better)}"
        )
        return Finding("SOLUTION_MISLEADS", "/solutions", message)

    async def find_guesses(self, par: DryRunReport) -> list[Finding]:
        """Return a warning if moves of the solutions depend on what a player cannot know yet."""
        found = await self._workers.run(find_guesses, self._program, par)
        return [found] if found else []

    async def trace(self, par: DryRunReport) -> str:
        """Return a line about illegal steps of the solutions, and those before which runs are lost."""
        return await self._workers.run(trace_solutions, self._program, par)

    def describe(
        self,
        limits: Sequence[PlayerLimit],
        missed: Sequence[PlayerLimit],
        report: DryRunReport,
    ) -> str:
        """Return a line about a persona, with the band of its rate."""
        own = [limit for limit in limits if limit.persona == report.persona]
        limit = own[0] if own else _at_most("", "", report.persona, "won", 1)
        required = {one.missed: format_rate(one.rate) for one in own if one.severity is Severity.ERROR}
        least, most = required.get(ThresholdSide.BELOW), required.get(ThresholdSide.ABOVE)
        asked = (
            f"must be {least} to {most}"
            if least and most
            else ", and ".join(
                [
                    *(f"must be {_DEMANDS[side]} {rate}" for side, rate in required.items()),
                    *(
                        f"{_DEMANDS[one.missed]} {format_rate(one.rate)} is advised"
                        for one in own
                        if one.severity is not Severity.ERROR
                    ),
                ]
            )
        )
        if not own:
            band = "no band"
        else:
            sides = [one for one in own if one in missed]
            side = next((one.missed for one in sides if one.severity is Severity.ERROR), None)
            band = f"{asked}: {_SIDES[side]}"
            if side is None and sides:
                band += f", but {_SIDES[sides[0].missed]} for the advice"
            elif side is None and any(self.is_missed(one, report) for one in own):
                band = f"{asked}, or {' or '.join(_FORESEEING)} wins as often: inside"
        return describe_figures(
            report, f"{self._verb(limit)} {limit.count(self._program, report) / report.runs:.1%}", band
        )

    def _verb(self, limit: PlayerLimit) -> str:
        return ("wins" if self._has_wins else "survives") if limit.counted == "won" else "loses"

    def _to_finding(self, limit: PlayerLimit, report: DryRunReport, why: str) -> Finding:
        count = limit.count(self._program, report)
        low, high = rate_interval(count, report.runs)
        demand = "required" if limit.severity is Severity.ERROR else "advised"
        message = (
            f"the {limit.persona} persona {self._verb(limit)} {count / report.runs:.1%} of {report.runs} runs"
            f" (95 % interval {low:.1%} to {high:.1%}), and"
            f" {_DEMANDS[limit.missed]} {format_rate(limit.rate)} is {demand}"
            f"{f' ({limit.reason})' if limit.reason else ''}: {why}"
        )
        return Finding(limit.code, limit.path, message, limit.severity)

    def _side(self, limit: PlayerLimit, report: DryRunReport) -> ThresholdSide | None:
        return compare_to_threshold(limit.count(self._program, report), report.runs, limit.rate)

    def is_missed(self, limit: PlayerLimit, report: DryRunReport) -> bool:
        """Return True if the test, or the interval of a test that is still open, misses a limit."""
        side = self._side(limit, report)
        if side is not None:
            return side is limit.missed
        low, high = rate_interval(limit.count(self._program, report), report.runs)
        return high < limit.rate if limit.missed is ThresholdSide.BELOW else low > limit.rate
