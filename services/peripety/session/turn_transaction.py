"""Engine side of a turn: a function from the bytes of a state to the bytes of the next one.

Every change of a session goes through one class, which holds a turn in progress, both in live play and in
replay, so both have the same result.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.session.events import ActionResolved, Rolled, RuleFailed, WorldResolved, encode_value
from peripety.session.types import DieRollRequest, PlayerAction

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.engine import ActResult, Change, LogLine, Program, RuleError, State, StepResult
    from peripety.session.events import Event


@dataclass(frozen=True, slots=True)
class TurnResult:
    """Result of a turn in the engine.

    Attributes:
        events: results of the actions, the dice and the world's step.
        record: canonical JSON of the whole turn, which the chain hash covers.
        world: the end of the turn.
        snapshot: complete state after the turn.
        tree: the scenario's own tree of that state.
        state_hash: SHA-256 of the tree.
        legal_actions: ids of the actions that are legal next.
    """

    events: tuple[Event, ...]
    record: bytes
    world: WorldResolved
    snapshot: bytes
    tree: Any
    state_hash: str
    legal_actions: tuple[str, ...]

    @property
    def actions(self) -> tuple[ActionResolved, ...]:
        """Results of the actions, in order."""
        return tuple(event for event in self.events if isinstance(event, ActionResolved))

    @property
    def rolls(self) -> tuple[Rolled, ...]:
        """Results of the dice, in order."""
        return tuple(event for event in self.events if isinstance(event, Rolled))

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes, in order."""
        return tuple(change for part in self._change_events for change in part.changes)

    @property
    def log(self) -> tuple[LogLine, ...]:
        """All log lines, in order."""
        return tuple(line for part in self._change_events for line in part.log)

    @property
    def _change_events(self) -> tuple[ActionResolved | WorldResolved, ...]:
        return (*self.actions, self.world)


