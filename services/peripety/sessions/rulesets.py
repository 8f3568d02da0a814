"""Compiled programs of the scenarios that sessions play."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from peripety.sessions.visibility import Viewers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from peripety.scenarios.programs import Programs
    from peripety.sim import Program

__all__ = ["Ruleset", "Rulesets"]


@dataclass(frozen=True, slots=True)
class Ruleset:
    """One version of a scenario: its program and its views."""

    program: Program
    viewers: Viewers

    @property
    def spec(self) -> Mapping[str, Any]:
        """The specification."""
        return self.program.spec


class Rulesets:
    """Rulesets by version; the views are computed once per compiled program in the cache.

    Args:
        document: loads the specification of a version by its hash.
        programs: cache of compiled programs.
    """

    def __init__(self, document: Callable[[str], Awaitable[bytes]], programs: Programs) -> None:
        self._document = document
        self._programs = programs
        self._viewers: WeakKeyDictionary[Program, Viewers] = WeakKeyDictionary()

    async def of(self, spec_hash: str, document: bytes | None = None) -> Ruleset:
        """Return the ruleset of a version.

        Args:
            spec_hash: hash of the version.
            document: its specification, if already loaded.
        """
        program = self._programs.kept(spec_hash)
        if program is None:
            program = await self._programs.of(spec_hash, document or await self._document(spec_hash))
        viewers = self._viewers.get(program)
        if viewers is None:
            viewers = self._viewers[program] = Viewers(program.spec)
        return Ruleset(program, viewers)
