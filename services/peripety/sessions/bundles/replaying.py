"""Replay of recorded turns, compared with their records."""

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
    """A replayed turn.

    Attributes:
        turn: number of the turn, from 1.
        recorded_state_hash: recorded hash of the state.
        computed_state_hash: computed hash of the state; empty if the turn could not be played.
        recorded_chain_hash: recorded hash over all turns.
        computed_chain_hash: computed hash over all turns; empty if the turn could not be played.
        differences: minimal differences between recorded and computed values, with pointers into `{record,
            events}`.
    """

    turn: int
    recorded_state_hash: str
    computed_state_hash: str
    recorded_chain_hash: str
    computed_chain_hash: str
    differences: tuple[Finding, ...]

    @property
    def matches(self) -> bool:
        """True if the computed turn equals the recorded one."""
        return not self.differences


class Replay:
    """Replay of a session turn by turn; each turn starts from the computed state of the previous one.

    Args:
        program: the scenario.
        first_seed: initial seed of the session.

    Attributes:
        program: the scenario.
        turn: number of turns played.
        seed: current seed.
        status: status of the run.
        snapshot: complete state of the engine.
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
        """Replay the next turn.

        Args:
            record: its valid record, parsed with `sim.loads`; None if it is missing.
            events: its streamed events, the last one being `Committed`.
        """
        self.turn += 1
        recorded = events[-1]
        if not isinstance(recorded, Committed):
            raise TypeError("the last event of a turn must be Committed")
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
            reason = (
                "an earlier turn cannot be replayed" if self._failed else "its record is missing or invalid"
            )
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
    """Yield the differences of the events of some kinds.

    Dice are compared separately, as they may lie between actions.
    """
    recorded = [(index, event) for index, event in enumerate(events) if isinstance(event, kinds)]
    computed = [event for event in played.events if isinstance(event, kinds)]
    if len(recorded) != len(computed):
        names = ", ".join(sorted(kind_of(event) for event in computed)) or "none"
        message = f"{len(recorded)} mechanics events are recorded, but {len(computed)} were computed: {names}"
        yield Finding("TURN_DIFFERS", "/events", message)
        return
    for (index, event), again in zip(recorded, computed, strict=True):
        yield from _differences(encode(event), encode(again), pointer(["events", index]))


def _differences(recorded: Any, computed: Any, place: str) -> Iterator[Finding]:
    if sim.canonical(recorded) == sim.canonical(computed):
        return
    for inner, one, other in differences(recorded, computed):
        message = f"recorded {shown(one)}, computed {shown(other)}"
        yield Finding("TURN_DIFFERS", f"{place}{pointer(inner)}", message)


def _not_playable(reason: str) -> Finding:
    return Finding("TURN_NOT_PLAYABLE", "/record", f"the turn cannot be replayed: {reason}")
