"""What the engine gives back. Both cores fill the same types from the same bytes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeVar, get_args

from peripety.errors import Severity

__all__ = [
    "ABSENT",
    "PERSONAS",
    "ActResult",
    "ActionCall",
    "ActionUse",
    "Change",
    "Draw",
    "DryRunReport",
    "LogLine",
    "Persona",
    "Proof",
    "ProofCode",
    "RollResult",
    "RuleError",
    "RunDetail",
    "Status",
    "StatusKind",
    "StepResult",
]

StatusKind = Literal["ongoing", "lost", "won"]
ProofCode = Literal[
    "UNREACHABLE_WIN",
    "IMPOSSIBLE_LOSS",
    "CERTAIN_LOSS",
    "DEAD_ACTION",
    "DEAD_EVENT",
    "RUNAWAY_GROWTH",
    "TYPE_ERROR",
]
Persona = Literal["idle", "random", "greedy", "cautious", "planner", "saboteur"]
PERSONAS: Final[tuple[Persona, ...]] = get_args(Persona)
"""Everybody who can play a dry-run, in the order of reports."""


class _Absent:
    """The value of a path where nothing is."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


_T = TypeVar("_T")


def _each(kind: type[_T], items: list[dict[str, Any]]) -> tuple[_T, ...]:
    """The items, mostly none, as objects of their kind."""
    return tuple([kind(**item) for item in items]) if items else ()


@dataclass(frozen=True, slots=True)
class Change:
    """One write to the state.

    Attributes:
        path: where, such as `state.a.b[2]`.
        op: the operation: set, inc, dec, mul, patch, push or pop.
        before: the value before, or `ABSENT`.
        after: the value after, or `ABSENT`.
        cause: what did it: `action:<id>`, `event:<id>`, `schedule:<id>`, `decay` or `narrator`.
    """

    path: str
    op: str
    before: Any
    after: Any
    cause: str

    @classmethod
    def of(cls, value: dict[str, Any]) -> Change:
        """A change from a core's JSON."""
        before, after = value.get("before", ABSENT), value.get("after", ABSENT)
        return cls(value["path"], value["op"], before, after, value["cause"])


@dataclass(frozen=True, slots=True)
class RuleError:
    """A rule of the scenario that could not be carried out; it had no effect.

    Attributes:
        code: stable reason.
        rule: JSON Pointer of the rule in the document (of a scheduled effect: `schedule:<id>` and its place).
        message: one sentence.
        count: how often it happened (in a dry-run).
    """

    code: str
    rule: str
    message: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that an effect wrote to the session's log."""

    turn: int
    message: str
    cause: str


@dataclass(frozen=True, slots=True)
class Draw:
    """One use of randomness: the stream, its turn and index, and the 64-bit value as 16 hex digits."""

    stream: str
    turn: int
    index: int
    value: str


@dataclass(frozen=True, slots=True)
class Status:
    """Whether a run goes on, and if not, which condition ended it."""

    kind: StatusKind
    condition: str | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ActResult:
    """What came of an action, or of the narrator's own changes: accepted, or rejected with the reasons.

    The changes include those of scheduled effects, when this call opened the turn.
    """

    accepted: bool
    reasons: tuple[RuleError, ...]
    changes: tuple[Change, ...]
    log: tuple[LogLine, ...]
    errors: tuple[RuleError, ...]

    @classmethod
    def of(cls, value: dict[str, Any]) -> ActResult:
        """A result from a core's JSON."""
        return cls(
            value["accepted"],
            _each(RuleError, value["reasons"]),
            tuple([Change.of(change) for change in value["changes"]]),
            _each(LogLine, value["log"]),
            _each(RuleError, value["errors"]),
        )


@dataclass(frozen=True, slots=True)
class StepResult:
    """What the world did at the end of a turn. `turn` is the number of the turn just completed, from 1."""

    turn: int
    event: str | None
    changes: tuple[Change, ...]
    log: tuple[LogLine, ...]
    draws: tuple[Draw, ...]
    errors: tuple[RuleError, ...]
    status: Status

    @classmethod
    def of(cls, value: dict[str, Any]) -> StepResult:
        """A result from a core's JSON."""
        return cls(
            value["turn"],
            value["event"],
            tuple([Change.of(change) for change in value["changes"]]),
            _each(LogLine, value["log"]),
            _each(Draw, value["draws"]),
            _each(RuleError, value["errors"]),
            Status(**value["status"]),
        )


@dataclass(frozen=True, slots=True)
class RollResult:
    """A die of twenty faces against a difficulty.

    Attributes:
        kind: what was rolled for.
        target: on what, if on anything.
        difficulty: the least face that is a success, 1 … 30.
        roll: the face, 1 … 20.
        success: whether the face reaches the difficulty.
        draw: the draw that decided it; its index counts the rolls of this kind and target within the turn.
    """

    kind: str
    target: str | None
    difficulty: int
    roll: int
    success: bool
    draw: Draw

    @classmethod
    def of(cls, value: dict[str, Any]) -> RollResult:
        """A result from a core's JSON."""
        return cls(**{**value, "draw": Draw(**value["draw"])})


