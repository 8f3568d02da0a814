"""Scenario generator: from a description to a specification.

A model first writes a whole specification, and then repairs it after findings. If its answers contain no part
of a document, or the request is too large, it is prompted part by part, by an outline, and rules derive the
numbers.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from peripety.config import ProviderName
from peripety.gateway.choosing import choose_provider
from peripety.gateway.streams import following
from peripety.scenarios.checks import check_order
from peripety.scenarios.diff import rule_edits
from peripety.scenarios.model import Completed, Draft, FoundWrong, NotGenerated, Progress, Rewritten, Stage
from peripety.scenarios.stepwise.stepwise import Stepwise
from peripety.scenarios.writing.asking import Asker
from peripety.scenarios.writing.conversing import conversation_about_a_document
from peripety.scenarios.writing.judging import Judge, Judgement, as_json
from peripety.scenarios.writing.manuscript import Manuscript
from peripety.scenarios.writing.risk import risk_kept
from peripety.scenarios.writing.writer import Writer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from peripety.errors import Finding
    from peripety.gateway.model import ModelGateway
    from peripety.scenarios.model import GenerationEvent, GenerationOrder
    from peripety.scenarios.stepwise.stepwise import Candidate
    from peripety.scenarios.writing.asking import Answer
    from peripety.workers import Workers

__all__ = ["Generator"]

_SEED_BYTES = 6


class Generator:
    """Generator of specifications.

    Args:
        gateway: the model gateway.
        provider: the default provider of an order.
        workers: pool for validation and simulation.
    """

    def __init__(self, gateway: ModelGateway, provider: ProviderName, workers: Workers) -> None:
        self._workers = workers
        self._gateway = gateway
        self._provider = provider

    async def generate(self, order: GenerationOrder) -> AsyncIterator[GenerationEvent]:
        """Write a specification.

        Yields:
            Progress, drafts and findings, and `Completed` or `NotGenerated` as the last event.

        Raises:
            InvalidArgumentError: the order is out of range.
            PeripetyError: from `ModelGateway.stream`, except for invalid answers.
        """
        check_order(order)
        writing = _Writing(self._gateway, order, self._workers)
        events = writing.stepwise() if self._is_modest(order.model) else writing.whole()
        async with following(events):
            async for event in events:
                yield event

    def _is_modest(self, model: str | None) -> bool:
        """Return True if the model is on a generic server, where it is presumed to be weak."""
        provider, _ = choose_provider(model, self._provider)
        return provider is ProviderName.GENERIC


class _Writing:
    """Generation of one order."""

    def __init__(self, gateway: ModelGateway, order: GenerationOrder, workers: Workers) -> None:
        self._gateway = gateway
        self._workers = workers
        self._order = order
        self._seed = _seed(order)
        self._asker = Asker(order.limits, self._seed)
        self._judge = Judge(order.level, workers)

    async def whole(self) -> AsyncIterator[GenerationEvent]:
        """Request a whole specification; fall back to part by part."""
        yield self._asker.progress(Stage.AUTHORING, "requesting a whole specification")
        manuscript = Manuscript(self._judge, {}, {"seed": self._seed})
        conversation = conversation_about_a_document(self._gateway, self._order.model, self._order.limits)
        writer = Writer(self._asker, conversation, manuscript)
        question = {"description": self._order.description, "seed": self._seed}
        async with following(writer.events(question)) as written:
            async for event in written:
                yield event
        if writer.is_done and manuscript.judgement:
            yield await self._completed(manuscript.judgement, writer.answer, writer.findings)
        elif self._asker.used_up() is not None:
            yield self._given_up(writer.findings)
        else:
            async with following(self.stepwise()) as events:
                async for other in events:
                    yield other

    async def stepwise(self) -> AsyncIterator[GenerationEvent]:
        """Request parts; rules derive a specification from them."""
        stepwise = Stepwise(self._asker, self._gateway, self._order, self._seed)
        async with following(stepwise.events()) as events:
            async for event in events:
                yield event
        written = self._judged(stepwise.candidates, stepwise.answer)
        async with following(written) as others:
            async for other in others:
                yield other

    async def _judged(
        self, candidates: Sequence[Candidate], answer: Answer | None
    ) -> AsyncIterator[GenerationEvent]:
        """Complete with the first candidate that passes."""
        before: Judgement | None = None
        for candidate in candidates:
            document = {**await self._workers.run(candidate.write), "seed": self._seed}
            judgement = await self._judge.check(document)
            yield self._proposed(document, before)
            if not judgement.errors:
                async with following(self._judge.play(judgement)) as steps:
                    async for step in steps:
                        if isinstance(step, Judgement):
                            judgement = step
                        else:
                            yield self._asker.judging(step) if isinstance(step, Progress) else step
            if not judgement.errors:
                yield await self._completed(judgement, answer, (*candidate.findings, *judgement.findings))
                return
            yield FoundWrong(judgement.findings)
            before = judgement
        yield self._given_up(before.findings if before else ())

    def _proposed(self, document: Mapping[str, Any], before: Judgement | None) -> Draft | Rewritten:
        asker = self._asker
        if before is None:
            return Draft(as_json(document), asker.answers, asker.spent)
        return Rewritten(as_json(document), asker.answers, rule_edits(before.document, document))

    async def _completed(
        self, judgement: Judgement, answer: Answer | None, findings: tuple[Finding, ...]
    ) -> Completed:
        document, about = judgement.canonical, self._order.description
        kept = await risk_kept(about, document, judgement.certificate, self._workers)
        return Completed(
            document,
            (*findings, *kept),
            self._asker.answers,
            self._asker.spent,
            model=answer.model if answer else "",
            without_model=answer is None or answer.completion.provider == ProviderName.OFFLINE.value,
            certificate=judgement.certificate,
        )

    def _given_up(self, findings: tuple[Finding, ...]) -> NotGenerated:
        used_up = self._asker.used_up()
        told = findings if used_up is None else (*findings, used_up)
        return NotGenerated(told, self._asker.answers, self._asker.spent)


def _seed(order: GenerationOrder) -> int:
    if order.seed is not None:
        return order.seed
    digest = hashlib.sha256(order.description.encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:_SEED_BYTES], "big")
