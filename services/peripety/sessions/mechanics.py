"""The half of a turn that the engine decides. Pure: bytes of a state in, bytes of the next one out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.errors import ResourceExhaustedError
from peripety.sessions.events import ActionResolved, RuleFailed, WorldResolved, encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from peripety.sessions.events import Event
    from peripety.sessions.model import ActionCall
    from peripety.sim import ActResult, Change, LogLine, Program, State, StepResult

__all__ = ["Abandoned", "Played", "play"]


@dataclass(frozen=True, slots=True)
class Played:
    """A turn as the engine decided it.

    Attributes:
        events: what became of each action, and what the world did.
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


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A turn that could not be played; the last of its events says why. Nothing of it holds."""

    events: tuple[Event, ...]


def play(program: Program, snapshot: bytes, actions: Sequence[ActionCall]) -> Played | Abandoned:
    """Play the turn that follows a state.

    A turn without actions is legal: the world moves by itself. One whose actions are *all* rejected is
    abandoned, so that a mistake costs no turn; when some are accepted, the others are only reported.

    Args:
        program: the scenario.
        snapshot: the state before the turn; the run in it goes on.
        actions: what is tried, in order; ids are known to the scenario.

    Raises:
        InvalidArgumentError: a parameter is no value of the engine's.
    """
    state = program.load_state(snapshot)
    events: list[Event] = []
    acts: list[ActResult] = []
    try:
        for action in actions:
            act = program.act(state, action.action_id, action.params)
            acts.append(act)
            events += _decided(action, act)
        if actions and not any(act.accepted for act in acts):
            return Abandoned((*events, _all_rejected(acts)))
        step = program.step(state)
    except ResourceExhaustedError as error:
        limit = RuleFailed(error.code, error.details.get("path", ""), error.message, turn_abandoned=True)
        return Abandoned((*events, limit))
    return _played(program, state, actions, acts, events, step)


def _decided(action: ActionCall, act: ActResult) -> Iterator[Event]:
    """An action with what the engine made of it, and what failed when it opened the turn."""
    yield ActionResolved(action.action_id, action.params, act.accepted, act.reasons, act.changes, act.log)
    for error in act.errors:
        if error not in act.reasons:
            yield RuleFailed(error.code, error.rule, error.message, turn_abandoned=False)


def _all_rejected(acts: Sequence[ActResult]) -> RuleFailed:
    first = acts[0].reasons[0]
    return RuleFailed(
        "ACTIONS_REJECTED",
        first.rule,
        "no action of the turn could be taken, so the turn was not; try others, or none to wait",
        turn_abandoned=True,
    )


def _played(
    program: Program,
    state: State,
    actions: Sequence[ActionCall],
    acts: Sequence[ActResult],
    events: Sequence[Event],
    step: StepResult,
) -> Played:
    state_hash = state.hash()
    parts: tuple[ActResult | StepResult, ...] = (*acts, step)
    record = {
        "turn": step.turn,
        "actions": [{"id": action.action_id, "params": dict(action.params)} for action in actions],
        "changes": [encode(change) for part in parts for change in part.changes],
        "draws": [encode(draw) for draw in step.draws],
        "log": [encode(line) for part in parts for line in part.log],
        "event": step.event,
        "errors": [encode(error) for part in parts for error in part.errors],
        "status": encode(step.status),
        "state_hash": state_hash,
    }
    world = WorldResolved(step.event, step.changes, step.log, step.errors, step.status)
    goes_on = step.status.kind == "ongoing"
    return Played(
        events=(*events, world),
        record=sim.canonical(record),
        world=world,
        snapshot=state.to_json(),
        tree=state.tree(),
        state_hash=state_hash,
        legal_actions=program.legal_actions(state) if goes_on else (),
    )