@dataclass(frozen=True, slots=True)
class ActionUse:
    """How an action was used: in how many turns it was among the choices, and in how many it was taken."""

    legal: int
    taken: int


@dataclass(frozen=True, slots=True)
class RunDetail:
    """What else is counted over many runs, when it is asked for.

    Attributes:
        lost_turns: how many runs were lost in which turn, in order of the turns.
        won_turns: the same of runs that were won.
        actions: the use of each action, by its id.
        events: how often each event was drawn, by its id.
        moves: for each watched path, the sum over all runs of how far its number moved from the first state
            to the last, in units of 2^-20 of its scale.
    """

    lost_turns: dict[int, int]
    won_turns: dict[int, int]
    actions: dict[str, ActionUse]
    events: dict[str, int]
    moves: dict[str, int]

    def merged(self, other: RunDetail) -> RunDetail:
        """The detail of these runs and those of `other` together."""
        uses = {
            name: ActionUse(use.legal + other.actions[name].legal, use.taken + other.actions[name].taken)
            for name, use in self.actions.items()
        }
        return RunDetail(
            _added_by_turn(self.lost_turns, other.lost_turns),
            _added_by_turn(self.won_turns, other.won_turns),
            uses,
            _added(self.events, other.events),
            _added(self.moves, other.moves),
        )

    @classmethod
    def of(cls, value: dict[str, Any]) -> RunDetail:
        """A detail from a core's JSON, where turns and their counts are pairs."""
        return cls(
            dict(map(tuple, value["lost_turns"])),
            dict(map(tuple, value["won_turns"])),
            {name: ActionUse(**use) for name, use in value["actions"].items()},
            value["events"],
            value["moves"],
        )


@dataclass(frozen=True, slots=True)
class DryRunReport:
    """Counts over many runs under one persona.

    Attributes:
        runs: how many runs; `lost + won + survived + errored` of them.
        first_run: the number of the first.
        turns: turns over all runs.
        losses: runs ended by each loss condition.
        wins: runs ended by each win condition.
        errors: rules that failed, with how often.
        seed: the seed that run seeds were mixed from.
        horizon: the most turns of a run.
        rng_version: version of the random numbers.
        digest: when asked for, SHA-256 in hex over a line `{outcome} {turns} {state hash}` for each run: two
            reports with the same digest are of runs that ended in the same states.
        detail: when asked for, what else was counted.
    """

    runs: int
    first_run: int
    turns: int
    lost: int
    won: int
    survived: int
    errored: int
    losses: dict[str, int]
    wins: dict[str, int]
    errors: tuple[RuleError, ...]
    seed: int
    persona: Persona
    horizon: int
    rng_version: int
    digest: str | None = None
    detail: RunDetail | None = None

    @property
    def fail_rate(self) -> float:
        """Lost runs over all runs."""
        return self.lost / self.runs

    def merged(self, other: DryRunReport) -> DryRunReport:
        """One report over these runs and those of `other`, which follow them under the same options.

        It has no digest: that of all runs cannot be told from those of two parts.
        """
        return replace(
            self,
            runs=self.runs + other.runs,
            turns=self.turns + other.turns,
            lost=self.lost + other.lost,
            won=self.won + other.won,
            survived=self.survived + other.survived,
            errored=self.errored + other.errored,
            losses=_added(self.losses, other.losses),
            wins=_added(self.wins, other.wins),
            errors=_gathered(*self.errors, *other.errors),
            digest=None,
            detail=self.detail.merged(other.detail) if self.detail and other.detail else None,
        )

    @classmethod
    def of(cls, value: dict[str, Any]) -> DryRunReport:
        """A report from a core's JSON."""
        errors = _each(RuleError, value["errors"])
        detail = RunDetail.of(value["detail"]) if value.get("detail") else None
        return cls(**{**value, "errors": errors, "seed": int(value["seed"]), "detail": detail})


@dataclass(frozen=True, slots=True)
class ActionCall:
    """What a player does in one turn: an action with its parameters. No id: nothing is done."""

    action_id: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Proof:
    """Something that holds in every run within the horizon, or that an example run shows.

    Attributes:
        code: what is claimed.
        path: JSON Pointer of the rule that it is about.
        argument: why, in a few sentences with the numbers that matter.
        severity: an error where the scenario cannot be meant like this, else a warning.
        witness: what to do in each turn from the first, under the scenario's own seed, to see it; empty where
            the argument is the proof.
    """

    code: ProofCode
    path: str
    argument: str
    severity: Severity = Severity.WARNING
    witness: tuple[ActionCall, ...] = ()


def _added(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    """The sums of two counts of the same things."""
    return {name: count + other[name] for name, count in one.items()}


def _added_by_turn(one: dict[int, int], other: dict[int, int]) -> dict[int, int]:
    """The sums of two counts by turn, in order of the turns."""
    return {turn: one.get(turn, 0) + other.get(turn, 0) for turn in sorted(one.keys() | other.keys())}


def _gathered(*errors: RuleError) -> tuple[RuleError, ...]:
    """Each rule that failed once, in the order of the first failures."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], RuleError] = {}
    for error in errors:
        counts[error.code, error.rule] += error.count
        first.setdefault((error.code, error.rule), error)
    return tuple(replace(error, count=counts[key]) for key, error in first.items())
