"""Compiled scenario: the reference implementation of `CoreProgram`."""

from __future__ import annotations

from peripety.sim._pure import border
from peripety.sim._pure.canonical import canonical
from peripety.sim._pure.compiled import Players
from peripety.sim._pure.dry_run import dry_run, futures
from peripety.sim._pure.effects import Record
from peripety.sim._pure.rolls import roll
from peripety.sim._pure.state import Rules, State
from peripety.sim._pure.turn import PolicyDraws, act, legal_choices, narrate, step

__all__ = ["Program"]


class Program:
    """Validated scenario document, ready to run."""

    def __init__(self, document: bytes) -> None:
        self._rules = Rules(document)
        self._players = Players(self._rules)

    def new_state(self, seed: int) -> State:
        """Return the initial state for a seed."""
        return State.initial(self._rules, seed)

    def load_state(self, snapshot: bytes) -> State:
        """Restore a state from its snapshot."""
        return State.from_json(self._rules, snapshot)

    def legal_actions(self, state: State) -> bytes:
        """Return the ids of the legal actions, as a JSON list."""
        choices = legal_choices(state, PolicyDraws(state), Record())
        return canonical([action["id"] for action, _ in choices])

    def act(self, state: State, action_id: str, params: bytes) -> bytes:
        """Perform an action; return the JSON of an `ActResult`."""
        return canonical(act(state, action_id, border.parse_canonical(params)))

    def narrate(self, state: State, changes: bytes) -> bytes:
        """Apply the narrator's changes; return the JSON of an `ActResult`."""
        return canonical(narrate(state, border.parse_canonical(changes)))

    def step(self, state: State) -> bytes:
        """Finish the turn; return the JSON of a `StepResult`."""
        return canonical(step(state))

    def roll(self, state: State, request: bytes) -> bytes:
        """Roll in the current turn; return the JSON of a `RollResult`."""
        return canonical(roll(state, border.parse_canonical(request)))

    def dry_run(self, options: bytes) -> bytes:
        """Simulate many runs; return the JSON of a `DryRunReport`."""
        return canonical(dry_run(self._rules, border.parse_canonical(options), self._players))

    def futures(self, state: State, options: bytes) -> bytes:
        """Simulate many runs from a state; return the JSON of a `DryRunReport`."""
        return canonical(futures(state, border.parse_canonical(options)))

    def proves_nothing(self, _horizon: int) -> bool:
        """Return False: the reference has no cheap test."""
        return False
