"""Whether a bundle is right: read to its end, every turn played again. It needs nothing but the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from peripety import sim
from peripety.errors import Finding
from peripety.sessions.bundles.defects import BundleError, Defect
from peripety.sessions.bundles.reading import Reader
from peripety.sessions.bundles.replaying import Replay, ReplayedTurn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from peripety.sessions.bundles.format import Header
    from peripety.sim import Program

__all__ = ["Verdict", "verify"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of verifying a bundle.

    Attributes:
        header: what it says about its session; None when it could not be read.
        turns: how many turns were played again.
        mismatches: how many of them did not come to what was recorded.
        defects: what is wrong; of the turns that do not match only the first one is explained.
    """

    header: Header | None
    turns: int
    mismatches: int
    defects: tuple[Defect, ...]

    @property
    def right(self) -> bool:
        """Whether nothing is wrong."""
        return not self.defects


def verify(
    file: IO[bytes], compiled: Callable[[bytes], Program] = sim.compile_canonical
) -> Iterator[ReplayedTurn | Verdict]:
    """Read a bundle to its end and play every turn again; memory is bounded by its longest line.

    Args:
        file: the bundle, at its beginning.
        compiled: compiles the specification; by default for the core of this process.

    Yields:
        The turns, and the verdict as the last item.
    """
    reader = Reader(file)
    header = None
    turns = mismatches = 0
    defects: list[Defect] = []
    try:
        header = reader.header()
        program = reader.program(header, compiled)
        reader.certificate(header)
        replay = Replay(program, header.first_seed)
        for turn in reader.turns(header):
            replayed = replay.play(turn.record, turn.events)
            turns += 1
            if not replayed.matches:
                mismatches += 1
                if mismatches == 1:
                    defects += [Defect(reader.line, finding) for finding in replayed.differences]
            yield replayed
        if header.chain_hash != replay.chain_hash and not mismatches:
            message = f"the header says {header.chain_hash}, and the turns come to {replay.chain_hash}"
            defects.append(Defect(1, Finding("TURN_DIFFERS", "/chain_hash", message)))
        reader.end()
    except BundleError as error:
        defects += error.defects
    yield Verdict(header, turns, mismatches, tuple(defects))
