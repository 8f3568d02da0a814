"""A document under way: answers are put into it, judged, and undone where they do harm."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.gateway.streams import following
from peripety.scenarios.diff import rule_edits
from peripety.scenarios.model import Draft, Progress, Rewritten, Stage
from peripety.scenarios.writing.judging import Depth, Judgement, as_json
from peripety.scenarios.writing.ledger import Ledger
from peripety.scenarios.writing.merging import merge, restored
from peripety.scenarios.writing.moves import still_moved
from peripety.scenarios.writing.reply import Reply
from peripety.scenarios.writing.scope import EVERYTHING, scope_of
from peripety.sim.schema import pointer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from peripety.errors import Finding
    from peripety.scenarios.model import NumbersMoved
    from peripety.scenarios.writing.asking import Answer
    from peripety.scenarios.writing.judging import Judge

__all__ = ["Manuscript"]

_WHOLE = ("",)
_MOST_NAMED = 3


class Manuscript:
    """One document, from answer to answer.

    Args:
        judge: says what is wrong with it.
        document: what there is; empty at first.
        fixed: what stands at its top, whatever an answer says.

    Attributes:
        document: what there is now.
        judgement: what is wrong with that; None before the first answer.
        slips: what is wrong with the last answer and not to be seen in the document.
        reply: what to tell the model about that answer.
    """

    def __init__(self, judge: Judge, document: Mapping[str, Any], fixed: Mapping[str, Any]) -> None:
        self._judge = judge
        self._fixed = fixed
        self._ledger = Ledger()
        self._scope = EVERYTHING
        self._judgements: list[Judgement] = []
        self._passed: tuple[Judgement, tuple[Finding, ...]] | None = None
        self.document: Mapping[str, Any] = document
        self.judgement: Judgement | None = None
        self.slips: tuple[Finding, ...] = ()
        self.reply = Reply((), document)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All that is to be said after the last answer, errors first."""
        return (*self.slips, *(self.judgement.findings if self.judgement else ()))

    @property
    def has_passed(self) -> bool:
        """Whether there was a document that passed."""
        return self._passed is not None

    async def take(self, answer: Answer) -> AsyncIterator[Progress | Draft | Rewritten | NumbersMoved]:
        """Put an answer that is a JSON object into the document, and find out what it is worth.

        Yields:
            What the answer proposes, progress whose fraction is that of this work, and numbers that moved.

        Raises:
            ResourceExhaustedError: dry-runs take longer than the caller waits.
        """
        was, before = self.document, self.judgement
        merged = merge(was, self._with_fixed(answer.value), self._scope)
        judgement, undone = await self._checked({**merged.document, **self._fixed})
        yield _proposal(answer, was, judgement.document)
        for message in _remarks(merged.left_out, undone):
            yield Progress(Stage.REPAIRING, message, 0.0)
        is_new = judgement not in self._judgements
        if is_new and before is not None:
            moved = still_moved(before.edits, was, judgement.document)
            judgement = replace(judgement, edits=moved)
        if is_new and not judgement.errors:
            async with following(self._judge.play(judgement)) as steps:
                async for step in steps:
                    if isinstance(step, Judgement):
                        judgement = step
                    else:
                        yield step
            if self._ledger.relapses(judgement):
                sound = self._sound(judgement.depth)
                edits = rule_edits(judgement.document, sound.document)
                judgement, undone = sound, _WHOLE
                yield Rewritten(as_json(sound.document), answer.number, edits)
                for message in _remarks((), undone):
                    yield Progress(Stage.REPAIRING, message, 1.0)
        if before is not None:
            self._ledger.note(before, judgement)
        self._judgements.append(judgement)
        self.document, self.judgement = judgement.document, judgement
        slips = self._ledger.fresh(merged.findings)
        self.slips = (*(answer.findings if answer.is_cut else ()), *slips)
        # In play everything bears on everything, and what was undone may need other parts to change as well.
        is_open = judgement.depth > Depth.RULES or undone == _WHOLE
        self._scope = EVERYTHING if is_open else scope_of(self.document, self._errors())
        if not judgement.errors:
            self._passed = judgement, self.slips
        left_out = (*merged.left_out, *(slip.path for slip in merged.findings if slip not in slips))
        self.reply = Reply(self.findings, self.document, left_out, undone, judgement.edits)

    def go_back(self, number: int) -> Iterator[Rewritten]:
        """Go back to the last document that passed, where the present one does not.

        Args:
            number: which answer the present one came of.

        Yields:
            What that changes.
        """
        if self._passed is None or self.judgement is self._passed[0]:
            return
        edits = rule_edits(self.document, self._passed[0].document)
        self.judgement, self.slips = self._passed
        self.document = self.judgement.document
        yield Rewritten(as_json(self.document), number, edits)

    def _with_fixed(self, value: Any) -> Any:
        """An answer that agrees with what is not the model's to say."""
        return {**value, **self._fixed} if isinstance(value, dict) else value

    def _errors(self) -> Sequence[Finding]:
        return (*self.slips, *(self.judgement.errors if self.judgement else ()))

    async def _checked(self, document: dict[str, Any]) -> tuple[Judgement, tuple[str, ...]]:
        """What is wrong with a document before play, without parts that make wrong again what was mended.

        Returns:
            The judgement, and what was undone.
        """
        judgement = await self._judgement_of(document)
        relapses = self._ledger.relapses(judgement)
        if not relapses:
            return judgement, ()
        sound = self._sound(judgement.depth)
        partly = await self._judgement_of(restored(document, sound.document, relapses))
        if not self._ledger.relapses(partly):
            return partly, tuple(map(pointer, relapses))
        return sound, _WHOLE

    async def _judgement_of(self, document: dict[str, Any]) -> Judgement:
        """What is wrong with a document: as far as it got, if it was judged already, else before play."""
        judged = (judgement for judgement in reversed(self._judgements) if judgement.document == document)
        return next(judged, None) or await self._judge.check(document)

    def _sound(self, depth: Depth) -> Judgement:
        """The last judgement that got as far, so that nothing wrong up to there was overlooked in it."""
        latest = reversed(self._judgements)
        return next((judgement for judgement in latest if judgement.depth >= depth), self._judgements[-1])


def _proposal(answer: Answer, was: Mapping[str, Any], now: Mapping[str, Any]) -> Draft | Rewritten:
    if not was:
        return Draft(as_json(answer.value), answer.number, answer.spent)
    return Rewritten(as_json(now), answer.number, rule_edits(was, now), answer.spent)


def _remarks(left_out: Sequence[str], undone: Sequence[str]) -> list[str]:
    remarks = []
    if left_out:
        remarks.append(f"left out {_changes(left_out)} where nothing was wrong: {_listed(left_out)}")
    if undone == _WHOLE:
        remarks.append("undid the answer, after which what had been mended was wrong again")
    elif undone:
        what = f"{_changes(undone)} after which what had been mended was wrong again"
        remarks.append(f"undid {what}: {_listed(undone)}")
    return remarks


def _changes(paths: Sequence[str]) -> str:
    return "1 change" if len(paths) == 1 else f"{len(paths)} changes"


def _listed(paths: Sequence[str]) -> str:
    more = ", …" if len(paths) > _MOST_NAMED else ""
    return ", ".join(paths[:_MOST_NAMED]) + more
