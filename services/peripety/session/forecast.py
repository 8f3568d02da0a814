"""Forecast of the endings of a session: Monte Carlo simulation from its current state.

Where truths are dealt, the runs start from one state for each deal that a viewer cannot exclude.
A deal that is not drawn from the seed but assumed is put into the state at turn 0, and the recorded turns are
replayed from there. It fits if the viewer would have seen the same after every turn. So a clue that was found
excludes what it refutes, and values that rules derived from the deal belong to the assumed one.

The result depends on what the viewer has seen, and not on the real deal.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial, reduce
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.certification.options import DryRunOptions
from peripety.certification.simulation import SimulationRunner, replace_deal
from peripety.certification.types import Rate
from peripety.core.concurrency import closing
from peripety.engine import DryRunReport
from peripety.errors import FailedPreconditionError, PeripetyError
from peripety.session.turn_transaction import TurnTransaction, replay_turn
from peripety.session.validation import check_forecast_request, check_known_actions, check_ongoing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from peripety.engine import Persona, Program, State
    from peripety.engine.executor import Executor
    from peripety.session.session_view import Ruleset, RulesetCache
    from peripety.session.store.session_store import SessionStore
    from peripety.session.types import ForecastRequest, Session
    from peripety.session.visibility import ViewerProjection


_DEFAULT_RUNS = 1_000
_DEFAULT_HORIZON = 50
_SEED_BITS = 53
# Consecutive runs that start from the same state.
_BLOCK = 16
_MAX_WORLDS = 64
# A longer session is replayed for fewer deals.
_MAX_REPLAYED_TURNS = 4_096


@dataclass(frozen=True, slots=True)
class EndingProbability:
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
class OutcomeForecast:
    """Forecast after some of the simulations.

    Attributes:
        turn: the turn whose state the simulations start from.
        runs: number of simulations so far.
        endings: all end conditions, losses first, in the order of the scenario.
        survived: rate of runs that reached the horizon.
        final: True if all simulations are done.
    """

    turn: int
    runs: int
    endings: tuple[EndingProbability, ...]
    survived: Rate
    final: bool


class OutcomeForecaster:
    """Forecaster of session endings.

    Args:
        store: stores the sessions.
        rulesets: the programs of their scenarios.
        workers: executes the simulations.
    """

    def __init__(self, store: SessionStore, rulesets: RulesetCache, workers: Executor) -> None:
        self._store = store
        self._rulesets = rulesets
        self._workers = workers

    async def forecast(self, request: ForecastRequest) -> AsyncIterator[OutcomeForecast]:
        """Simulate runs and yield the forecast after each batch; the last one covers all runs.

        The simulations start from every deal that fits what the point of view has seen, in turn, so the
        forecast does not depend on the real one. Other hidden state is used as it is. The session is
        unchanged.

        Raises:
            InvalidArgumentError: a field is invalid.
            NotFoundError: the session does not exist.
            FailedPreconditionError: `RUN_ENDED`, or `ACTIONS_REJECTED`: none of the actions is legal.
            ResourceExhaustedError: the simulations take longer than the time that is left.
        """
        check_forecast_request(request)
        session = await self._store.get_session(request.session_id)
        ruleset = await self._rulesets.get(session.spec_hash)
        check_ongoing(session)
        check_known_actions(request.actions, ruleset.spec)
        view = ruleset.projector.for_viewer(request.pov)
        seed = _derive_seed(session) if request.seed is None else request.seed
        snapshots = [session.snapshot]
        if ruleset.spec.get("deal"):
            turns = await self._store.list_turns(session.session_id, 0, session.turn)
            records = [engine.loads(turn.record) for turn in turns]
            worlds = partial(
                _list_possible_snapshots, ruleset.program, view, session.first_seed, records, seed
            )
            snapshots = await asyncio.to_thread(worlds)
        future = await asyncio.to_thread(_initial_states, session, snapshots, ruleset, request)
        options = DryRunOptions(
            persona=request.persona,
            seed=seed,
            horizon=request.horizon or _remaining_turns(session, ruleset.spec),
        )
        runs = request.runs or _DEFAULT_RUNS
        async with closing(SimulationRunner(future, options, self._workers).stream(0, runs)) as reports:
            async for report in reports:
                yield _to_forecast(session.turn, report, ruleset.spec, final=report.runs == runs)


class _SimulatedStates:
    """States from which many runs are simulated, each in its turn."""

    def __init__(self, program: Program, states: Sequence[State], *, acted: bool) -> None:
        self._program = program
        self._states = states
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
        reports = [
            self._program.simulate_from(
                state,
                runs=count,
                persona=persona,
                seed=seed,
                first_run=first,
                horizon=horizon,
                threads=threads,
                acted=self._acted,
            )
            for state, first, count in self._iter_pieces(first_run, runs)
        ]
        return reduce(DryRunReport.merge, reports)

    def _iter_pieces(self, first_run: int, runs: int) -> Iterator[tuple[State, int, int]]:
        """Yield consecutive runs with their state; the state of a run depends on its number only."""
        if len(self._states) == 1:
            yield self._states[0], first_run, runs
            return
        end = first_run + runs
        while first_run < end:
            block = first_run // _BLOCK
            count = min((block + 1) * _BLOCK, end) - first_run
            yield self._states[block % len(self._states)], first_run, count
            first_run += count


def _initial_states(
    session: Session,
    snapshots: Sequence[bytes],
    ruleset: Ruleset,
    request: ForecastRequest,
) -> _SimulatedStates:
    """Return the states after the actions with which every simulation begins."""
    seed = session.seed if session.reseeded else None
    boards = [TurnTransaction(ruleset.program, snapshot, new_seed=seed) for snapshot in snapshots]
    for board in boards:
        for call in request.actions:
            board.act(call)
    results = [board.action_results for board in boards]
    if request.actions and not any(act.accepted for acts in results for act in acts):
        reasons = ruleset.projector.for_viewer(None).project_failures(results[0][0].reasons)
        raise FailedPreconditionError(
            f"actions: none of them is legal now: {reasons[0].message}; try others, or none",
            code="ACTIONS_REJECTED",
        )
    return _SimulatedStates(ruleset.program, [board.state for board in boards], acted=bool(request.actions))


def _derive_seed(session: Session) -> int:
    """Return a seed derived from the session.

    Repeating the request in the same turn gives the same forecast.
    """
    return engine.draw(session.seed, "odds", session.turn, 0) >> (64 - _SEED_BITS)


def _remaining_turns(session: Session, spec: Mapping[str, Any]) -> int:
    # A session may be longer than the horizon, which limits only dry runs.
    return max(1, int(spec.get("horizon", _DEFAULT_HORIZON)) - session.turn)


def _to_forecast(turn: int, report: DryRunReport, spec: Mapping[str, Any], *, final: bool) -> OutcomeForecast:
    counted = [("lost", "loss_conditions", report.losses), ("won", "win_conditions", report.wins)]
    return OutcomeForecast(
        turn=turn,
        runs=report.runs,
        endings=tuple(
            EndingProbability(condition["id"], kind, Rate.from_count(counts[condition["id"]], report.runs))
            for kind, key, counts in counted
            for condition in spec.get(key, ())
        ),
        survived=Rate.from_count(report.survived, report.runs),
        final=final,
    )


def _list_possible_snapshots(
    program: Program,
    view: ViewerProjection,
    first_seed: int,
    records: Sequence[Mapping[str, Any]],
    seed: int,
) -> list[bytes]:
    """Return a snapshot for each deal that fits what a viewer has seen, at most 64, in order.

    Args:
        program: the scenario; it has deals.
        view: the view of the viewer.
        first_seed: the seed of the session at turn 0.
        records: the records of all turns, parsed.
        seed: the seed of a choice among too many deals.
    """
    start = program.new_state(first_seed).to_json()
    present, seen = start, [_visible_start(program, view, start)]
    for record in records:
        present, told = _replay(program, view, present, record)
        seen.append(told)
    fitting = []
    for dealt in _list_deals(program.spec["deal"], seed, len(records)):
        snapshot = replace_deal(start, dealt)
        if _visible_start(program, view, snapshot) != seen[0]:
            continue
        try:
            for record, expected in zip(records, seen[1:], strict=True):
                snapshot, told = _replay(program, view, snapshot, record)
                if told != expected:
                    break
            else:
                fitting.append(snapshot)
        except PeripetyError:
            continue
    return fitting or [present]


def _list_deals(
    deals: Sequence[Mapping[str, Any]], seed: int, turns: int
) -> list[tuple[tuple[str, Any], ...]]:
    """Return the joint values of all deals by path; a sample if they are too many."""
    most = max(1, min(_MAX_WORLDS, _MAX_REPLAYED_TURNS // max(turns, 1)))
    paths = [deal["path"] for deal in deals]
    values = [deal["values"] for deal in deals]
    if prod(map(len, values)) <= most:
        return [tuple(zip(paths, joint, strict=True)) for joint in product(*values)]
    return [
        tuple(
            (path, options[engine.draw(seed, f"world:{path}", 0, number) % len(options)])
            for path, options in zip(paths, values, strict=True)
        )
        for number in range(most)
    ]


def _visible_start(program: Program, view: ViewerProjection, snapshot: bytes) -> Any:
    state = program.load_state(snapshot)
    return view.project_state(state.tree()), program.legal_actions(state)


def _replay(
    program: Program,
    view: ViewerProjection,
    snapshot: bytes,
    record: Mapping[str, Any],
) -> tuple[bytes, Any]:
    """Replay a turn; return the snapshot after it, and what the viewer sees of it."""
    result = replay_turn(program, snapshot, record)
    events = [view.project_event(event, view.viewer) for event in result.events]
    return result.snapshot, (events, view.project_state(result.tree), result.legal_actions)
