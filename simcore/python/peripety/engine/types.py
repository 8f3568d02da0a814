"""Result types of the engine. Both backends fill them from the same bytes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeVar, get_args

from peripety.errors import Severity

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
Persona = Literal["idle", "random", "greedy", "cautious", "planner", "saboteur", "curious", "par"]
PERSONAS: Final[tuple[Persona, ...]] = get_args(Persona)
"""All personas, in the order of reports."""


class _Absent:
    """Marker for the value of a path that does not exist."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


_T = TypeVar("_T")


def _build_each(kind: type[_T], items: list[dict[str, Any]]) -> tuple[_T, ...]:
    """Convert JSON objects to instances of a class; fast for the usual empty list."""
    return tuple([kind(**item) for item in items]) if items else ()


@dataclass(frozen=True, slots=True)
class Change:
    """One write to the state.

    Attributes:
        path: such as `state.a.b[2]`.
        op: set, inc, dec, mul, patch, push or pop.
        before: the value before, or `ABSENT`.
        after: the value after, or `ABSENT`.
        cause: `action:<id>`, `event:<id>`, `schedule:<id>`, `decay` or `narrator`.
    """

    path: str
    op: str
    before: Any
    after: Any
    cause: str

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Change:
        """Parse a backend's JSON."""
        before, after = value.get("before", ABSENT), value.get("after", ABSENT)
        return cls(value["path"], value["op"], before, after, value["cause"])


@dataclass(frozen=True, slots=True)
class RuleError:
    """Rule of the scenario that failed; it had no effect.

    Attributes:
        code: stable reason.
        rule: JSON Pointer of the rule in the document; for a scheduled effect, `schedule:<id>` and its index.
        message: one sentence.
        count: number of occurrences (in a dry-run).
    """

    code: str
    rule: str
    message: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class LogLine:
    """Line that an effect wrote to the session's log."""

    turn: int
    message: str
    cause: str


@dataclass(frozen=True, slots=True)
class Draw:
    """One random draw: stream, turn, index, and the 64-bit value as 16 hex digits."""

    stream: str
    turn: int
    index: int
    value: str


@dataclass(frozen=True, slots=True)
class Status:
    """Status of a run, with the condition that ended it, if any.

    Attributes:
        kind: ongoing, or the way the run ended.
        condition: the id of the condition.
        message: its message.
        epilogue: the epilogue of the condition if it depends on a deal (`peripety.engine.deal_epilogue`).
    """

    kind: StatusKind
    condition: str | None = None
    message: str | None = None
    epilogue: str | None = field(default=None, metadata={"omitted_at_default": True})


@dataclass(frozen=True, slots=True)
class ActResult:
    """Result of an action or of the narrator's changes: accepted, or rejected with reasons.

    If the call opened the turn, the changes include those of scheduled effects.
    """

    accepted: bool
    reasons: tuple[RuleError, ...]
    changes: tuple[Change, ...]
    log: tuple[LogLine, ...]
    errors: tuple[RuleError, ...]

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ActResult:
        """Parse a backend's JSON."""
        return cls(
            value["accepted"],
            _build_each(RuleError, value["reasons"]),
            tuple([Change.from_json(change) for change in value["changes"]]),
            _build_each(LogLine, value["log"]),
            _build_each(RuleError, value["errors"]),
        )


@dataclass(frozen=True, slots=True)
class StepResult:
    """Result of the world's part of a turn. `turn` is the number of the completed turn, from 1."""

    turn: int
    event: str | None
    changes: tuple[Change, ...]
    log: tuple[LogLine, ...]
    draws: tuple[Draw, ...]
    errors: tuple[RuleError, ...]
    status: Status

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> StepResult:
        """Parse a backend's JSON."""
        return cls(
            value["turn"],
            value["event"],
            tuple([Change.from_json(change) for change in value["changes"]]),
            _build_each(LogLine, value["log"]),
            _build_each(Draw, value["draws"]),
            _build_each(RuleError, value["errors"]),
            Status(**value["status"]),
        )


@dataclass(frozen=True, slots=True)
class RollResult:
    """Roll of a twenty-sided die against a difficulty.

    Attributes:
        kind: purpose of the roll.
        target: id of the target, if any.
        difficulty: the lowest face that is a success, 1 … 30.
        roll: the face, 1 … 20.
        success: True if the face reaches the difficulty.
        draw: the random draw; its index counts the rolls of this kind and target within the turn.
    """

    kind: str
    target: str | None
    difficulty: int
    roll: int
    success: bool
    draw: Draw

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> RollResult:
        """Parse a backend's JSON."""
        return cls(**{**value, "draw": Draw(**value["draw"])})


@dataclass(frozen=True, slots=True)
class ActionUse:
    """Use of an action: the number of turns in which it was legal, and in which it was performed."""

    legal: int
    taken: int


