"""The compiled scenarios that sessions play."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.sessions.visibility import Viewers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from peripety.sim import Program

__all__ = ["Ruleset", "Rulesets"]

_KEPT = 64


@dataclass(frozen=True, slots=True)
class Ruleset:
    """One version of a scenario: what may happen, and who may see it."""

    program: Program
    viewers: Viewers

    @property
    def spec(self) -> Mapping[str, Any]:
        """The specification."""
        return self.program.spec


class Rulesets:
    """Compiles versions of scenarios once, and keeps those that were used last.

    Args:
        document: finds the specification of a version by its hash.
    """

    def __init__(self, document: Callable[[str], Awaitable[bytes]]) -> None:
        self._document = document
        self._kept: OrderedDict[str, Ruleset] = OrderedDict()

    async def of(self, spec_hash: str, document: bytes | None = None) -> Ruleset:
        """The ruleset of a version.

        Args:
            spec_hash: names the version.
            document: its specification, when it is at hand.
        """
        if spec_hash not in self._kept:
            document = document or await self._document(spec_hash)
            program = await asyncio.to_thread(sim.load, document)
            self._kept[spec_hash] = Ruleset(program, Viewers(program.spec))
        self._kept.move_to_end(spec_hash)
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return self._kept[spec_hash]
