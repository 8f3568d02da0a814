"""Programs and states: the engine's objects, over whichever core runs."""

from __future__ import annotations

import hashlib
import json
import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jiter import from_json

from peripety.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    PeripetyError,
    ResourceExhaustedError,
)
from peripety.sim._core import CoreError
from peripety.sim._pure.canonical import canonical
from peripety.sim._pure.paths import parse_state_path
from peripety.sim._pure.state import DEFAULT_HORIZON
from peripety.sim._values import loads
from peripety.sim.proofs import prove
from peripety.sim.types import (
    PERSONAS,
    ActResult,
    DryRunReport,
    Persona,
    Proof,
    RollResult,
    Status,
    StepResult,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.sim._core import CoreProgram, CoreState

__all__ = ["MAX_SEED", "Program", "State", "engine_error", "require"]

MAX_SEED = 2**64 - 1

_KINDS: dict[str, type[PeripetyError]] = {
    "RUN_ENDED": FailedPreconditionError,
    "STATE_LIMIT": ResourceExhaustedError,
    "TURN_LIMIT": ResourceExhaustedError,
    "FUEL_EXHAUSTED": ResourceExhaustedError,
}


def engine_error(error: CoreError) -> PeripetyError:
    """A core's refusal as an error of the package's tree."""
    kind = _KINDS.get(error.code, InvalidArgumentError)
    return kind(error.message, code=error.code, details={"path": error.path} if error.path else None)


class State:
    """One run of a scenario. `Program.act` and `Program.step` change it in place; `fork` first to keep it."""

    __slots__ = ("_core",)

    def __init__(self, core: CoreState) -> None:
        self._core = core

    @property
    def core(self) -> CoreState:
        """The core's own object."""
        return self._core

    def fork(self) -> State:
        """An independent copy."""
        return State(self._core.fork())

    def to_json(self) -> bytes:
        """The snapshot, as canonical JSON: all that `Program.load_state` needs to go on from here."""
        return self._core.to_json()

    def tree(self) -> Any:
        """The scenario's own state tree."""
        return loads(self._core.tree())

    def hash(self) -> str:
        """SHA-256 of the canonical state tree, in hex."""
        return self._core.hash()

    @property
    def turn(self) -> int:
        """How many turns are complete."""
        return self._core.completed()

    @property
    def status(self) -> Status:
        """Whether the run goes on."""
        return Status(**loads(self._core.standing()))


class Program:
    """A compiled scenario: immutable, safe to share between threads.

    Attributes:
        document: the canonical bytes of the spec.
        spec_hash: SHA-256 of `document`, in hex: the scenario's content address.
    """

    def __init__(self, document: bytes, core: CoreProgram, spec_hash: str | None = None) -> None:
        self.document = document
        self.spec_hash = spec_hash or hashlib.sha256(document).hexdigest()
        self._core = core
        self._proofs: dict[int, tuple[Proof, ...]] = {}

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The spec."""
        spec: dict[str, Any] = loads(self.document)
        return spec

    def new_state(self, seed: int | None = None) -> State:
        """The initial state under a seed (0 … 2^64 - 1); the spec's own by default."""
        return State(self._core.new_state(self._seed(seed)))

    def _seed(self, given: int | None) -> int:
        seed: int = self.spec["seed"] if given is None else given
        require("seed", seed, 0, MAX_SEED)
        return seed

    def load_state(self, snapshot: bytes) -> State:
        """A state from what `State.to_json` gave.

        Raises:
            InvalidArgumentError: `SNAPSHOT_INVALID`, or what the JSON border found.
        """
        try:
            return State(self._core.load_state(snapshot))
        except CoreError as error:
            raise engine_error(error) from None

    def legal_actions(self, state: State) -> tuple[str, ...]:
        """The ids of the actions that could be taken now, in the order of the document.

        An action whose parameters matter to its preconditions is listed when one of a few keyed draws of
        them suits it.

        Raises:
            ResourceExhaustedError: `STATE_LIMIT`, when what is due now outgrows the limits, or `TURN_LIMIT`.
        """
        try:
            return tuple(loads(self._core.legal_actions(state.core)))
        except CoreError as error:
            raise engine_error(error) from None

    def act(self, state: State, action_id: str, params: Mapping[str, Any] | None = None) -> ActResult:
        """Take an action of the current turn; several may be taken.

        Raises:
            InvalidArgumentError: `UNKNOWN_ACTION`.
            FailedPreconditionError: `RUN_ENDED`.
            ResourceExhaustedError: `STATE_LIMIT` or `TURN_LIMIT`; nothing was applied.
        """
        try:
            given = canonical(dict(params)) if params else b"{}"
            return ActResult.of(loads(self._core.act(state.core, action_id, given)))
        except CoreError as error:
            raise engine_error(error) from None

    def narrate(self, state: State, changes: Sequence[Mapping[str, Any]]) -> ActResult:
        """Apply the narrator's own changes to the current turn, all of them or none.

        They are rejected when one of them is out of the narrator's scope, dangerous, or cannot be applied.
        The place of a reason is `/state_changes/<index>`.

        Args:
            state: the run.
            changes: `state_changes` of an Outcome: `{op, path, value?}`, at most 64.

        Raises:
            InvalidArgumentError: the changes are not JSON of the engine's.
            FailedPreconditionError: `RUN_ENDED`.
            ResourceExhaustedError: `STATE_LIMIT` or `TURN_LIMIT`; nothing was applied.
        """
        try:
            return ActResult.of(loads(self._core.narrate(state.core, canonical(list(changes)))))
        except CoreError as error:
            raise engine_error(error) from None

    def step(self, state: State) -> StepResult:
        """Finish the turn: the random event, what lasts, decay, and the conditions that end a run.

        Raises:
            FailedPreconditionError: `RUN_ENDED`.
            ResourceExhaustedError: `STATE_LIMIT` or `TURN_LIMIT`; nothing was applied.
        """
        try:
            return StepResult.of(loads(self._core.step(state.core)))
        except CoreError as error:
            raise engine_error(error) from None

    def roll(self, state: State, kind: str, target: str | None = None, *, difficulty: int) -> RollResult:
        """Roll a die of twenty faces in the current turn; nothing of the scenario's own state changes.

        Equal rolls in one turn differ, and a run played again rolls the same.

        Args:
            state: the run.
            kind: what is rolled for, an id; rolls of other kinds do not disturb it.
            target: on what or whom, an id.
            difficulty: the least face that is a success, 1 … 30.

        Raises:
            InvalidArgumentError: `ROLL_INVALID`.
            FailedPreconditionError: `RUN_ENDED`.
            ResourceExhaustedError: `STATE_LIMIT`, after 256 rolls in one turn.
        """
        request = {"kind": kind, "target": target, "difficulty": difficulty}
        try:
            return RollResult.of(loads(self._core.roll(state.core, canonical(request))))
        except CoreError as error:
            raise engine_error(error) from None

    def dry_run(
        self,
        *,
        runs: int = 200,
        persona: Persona = "random",
        seed: int | None = None,
        first_run: int = 0,
        horizon: int | None = None,
        threads: int | None = None,
        digest: bool = False,
        detail: bool = False,
        watch: Mapping[str, float] | None = None,
    ) -> DryRunReport:
        """Play many runs without a model.

        Args:
            runs: how many, 1 … 1,000,000.
            persona: who plays; `PERSONAS` are known, docs/semantics.md says what each does.
            seed: what the runs' seeds are mixed from; the spec's own by default.
            first_run: number of the first run; disjoint ranges give fresh runs.
            horizon: most turns of a run; the spec's own by default.
            threads: how many share the work, 1 … 256; as many as there are cores by default. Nothing else
                depends on it, and the core in Python has one.
            digest: whether to hash the states in which the runs end.
            detail: whether to count more; see `RunDetail`.
            watch: with detail, paths of numbers to follow, each with the scale of its moves, more than 0.

        Raises:
            InvalidArgumentError: an option is out of range.
        """
        options = _asked(runs, persona, self._seed(seed), first_run, horizon, threads, digest=digest)
        if detail:
            options["detail"] = True
            options["watch"] = [_watched(path, scale) for path, scale in (watch or {}).items()]
        return DryRunReport.of(from_json(self._core.dry_run(json.dumps(options).encode())))

    def futures(
        self,
        state: State,
        *,
        runs: int,
        persona: Persona = "random",
        seed: int,
        first_run: int = 0,
        horizon: int,
        threads: int | None = None,
        digest: bool = False,
        acted: bool = False,
    ) -> DryRunReport:
        """Play many runs without a model that all go on from a state, as a dry-run does from the initial one.

        Each begins with a copy of the state, of everything but its seed. To fix what is done first, fork the
        state, act on the fork, and play its futures with `acted`.

        Args:
            state: where the runs begin; it is not changed.
            runs: how many, 1 … 1,000,000.
            persona: who plays on.
            seed: what the runs' seeds are mixed from; that of the state does not matter.
            first_run: number of the first run; disjoint ranges give fresh runs.
            horizon: most turns of a run, counted from the state, 1 … 1000. The turns of the report are
                counted from there as well.
            threads: as in a dry-run.
            digest: whether to hash the states in which the runs end.
            acted: whether all has been done that is to be done in the state's current turn: the persona
                begins to act in the turn after it.

        Raises:
            InvalidArgumentError: an option is out of range.
            FailedPreconditionError: `RUN_ENDED`: the state has no future.
        """
        require("seed", seed, 0, MAX_SEED)
        options = _asked(runs, persona, seed, first_run, horizon, threads, digest=digest)
        if acted:
            options["acted"] = True
        try:
            report = self._core.futures(state.core, json.dumps(options).encode())
        except CoreError as error:
            raise engine_error(error) from None
        return DryRunReport.of(from_json(report))

    def proofs(self, horizon: int | None = None) -> tuple[Proof, ...]:
        """What holds in every run with at most one action a turn and no changes by the narrator.

        A claim is never wrong, but not everything that is true is found.

        Args:
            horizon: how many turns the claims are about; the spec's own by default.

        Raises:
            InvalidArgumentError: the horizon is out of range.
        """
        turns: int = self.spec.get("horizon", DEFAULT_HORIZON) if horizon is None else horizon
        require("horizon", turns, 1, 1000)
        if turns not in self._proofs:
            nothing = self._core.proves_nothing(turns)
            self._proofs[turns] = (
                () if nothing else prove(self.document, self._core, self.spec["seed"], turns)
            )
        return self._proofs[turns]


def _asked(
    runs: int,
    persona: Persona,
    seed: int,
    first_run: int,
    horizon: int | None,
    threads: int | None,
    *,
    digest: bool,
) -> dict[str, Any]:
    """The options that a core is given to play many runs, when they are in range."""
    require("runs", runs, 1, 1_000_000)
    require("first_run", first_run, 0, 2**53 - 1)
    if persona not in PERSONAS:
        raise InvalidArgumentError(f"persona must be one of {', '.join(PERSONAS)}, not '{persona}'")
    options: dict[str, Any] = {
        "runs": runs,
        "persona": persona,
        "seed": str(seed),
        "first_run": first_run,
    }
    if horizon is not None:
        require("horizon", horizon, 1, 1000)
        options["horizon"] = horizon
    if threads is not None:
        require("threads", threads, 1, 256)
        options["threads"] = threads
    if digest:
        options["digest"] = True
    return options


def _watched(path: str, scale: float) -> list[Any]:
    """A path to follow and the scale of its moves, when they are such."""
    try:
        parse_state_path(path)
    except CoreError as error:
        raise engine_error(error) from None
    if not 0 < scale < math.inf:
        raise InvalidArgumentError(
            f"the scale of '{path}' in watch must be finite and more than 0, not {scale}"
        )
    return [path, scale]


def require(name: str, value: int, least: int, most: int) -> None:
    """Refuse an argument that is not an integer within bounds."""
    if type(value) is not int or not least <= value <= most:
        raise InvalidArgumentError(f"{name} must be an integer, {least} … {most}, not {value}")
