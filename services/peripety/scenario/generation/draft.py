"""Document under construction: applies answers, evaluates the result, and rolls back regressions.

The history of findings detects a regression: a finding that an earlier answer had fixed.
`filter_present_moves` returns the adjusted numbers that later answers have not changed.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from peripety.core.concurrency import closing
from peripety.engine.rule_text import diff_specs
from peripety.engine.schema_validation import format_pointer, parse_pointer
from peripety.engine.spec_sections import get_part_at, split_parts
from peripety.scenario.generation.evaluation import EvaluationDepth, SpecEvaluation, encode_json
from peripety.scenario.generation.merge import EVERYTHING, merge, restore_parts, scope_of_findings
from peripety.scenario.generation.model_client import Feedback
from peripety.scenario.generation.slip_correction import correct_slips
from peripety.scenario.types import DraftProposed, DraftRevised, Progress, ProgressStage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

    from peripety.engine.spec_sections import PartName
    from peripety.errors import Finding
    from peripety.scenario.generation.evaluation import SpecEvaluator
    from peripety.scenario.generation.model_client import ModelAnswer
    from peripety.scenario.types import NumberEdit, NumbersAdjusted


class FindingHistory:
    """History of fixed findings.

    Two findings are the same if they have the same code and the same part, wherever the part is.
    """

    def __init__(self) -> None:
        self._fixed: set[tuple[str, PartName]] = set()
        self._slips: set[tuple[str, str]] = set()
        self._fixed_slips: set[tuple[str, str]] = set()

    def record(self, before: SpecEvaluation, after: SpecEvaluation) -> None:
        """Record the findings of a document that its successor has fixed.

        A finding counts as fixed only if the evaluation of the successor would have found it.
        """
        got_past = not after.errors or after.depth > before.depth
        is_level = after.depth is before.depth
        self._fixed |= {
            (code, name)
            for code, name in before.error_keys() - after.error_keys()
            if got_past or (is_level and after.would_have_found(code))
        }

    def find_regressions(self, judgement: SpecEvaluation) -> tuple[PartName, ...]:
        """Return the parts of a document with a finding that was fixed before."""
        return tuple(sorted({name for code, name in judgement.error_keys() if (code, name) in self._fixed}))

    def filter_new_slips(self, slips: Sequence[Finding]) -> tuple[Finding, ...]:
        """Return the slips of an answer that no earlier answer has made and fixed.

        A slip is not in any document, so there is nothing to undo.
        """
        now = {(slip.code, slip.path) for slip in slips}
        self._fixed_slips |= self._slips - now
        self._slips = now
        return tuple(slip for slip in slips if (slip.code, slip.path) not in self._fixed_slips)


def filter_present_moves(
    moved: Iterable[NumberEdit],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> tuple[NumberEdit, ...]:
    """Return the moves of a document that are still present in its successor, with their new paths.

    Args:
        moved: the moved numbers.
        before: the document.
        after: its successor. A number with another value was rewritten, and no longer counts as moved.
    """
    present = {part.name: part for part in split_parts(after)}
    still = []
    for edit in moved:
        was = get_part_at(before, edit.path)
        now = present.get(was.name) if was else None
        if was and now:
            inside = parse_pointer(edit.path)[len(parse_pointer(was.path)) :]
            if _value_at(now.value, inside) == edit.after:
                still.append(replace(edit, path=now.path + format_pointer(inside)))
    return tuple(still)


def _value_at(value: Any, place: Iterable[str]) -> Any:
    """Return the value at a path; None if it does not exist."""
    for segment in place:
        if isinstance(value, dict):
            value = value.get(segment)
        elif isinstance(value, list) and segment.isdecimal() and int(segment) < len(value):
            value = value[int(segment)]
        else:
            return None
    return value


_WHOLE_DOCUMENT = ("",)
_MAX_LISTED = 3


class SpecDraft:
    """Document under construction, from answer to answer.

    Args:
        evaluator: the evaluator.
        document: the initial document; empty for a new one.
        fixed: top-level members that an answer cannot change.
        defaults: top-level members of a document whose answers have none.

    Attributes:
        document: the present document.
        evaluation: its evaluation; None before the first answer.
        slips: findings of the last answer that are not in the document.
        feedback: feedback for the model about that answer.
        is_accepted: True after `accept`.
    """

    def __init__(
        self,
        evaluator: SpecEvaluator,
        document: Mapping[str, Any],
        fixed: Mapping[str, Any],
        defaults: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self._evaluator = evaluator
        self._fixed = fixed
        self._defaults = defaults
        self._history = FindingHistory()
        self._scope = EVERYTHING
        self._evaluations: list[SpecEvaluation] = []
        self._passed: tuple[SpecEvaluation, tuple[Finding, ...]] | None = None
        self.document: Mapping[str, Any] = document
        self.evaluation: SpecEvaluation | None = None
        self.slips: tuple[Finding, ...] = ()
        self.feedback = Feedback((), document)
        self.is_accepted = False

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return all findings of the last answer, errors first."""
        return (*self.slips, *(self.evaluation.findings if self.evaluation else ()))

    @property
    def best(self) -> SpecEvaluation | None:
        """Return the evaluation of the best document so far, the latest of equally good ones."""
        return max(reversed(self._evaluations), key=lambda one: one.quality, default=None)

    @property
    def has_passed(self) -> bool:
        """Return True if any document has passed."""
        return self._passed is not None

    @property
    def is_passed(self) -> bool:
        """Return True if the present document is the one that `rollback` returns to."""
        return self._passed is not None and self.evaluation is self._passed[0]

    def accept(self) -> None:
        """Accept the present document, which has passed.

        Another one then replaces it only if it passes, too, with at most as many findings.
        """
        self.is_accepted = True
        self.feedback = replace(self.feedback, is_accepted=True)

    async def apply_answer(
        self,
        answer: ModelAnswer,
    ) -> AsyncIterator[Progress | DraftProposed | DraftRevised | NumbersAdjusted]:
        """Apply an answer, a JSON object, to the document, and evaluate the result.

        Yields:
            The proposal of the answer, a correction of it, progress as a fraction of this work, and
            moved numbers.

        Raises:
            ResourceExhaustedError: dry-runs exceed the deadline of the caller.
        """
        was, before = self.document, self.evaluation
        merged = merge(was, self._with_fixed_members(answer.value), self._scope)
        written = {**self._defaults, **merged.document, **self._fixed}
        derived = correct_slips(written, was)
        judgement, undone = await self._evaluate_without_regressions(derived)
        remarks = _describe_rollbacks(merged.left_out, undone)
        for event in (
            *_list_proposal_events(answer, was, written, derived, judgement.document),
            *(Progress(ProgressStage.REPAIRING, message, 0.0) for message in remarks),
        ):
            yield event
        is_new = judgement not in self._evaluations
        if is_new and before is not None:
            moved = filter_present_moves(before.edits, was, judgement.document)
            judgement = replace(judgement, edits=moved)
        if is_new and not judgement.errors:
            async with closing(self._evaluator.evaluate_in_simulation(judgement)) as steps:
                async for step in steps:
                    if isinstance(step, SpecEvaluation):
                        judgement = step
                    else:
                        yield step
            if self._history.find_regressions(judgement):
                sound = self._last_at_depth(judgement.depth)
                edits = diff_specs(judgement.document, sound.document)
                judgement, undone = sound, _WHOLE_DOCUMENT
                yield DraftRevised(encode_json(sound.document), answer.number, edits)
                for message in _describe_rollbacks((), undone):
                    yield Progress(ProgressStage.REPAIRING, message, 1.0)
        if before is not None:
            self._history.record(before, judgement)
        self._evaluations.append(judgement)
        self.document, self.evaluation = judgement.document, judgement
        slips = self._history.filter_new_slips(merged.findings)
        self.slips = (*(answer.findings if answer.is_truncated else ()), *slips)
        # The cause of a finding about rules can be in another part, and after a rollback others may need a
        # change, too.
        is_open = judgement.depth > EvaluationDepth.FORM or undone == _WHOLE_DOCUMENT
        self._scope = EVERYTHING if is_open else scope_of_findings(self.document, self.findings)
        if not judgement.errors and not (self.is_accepted and self._has_more_findings_than_passed()):
            self._passed = judgement, self.slips
        left_out = (*merged.left_out, *(slip.path for slip in merged.findings if slip not in slips))
        self.feedback = Feedback(
            self.findings,
            self.document,
            left_out,
            undone,
            judgement.edits,
            judgement.figures,
            judgement.trials,
        )

    def rollback(self, number: int) -> Iterator[DraftRevised]:
        """Roll back to the last document that passed, unless the present one has.

        Args:
            number: the number of the answer of the present document.

        Yields:
            The resulting change.
        """
        if self._passed is None:
            return
        if self.is_passed:
            self.slips = self._passed[1]
            return
        edits = diff_specs(self.document, self._passed[0].document)
        self.evaluation, self.slips = self._passed
        self.document = self.evaluation.document
        yield DraftRevised(encode_json(self.document), number, edits)

    def _has_more_findings_than_passed(self) -> bool:
        """Return True if the present document has more findings than the last one that passed."""
        passed, slips = self._passed or (None, ())
        return passed is not None and len(self.findings) > len(slips) + len(passed.findings)

    def _with_fixed_members(self, value: Any) -> Any:
        """Return an answer with the fixed members."""
        return {**value, **self._fixed} if isinstance(value, dict) else value

    async def _evaluate_without_regressions(
        self,
        document: dict[str, Any],
    ) -> tuple[SpecEvaluation, tuple[str, ...]]:
        """Evaluate a document statically, after rolling back parts with regressions.

        Returns:
            The evaluation, and the pointers of the parts that were rolled back.
        """
        judgement = await self._evaluation_of(document)
        relapses = self._history.find_regressions(judgement)
        if not relapses:
            return judgement, ()
        sound = self._last_at_depth(judgement.depth)
        partly = await self._evaluation_of(restore_parts(document, sound.document, relapses))
        if not self._history.find_regressions(partly):
            return partly, tuple(map(format_pointer, relapses))
        return sound, _WHOLE_DOCUMENT

    async def _evaluation_of(self, document: dict[str, Any]) -> SpecEvaluation:
        """Return the previous evaluation of a document, or evaluate it statically."""
        judged = (judgement for judgement in reversed(self._evaluations) if judgement.document == document)
        return next(judged, None) or await self._evaluator.evaluate_statically(document)

    def _last_at_depth(self, depth: EvaluationDepth) -> SpecEvaluation:
        """Return the last evaluation of at least a depth, which has missed no finding up to there."""
        latest = reversed(self._evaluations)
        return next((judgement for judgement in latest if judgement.depth >= depth), self._evaluations[-1])