@dataclass(frozen=True, slots=True)
class RunDetail:
    """Optional statistics over many runs.

    Attributes:
        lost_turns: number of lost runs by the turn of the loss, in turn order.
        won_turns: the same for won runs.
        actions: use of each action, by id.
        events: number of draws of each event, by id.
        moves: for each watched path, the sum over all runs of the difference between its last and first
            value, in units of 2^-20 of its scale.
        win_paths: on request, the accepted actions of won runs, in their order, with the number of such runs;
            the most frequent first.
    """

    lost_turns: dict[int, int]
    won_turns: dict[int, int]
    actions: dict[str, ActionUse]
    events: dict[str, int]
    moves: dict[str, int]
    win_paths: tuple[tuple[tuple[str, ...], int], ...] = ()

    def merge(self, other: RunDetail) -> RunDetail:
        """Return the sum of these statistics and those of `other`."""
        uses = {
            name: ActionUse(use.legal + other.actions[name].legal, use.taken + other.actions[name].taken)
            for name, use in self.actions.items()
        }
        return RunDetail(
            _add_counts_by_turn(self.lost_turns, other.lost_turns),
            _add_counts_by_turn(self.won_turns, other.won_turns),
            uses,
            _add_counts(self.events, other.events),
            _add_counts(self.moves, other.moves),
            _add_paths(self.win_paths, other.win_paths),
        )

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> RunDetail:
        """Parse a backend's JSON, in which counts by turn are pairs."""
        return cls(
            dict(map(tuple, value["lost_turns"])),
            dict(map(tuple, value["won_turns"])),
            {name: ActionUse(**use) for name, use in value["actions"].items()},
            value["events"],
            value["moves"],
            tuple((tuple(path), count) for path, count in value.get("win_paths", ())),
        )


@dataclass(frozen=True, slots=True)
class DryRunReport:
    """Statistics of many runs under one persona.

    Attributes:
        runs: number of runs: `lost + won + survived + errored`.
        first_run: number of the first run.
        turns: turns over all runs.
        losses: runs ended by each loss condition.
        wins: runs ended by each win condition.
        errors: rules that failed, with counts.
        seed: base of the seeds of the runs.
        horizon: maximum turns of a run.
        rng_version: version of the random number scheme.
        digest: on request, SHA-256 in hex over a line `{outcome} {turns} {state hash}` for each run. Equal
            digests mean equal final states.
        detail: on request, more statistics.
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
        """Lost runs as a share of all runs."""
        return self.lost / self.runs

    def merge(self, other: DryRunReport) -> DryRunReport:
        """Return one report over these runs and those of `other`, which follow them under the same options.

        The digest is dropped: it cannot be derived from the digests of the parts.
        """
        return replace(
            self,
            runs=self.runs + other.runs,
            turns=self.turns + other.turns,
            lost=self.lost + other.lost,
            won=self.won + other.won,
            survived=self.survived + other.survived,
            errored=self.errored + other.errored,
            losses=_add_counts(self.losses, other.losses),
            wins=_add_counts(self.wins, other.wins),
            errors=_merge_errors(*self.errors, *other.errors),
            digest=None,
            detail=self.detail.merge(other.detail) if self.detail and other.detail else None,
        )

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> DryRunReport:
        """Parse a backend's JSON."""
        errors = _build_each(RuleError, value["errors"])
        detail = RunDetail.from_json(value["detail"]) if value.get("detail") else None
        return cls(**{**value, "errors": errors, "seed": int(value["seed"]), "detail": detail})


@dataclass(frozen=True, slots=True)
class ActionCall:
    """Action of a player in one turn, with its parameters; an empty id means no action."""

    action_id: str
    params: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Proof:
    """Claim about every run within the horizon, or about an example run that shows it.

    Attributes:
        code: the claim.
        path: JSON Pointer of the rule concerned.
        argument: explanation in a few sentences with the relevant numbers.
        severity: an error if the scenario cannot be intended, else a warning.
        witness: the actions of an example run under the scenario's own seed, one for each turn from the
            first; empty if the argument is the proof.
    """

    code: ProofCode
    path: str
    argument: str
    severity: Severity = Severity.WARNING
    witness: tuple[ActionCall, ...] = ()


def _add_counts(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    """Return the sums of two counts over the same keys."""
    return {name: count + other[name] for name, count in one.items()}


def _add_counts_by_turn(one: dict[int, int], other: dict[int, int]) -> dict[int, int]:
    """Return the sums of two counts by turn, in turn order."""
    return {turn: one.get(turn, 0) + other.get(turn, 0) for turn in sorted(one.keys() | other.keys())}


def _add_paths(
    one: tuple[tuple[tuple[str, ...], int], ...],
    other: tuple[tuple[tuple[str, ...], int], ...],
) -> tuple[tuple[tuple[str, ...], int], ...]:
    """Return the sums of two counts by path, the most frequent first."""
    counts = Counter(dict(one))
    counts.update(dict(other))
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _merge_errors(*errors: RuleError) -> tuple[RuleError, ...]:
    """Merge errors of the same rule, in order of first occurrence."""
    counts: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], RuleError] = {}
    for error in errors:
        counts[error.code, error.rule] += error.count
        first.setdefault((error.code, error.rule), error)
    return tuple(replace(error, count=counts[key]) for key, error in first.items())
