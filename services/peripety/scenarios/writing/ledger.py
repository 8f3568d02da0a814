"""History of findings during a generation, for the detection of regressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.errors import Finding
    from peripety.scenarios.parts import Name
    from peripety.scenarios.writing.judging import Judgement

__all__ = ["Ledger"]


class Ledger:
    """History of fixed findings.

    Two findings are the same if they have the same code and the same part, wherever the part is.
    """

    def __init__(self) -> None:
        self._mended: set[tuple[str, Name]] = set()
        self._slips: set[tuple[str, str]] = set()
        self._mended_slips: set[tuple[str, str]] = set()

    def note(self, before: Judgement, after: Judgement) -> None:
        """Record the findings of a document that its successor has fixed.

        A finding counts as fixed only if the evaluation of the successor would have found it.
        """
        got_past = not after.errors or after.depth > before.depth
        is_level = after.depth is before.depth
        self._mended |= {
            (code, name)
            for code, name in before.marks() - after.marks()
            if got_past or (is_level and after.has_looked_for(code))
        }

    def relapses(self, judgement: Judgement) -> tuple[Name, ...]:
        """Return the parts of a document with a finding that was fixed before."""
        return tuple(sorted({name for code, name in judgement.marks() if (code, name) in self._mended}))

    def fresh(self, slips: Sequence[Finding]) -> tuple[Finding, ...]:
        """Return the slips of an answer that no earlier answer has made and fixed.

        A slip is not in any document, so there is nothing to undo.
        """
        now = {(slip.code, slip.path) for slip in slips}
        self._mended_slips |= self._slips - now
        self._slips = now
        return tuple(slip for slip in slips if (slip.code, slip.path) not in self._mended_slips)
