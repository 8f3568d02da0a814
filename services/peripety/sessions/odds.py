"""How likely each end of a session is: thousands of futures, played by the engine from its present state."""

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
    """How likely an end is.

    Attributes:
        condition: id of the loss or win condition.
        kind: `lost` or `won`.
        rate: how often it came about.
    """

    condition: str
    kind: str
    rate: Rate


@dataclass(frozen=True, slots=True)
class Odds:
    """The odds after some of the futures.

    Attributes:
        turn: the turn whose state the futures start from.
        runs: futures played so far.
        ends: each condition that can end the run, losses first, in the order of the scenario.
        survived: how often the horizon was reached.
        final: whether all futures were played.
    """

    turn: int
    runs: int
    ends: tuple[EndOdds, ...]
    survived: Rate
    final: bool


class OddsTeller:
    """Plays futures of sessions.

    Args:
        store: where sessions are kept.
        rulesets: the scenarios that they play.
        workers: play the futures.
    """

    def __init__(self, store: SessionStore, rulesets: Rulesets, workers: Worker) -> None:
        self._store = store
        self._rulesets = rulesets
        self._workers = workers

    async def odds(self, request: OddsRequest) -> AsyncIterator[Odds]:
        """Play futures, and tell the odds after each piece of them; the last time with all.

        Odds are of the whole state, also of what no entity may see. The session does not change.

        Raises:
            InvalidArgumentError: a field is wrong.
            NotFoundError: there is no such session.
            FailedPreconditionError: `RUN_ENDED`, or `ACTIONS_REJECTED`: none of the actions can be taken.
            ResourceExhaustedError: the futures take longer than there is time.
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
    """A state of a run, to be played on many times."""

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
        """See `peripety.scenarios.runs.Playable`; nothing more is counted than how runs end."""
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
    """The present state, after what is done first in every future."""
    seed = session.seed if session.reseeded else None
    board = Board(ruleset.program, session.snapshot, reseeded=seed)
    for call in request.actions:
        board.act(call)
    if board.acts and not any(act.accepted for act in board.acts):
        reasons = ruleset.viewers.view(None).failures(board.acts[0].reasons)
        raise FailedPreconditionError(
            f".actions: none of them can be taken now: {reasons[0].message}; try others, or none",
            code="ACTIONS_REJECTED",
        )
    return _Future(ruleset.program, board.state, acted=bool(request.actions))


def _seed_after(session: Session) -> int:
    """A seed that follows from the session: asked again in the same turn, the odds are the same."""
    return sim.draw(session.seed, "odds", session.turn, 0) >> (64 - _SEED_BITS)


def _turns_left(session: Session, spec: Mapping[str, Any]) -> int:
    # A session may go on past the horizon, which bounds dry-runs.
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
