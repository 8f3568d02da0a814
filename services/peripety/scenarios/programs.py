"""LRU cache of compiled scenarios, one program per version."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from peripety import sim
from peripety.kept import Kept

if TYPE_CHECKING:
    from peripety.sim import Program

__all__ = ["Programs"]

_MOST = 64


class Programs:
    """LRU cache of compiled versions, by the hash of their content.

    A program is immutable, so one instance serves the whole process. It also shares what it has computed
    about itself, such as its proofs and the compiled form of its dry-runs.

    Args:
        most: the capacity.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._kept: Kept[Program] = Kept(most)

    def kept(self, spec_hash: str) -> Program | None:
        """Return the cached program of a version; None on a miss."""
        return self._kept.find(spec_hash)

    async def of(self, spec_hash: str, document: bytes) -> Program:
        """Return the program of a version; compile it on a miss.

        Args:
            spec_hash: the hash of the version.
            document: the stored document: valid and canonical.
        """
        return self.kept(spec_hash) or self.keep(await asyncio.to_thread(sim.load, document))

    def keep(self, program: Program) -> Program:
        """Store a program that was compiled elsewhere; return the cached one, which may be an earlier one."""
        return self._kept.keep(program.spec_hash, program)
