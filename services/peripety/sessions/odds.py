"""Forecast of the endings of a session: Monte Carlo simulation from its current state."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.errors import FailedPreconditionError
from peripety.gateway.streams import following
from peripety.scenarios.certificates.model import Rate
from peripety.scenarios.model import DryRunOptions
from peripety.scenarios.runs import Runner
from peripety.sessions.checks import check_known_actions, check_odds_request, check_ongoing
from peripety.sessions.mechanics import Board

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from peripety.sessions.model import OddsRequest, Session
    from peripety.sessions.rulesets import Ruleset, Rulesets
    from peripety.sessions.store import SessionStore
    from peripety.sim import DryRunReport, Persona, Program, State
    from peripety.workers import Worker

__all__ = ["EndOdds", "Odds", "OddsTeller"]

_DEFAULT_RUNS = 1_000
_DEFAULT_HORIZON = 50
_SEED_BITS = 53


@dataclass(frozen=True, slots=True)
class EndOdds:
    """Probability of an ending.

    Attributes:
        condition: id of the loss or win condition.
        kind: `lost` or `won`.
        rate: its frequency in the simulations.
    """

    condition: str
    kind: str
    rate: Rate


@dataclass(frozen=True, slots=True)
class Odds:
    """Forecast after some of the simulations.

    Attributes:
        turn: the turn whose state the simulations start from.
        runs: number of simulations so far.
        ends: all end conditions, losses first, in the order of the scenario.
        survived: rate of runs that reached the horizon.
        final: True if all simulations are done.
    """

    turn: int
    runs: int
    ends: tuple[EndOdds, ...]
    survived: Rate
    final: bool


class OddsTeller:
    """Forecaster of session endings.

    Args:
        store: stores the sessions.
        rulesets: the programs of their scenarios.
        workers: executes the simulations.
    """

    def __init__(self, store: SessionStore, rulesets: Rulesets, workers: Worker) -> None:
        self._store = store
        self._rulesets = rulesets
        self._workers = workers

    async def odds(self, request: OddsRequest) -> AsyncIterator[Odds]:
        """Simulate runs and yield the forecast after each batch; the last one covers all runs.

        The forecast uses the complete state, including what no entity may see. The session is unchanged.

        Raises:
            InvalidArgumentError: a field is invalid.
            NotFoundError: the session does not exist.
            FailedPreconditionError: `RUN_ENDED`, or `ACTIONS_REJECTED`: none of the actions is legal.
            ResourceExhaustedError: the simulations take longer than the time that is left.
        """
        check_odds_request(request)
        session = await self._store.session(request.session_id)
        ruleset = await self._rulesets.of(session.spec_hash)
        check_ongoing(session)
        check_known_actions(request.actions, ruleset.spec)
        future = await asyncio.to_thread(_future, session, ruleset, request)
        options = DryRunOptions(
            persona=request.persona,
            seed=_seed_after(session) if request.seed is None else request.seed,
            horizon=request.horizon or _turns_left(session, ruleset.spec),
        )
        runs = request.runs or _DEFAULT_RUNS
        async with following(Runner(future, options, self._workers).playing(0, runs)) as reports:
            async for report in reports:
                yield _odds(session.turn, report, ruleset.spec, final=report.runs == runs)


class _Future:
    """A state from which many runs are simulated."""

    def __init__(self, program: Program, state: State, *, acted: bool) -> None:
        self._program = program
        self._state = state
        self._acted = acted
        self.spec = program.spec

    def dry_run(
        self,
        *,
        runs: int,
        persona: Persona = "random",
        seed: int | None = None,
        first_run: int = 0,
        horizon: int | None = None,
        threads: int | None = None,
        detail: bool = False,
        watch: Mapping[str, float] | None = None,
    ) -> DryRunReport:
        """Simulate runs; only the endings are counted."""
        if seed is None or horizon is None or detail or watch:
            raise ValueError("futures have a seed and a horizon, and no detail")
        return self._program.futures(
            self._state,
            runs=runs,
            persona=persona,
            seed=seed,
            first_run=first_run,
            horizon=horizon,
            threads=threads,
            acted=self._acted,
        )


def _future(session: Session, ruleset: Ruleset, request: OddsRequest) -> _Future:
    """Return the current state after the actions with which every simulation begins."""
    seed = session.seed if session.reseeded else None
    board = Board(ruleset.program, session.snapshot, reseeded=seed)
    for call in request.actions:
        board.act(call)
    if board.acts and not any(act.accepted for act in board.acts):
        reasons = ruleset.viewers.view(None).failures(board.acts[0].reasons)
        raise FailedPreconditionError(
            f".actions: none of them is legal now: {reasons[0].message}; try others, or none",
            code="ACTIONS_REJECTED",
        )
    return _Future(ruleset.program, board.state, acted=bool(request.actions))


def _seed_after(session: Session) -> int:
    """Return a seed derived from the session.

    Repeating the request in the same turn gives the same forecast.
    """
    return sim.draw(session.seed, "odds", session.turn, 0) >> (64 - _SEED_BITS)


def _turns_left(session: Session, spec: Mapping[str, Any]) -> int:
    # A session may be longer than the horizon, which limits only dry runs.
    return max(1, int(spec.get("horizon", _DEFAULT_HORIZON)) - session.turn)


def _odds(turn: int, report: DryRunReport, spec: Mapping[str, Any], *, final: bool) -> Odds:
    counted = [("lost", "loss_conditions", report.losses), ("won", "win_conditions", report.wins)]
    return Odds(
        turn=turn,
        runs=report.runs,
        ends=tuple(
            EndOdds(condition["id"], kind, Rate.of(counts[condition["id"]], report.runs))
            for kind, key, counts in counted
            for condition in spec.get(key, ())
        ),
        survived=Rate.of(report.survived, report.runs),
        final=final,
    )
