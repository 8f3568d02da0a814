"""The half of a turn that the engine decides: bytes of a state in, bytes of the next one out.

A `Board` is a turn in progress. Everything that changes a session goes over it, live and when a record is
played again, so both do the same.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.sessions.events import ActionResolved, Rolled, RuleFailed, WorldResolved, encode
from peripety.sessions.model import ActionCall, RollRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.sessions.events import Event
    from peripety.sim import ActResult, Change, LogLine, Program, RuleError, State, StepResult

__all__ = ["Board", "Played", "play_again", "reseeded"]


@dataclass(frozen=True, slots=True)
class Played:
    """A turn as the engine decided it.

    Attributes:
        events: what became of each action, the dice, and what the world did.
        record: the canonical JSON of all of it, which the chain hash covers.
        world: the end of the turn.
        snapshot: the state after it, complete.
        tree: the scenario's own tree of that state.
        state_hash: SHA-256 of the tree.
        legal_actions: ids of what can be tried next.
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
        """What became of the actions, in order."""
        return tuple(event for event in self.events if isinstance(event, ActionResolved))

    @property
    def rolls(self) -> tuple[Rolled, ...]:
        """The dice that were cast, in order."""
        return tuple(event for event in self.events if isinstance(event, Rolled))

    @property
    def changes(self) -> tuple[Change, ...]:
        """Everything that changed, in order."""
        return tuple(change for part in self._parts for change in part.changes)

    @property
    def log(self) -> tuple[LogLine, ...]:
        """Every line that was written to the log, in order."""
        return tuple(line for part in self._parts for line in part.log)

    @property
    def _parts(self) -> tuple[ActionResolved | WorldResolved, ...]:
        return (*self.actions, self.world)


