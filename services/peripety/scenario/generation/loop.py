"""Generation loop: a model proposes parts of a document, and findings are its next request.

A model first writes a whole specification, and then repairs it after findings. If its answers contain no
part of a document, or the request is too large, it is prompted part by part, by an outline, and rules
derive the numbers.

The loop is counterexample-guided repair. The model is never trusted: whatever it writes, only a document
that passes the requested level (schema, rules, proofs, difficulty gate, certificate) leaves the loop.
Amendment uses the same loop with the present version as the initial document. Design and invariants:

- Constant prefix. Every request of the conversation has the same system prompt and the same schema, so the
  provider's prompt cache matches from the second request on. The schema of an answer is that of a
  specification without required parts. So one schema serves the first draft and every repair.
- Partial answers. An answer replaces only the parts that it contains. Parts are matched by name, not by
  position as in a JSON patch, so an answer stays valid if entries have moved.
- Scope. Before a document can be simulated, an answer may change only parts with findings, and add new
  ones. Findings of a simulation open the whole document, because there any part can affect any other.
- No regressions. A finding that was fixed stays fixed. If an answer brings it back, its part is restored;
  if that is not enough, the whole document is. Without this rule, repair can oscillate between two errors.
- Numbers belong to the engine. If only the budget is missed, the engine moves numbers itself and reports
  the moves. A request for each step of such a search would use up the order.
- Failure is cheap. Truncated answers are salvaged: complete members are used. The last document that passed
  is never lost: if a later answer fails or the provider raises an error, the loop rolls back to it.

The loop ends when the document passes and the last answer has no slips. It also ends at a limit of the
order, and after two answers in a row without any part of a document. After the last case the caller prompts
part by part, by an outline.

A new document that passes with warnings has one optional round: the model reads the warnings once, and may
improve the document. The answer counts only if it passes, too, with at most as many findings.

The schema is advisory. An invalid answer is therefore returned with its findings, which the next request
contains, instead of an error of the gateway.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from peripety.core.concurrency import closing
from peripety.core.config import ProviderName
from peripety.engine.rule_text import diff_specs
from peripety.engine.schemas import SCENARIO_SPEC
from peripety.engine.spec_sections import DIVIDED, SECTIONS
from peripety.errors import PeripetyError, Severity, filter_errors
from peripety.gateway.provider_selection import choose_provider
from peripety.gateway.structured_output.json_repair import complete_members
from peripety.gateway.types.request import ResponseSchema
from peripety.scenario.generation.draft import SpecDraft
from peripety.scenario.generation.evaluation import (
    SpecEvaluation,
    SpecEvaluator,
    encode_json,
    find_replaced_language,
    find_retained_risk,
)
from peripety.scenario.generation.merge import answer_schema
from peripety.scenario.generation.model_client import ModelClient, start_document_conversation
from peripety.scenario.outline_authoring.outline_author import OutlineAuthor
from peripety.scenario.types import (
    DraftProposed,
    DraftRevised,
    NumbersAdjusted,
    Progress,
    ProgressStage,
    SpecGenerated,
    SpecGenerationFailed,
    ValidationFailed,
    ValidationLevel,
)
from peripety.scenario.validation import validate_order

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from peripety.core.concurrency import WorkerPool
    from peripety.errors import Finding
    from peripety.gateway.conversations.conversation import Conversation
    from peripety.gateway.types.response import ModelGateway
    from peripety.scenario.generation.model_client import ModelAnswer
    from peripety.scenario.outline_authoring.outline_author import OutlineCandidate
    from peripety.scenario.types import GenerationEvent, GenerationOrder


RepairLoopEvent: TypeAlias = Progress | DraftProposed | ValidationFailed | DraftRevised | NumbersAdjusted
"""Events of the loop."""

# After two answers in a row without any part of a document, a third one is unlikely to have one.
_MAX_EMPTY_ANSWERS = 2
_CUT_OFF = frozenset({"TRUNCATED", "CUT_OFF"})


class RepairLoop:
    """Repair loop of one document, new or present, in a conversation with a model.

    Args:
        client: sends the requests, and counts their usage.
        conversation: the conversation; its system prompt is `prompts/generate.md`.
        draft: the document.
        has_optional_round: True to send the warnings of a document that passed, once.

    Attributes:
        answer: the last answer with a part of a document; None before one.
        is_done: True if the document passed.
        findings: the findings, errors first.
    """

    def __init__(
        self,
        client: ModelClient,
        conversation: Conversation,
        draft: SpecDraft,
        *,
        has_optional_round: bool = False,
    ) -> None:
        self._has_optional_round = has_optional_round
        self._client = client
        self._conversation = conversation
        self._draft = draft
        self._schema = ResponseSchema(SCENARIO_SPEC, answer_schema(), advisory=True)
        self.answer: ModelAnswer | None = None
        self.is_done = False
        self.findings: tuple[Finding, ...] = ()

    async def run(self, question: Mapping[str, Any]) -> AsyncIterator[RepairLoopEvent]:
        """Send a request, then the findings as the next one, until the document passes or a limit is met.

        Yields:
            Progress, the proposal of each answer, moved numbers, and findings.

        Raises:
            PeripetyError: a request failed, before any document has passed.
            ResourceExhaustedError: dry-runs exceed the deadline of the caller.
        """
        try:
            async with closing(self._run_rounds(question)) as events:
                async for event in events:
                    yield event
            if self._is_optional_round_due():
                async with closing(self._run_optional_round()) as events:
                    async for event in events:
                        yield event
        except PeripetyError as error:
            if not self._draft.has_passed:
                raise
            yield self._client.progress(
                ProgressStage.REPAIRING,
                f"returning the last document that passed: {error.message}",
            )
        for rewritten in self._draft.rollback(self._client.answer_count):
            yield rewritten
        judgement = self._draft.evaluation
        if judgement is not None and not judgement.errors:
            # Slips of the last answer are only warnings, because no further request is possible.
            slips = (replace(slip, severity=Severity.WARNING) for slip in self._draft.slips)
            self.is_done, self.findings = True, (*slips, *judgement.findings)

    async def _run_rounds(self, question: Mapping[str, Any]) -> AsyncIterator[RepairLoopEvent]:
        vain = 0
        while True:
            async with closing(self._client.request(self._conversation, question, self._schema)) as steps:
                async for step in steps:
                    yield step
            if self._client.answer is None:
                failure = self._client.failure
                if failure is not None and self._client.exhausted_limit() is None:
                    self.findings = (*self.findings, failure)
                    yield ValidationFailed((failure,))
                return
            answer = _salvage(self._client.answer)
            if isinstance(answer.value, dict):
                vain = 0
                async with closing(self._apply_answer(answer)) as events:
                    async for event in events:
                        yield event
                reply = self._draft.feedback
                if self._is_enough():
                    return
            else:
                vain += 1
                self.findings = (*answer.findings, *self._draft.findings)
                reply = replace(self._draft.feedback, findings=self.findings)
            yield ValidationFailed(self.findings)
            if vain == _MAX_EMPTY_ANSWERS or self._client.exhausted_limit() is not None:
                return
            yield self._client.progress(ProgressStage.REPAIRING, "requesting a repair", share=1.0)
            question = reply.render()

    async def _apply_answer(self, answer: ModelAnswer) -> AsyncIterator[RepairLoopEvent]:
        async with closing(self._draft.apply_answer(answer)) as steps:
            async for step in steps:
                yield self._client.evaluation_progress(step) if isinstance(step, Progress) else step
        self.answer, self.findings = answer, self._draft.findings

    def _is_enough(self) -> bool:
        """Return True if the document passed, and no slip is left for another request."""
        judgement, slips = self._draft.evaluation, self._draft.slips
        has_passed = judgement is not None and not judgement.errors
        return has_passed and (not slips or self._client.exhausted_limit() is not None)

    def _is_optional_round_due(self) -> bool:
        """Return True if a model may improve a document that passed with warnings."""
        return (
            self._has_optional_round
            and self._is_enough()
            and bool(self._draft.findings)
            and self._client.exhausted_limit() is None
            and self.answer is not None
            and self.answer.completion.provider != ProviderName.OFFLINE.value
        )

    async def _run_optional_round(self) -> AsyncIterator[RepairLoopEvent]:
        """Send the warnings; the accepted document stays unless the answer improves it."""
        accepted = self._draft.evaluation
        self._draft.accept()
        yield ValidationFailed(self.findings)
        yield self._client.progress(ProgressStage.REPAIRING, "accepted; one optional round", share=1.0)
        question = self._draft.feedback.render()
        async with closing(self._client.request(self._conversation, question, self._schema)) as steps:
            async for step in steps:
                yield step
        answer = self._client.answer and _salvage(self._client.answer)
        if answer is not None and isinstance(answer.value, dict):
            async with closing(self._apply_answer(answer)) as events:
                async for event in events:
                    yield event
            if self._draft.evaluation is not accepted:
                yield ValidationFailed(self.findings)
        is_better = self._draft.is_passed and self._draft.evaluation is not accepted
        message = "taking the improved document" if is_better else "keeping the accepted document"
        yield self._client.progress(ProgressStage.REPAIRING, message, share=1.0)


def _salvage(answer: ModelAnswer) -> ModelAnswer:
    """Return a truncated answer with its complete members as its value."""
    if answer.value is not None or not _CUT_OFF.intersection(finding.code for finding in answer.findings):
        return answer
    value = complete_members(answer.completion.text, (*SECTIONS, *DIVIDED))
    return replace(answer, value=value, is_truncated=True)


WRITTEN_DEFAULTS: Mapping[str, Any] = MappingProxyType({"spec_version": "1.1", "narrator_scope": []})
"""Members of a new document that its author leaves out. The narrator changes only what it was granted."""

_SEED_BYTES = 6


class ScenarioGenerator:
    """Generator of specifications.

    Args:
        gateway: the model gateway.
        provider: the default provider of an order.
        workers: pool for validation and simulation.
    """

    def __init__(self, gateway: ModelGateway, provider: ProviderName, workers: WorkerPool) -> None:
        self._workers = workers
        self._gateway = gateway
        self._provider = provider

    async def generate(self, order: GenerationOrder) -> AsyncIterator[GenerationEvent]:
        """Write a specification.

        Yields:
            Progress, drafts and findings, and `Completed` or `SpecGenerationFailed` as the last event.

        Raises:
            InvalidArgumentError: the order is out of range.
            PeripetyError: from `ModelGateway.stream`, except for invalid answers.
        """
        validate_order(order)
        writing = _Generation(self._gateway, order, self._workers)
        events = (
            writing.generate_by_outline() if self._is_weak_model(order.model) else writing.generate_whole()
        )
        async with closing(events):
            async for event in events:
                yield event

    def _is_weak_model(self, model: str | None) -> bool:
        """Return True if the model is on a generic server, where it is presumed to be weak."""
        provider, _ = choose_provider(model, self._provider)
        return provider is ProviderName.GENERIC


class _Generation:
    """Generation of one order."""

    def __init__(self, gateway: ModelGateway, order: GenerationOrder, workers: WorkerPool) -> None:
        self._gateway = gateway
        self._workers = workers
        self._order = order
        self._seed = _derive_seed(order)
        self._client = ModelClient(order.limits, self._seed)
        self._evaluator = SpecEvaluator(order.level, workers)
        self._best: SpecEvaluation | None = None

    async def generate_whole(self) -> AsyncIterator[GenerationEvent]:
        """Request a whole specification; fall back to part by part."""
        yield self._client.progress(ProgressStage.AUTHORING, "requesting a whole specification")
        manuscript = SpecDraft(self._evaluator, {}, {"seed": self._seed}, WRITTEN_DEFAULTS)
        conversation = start_document_conversation(self._gateway, self._order.model, self._order.limits)
        writer = RepairLoop(self._client, conversation, manuscript, has_optional_round=True)
        question: dict[str, Any] = {"description": self._order.description, "seed": self._seed}
        if self._order.language:
            question["language"] = self._order.language
        async with closing(writer.run(question)) as written:
            async for event in written:
                yield event
        self._keep_best(manuscript.best)
        if writer.is_done and manuscript.evaluation:
            yield await self._to_completed(manuscript.evaluation, writer.answer, writer.findings)
        elif self._client.exhausted_limit() is not None:
            is_last = self._best is None or self._best is manuscript.evaluation
            yield self._to_failed(writer.findings if is_last else ())
        else:
            async with closing(self.generate_by_outline()) as events:
                async for other in events:
                    yield other

    async def generate_by_outline(self) -> AsyncIterator[GenerationEvent]:
        """Request parts; rules derive a specification from them."""
        stepwise = OutlineAuthor(self._client, self._gateway, self._order, self._seed)
        async with closing(stepwise.events()) as events:
            async for event in events:
                yield event
        written = self._evaluate_candidates(stepwise.candidates, stepwise.answer)
        async with closing(written) as others:
            async for other in others:
                yield other

    async def _evaluate_candidates(
        self,
        candidates: Sequence[OutlineCandidate],
        answer: ModelAnswer | None,
    ) -> AsyncIterator[GenerationEvent]:
        """Complete with the first candidate that passes."""
        before: SpecEvaluation | None = None
        for candidate in candidates:
            written = await self._workers.run(candidate.build_spec)
            document = {**WRITTEN_DEFAULTS, **written, "seed": self._seed}
            judgement = await self._evaluator.evaluate_statically(document)
            told, errors = candidate.findings, filter_errors(candidate.findings)
            if errors and self._order.level is ValidationLevel.CERTIFICATE:
                judgement = replace(judgement, findings=(*errors, *judgement.findings))
            else:
                told = tuple(replace(finding, severity=Severity.WARNING) for finding in told)
            yield self._to_proposal(document, before)
            if not judgement.errors:
                async with closing(self._evaluator.evaluate_in_simulation(judgement)) as steps:
                    async for step in steps:
                        if isinstance(step, SpecEvaluation):
                            judgement = step
                        else:
                            yield (
                                self._client.evaluation_progress(step) if isinstance(step, Progress) else step
                            )
            if not judgement.errors:
                yield await self._to_completed(judgement, answer, (*told, *judgement.findings))
                return
            yield ValidationFailed(judgement.findings)
            before = judgement
            self._keep_best(judgement)
        yield self._to_failed(())

    def _keep_best(self, judgement: SpecEvaluation | None) -> None:
        """Store a document if it is at least as good as the best one so far."""
        if judgement is not None and (self._best is None or judgement.quality >= self._best.quality):
            self._best = judgement

    def _to_proposal(
        self,
        document: Mapping[str, Any],
        before: SpecEvaluation | None,
    ) -> DraftProposed | DraftRevised:
        asker = self._client
        if before is None:
            return DraftProposed(encode_json(document), asker.answer_count, asker.spent)
        return DraftRevised(encode_json(document), asker.answer_count, diff_specs(before.document, document))

    async def _to_completed(
        self,
        judgement: SpecEvaluation,
        answer: ModelAnswer | None,
        findings: tuple[Finding, ...],
    ) -> SpecGenerated:
        document, about = judgement.canonical, self._order.description
        kept = await find_retained_risk(about, document, judgement.certificate, self._workers)
        without_model = answer is None or answer.completion.provider == ProviderName.OFFLINE.value
        replaced = find_replaced_language(self._order.language) if without_model else ()
        return SpecGenerated(
            document,
            (*findings, *kept, *replaced),
            self._client.answer_count,
            self._client.spent,
            model=answer.model if answer else "",
            without_model=without_model,
            certificate=judgement.certificate,
        )

    def _to_failed(self, findings: tuple[Finding, ...]) -> SpecGenerationFailed:
        """Return the failure with the best document.

        Args:
            findings: the findings of the last answer; empty for those of the best document.
        """
        used_up, best = self._client.exhausted_limit(), self._best
        told = findings or (best.findings if best else ())
        return SpecGenerationFailed(
            told if used_up is None else (*told, used_up),
            self._client.answer_count,
            self._client.spent,
            encode_json(best.document) if best else b"",
        )


def _derive_seed(order: GenerationOrder) -> int:
    if order.seed is not None:
        return order.seed
    digest = hashlib.sha256(order.description.encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:_SEED_BYTES], "big")
