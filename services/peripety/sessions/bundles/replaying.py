"""Turns played again from their records, and held against what was recorded of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.errors import Finding, PeripetyError
from peripety.sessions.events import (
    ActionResolved,
    Committed,
    Rolled,
    RuleFailed,
    WorldResolved,
    encode,
    kind_of,
)
from peripety.sessions.mechanics import play_again
from peripety.sim.differences import differences, shown
from peripety.sim.schema import pointer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.sessions.events import Event
    from peripety.sessions.mechanics import Played
    from peripety.sim import Program, Status

__all__ = ["Replay", "ReplayedTurn"]

_ACTED = (ActionResolved, RuleFailed, WorldResolved)


@dataclass(frozen=True, slots=True)
class ReplayedTurn:
    """A turn that was played again.

    Attributes:
        turn: its number, from 1.
        recorded_state_hash: the hash of the state, as recorded.
        computed_state_hash: the same as computed; empty when the turn could not be played.
        recorded_chain_hash: the hash over all turns, as recorded.
        computed_chain_hash: the same as computed; empty when the turn could not be played.
        differences: how what was recorded differs from what was computed, the least parts, with pointers
            into `{record, events}`; none when nothing does.
    """

    turn: int
    recorded_state_hash: str
    computed_state_hash: str
    recorded_chain_hash: str
    computed_chain_hash: str
    differences: tuple[Finding, ...]

    @property
    def matches(self) -> bool:
        """Whether the turn came to all that was recorded of it."""
        return not self.differences


class Replay:
    """A session that is played again, turn by turn, on what was computed of the turn before.

    Args:
        program: the scenario.
        first_seed: where its randomness came from at first.

    Attributes:
        program: the scenario.
        turn: how many turns were played.
        seed: where the randomness comes from now.
        status: whether the run goes on.
        snapshot: the engine's state, complete.
        state_hash: SHA-256 of the state tree.
        chain_hash: hash over all turns so far.
    """

    def __init__(self, program: Program, first_seed: int) -> None:
        state = program.new_state(first_seed)
        self.program = program
        self._failed = False
        self.turn = 0
        self.seed = first_seed
        self.status: Status = state.status
        self.snapshot = state.to_json()
        self.state_hash = state.hash()
        self.chain_hash = sim.chain_start(first_seed, program.spec_hash)

    def play(self, record: Mapping[str, Any] | None, events: Sequence[Event]) -> ReplayedTurn:
        """Play the next turn.

        Args:
            record: its record, parsed with `sim.loads`, once its schema holds; None when there is none.
            events: what was streamed of it, the last one being `Committed`.
        """
        self.turn += 1
        recorded = events[-1]
        if not isinstance(recorded, Committed):
            raise TypeError("a turn ends with Committed")
        found = tuple(self._play(record, events, recorded))
        return ReplayedTurn(
            turn=self.turn,
            recorded_state_hash=recorded.state_hash,
            computed_state_hash="" if self._failed else self.state_hash,
            recorded_chain_hash=recorded.chain_hash,
            computed_chain_hash="" if self._failed else self.chain_hash,
            differences=found,
        )

    def _play(
        self, record: Mapping[str, Any] | None, events: Sequence[Event], recorded: Committed
    ) -> Iterator[Finding]:
        if self._failed or record is None:
            reason = "a turn before it could not be played" if self._failed else "it has no record"
            self._failed = True
            yield _not_playable(reason)
            return
        try:
            played = play_again(self.program, self.snapshot, record)
        except PeripetyError as error:
            self._failed = True
            yield _not_playable(error.message)
            return
        self.seed = record.get("seed", self.seed)
        self.status = played.world.status
        self.snapshot, self.state_hash = played.snapshot, played.state_hash
        self.chain_hash = sim.chain(self.chain_hash, played.record)
        yield from _record_differences(record, played)
        yield from _event_differences(events, played, _ACTED)
        yield from _event_differences(events, played, (Rolled,))
        yield from self._end_differences(recorded, played, pointer(["events", len(events) - 1]))

    def _end_differences(self, recorded: Committed, played: Played, place: str) -> Iterator[Finding]:
        computed = replace(
            recorded,
            state_hash=self.state_hash,
            chain_hash=self.chain_hash,
            status=self.status,
            legal_actions=played.legal_actions,
            changes=played.changes,
        )
        yield from _differences(encode(recorded), encode(computed), place)


def _record_differences(record: Mapping[str, Any], played: Played) -> Iterator[Finding]:
    if sim.canonical(record) != played.record:
        yield from _differences(record, sim.loads(played.record), "/record")


def _event_differences(events: Sequence[Event], played: Played, kinds: tuple[type, ...]) -> Iterator[Finding]:
    """How the events of some kinds differ. Dice stand apart: they may have been cast between actions."""
    recorded = [(index, event) for index, event in enumerate(events) if isinstance(event, kinds)]
    computed = [event for event in played.events if isinstance(event, kinds)]
    if len(recorded) != len(computed):
        names = ", ".join(sorted(kind_of(event) for event in computed)) or "none"
        message = (
            f"{len(recorded)} events tell of what was decided, and {len(computed)} were computed: {names}"
        )
        yield Finding("TURN_DIFFERS", "/events", message)
        return
    for (index, event), again in zip(recorded, computed, strict=True):
        yield from _differences(encode(event), encode(again), pointer(["events", index]))


def _differences(recorded: Any, computed: Any, place: str) -> Iterator[Finding]:
    if sim.canonical(recorded) == sim.canonical(computed):
        return
    for inner, one, other in differences(recorded, computed):
        message = f"the record says {shown(one)}, and {shown(other)} was computed"
        yield Finding("TURN_DIFFERS", f"{place}{pointer(inner)}", message)


def _not_playable(reason: str) -> Finding:
    return Finding("TURN_NOT_PLAYABLE", "/record", f"the turn cannot be played again: {reason}")
