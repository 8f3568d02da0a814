"""What was found while a document was written, so that what was mended stays mended."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peripety.scenarios.parts import Name
    from peripety.scenarios.writing.judging import Judgement

__all__ = ["Ledger"]


class Ledger:
    """Remembers what was wrong and no longer is.

    A finding is the same again when it has the same code and is about the same part, wherever that stands.
    """

    def __init__(self) -> None:
        self._mended: set[tuple[str, Name]] = set()

    def note(self, before: Judgement, after: Judgement) -> None:
        """Remember what was wrong with a document, and is not with the one after it.

        As far as the one after was not looked into, nothing is known to be mended.
        """
        got_past = not after.errors or after.depth > before.depth
        if got_past or (after.depth is before.depth and after.is_exhaustive):
            self._mended |= before.marks() - after.marks()

    def relapses(self, judgement: Judgement) -> tuple[Name, ...]:
        """The parts of a document that are wrong in a way that was mended before."""
        return tuple(sorted({name for code, name in judgement.marks() if (code, name) in self._mended}))