def _list_proposal_events(
    answer: ModelAnswer,
    was: Mapping[str, Any],
    written: Mapping[str, Any],
    derived: Mapping[str, Any],
    now: Mapping[str, Any],
) -> Iterator[DraftProposed | DraftRevised]:
    """Yield the answer as it was written, if something in it was corrected, and the document after it."""
    is_right = derived == written
    first = now if is_right else written
    if not was:
        yield DraftProposed(encode_json(answer.value), answer.number, answer.spent)
    else:
        yield DraftRevised(encode_json(first), answer.number, diff_specs(was, first), answer.spent)
    if not is_right:
        yield DraftRevised(encode_json(now), answer.number, diff_specs(written, now))


def _describe_rollbacks(left_out: Sequence[str], undone: Sequence[str]) -> list[str]:
    remarks = []
    if left_out:
        remarks.append(
            f"ignored {_count_changes(left_out)} of parts without findings: {_list_paths(left_out)}",
        )
    if undone == _WHOLE_DOCUMENT:
        remarks.append("rolled back the answer, because a fixed finding was back")
    elif undone:
        what = f"{_count_changes(undone)}, because a fixed finding was back"
        remarks.append(f"rolled back {what}: {_list_paths(undone)}")
    return remarks


def _count_changes(paths: Sequence[str]) -> str:
    return "1 change" if len(paths) == 1 else f"{len(paths)} changes"


def _list_paths(paths: Sequence[str]) -> str:
    more = ", …" if len(paths) > _MAX_LISTED else ""
    return ", ".join(paths[:_MAX_LISTED]) + more
