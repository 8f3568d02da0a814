"""Generation loop: a model proposes parts of a document, and findings are its next request.

The loop is counterexample-guided repair. The model is never trusted: whatever it writes, only a document that
passes the requested level (schema, rules, proofs, difficulty gate, certificate) leaves the loop. Amendment
uses the same loop with the present version as the initial document. Design and invariants:

- Constant prefix. Every request of the conversation has the same system prompt and the same schema, so the
  provider's prompt cache matches from the second request on. The schema of an answer is that of a
  specification without required parts. So one schema serves the first draft and every repair.
- Partial answers. An answer replaces only the parts that it contains. Parts are matched by name, not by
  position as in a JSON patch, so an answer stays valid if entries have moved.
- Scope. Before a document can be simulated, an answer may change only parts with findings, and add new ones.
  Findings of a simulation open the whole document, because there any part can affect any other.
- No regressions. A finding that was fixed stays fixed. If an answer brings it back, its part is restored; if
  that is not enough, the whole document is. Without this rule, repair can oscillate between two errors.
- Numbers belong to the engine. If only the budget is missed, the engine moves numbers itself and reports the
  moves. A request for each step of such a search would use up the order.
- Failure is cheap. Truncated answers are salvaged: complete members are used. The last document that passed
  is never lost: if a later answer fails or the provider raises an error, the loop rolls back to it.

The loop ends when the document passes and the last answer has no slips. It also ends at a limit of the order,
and after two answers in a row without any part of a document. After the last case the caller prompts part by
part, by an outline.

The schema is advisory. An invalid answer is therefore returned with its findings, which the next request
contains, instead of an error of the gateway.
"""

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
"""Events of the loop."""

# After two answers in a row without any part of a document, a third one is unlikely to have one.
_MOST_VAIN_ANSWERS = 2
_CUT_OFF = frozenset({"TRUNCATED", "CUT_OFF"})


class Writer:
    """Repair loop of one document, new or present, in a conversation with a model.

    Args:
        asker: sends the requests, and counts their usage.
        conversation: the conversation; its system prompt is `prompts/generate.md`.
        manuscript: the document.

    Attributes:
        answer: the last answer with a part of a document; None before one.
        is_done: True if the document passed.
        findings: the findings, errors first.
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
        """Send a request, then the findings as the next one, until the document passes or a limit is met.

        Yields:
            Progress, the proposal of each answer, moved numbers, and findings.

        Raises:
            PeripetyError: a request failed, before any document has passed.
            ResourceExhaustedError: dry-runs exceed the deadline of the caller.
        """
        try:
            async with following(self._talk(question)) as events:
                async for event in events:
                    yield event
        except PeripetyError as error:
            if not self._manuscript.has_passed:
                raise
            yield self._asker.progress(
                Stage.REPAIRING, f"returning the last document that passed: {error.message}"
            )
        for rewritten in self._manuscript.go_back(self._asker.answers):
            yield rewritten
        judgement = self._manuscript.judgement
        if judgement is not None and not judgement.errors:
            # Slips of the last answer are only warnings, because no further request is possible.
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
            yield self._asker.progress(Stage.REPAIRING, "requesting a repair", share=1.0)
            question = reply.message()

    async def _taken(self, answer: Answer) -> AsyncIterator[WritingEvent]:
        async with following(self._manuscript.take(answer)) as steps:
            async for step in steps:
                yield self._asker.judging(step) if isinstance(step, Progress) else step
        self.answer, self.findings = answer, self._manuscript.findings

    def _is_enough(self) -> bool:
        """Return True if the document passed, and no slip is left for another request."""
        judgement, slips = self._manuscript.judgement, self._manuscript.slips
        has_passed = judgement is not None and not judgement.errors
        return has_passed and (not slips or self._asker.used_up() is not None)


def _salvaged(answer: Answer) -> Answer:
    """Return a truncated answer with its complete members as its value."""
    if answer.value is not None or not _CUT_OFF.intersection(finding.code for finding in answer.findings):
        return answer
    value = whole_members(answer.completion.text, (*SECTIONS, *DIVIDED))
    return replace(answer, value=value, is_cut=True)