class Board:
    """A turn in progress: actions and dice, then the narrator's own changes, then the world.

    Each step is applied wholly or, when it raises or is rejected, not at all.

    Args:
        program: the scenario.
        snapshot: the state before the turn; the run in it goes on.
        reseeded: the seed, when this is the first turn under it; the record then tells it.
        actor: the entity that acts where an action does not say who; None when there is one player.
    """

    def __init__(
        self, program: Program, snapshot: bytes, *, reseeded: int | None = None, actor: str | None = None
    ) -> None:
        self._program = program
        self._actor = actor
        self._state = program.load_state(snapshot)
        self._reseeded = reseeded
        self._calls: tuple[ActionCall, ...] = ()
        self._acts: tuple[ActResult, ...] = ()
        self._dice: tuple[RollRequest, ...] = ()
        self._changes: tuple[Mapping[str, Any], ...] = ()
        self._narrated: ActResult | None = None
        self._events: tuple[Event, ...] = ()

    @property
    def events(self) -> tuple[Event, ...]:
        """What became of the actions and the dice so far."""
        return self._events

    @property
    def acts(self) -> tuple[ActResult, ...]:
        """What the engine made of the actions so far, in order."""
        return self._acts

    @property
    def state(self) -> State:
        """The engine's state as it is now."""
        return self._state

    @property
    def legal_actions(self) -> tuple[str, ...]:
        """The ids of the actions that could be taken now."""
        return self._program.legal_actions(self._state)

    def fork(self) -> Board:
        """An independent copy."""
        fork = copy(self)
        vars(fork)["_state"] = self._state.fork()
        return fork

    def act(self, call: ActionCall) -> tuple[Event, ...]:
        """Try an action; what became of it, and what failed when it opened the turn.

        Raises:
            InvalidArgumentError: there is no such action, or a parameter is no value of the engine's.
            ResourceExhaustedError: state or turn would outgrow their limits.
        """
        call = replace(call, entity_id=call.entity_id or self._actor)
        act = self._program.act(self._state, call.action_id, call.params)
        resolved = ActionResolved(
            call.action_id, call.params, act.accepted, act.reasons, act.changes, act.log, call.entity_id
        )
        failed = (
            RuleFailed(error.code, error.rule, error.message, turn_abandoned=False)
            for error in act.errors
            if error not in act.reasons
        )
        self._calls, self._acts = (*self._calls, call), (*self._acts, act)
        return self._happened(resolved, *failed)

    def roll(self, die: RollRequest) -> Rolled:
        """Cast a die.

        Raises:
            InvalidArgumentError: `ROLL_INVALID`.
            ResourceExhaustedError: too many were cast in this turn.
        """
        rolled = Rolled(self._program.roll(self._state, die.kind, die.target, difficulty=die.difficulty))
        self._dice = (*self._dice, die)
        self._happened(rolled)
        return rolled

    def narrate(self, changes: Sequence[Mapping[str, Any]]) -> tuple[RuleError, ...]:
        """Apply the narrator's own changes, once a turn, all or none; why not, if they are rejected.

        Raises:
            InvalidArgumentError: they are not JSON of the engine's.
            ResourceExhaustedError: state or turn would outgrow their limits.
        """
        if not changes:
            return ()
        # Rejected changes open the turn all the same: what is due would happen, and nothing would tell of it.
        state = self._state.fork()
        narrated = self._program.narrate(state, changes)
        if narrated.accepted:
            self._state, self._changes, self._narrated = state, tuple(changes), narrated
        return narrated.reasons

    def close(self) -> Played:
        """Let the world move: the turn is decided, and the board is used up.

        Raises:
            ResourceExhaustedError: state or turn would outgrow their limits.
        """
        step = self._program.step(self._state)
        state_hash = self._state.hash()
        parts = (*self._acts, *(() if self._narrated is None else (self._narrated,)), step)
        record = {
            "turn": step.turn,
            "actions": [_told(call) for call in self._calls],
            **({} if self._reseeded is None else {"seed": self._reseeded}),
            **({"rolls": [encode(die) for die in self._dice]} if self._dice else {}),
            **({"narrated": [dict(change) for change in self._changes]} if self._changes else {}),
            "changes": [encode(change) for part in parts for change in part.changes],
            "draws": [encode(draw) for draw in step.draws],
            "log": [encode(line) for part in parts for line in part.log],
            "event": step.event,
            "errors": [encode(error) for part in parts for error in part.errors],
            "status": encode(step.status),
            "state_hash": state_hash,
        }
        world = _world(self._narrated, step)
        goes_on = step.status.kind == "ongoing"
        return Played(
            events=(*self._events, world),
            record=sim.canonical(record),
            world=world,
            snapshot=self._state.to_json(),
            tree=self._state.tree(),
            state_hash=state_hash,
            legal_actions=self.legal_actions if goes_on else (),
        )

    def _happened(self, *events: Event) -> tuple[Event, ...]:
        self._events = (*self._events, *events)
        return events


def play_again(program: Program, snapshot: bytes, record: Mapping[str, Any]) -> Played:
    """Play a recorded turn again; whether it came to the same is for the caller to compare.

    Args:
        program: the scenario.
        snapshot: the state before the turn.
        record: the record, parsed with `sim.loads`.

    Raises:
        PeripetyError: it cannot have been played like that.
    """
    seed = record.get("seed")
    board = Board(program, snapshot if seed is None else reseeded(snapshot, seed), reseeded=seed)
    for call in record["actions"]:
        board.act(ActionCall(call["id"], call["params"], call.get("entity_id")))
    for die in record.get("rolls", ()):
        board.roll(RollRequest(**die))
    board.narrate(record.get("narrated", ()))
    return board.close()


def reseeded(snapshot: bytes, seed: int) -> bytes:
    """A snapshot whose run goes on under another seed."""
    return sim.canonical(sim.loads(snapshot) | {"seed": str(seed)})


def _world(narrated: ActResult | None, step: StepResult) -> WorldResolved:
    before = () if narrated is None else (narrated,)
    return WorldResolved(
        event_id=step.event,
        changes=tuple(change for part in (*before, step) for change in part.changes),
        log=tuple(line for part in (*before, step) for line in part.log),
        errors=tuple(error for part in (*before, step) for error in part.errors),
        status=step.status,
    )


def _told(call: ActionCall) -> dict[str, Any]:
    told = {"id": call.action_id, "params": dict(call.params)}
    return told if call.entity_id is None else told | {"entity_id": call.entity_id}
