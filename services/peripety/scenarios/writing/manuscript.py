"""Document under construction: applies answers, evaluates the result, and rolls back regressions."""

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
    """Document under construction, from answer to answer.

    Args:
        judge: the evaluator.
        document: the initial document; empty for a new one.
        fixed: top-level members that an answer cannot change.

    Attributes:
        document: the present document.
        judgement: its evaluation; None before the first answer.
        slips: findings of the last answer that are not in the document.
        reply: feedback for the model about that answer.
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
        """Return all findings of the last answer, errors first."""
        return (*self.slips, *(self.judgement.findings if self.judgement else ()))

    @property
    def has_passed(self) -> bool:
        """Return True if any document has passed."""
        return self._passed is not None

    async def take(self, answer: Answer) -> AsyncIterator[Progress | Draft | Rewritten | NumbersMoved]:
        """Apply an answer, a JSON object, to the document, and evaluate the result.

        Yields:
            The proposal of the answer, progress as a fraction of this work, and moved numbers.

        Raises:
            ResourceExhaustedError: dry-runs exceed the deadline of the caller.
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
        # In simulation any part can affect any other, and after a rollback other parts may need a change,
        # too.
        is_open = judgement.depth > Depth.RULES or undone == _WHOLE
        self._scope = EVERYTHING if is_open else scope_of(self.document, self._errors())
        if not judgement.errors:
            self._passed = judgement, self.slips
        left_out = (*merged.left_out, *(slip.path for slip in merged.findings if slip not in slips))
        self.reply = Reply(self.findings, self.document, left_out, undone, judgement.edits)

    def go_back(self, number: int) -> Iterator[Rewritten]:
        """Roll back to the last document that passed, unless the present one has.

        Args:
            number: the number of the answer of the present document.

        Yields:
            The resulting change.
        """
        if self._passed is None or self.judgement is self._passed[0]:
            return
        edits = rule_edits(self.document, self._passed[0].document)
        self.judgement, self.slips = self._passed
        self.document = self.judgement.document
        yield Rewritten(as_json(self.document), number, edits)

    def _with_fixed(self, value: Any) -> Any:
        """Return an answer with the fixed members."""
        return {**value, **self._fixed} if isinstance(value, dict) else value

    def _errors(self) -> Sequence[Finding]:
        return (*self.slips, *(self.judgement.errors if self.judgement else ()))

    async def _checked(self, document: dict[str, Any]) -> tuple[Judgement, tuple[str, ...]]:
        """Evaluate a document statically, after rolling back parts with regressions.

        Returns:
            The evaluation, and the pointers of the parts that were rolled back.
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
        """Return the previous evaluation of a document, or evaluate it statically."""
        judged = (judgement for judgement in reversed(self._judgements) if judgement.document == document)
        return next(judged, None) or await self._judge.check(document)

    def _sound(self, depth: Depth) -> Judgement:
        """Return the last evaluation of at least a depth, which has missed no finding up to there."""
        latest = reversed(self._judgements)
        return next((judgement for judgement in latest if judgement.depth >= depth), self._judgements[-1])


def _proposal(answer: Answer, was: Mapping[str, Any], now: Mapping[str, Any]) -> Draft | Rewritten:
    if not was:
        return Draft(as_json(answer.value), answer.number, answer.spent)
    return Rewritten(as_json(now), answer.number, rule_edits(was, now), answer.spent)


def _remarks(left_out: Sequence[str], undone: Sequence[str]) -> list[str]:
    remarks = []
    if left_out:
        remarks.append(f"ignored {_changes(left_out)} of parts without findings: {_listed(left_out)}")
    if undone == _WHOLE:
        remarks.append("rolled back the answer, because a fixed finding was back")
    elif undone:
        what = f"{_changes(undone)}, because a fixed finding was back"
        remarks.append(f"rolled back {what}: {_listed(undone)}")
    return remarks


def _changes(paths: Sequence[str]) -> str:
    return "1 change" if len(paths) == 1 else f"{len(paths)} changes"


def _listed(paths: Sequence[str]) -> str:
    more = ", …" if len(paths) > _MOST_NAMED else ""
    return ", ".join(paths[:_MOST_NAMED]) + more
