"""Verification of a bundle without a store: read it to its end and replay every turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from peripety import sim
from peripety.errors import Finding
from peripety.sessions.bundles.defects import BundleError, Defect
from peripety.sessions.bundles.reading import Reader
from peripety.sessions.bundles.replaying import Replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from peripety.sessions.bundles.format import BundledTurn, Header
    from peripety.sessions.bundles.replaying import ReplayedTurn
    from peripety.sim import Program

__all__ = ["Verdict", "Verification"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of the verification of a bundle.

    Attributes:
        header: the header; None if it could not be read.
        turns: number of replayed turns.
        mismatches: number of turns that differ from their records.
        defects: the defects; of the mismatching turns, only the first one is explained.
    """

    header: Header | None
    turns: int
    mismatches: int
    defects: tuple[Defect, ...]

    @property
    def right(self) -> bool:
        """True if the bundle has no defects."""
        return not self.defects


class Verification:
    """Verification of a bundle in progress; memory is bounded by its longest line.

    Args:
        file: the bundle, at its beginning.
        compiled: compiles the specification; by default for the engine core of this process.

    Attributes:
        header: the header; None before it was read.
        replay: the replay so far; None before the first turn can be played.
    """

    def __init__(self, file: IO[bytes], compiled: Callable[[bytes], Program] = sim.compile_canonical) -> None:
        self._reader = Reader(file)
        self._compiled = compiled
        self._mismatches = 0
        self._defects: list[Defect] = []
        self.header: Header | None = None
        self.replay: Replay | None = None

    def turns(self) -> Iterator[tuple[BundledTurn, ReplayedTurn]]:
        """Read the bundle to its end and replay each turn; defects are collected and not raised."""
        reader = self._reader
        try:
            header = self.header = reader.header()
            replay = Replay(reader.program(header, self._compiled), header.first_seed)
            reader.certificate(header)
            self.replay = replay
            for turn in reader.turns(header):
                replayed = replay.play(turn.record, turn.events)
                self._note(replayed)
                yield turn, replayed
            if header.chain_hash != replay.chain_hash and not self._mismatches:
                message = f"the header declares {header.chain_hash}, but the turns have {replay.chain_hash}"
                self._defects.append(Defect(1, Finding("TURN_DIFFERS", "/chain_hash", message)))
            reader.end()
        except BundleError as error:
            self._defects += error.defects

    def _note(self, replayed: ReplayedTurn) -> None:
        if not replayed.matches:
            self._mismatches += 1
            if self._mismatches == 1:
                self._defects += [Defect(self._reader.line, finding) for finding in replayed.differences]

    @property
    def line(self) -> int:
        """Number of the last line read, from 1."""
        return self._reader.line

    @property
    def verdict(self) -> Verdict:
        """The result so far."""
        turns = 0 if self.replay is None else self.replay.turn
        return Verdict(self.header, turns, self._mismatches, tuple(self._defects))
