"""The mechanics of a turn in progress, and how much of them has been told already.

Mechanics leave before the prose about them, and as early as they can. So the world's part of a turn is told
as if the narrator changed nothing by itself, which it rarely does. When it does after all, what was told does
not hold any more, and the turn has to be told anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.errors import ResourceExhaustedError
from peripety.sessions.events import RuleFailed, encode
from peripety.sim import RuleError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.errors import PeripetyError
    from peripety.sessions.events import Event, Rolled, WorldResolved
    from peripety.sessions.mechanics import Board, Played
    from peripety.sessions.model import ActionCall, RollRequest
    from peripety.sim import ActResult

__all__ = ["Anew", "Stage", "set_up"]


@dataclass(frozen=True, slots=True)
class Anew:
    """What was told of the turn is void: these events are its mechanics now."""

    events: tuple[Event, ...]


class Stage:
    """A board, with what of it has been told.

    Args:
        board: the turn in progress, after the actions that the player chose.
    """

    def __init__(self, board: Board) -> None:
        self._board = board
        self._told: tuple[Event, ...] = ()
        self._foreseen: Played | None = None
        self._promised: WorldResolved | None = None
        self._played: Played | None = None

    @property
    def board(self) -> Board:
        """The turn before the narrator's own changes."""
        return self._board

    @property
    def played(self) -> Played | None:
        """The turn as it was last closed; None before."""
        return self._played

    def act(self, call: ActionCall) -> tuple[Event, ...]:
        """Try an action for good; see `Board.act`."""
        self._foreseen = None
        return self._now_told(self._board.act(call))

    def roll(self, die: RollRequest) -> Rolled:
        """Cast a die for good; see `Board.roll`."""
        self._foreseen = None
        rolled = self._board.roll(die)
        self._now_told((rolled,))
        return rolled

    def opening(self) -> tuple[Event, ...]:
        """What is to be told of the actions that the player chose."""
        return self._now_told(self._board.events)

    def foresee(self) -> Played:
        """The turn as it ends if the narrator changes nothing.

        Raises:
            ResourceExhaustedError: state or turn would outgrow their limits.
        """
        if self._foreseen is None:
            self._foreseen = self._board.fork().close()
        return self._foreseen

    def promise(self, world: WorldResolved) -> None:
        """Note that the narrator was told of the end of the turn; what it changes may not alter that."""
        self._promised = world

    def objections(self, changes: Sequence[Mapping[str, Any]]) -> tuple[RuleError, ...]:
        """Why the narrator may not change the state in this way; nothing is applied.

        Raises:
            InvalidArgumentError: the changes are not JSON of the engine's.
            ResourceExhaustedError: state or turn would outgrow their limits.
        """
        if not changes:
            return ()
        board = self._board.fork()
        reasons = board.narrate(changes)
        if reasons:
            return reasons
        world, promised = board.close().world, self._promised
        kept = promised is None or (promised.event_id, promised.status) == (world.event_id, world.status)
        message = "the changes would alter how the turn ends, which is decided; leave them out"
        return () if kept else (RuleError("TURN_DECIDED", "/state_changes", message),)

    def close(
        self, changes: Sequence[Mapping[str, Any]] = (), dice: Sequence[RollRequest] = ()
    ) -> tuple[Event, ...] | Anew:
        """End the turn with the narrator's own changes and dice, of which only the last call's hold.

        Returns:
            What is to be told now: what was not told yet, or all of it anew.

        Raises:
            InvalidArgumentError: a change or a die is not the engine's.
            ResourceExhaustedError: state or turn would outgrow their limits.
        """
        self._played = self._closed(changes, dice) if changes or dice else self.foresee()
        told, self._told = self._told, self._played.events
        same = _same(self._told[: len(told)], told)
        return self._told[len(told) :] if same else Anew(self._told)

    def _closed(self, changes: Sequence[Mapping[str, Any]], dice: Sequence[RollRequest]) -> Played:
        board = self._board.fork()
        for die in dice:
            board.roll(die)
        board.narrate(changes)
        return board.close()

    def _now_told(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        self._told = (*self._told, *events)
        return events


def _same(events: Sequence[Event], others: Sequence[Event]) -> bool:
    """Whether events say the same; to Python alone `true` would equal 1."""
    return len(events) == len(others) and all(
        one is other or sim.canonical(encode(one)) == sim.canonical(encode(other))
        for one, other in zip(events, others, strict=True)
    )


def set_up(
    board: Board, actions: Sequence[ActionCall], *, mistakes_cost_nothing: bool = True
) -> tuple[Stage | None, tuple[Event, ...]]:
    """Carry out what players chose: the stage for the rest of the turn, and what is to be told of it.

    Without a stage the turn is abandoned, and the last event says why: it outgrew a limit, or all that was
    tried was rejected. Without actions the world moves by itself; rejected ones among others are only told.

    Args:
        board: the turn, fresh.
        actions: what is tried, in order; ids are known to the scenario.
        mistakes_cost_nothing: whether a turn is abandoned of which nothing could be taken.

    Raises:
        InvalidArgumentError: a parameter is no value of the engine's.
    """
    stage = Stage(board)
    try:
        for action in actions:
            board.act(action)
        if mistakes_cost_nothing and actions and not any(act.accepted for act in board.acts):
            return None, (*board.events, _all_rejected(board.acts))
        stage.foresee()
    except ResourceExhaustedError as error:
        return None, (*board.events, _outgrown(error))
    return stage, stage.opening()


def _all_rejected(acts: Sequence[ActResult]) -> RuleFailed:
    first = acts[0].reasons[0]
    return RuleFailed(
        "ACTIONS_REJECTED",
        first.rule,
        "no action of the turn could be taken, so the turn was not; try others, or none to wait",
        turn_abandoned=True,
    )


def _outgrown(error: PeripetyError) -> RuleFailed:
    return RuleFailed(error.code, error.details.get("path", ""), error.message, turn_abandoned=True)
