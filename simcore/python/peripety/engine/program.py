"""Compiled programs and run states, independent of the backend."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jiter import from_json

from peripety.engine._reference.state import DEFAULT_HORIZON
from peripety.engine.backend_protocol import EngineError
from peripety.engine.canonical_json import canonicalize
from peripety.engine.json_values import loads
from peripety.engine.paths import parse_state_path
from peripety.engine.static_analysis.claims import prove
from peripety.engine.types import (
    PERSONAS,
    ActResult,
    DryRunReport,
    Persona,
    Proof,
    RollResult,
    Status,
    StepResult,
)
from peripety.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    PeripetyError,
    ResourceExhaustedError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.engine.backend_protocol import BackendProgram, BackendState
    from peripety.engine.lowering import Lowering


MAX_SEED = 2**64 - 1

_ERROR_CLASSES: dict[str, type[PeripetyError]] = {
    "RUN_ENDED": FailedPreconditionError,
    "STATE_LIMIT": ResourceExhaustedError,
    "TURN_LIMIT": ResourceExhaustedError,
    "FUEL_EXHAUSTED": ResourceExhaustedError,
}


def to_peripety_error(error: EngineError) -> PeripetyError:
    """Convert an error of a backend to an error of the package hierarchy."""
    kind = _ERROR_CLASSES.get(error.code, InvalidArgumentError)
    return kind(error.message, code=error.code, details={"path": error.path} if error.path else None)


class State:
    """State of one run.

    `Program.act` and `Program.step` change it in place; `fork` it first to preserve it.
    """

    __slots__ = ("_core",)

    def __init__(self, backend_state: BackendState) -> None:
        self._core = backend_state

    @property
    def backend_state(self) -> BackendState:
        """The backend's state object."""
        return self._core

    def fork(self) -> State:
        """Return an independent copy."""
        return State(self._core.fork())

    def to_json(self) -> bytes:
        """Return the snapshot for `Program.load_state`, as canonical JSON."""
        return self._core.to_json()

    def tree(self) -> Any:
        """Return the state tree of the scenario."""
        return loads(self._core.tree())

    def hash(self) -> str:
        """Return the SHA-256 of the canonical state tree, in hex."""
        return self._core.hash()

    @property
    def turn(self) -> int:
        """Number of completed turns."""
        return self._core.completed_turns()

    @property
    def status(self) -> Status:
        """Status of the run: ongoing, lost or won."""
        return Status(**loads(self._core.status_json()))


