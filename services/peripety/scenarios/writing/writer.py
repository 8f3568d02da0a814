"""The loop: a model says parts of a document, the engine says what is wrong with it, until nothing is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from peripety.errors import PeripetyError, Severity
from peripety.gateway.model import ResponseSchema
from peripety.gateway.objects.salvaging import whole_members
from peripety.gateway.streams import following
from peripety.scenarios.model import Draft, FoundWrong, NumbersMoved, Progress, Rewritten, Stage
from peripety.scenarios.parts import DIVIDED, SECTIONS
from peripety.scenarios.writing.merging import answer_schema
from peripety.scenarios.writing.reply import Reply
from peripety.sim.schemas import SCENARIO_SPEC

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from typing import Any

    from peripety.errors import Finding
    from peripety.gateway.conversations import Conversation
    from peripety.scenarios.writing.asking import Answer, Asker
    from peripety.scenarios.writing.manuscript import Manuscript

__all__ = ["Writer", "WritingEvent"]

WritingEvent: TypeAlias = Progress | Draft | FoundWrong | Rewritten | NumbersMoved
"""What happens while a document is written."""

# A model that writes nothing of a document, twice in a row, will not do so the third time.
_MOST_VAIN_ANSWERS = 2
_CUT_OFF = frozenset({"TRUNCATED", "CUT_OFF"})


class Writer:
    """Writes one document, or changes one that is there, in a conversation with a model.

    Every question has the same system text and the same schema, so that the provider's prompt cache keeps
    matching.

    Args:
        asker: puts the questions, and counts what they use.
        conversation: with whom; its system text is `prompts/generate.md`.
        manuscript: the document.

    Attributes:
        answer: the last answer with something of a document; None until there is one.
        is_done: whether the document passed.
        findings: what is wrong, or remains to be said, errors first.
    """

    def __init__(self, asker: Asker, conversation: Conversation, manuscript: Manuscript) -> None:
        self._asker = asker
        self._conversation = conversation
        self._manuscript = manuscript
        self._schema = ResponseSchema(SCENARIO_SPEC, answer_schema(), advisory=True)
        self.answer: Answer | None = None
        self.is_done = False
        self.findings: tuple[Finding, ...] = ()

    async def events(self, question: Mapping[str, Any]) -> AsyncIterator[WritingEvent]:
        """Ask, and ask again with what is wrong, until the document passes or nothing is left to ask with.

        Yields:
            Progress, what each answer proposes, numbers that moved, and what is wrong with it all.

        Raises:
            PeripetyError: as `Asker.ask`, as long as no document has passed.
            ResourceExhaustedError: dry-runs take longer than the caller waits.
        """
        try:
            async with following(self._talk(question)) as events:
                async for event in events:
                    yield event
        except PeripetyError as error:
            if not self._manuscript.has_passed:
                raise
            yield self._asker.progress(Stage.REPAIRING, f"keeping what passed: {error.message}")
        for rewritten in self._manuscript.go_back(self._asker.answers):
            yield rewritten
        judgement = self._manuscript.judgement
        if judgement is not None and not judgement.errors:
            # What its last answer lacks was asked for as long as that was possible.
            slips = (replace(slip, severity=Severity.WARNING) for slip in self._manuscript.slips)
            self.is_done, self.findings = True, (*slips, *judgement.findings)

    async def _talk(self, question: Mapping[str, Any]) -> AsyncIterator[WritingEvent]:
        vain = 0
        while True:
            async with following(self._asker.ask(self._conversation, question, self._schema)) as steps:
                async for step in steps:
                    yield step
            if self._asker.answer is None:
                failure = self._asker.failure
                if failure is not None and self._asker.used_up() is None:
                    self.findings = (*self.findings, failure)
                    yield FoundWrong((failure,))
                return
            answer = _salvaged(self._asker.answer)
            if isinstance(answer.value, dict):
                vain = 0
                async with following(self._taken(answer)) as events:
                    async for event in events:
                        yield event
                reply = self._manuscript.reply
                if self._is_enough():
                    return
            else:
                vain += 1
                self.findings = (*answer.findings, *self._manuscript.findings)
                reply = Reply(self.findings, self._manuscript.document)
            yield FoundWrong(self.findings)
            if vain == _MOST_VAIN_ANSWERS or self._asker.used_up() is not None:
                return
            yield self._asker.progress(Stage.REPAIRING, "asking again with what is wrong", share=1.0)
            question = reply.message()

    async def _taken(self, answer: Answer) -> AsyncIterator[WritingEvent]:
        async with following(self._manuscript.take(answer)) as steps:
            async for step in steps:
                yield self._asker.judging(step) if isinstance(step, Progress) else step
        self.answer, self.findings = answer, self._manuscript.findings

    def _is_enough(self) -> bool:
        """Whether the document passed, and nothing is missing in it that may be asked for."""
        judgement, slips = self._manuscript.judgement, self._manuscript.slips
        has_passed = judgement is not None and not judgement.errors
        return has_passed and (not slips or self._asker.used_up() is not None)


def _salvaged(answer: Answer) -> Answer:
    """An answer that was cut off, with what is whole of it as its value."""
    if answer.value is not None or not _CUT_OFF.intersection(finding.code for finding in answer.findings):
        return answer
    value = whole_members(answer.completion.text, (*SECTIONS, *DIVIDED))
    return replace(answer, value=value, is_cut=True)
