"""Verification of a bundle without a store: reads it to its end, and replays every turn.

Replayed turns are compared with their records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any

from peripety import engine
from peripety.engine.json_values import find_differences, format_part
from peripety.engine.schema_validation import format_pointer
from peripety.errors import Finding, PeripetyError
from peripety.session.bundles.format import BundleError, BundleIssue, BundleReader
from peripety.session.events import (
    ActionResolved,
    Committed,
    Rolled,
    RuleFailed,
    WorldResolved,
    encode_value,
    event_kind,
)
from peripety.session.turn_transaction import replay_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from peripety.engine import Program, Status
    from peripety.session.bundles.format import BundledTurn, BundleHeader
    from peripety.session.events import Event
    from peripety.session.turn_transaction import TurnResult


_ACTION_EVENTS = (ActionResolved, RuleFailed, WorldResolved)


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


class SessionReplay:
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
        self.chain_hash = engine.start_hash_chain(first_seed, program.spec_hash)

    def replay_next(self, record: Mapping[str, Any] | None, events: Sequence[Event]) -> ReplayedTurn:
        """Replay the next turn.

        Args:
            record: its valid record, parsed with `sim.loads`; None if it is missing.
            events: its streamed events, the last one being `Committed`.
        """
        self.turn += 1
        recorded = events[-1]
        if not isinstance(recorded, Committed):
            raise TypeError("the last event of a turn must be Committed")
        found = tuple(self._replay_next(record, events, recorded))
        return ReplayedTurn(
            turn=self.turn,
            recorded_state_hash=recorded.state_hash,
            computed_state_hash="" if self._failed else self.state_hash,
            recorded_chain_hash=recorded.chain_hash,
            computed_chain_hash="" if self._failed else self.chain_hash,
            differences=found,
        )

    def _replay_next(
        self,
        record: Mapping[str, Any] | None,
        events: Sequence[Event],
        recorded: Committed,
    ) -> Iterator[Finding]:
        if self._failed or record is None:
            reason = (
                "an earlier turn cannot be replayed" if self._failed else "its record is missing or invalid"
            )
            self._failed = True
            yield _not_playable_finding(reason)
            return
        try:
            played = replay_turn(self.program, self.snapshot, record)
        except PeripetyError as error:
            self._failed = True
            yield _not_playable_finding(error.message)
            return
        self.seed = record.get("seed", self.seed)
        self.status = played.world.status
        self.snapshot, self.state_hash = played.snapshot, played.state_hash
        self.chain_hash = engine.extend_hash_chain(self.chain_hash, played.record)
        yield from _diff_record(record, played)
        yield from _diff_events(events, played, _ACTION_EVENTS)
        yield from _diff_events(events, played, (Rolled,))
        yield from self._diff_end(recorded, played, format_pointer(["events", len(events) - 1]))

    def _diff_end(self, recorded: Committed, played: TurnResult, place: str) -> Iterator[Finding]:
        computed = replace(
            recorded,
            state_hash=self.state_hash,
            chain_hash=self.chain_hash,
            status=self.status,
            legal_actions=played.legal_actions,
            changes=played.changes,
        )
        yield from _diff_values(encode_value(recorded), encode_value(computed), place)


def _diff_record(record: Mapping[str, Any], played: TurnResult) -> Iterator[Finding]:
    if engine.canonicalize(record) != played.record:
        yield from _diff_values(record, engine.loads(played.record), "/record")


def _diff_events(events: Sequence[Event], played: TurnResult, kinds: tuple[type, ...]) -> Iterator[Finding]:
    """Yield the differences of the events of some kinds.

    Dice are compared separately, as they may lie between actions.
    """
    recorded = [(index, event) for index, event in enumerate(events) if isinstance(event, kinds)]
    computed = [event for event in played.events if isinstance(event, kinds)]
    if len(recorded) != len(computed):
        names = ", ".join(sorted(event_kind(event) for event in computed)) or "none"
        message = f"{len(recorded)} mechanics events are recorded, but {len(computed)} were computed: {names}"
        yield Finding("TURN_DIFFERS", "/events", message)
        return
    for (index, event), again in zip(recorded, computed, strict=True):
        yield from _diff_values(encode_value(event), encode_value(again), format_pointer(["events", index]))


def _diff_values(recorded: Any, computed: Any, place: str) -> Iterator[Finding]:
    if engine.canonicalize(recorded) == engine.canonicalize(computed):
        return
    for inner, one, other in find_differences(recorded, computed):
        message = f"recorded {format_part(one)}, computed {format_part(other)}"
        yield Finding("TURN_DIFFERS", f"{place}{format_pointer(inner)}", message)


def _not_playable_finding(reason: str) -> Finding:
    return Finding("TURN_NOT_PLAYABLE", "/record", f"the turn cannot be replayed: {reason}")


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """Result of the verification of a bundle.

    Attributes:
        header: the header; None if it could not be read.
        turns: number of replayed turns.
        mismatches: number of turns that differ from their records.
        issues: the defects; of the mismatching turns, only the first one is explained.
    """

    header: BundleHeader | None
    turns: int
    mismatches: int
    issues: tuple[BundleIssue, ...]

    @property
    def is_valid(self) -> bool:
        """True if the bundle has no defects."""
        return not self.issues


class BundleVerification:
    """Verification of a bundle in progress; memory is bounded by its longest line.

    Args:
        file: the bundle, at its beginning.
        compile_spec: compiles the specification; by default for the engine core of this process.

    Attributes:
        header: the header; None before it was read.
        replay: the replay so far; None before the first turn can be played.
    """

    def __init__(
        self,
        file: IO[bytes],
        compile_spec: Callable[[bytes], Program] = engine.compile_canonical,
    ) -> None:
        self._reader = BundleReader(file)
        self._compile_spec = compile_spec
        self._mismatches = 0
        self._issues: list[BundleIssue] = []
        self.header: BundleHeader | None = None
        self.replay: SessionReplay | None = None

    def turns(self) -> Iterator[tuple[BundledTurn, ReplayedTurn]]:
        """Read the bundle to its end and replay each turn; defects are collected and not raised."""
        reader = self._reader
        try:
            header = self.header = reader.header()
            replay = SessionReplay(reader.program(header, self._compile_spec), header.first_seed)
            reader.certificate(header)
            self.replay = replay
            for turn in reader.turns(header):
                replayed = replay.replay_next(turn.record, turn.events)
                self._record(replayed)
                yield turn, replayed
            if header.chain_hash != replay.chain_hash and not self._mismatches:
                message = f"the header declares {header.chain_hash}, but the turns have {replay.chain_hash}"
                self._issues.append(BundleIssue(1, Finding("TURN_DIFFERS", "/chain_hash", message)))
            reader.end()
        except BundleError as error:
            self._issues += error.issues

    def _record(self, replayed: ReplayedTurn) -> None:
        if not replayed.matches:
            self._mismatches += 1
            if self._mismatches == 1:
                self._issues += [
                    BundleIssue(
                        self._reader.line,
                        replace(finding, message=f"turn {replayed.turn}: {finding.message}"),
                    )
                    for finding in replayed.differences
                ]

    @property
    def line(self) -> int:
        """Number of the last line read, from 1."""
        return self._reader.line

    @property
    def result(self) -> VerificationResult:
        """The result so far."""
        turns = 0 if self.replay is None else self.replay.turn
        return VerificationResult(self.header, turns, self._mismatches, tuple(self._issues))
