"""The compiled form of stored scenarios: made once for each version, and kept while it is used."""

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
    """Compiled versions by the hash of their content, as many as were used last.

    A program is immutable, so everybody in the process may have the same one: with it they share what it
    found out about itself, such as its proofs and how its dry-runs are played.

    Args:
        most: how many are kept.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._kept: Kept[Program] = Kept(most)

    def kept(self, spec_hash: str) -> Program | None:
        """The compiled form of a version, when it is at hand."""
        return self._kept.find(spec_hash)

    async def of(self, spec_hash: str, document: bytes) -> Program:
        """The compiled form of a version.

        Args:
            spec_hash: names the version.
            document: the version as it is stored: valid and canonical.
        """
        return self.kept(spec_hash) or self.keep(await asyncio.to_thread(sim.load, document))

    def keep(self, program: Program) -> Program:
        """Keep a program that was compiled elsewhere; the one to use, which may have been here already."""
        return self._kept.keep(program.spec_hash, program)
