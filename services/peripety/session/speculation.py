"""Speculative execution of a turn: mechanics are sent before the narrator can change them.

Mechanics are sent before the prose about them, as early as possible. The world's step is therefore sent as if
the narrator made no changes of its own, which is rarely wrong. If the narrator does make changes, the events
sent so far are void, and the turn is restarted with its new mechanics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.engine import RuleError
from peripety.errors import ResourceExhaustedError
from peripety.session.events import RuleFailed, encode_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.engine import ActResult
    from peripety.errors import PeripetyError
    from peripety.session.events import Event, Rolled, WorldResolved
    from peripety.session.turn_transaction import TurnResult, TurnTransaction
    from peripety.session.types import DieRollRequest, PlayerAction


@dataclass(frozen=True, slots=True)
class TurnRestarted:
    """Restart of the turn: all events sent before are void, and these are its mechanics now."""

    events: tuple[Event, ...]


class SpeculativeTurn:
    """A turn in progress, plus the events already sent to the client.

    Args:
        transaction: the turn in progress, after the actions chosen by the player.
    """

    def __init__(self, transaction: TurnTransaction) -> None:
        self._transaction = transaction
        self._sent: tuple[Event, ...] = ()
        self._preview: TurnResult | None = None
        self._pinned_outcome: WorldResolved | None = None
        self._result: TurnResult | None = None

    @property
    def transaction(self) -> TurnTransaction:
        """The turn before the narrator's own changes."""
        return self._transaction

    @property
    def result(self) -> TurnResult | None:
        """The turn as last closed; None before."""
        return self._result

    def act(self, call: PlayerAction) -> tuple[Event, ...]:
        """Try an action and mark its events as sent."""
        self._preview = None
        return self._mark_sent(self._transaction.act(call))

    def roll(self, die: DieRollRequest) -> Rolled:
        """Roll a die and mark the event as sent."""
        self._preview = None
        rolled = self._transaction.roll(die)
        self._mark_sent((rolled,))
        return rolled

    def send_opening_events(self) -> tuple[Event, ...]:
        """Return the events of the actions chosen by the player, and mark them as sent."""
        return self._mark_sent(self._transaction.events)

    def preview(self) -> TurnResult:
        """Return the result of the turn if the narrator changes nothing.

        Raises:
            ResourceExhaustedError: the state or the turn would exceed its limits.
        """
        if self._preview is None:
            self._preview = self._transaction.fork().finish()
        return self._preview

    def pin_outcome(self, world: WorldResolved) -> None:
        """Pin the result of the turn, because the narrator has seen it; its changes must not alter it."""
        self._pinned_outcome = world

    def check_changes(self, changes: Sequence[Mapping[str, Any]]) -> tuple[RuleError, ...]:
        """Return the reasons why the narrator's changes are rejected; nothing is applied.

        Raises:
            InvalidArgumentError: the changes are not valid JSON for the engine.
            ResourceExhaustedError: the state or the turn would exceed its limits.
        """
        if not changes:
            return ()
        board = self._transaction.fork()
        reasons = board.apply_narrator_changes(changes)
        if reasons:
            return reasons
        world, promised = board.finish().world, self._pinned_outcome
        kept = promised is None or (promised.event_id, promised.status) == (world.event_id, world.status)
        message = "the changes would alter the decided end of the turn; leave them out"
        return () if kept else (RuleError("TURN_DECIDED", "/state_changes", message),)

    def finish(
        self,
        changes: Sequence[Mapping[str, Any]] = (),
        dice: Sequence[DieRollRequest] = (),
    ) -> tuple[Event, ...] | TurnRestarted:
        """End the turn with the narrator's own changes and dice; those of earlier calls are discarded.

        Returns:
            The events to send now: those not sent yet, or all of them after a restart.

        Raises:
            InvalidArgumentError: a change or a die is invalid.
            ResourceExhaustedError: the state or the turn would exceed its limits.
        """
        self._result = self.compute_result(changes, dice)
        told, self._sent = self._sent, self._result.events
        same = _is_same_events(self._sent[: len(told)], told)
        return self._sent[len(told) :] if same else TurnRestarted(self._sent)

    def compute_result(
        self,
        changes: Sequence[Mapping[str, Any]],
        dice: Sequence[DieRollRequest],
    ) -> TurnResult:
        """Return the result of the turn with the narrator's own changes and dice; nothing is applied.

        Raises:
            InvalidArgumentError: a change or a die is invalid.
            ResourceExhaustedError: the state or the turn would exceed its limits.
        """
        if not changes and not dice:
            return self.preview()
        board = self._transaction.fork()
        for die in dice:
            board.roll(die)
        board.apply_narrator_changes(changes)
        return board.finish()

    def _mark_sent(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        self._sent = (*self._sent, *events)
        return events


def _is_same_events(events: Sequence[Event], others: Sequence[Event]) -> bool:
    """Return True if events are equal as JSON; in Python alone `true` would equal 1."""
    return len(events) == len(others) and all(
        one is other or engine.canonicalize(encode_value(one)) == engine.canonicalize(encode_value(other))
        for one, other in zip(events, others, strict=True)
    )


def begin_turn(
    transaction: TurnTransaction,
    actions: Sequence[PlayerAction],
    *,
    abandon_if_all_rejected: bool = True,
) -> tuple[SpeculativeTurn | None, tuple[Event, ...]]:
    """Execute the chosen actions; return the stage for the rest of the turn, and the events to send.

    No stage means that the turn is abandoned, and the last event contains the reason: it exceeded a limit, or
    all actions were rejected. Without actions only the world's step is applied. Rejected actions beside
    accepted ones are reported.

    Args:
        transaction: a fresh turn.
        actions: actions to try, in order; their ids exist in the scenario.
        abandon_if_all_rejected: abandon the turn if all actions are rejected.

    Raises:
        InvalidArgumentError: a parameter is not a valid engine value.
    """
    stage = SpeculativeTurn(transaction)
    try:
        for action in actions:
            transaction.act(action)
        if (
            abandon_if_all_rejected
            and actions
            and not any(act.accepted for act in transaction.action_results)
        ):
            return None, (*transaction.events, _all_rejected_failure(transaction.action_results))
        stage.preview()
    except ResourceExhaustedError as error:
        return None, (*transaction.events, _limit_failure(error))
    return stage, stage.send_opening_events()


def _all_rejected_failure(acts: Sequence[ActResult]) -> RuleFailed:
    first = acts[0].reasons[0]
    return RuleFailed(
        "ACTIONS_REJECTED",
        first.rule,
        "no action of the turn is legal, so the turn was abandoned; try others, or none to wait",
        turn_abandoned=True,
    )


def _limit_failure(error: PeripetyError) -> RuleFailed:
    return RuleFailed(error.code, error.details.get("path", ""), error.message, turn_abandoned=True)