class Program:
    """Compiled scenario: immutable and thread-safe.

    Attributes:
        document: canonical bytes of the spec.
        spec_hash: SHA-256 of `document`, in hex: the content address of the scenario.

    Args:
        document: as above.
        backend_program: the compiled document; if it was lowered, the compiled lowered document.
        spec_hash: as above.
        lowering: the lowered document; None if nothing was lowered.
    """

    def __init__(
        self,
        document: bytes,
        backend_program: BackendProgram,
        spec_hash: str | None = None,
        lowering: Lowering | None = None,
    ) -> None:
        self.document = document
        self.spec_hash = spec_hash or hashlib.sha256(document).hexdigest()
        self._backend_program = backend_program
        self._lowering = lowering
        self._proofs: dict[int, tuple[Proof, ...]] = {}

    @cached_property
    def spec(self) -> dict[str, Any]:
        """The spec as Python values."""
        spec: dict[str, Any] = loads(self.document)
        return spec

    def new_state(self, seed: int | None = None) -> State:
        """Return the initial state for a seed (0 … 2^64 - 1); the spec's own by default."""
        return State(self._backend_program.new_state(self._resolve_seed(seed)))

    def _resolve_seed(self, given: int | None) -> int:
        seed: int = self.spec["seed"] if given is None else given
        require_integer("seed", seed, 0, MAX_SEED)
        return seed

    def load_state(self, snapshot: bytes) -> State:
        """Restore a state from the result of `State.to_json`.

        Raises:
            InvalidArgumentError: `SNAPSHOT_INVALID`, or the error of the strict parser.
        """
        try:
            return State(self._backend_program.load_state(snapshot))
        except EngineError as error:
            raise to_peripety_error(error) from None

    def legal_actions(self, state: State) -> tuple[str, ...]:
        """Return the ids of the legal actions, in document order.

        If the preconditions of an action depend on its parameters, it is legal if one of a few keyed draws of
        parameters satisfies them.

        Raises:
            ResourceExhaustedError: `STATE_LIMIT`, if due scheduled effects exceed the limits, or
                `TURN_LIMIT`.
        """
        try:
            return tuple(loads(self._backend_program.legal_actions(state.backend_state)))
        except EngineError as error:
            raise self._to_error(error) from None

    def act(self, state: State, action_id: str, params: Mapping[str, Any] | None = None) -> ActResult:
        """Perform an action in the current turn; a turn may have several.

        Raises:
            InvalidArgumentError: `UNKNOWN_ACTION`.
            FailedPreconditionError: `RUN_ENDED`.
            ResourceExhaustedError: `STATE_LIMIT` or `TURN_LIMIT`; the state is unchanged.
        """
        try:
            given = canonicalize(dict(params)) if params else b"{}"
            return ActResult.from_json(
                self._to_written(loads(self._backend_program.act(state.backend_state, action_id, given))),
            )
        except EngineError as error:
            raise self._to_error(error) from None

    def narrate(self, state: State, changes: Sequence[Mapping[str, Any]]) -> ActResult:
        """Apply the narrator's changes to the current turn, atomically.

        All are rejected if one is outside the narrator's scope, dangerous, or not applicable. The path of a
        reason is `/state_changes/<index>`.

        Args:
            state: the run.
            changes: `state_changes` of an Outcome: `{op, path, value?}`, at most 64.

        Raises:
            InvalidArgumentError: the changes are not JSON that the engine accepts.
            FailedPreconditionError: `RUN_ENDED`.
            ResourceExhaustedError: `STATE_LIMIT` or `TURN_LIMIT`; the state is unchanged.
        """
        try:
            changed = loads(self._backend_program.narrate(state.backend_state, canonicalize(list(changes))))
            return ActResult.from_json(self._to_written(changed))
        except EngineError as error:
            raise self._to_error(error) from None

    def step(self, state: State) -> StepResult:
        """Finish the turn: random event, lasting effects, decay, end conditions.

        Raises:
            FailedPreconditionError: `RUN_ENDED`.
            ResourceExhaustedError: `STATE_LIMIT` or `TURN_LIMIT`; the state is unchanged.
        """
        try:
            return StepResult.from_json(
                self._to_written(loads(self._backend_program.step(state.backend_state))),
            )
        except EngineError as error:
            raise self._to_error(error) from None

    def roll(self, state: State, kind: str, target: str | None = None, *, difficulty: int) -> RollResult:
        """Roll a twenty-sided die in the current turn; the state tree of the scenario does not change.

        Equal rolls in one turn have different results, and a replayed run repeats its rolls.

        Args:
            state: the run.
            kind: purpose of the roll, an id; rolls of other kinds do not affect it.
            target: id of the target, if any.
            difficulty: the lowest face that is a success, 1 … 30.

        Raises:
            InvalidArgumentError: `ROLL_INVALID`.
            FailedPreconditionError: `RUN_ENDED`.
            ResourceExhaustedError: `STATE_LIMIT`, after 256 rolls in one turn.
        """
        request = {"kind": kind, "target": target, "difficulty": difficulty}
        try:
            return RollResult.from_json(
                loads(self._backend_program.roll(state.backend_state, canonicalize(request))),
            )
        except EngineError as error:
            raise to_peripety_error(error) from None

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
        paths: bool = False,
    ) -> DryRunReport:
        """Simulate many runs without a model.

        Args:
            runs: number of runs, 1 … 1,000,000.
            persona: strategy of the player, one of `PERSONAS`; docs/reference/semantics.md defines them.
            seed: base of the seeds of the runs; the spec's own by default.
            first_run: number of the first run; disjoint ranges give independent runs.
            horizon: maximum turns of a run; the spec's own by default.
            threads: number of threads, 1 … 256; one for each processor by default. The result does not depend
                on it, and the Python backend uses one.
            digest: hash the final states of the runs.
            detail: collect the statistics of `RunDetail`.
            watch: with detail, paths of numbers to follow, each with the scale of its moves, more than 0.
            paths: with detail, collect the actions of won runs; such runs are not vectorised.

        Raises:
            InvalidArgumentError: an option is out of range.
        """
        options = _build_options(
            runs,
            persona,
            self._resolve_seed(seed),
            first_run,
            horizon,
            threads,
            digest=digest,
        )
        if detail:
            options["detail"] = True
            options["watch"] = [_check_watched_path(path, scale) for path, scale in (watch or {}).items()]
            if paths:
                options["paths"] = True
        report = self._backend_program.dry_run(json.dumps(options).encode())
        return DryRunReport.from_json(self._to_written(from_json(report)))

    def simulate_from(
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
        """Simulate many runs without a model that continue from a state.

        Each run begins with a copy of the state, except for its seed. To fix the first action, fork the
        state, act on the fork, and simulate from it with `acted`.

        Args:
            state: start of the runs; it is not changed.
            runs: number of runs, 1 … 1,000,000.
            persona: strategy of the player.
            seed: base of the seeds of the runs; that of the state is ignored.
            first_run: number of the first run; disjoint ranges give independent runs.
            horizon: maximum turns of a run, counted from the state, 1 … 1000. The turns of the report are
                counted from it as well.
            threads: as in a dry-run.
            digest: hash the final states of the runs.
            acted: the actions of the state's current turn are complete; the persona acts from the next turn.

        Raises:
            InvalidArgumentError: an option is out of range.
            FailedPreconditionError: `RUN_ENDED`.
        """
        require_integer("seed", seed, 0, MAX_SEED)
        options = _build_options(runs, persona, seed, first_run, horizon, threads, digest=digest)
        if acted:
            options["acted"] = True
        try:
            report = self._backend_program.simulate_from(state.backend_state, json.dumps(options).encode())
        except EngineError as error:
            raise to_peripety_error(error) from None
        return DryRunReport.from_json(self._to_written(from_json(report)))

    def prove(self, horizon: int | None = None) -> tuple[Proof, ...]:
        """Return claims that hold in every run with at most one action a turn and no changes by the narrator.

        A claim is never wrong, but the analysis does not find every true one.

        Args:
            horizon: number of turns that the claims cover; the spec's own by default.

        Raises:
            InvalidArgumentError: the horizon is out of range.
        """
        turns: int = self.spec.get("horizon", DEFAULT_HORIZON) if horizon is None else horizon
        require_integer("horizon", turns, 1, 1000)
        if turns not in self._proofs:
            nothing = self._backend_program.has_nothing_to_prove(turns)
            document = self._lowering.document if self._lowering else self.document
            proofs = () if nothing else prove(document, self._backend_program, self.spec["seed"], turns)
            self._proofs[turns] = tuple(
                replace(proof, path=self._to_written_place(proof.path)) for proof in proofs
            )
        return self._proofs[turns]

    def _to_written(self, result: dict[str, Any]) -> dict[str, Any]:
        """Replace the places of failed rules in a result of the backend by those in the written document."""
        if self._lowering:
            for error in (*result.get("reasons", ()), *result.get("errors", ())):
                error["rule"] = self._to_written_place(error["rule"])
        return result

    def _to_written_place(self, place: str) -> str:
        return self._lowering.to_written(place) if self._lowering else place

    def _to_error(self, error: EngineError) -> PeripetyError:
        return to_peripety_error(EngineError(error.code, error.message, self._to_written_place(error.path)))


def _build_options(
    runs: int,
    persona: Persona,
    seed: int,
    first_run: int,
    horizon: int | None,
    threads: int | None,
    *,
    digest: bool,
) -> dict[str, Any]:
    """Build the options of a simulation for the backend; raise if one is out of range."""
    require_integer("runs", runs, 1, 1_000_000)
    require_integer("first_run", first_run, 0, 2**53 - 1)
    if persona not in PERSONAS:
        raise InvalidArgumentError(f"persona must be one of {', '.join(PERSONAS)}, not '{persona}'")
    options: dict[str, Any] = {
        "runs": runs,
        "persona": persona,
        "seed": str(seed),
        "first_run": first_run,
    }
    if horizon is not None:
        require_integer("horizon", horizon, 1, 1000)
        options["horizon"] = horizon
    if threads is not None:
        require_integer("threads", threads, 1, 256)
        options["threads"] = threads
    if digest:
        options["digest"] = True
    return options


def _check_watched_path(path: str, scale: float) -> list[Any]:
    """Return a watched path with its scale; raise if either is invalid."""
    try:
        parse_state_path(path)
    except EngineError as error:
        raise to_peripety_error(error) from None
    if not 0 < scale < math.inf:
        raise InvalidArgumentError(
            f"the scale of '{path}' in watch must be finite and more than 0, not {scale}",
        )
    return [path, scale]


def require_integer(name: str, value: int, minimum: int, maximum: int) -> None:
    """Raise unless the value is an integer within bounds."""
    if type(value) is not int or not minimum <= value <= maximum:
        raise InvalidArgumentError(f"{name} must be an integer, {minimum} … {maximum}, not {value}")
