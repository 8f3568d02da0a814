"""What was found while a document was written, so that what was mended stays mended."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.errors import Finding
    from peripety.scenarios.parts import Name
    from peripety.scenarios.writing.judging import Judgement

__all__ = ["Ledger"]


class Ledger:
    """Remembers what was wrong and no longer is.

    A finding is the same again when it has the same code and is about the same part, wherever that stands.
    """

    def __init__(self) -> None:
        self._mended: set[tuple[str, Name]] = set()
        self._slips: set[tuple[str, str]] = set()
        self._mended_slips: set[tuple[str, str]] = set()

    def note(self, before: Judgement, after: Judgement) -> None:
        """Remember what was wrong with a document, and is not with the one after it.

        As far as the one after was not looked into, nothing is known to be mended.
        """
        got_past = not after.errors or after.depth > before.depth
        is_level = after.depth is before.depth
        self._mended |= {
            (code, name)
            for code, name in before.marks() - after.marks()
            if got_past or (is_level and after.has_looked_for(code))
        }

    def relapses(self, judgement: Judgement) -> tuple[Name, ...]:
        """The parts of a document that are wrong in a way that was mended before."""
        return tuple(sorted({name for code, name in judgement.marks() if (code, name) in self._mended}))

    def fresh(self, slips: Sequence[Finding]) -> tuple[Finding, ...]:
        """The slips of an answer without those that an earlier answer made, and one after that did not.

        What they are about came into no document, so there is nothing to undo.
        """
        now = {(slip.code, slip.path) for slip in slips}
        self._mended_slips |= self._slips - now
        self._slips = now
        return tuple(slip for slip in slips if (slip.code, slip.path) not in self._mended_slips)