class TurnTransaction:
    """A turn in progress: actions and dice, then the narrator's own changes, then the world's step.

    Each step is applied completely or, if it raises or is rejected, not at all.

    Args:
        program: the scenario.
        snapshot: the state before the turn; its run has not ended.
        new_seed: the seed if this is the first turn under it; it becomes part of the record.
        actor: the default acting entity; None if there is one player.
    """

    def __init__(
        self,
        program: Program,
        snapshot: bytes,
        *,
        new_seed: int | None = None,
        actor: str | None = None,
    ) -> None:
        self._program = program
        self._snapshot = snapshot
        self._actor = actor
        self._state = program.load_state(snapshot)
        self._new_seed = new_seed
        self._calls: tuple[PlayerAction, ...] = ()
        self._action_results: tuple[ActResult, ...] = ()
        self._dice: tuple[DieRollRequest, ...] = ()
        self._narrator_changes: tuple[Mapping[str, Any], ...] = ()
        self._narrator_result: ActResult | None = None
        self._events: tuple[Event, ...] = ()

    @property
    def events(self) -> tuple[Event, ...]:
        """Results of the actions and dice so far."""
        return self._events

    @property
    def action_results(self) -> tuple[ActResult, ...]:
        """The engine's results of the actions so far, in order."""
        return self._action_results

    @property
    def state(self) -> State:
        """The current state of the engine."""
        return self._state

    @property
    def opening_state(self) -> State:
        """A copy of the state before the turn."""
        return self._program.load_state(self._snapshot)

    @property
    def legal_actions(self) -> tuple[str, ...]:
        """Ids of the actions that are legal now."""
        return self._program.legal_actions(self._state)

    def fork(self) -> TurnTransaction:
        """Return an independent copy."""
        fork = copy(self)
        vars(fork)["_state"] = self._state.fork()
        return fork

    def act(self, call: PlayerAction) -> tuple[Event, ...]:
        """Try an action; return its result, and the rules that failed when it opened the turn.

        Raises:
            InvalidArgumentError: the action does not exist, or a parameter is not a valid engine value.
            ResourceExhaustedError: the state or the turn would exceed its limits.
        """
        call = replace(call, entity_id=call.entity_id or self._actor)
        act = self._program.act(self._state, call.action_id, call.params)
        resolved = ActionResolved(
            call.action_id,
            call.params,
            act.accepted,
            act.reasons,
            act.changes,
            act.log,
            call.entity_id,
        )
        failed = (
            RuleFailed(error.code, error.rule, error.message, turn_abandoned=False)
            for error in act.errors
            if error not in act.reasons
        )
        self._calls, self._action_results = (*self._calls, call), (*self._action_results, act)
        return self._append_events(resolved, *failed)

    def roll(self, die: DieRollRequest) -> Rolled:
        """Roll a die.

        Raises:
            InvalidArgumentError: `ROLL_INVALID`.
            ResourceExhaustedError: too many dice were rolled in this turn.
        """
        rolled = Rolled(self._program.roll(self._state, die.kind, die.target, difficulty=die.difficulty))
        self._dice = (*self._dice, die)
        self._append_events(rolled)
        return rolled

    def apply_narrator_changes(self, changes: Sequence[Mapping[str, Any]]) -> tuple[RuleError, ...]:
        """Apply the narrator's own changes, once per turn, all or none.

        Returns:
            The reasons if the changes are rejected.

        Raises:
            InvalidArgumentError: the changes are not valid JSON for the engine.
            ResourceExhaustedError: the state or the turn would exceed its limits.
        """
        if not changes:
            return ()
        # Works on a fork: even rejected changes open the turn, and effects that are due would happen without
        # an event.
        state = self._state.fork()
        narrated = self._program.narrate(state, changes)
        if narrated.accepted:
            self._state, self._narrator_changes, self._narrator_result = state, tuple(changes), narrated
        return narrated.reasons

    def finish(self) -> TurnResult:
        """Apply the world's step, which ends the turn; the board cannot be used afterwards.

        Raises:
            ResourceExhaustedError: the state or the turn would exceed its limits.
        """
        step = self._program.step(self._state)
        state_hash = self._state.hash()
        parts = (
            *self._action_results,
            *(() if self._narrator_result is None else (self._narrator_result,)),
            step,
        )
        record = {
            "turn": step.turn,
            "actions": [_call_to_record(call) for call in self._calls],
            **({} if self._new_seed is None else {"seed": self._new_seed}),
            **({"rolls": [encode_value(die) for die in self._dice]} if self._dice else {}),
            **(
                {"narrated": [dict(change) for change in self._narrator_changes]}
                if self._narrator_changes
                else {}
            ),
            "changes": [encode_value(change) for part in parts for change in part.changes],
            "draws": [encode_value(draw) for draw in step.draws],
            "log": [encode_value(line) for part in parts for line in part.log],
            "event": step.event,
            "errors": [encode_value(error) for part in parts for error in part.errors],
            "status": encode_value(step.status),
            "state_hash": state_hash,
        }
        tree = self._state.tree()
        status = engine.deal_epilogue(self._program.spec, tree, step.status)
        world = _world_event(self._narrator_result, replace(step, status=status))
        goes_on = step.status.kind == "ongoing"
        return TurnResult(
            events=(*self._events, world),
            record=engine.canonicalize(record),
            world=world,
            snapshot=self._state.to_json(),
            tree=tree,
            state_hash=state_hash,
            legal_actions=self.legal_actions if goes_on else (),
        )

    def _append_events(self, *events: Event) -> tuple[Event, ...]:
        self._events = (*self._events, *events)
        return events


def replay_turn(program: Program, snapshot: bytes, record: Mapping[str, Any]) -> TurnResult:
    """Replay a recorded turn; the caller compares the result with the record.

    Args:
        program: the scenario.
        snapshot: the state before the turn.
        record: the record, parsed with `sim.loads`.

    Raises:
        PeripetyError: the turn cannot have been played like that.
    """
    seed = record.get("seed")
    board = TurnTransaction(program, snapshot if seed is None else with_seed(snapshot, seed), new_seed=seed)
    for call in record["actions"]:
        board.act(PlayerAction(call["id"], call["params"], call.get("entity_id")))
    for die in record.get("rolls", ()):
        board.roll(DieRollRequest(**die))
    board.apply_narrator_changes(record.get("narrated", ()))
    return board.finish()


def with_seed(snapshot: bytes, seed: int) -> bytes:
    """Return a snapshot with another seed."""
    return engine.canonicalize(engine.loads(snapshot) | {"seed": str(seed)})


def _world_event(narrated: ActResult | None, step: StepResult) -> WorldResolved:
    before = () if narrated is None else (narrated,)
    return WorldResolved(
        event_id=step.event,
        changes=tuple(change for part in (*before, step) for change in part.changes),
        log=tuple(line for part in (*before, step) for line in part.log),
        errors=tuple(error for part in (*before, step) for error in part.errors),
        status=step.status,
    )


def _call_to_record(call: PlayerAction) -> dict[str, Any]:
    told = {"id": call.action_id, "params": dict(call.params)}
    return told if call.entity_id is None else told | {"entity_id": call.entity_id}
