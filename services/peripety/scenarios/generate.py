"""From a description to a specification: a model proposes it, the engine checks it, and the events say how.

A model is asked for the whole specification. What is wrong with it goes back once through the gateway, and
once more when a dry-run or a certificate is part of the order. When nothing valid comes of that, or the model
is of a kind that this would overtax, it is asked for words alone (`outline`), and the rules are of a fixed
design.
"""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING, Any

from peripety import sim
from peripety.authoring import author
from peripety.config import ProviderName
from peripety.errors import Finding, Severity
from peripety.gateway.conversations import Conversation
from peripety.gateway.model import Options, ResponseSchema
from peripety.gateway.streams import following
from peripety.scenarios.asking import Asker, as_json
from peripety.scenarios.certificates.certifying import certificate_of
from peripety.scenarios.certificates.model import CertificateOptions
from peripety.scenarios.checking import problems
from peripety.scenarios.checks import check_order
from peripety.scenarios.gate import verdict_of
from peripety.scenarios.model import (
    Completed,
    Draft,
    DryRunOptions,
    FoundWrong,
    Level,
    NotGenerated,
    Rewritten,
    Stage,
    errors_among,
)
from peripety.scenarios.outline import OUTLINE, excerpt, spec_from_outline
from peripety.scenarios.prompts import prompt
from peripety.scenarios.proving import proved
from peripety.sim.schemas import SCENARIO_SPEC, schema_document

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.gateway.model import Completion, ModelGateway
    from peripety.scenarios.certificates.model import Certificate
    from peripety.scenarios.model import GenerationEvent, GenerationOrder
    from peripety.scenarios.workers import Workers

__all__ = ["Generator"]

_SEED_BYTES = 6
# Servers keep a seed for sampling in as few as 32 bits.
_SAMPLING_SEEDS = 2**31
_OUTLINE_TOKENS = 512

_FROM_WORDS = Finding(
    "WORDS_ONLY",
    "",
    "the model gave the words; the rules around them are of a fixed design",
    Severity.WARNING,
)
_FROM_DESCRIPTION = Finding(
    "WITHOUT_MODEL",
    "",
    "the model gave nothing of use; words of the description stand in rules of a fixed design",
    Severity.WARNING,
)


class Generator:
    """Writes specifications.

    Args:
        gateway: asks models.
        provider: the provider that answers where an order names none.
        workers: check and play.
    """

    def __init__(self, gateway: ModelGateway, provider: ProviderName, workers: Workers) -> None:
        self._workers = workers
        self._gateway = gateway
        self._provider = provider

    async def generate(self, order: GenerationOrder) -> AsyncIterator[GenerationEvent]:
        """Write a specification.

        Yields:
            Progress, drafts and findings as they come, and `Completed` or `NotGenerated` as the last event.

        Raises:
            InvalidArgumentError: the order is out of range.
            PeripetyError: what `ModelGateway.stream` raises, but for answers that are wrong.
        """
        check_order(order)
        writing = _Writing(self._gateway, order, self._workers)
        events = writing.words() if self._is_modest(order.model) else writing.whole()
        async with following(events):
            async for event in events:
                yield event

    def _is_modest(self, model: str | None) -> bool:
        """Whether the model is of a server about which nothing is known, so that little is expected of it."""
        name = (model or "").partition("/")[0]
        provider = next((provider for provider in ProviderName if provider.value == name), self._provider)
        return provider is ProviderName.GENERIC


class _Writing:
    """One order under way."""

    def __init__(self, gateway: ModelGateway, order: GenerationOrder, workers: Workers) -> None:
        self._workers = workers
        self._order = order
        self._seed = _seed(order)
        self._asker = Asker(order.limits)
        self._converse = partial(Conversation, gateway, options=Options(model=order.model))
        self._ask = partial(self._asker.ask, seed=self._seed % _SAMPLING_SEEDS)
        self._refused: tuple[Finding, ...] = ()

    async def whole(self) -> AsyncIterator[GenerationEvent]:
        """Ask for a whole specification; for the words alone when that fails."""
        yield self._asker.progress(Stage.AUTHORING, "asking for a whole specification")
        conversation = self._converse(prompt("generate"))
        question: dict[str, Any] = {"description": self._order.description, "seed": self._seed}
        for is_second in (False, True):
            async with following(self._ask(conversation, question, self._schema())) as events:
                async for event in events:
                    yield event
            answer = self._asker.completion
            if answer is None:
                break
            async with following(self._offer(answer.value, answer)) as events:
                async for event in events:
                    yield event
            if not self._refused:
                return
            if is_second or self._asker.exhausted():
                yield self._given_up(self._refused)
                return
            question = {"findings": [_told(finding) for finding in self._refused]}
        if self._asker.exhausted():
            yield self._given_up(self._asker.findings)
            return
        async with following(self.words()) as events:
            async for event in events:
                yield event

    async def words(self) -> AsyncIterator[GenerationEvent]:
        """Ask for the words alone, and put them into rules of a fixed design."""
        message = "asking for words only; the rules around them are of a fixed design"
        yield self._asker.progress(Stage.AUTHORING, message)
        conversation = self._converse(prompt("outline"))
        question = {"description": excerpt(self._order.description)}
        asked = self._ask(conversation, question, OUTLINE, max_output_tokens=_OUTLINE_TOKENS)
        async with following(asked) as events:
            async for event in events:
                # What is drafted here is an outline, and only specifications are told as drafts.
                if not isinstance(event, Draft | Rewritten):
                    yield event
        answer, about = self._asker.completion, self._order.description
        if answer is None:
            offer = self._offer(author(about, self._seed), None, _FROM_DESCRIPTION)
        else:
            spec = spec_from_outline(answer.value, about, self._seed)
            offer = self._offer(spec, answer, _FROM_WORDS)
        async with following(offer) as events:
            async for event in events:
                yield event
        if self._refused:
            yield self._given_up(self._refused)

    async def _offer(
        self, value: Any, answer: Completion | None, *origin: Finding
    ) -> AsyncIterator[GenerationEvent]:
        """Finish with a valid specification, unless the dry-run that was ordered refuses it."""
        document = await self._workers.run(self._canonical, value)
        warnings = [*origin, *await self._problems(value)]
        self._refused = ()
        certificate: Certificate | None = None
        if self._order.level >= Level.DRY_RUN:
            yield self._asker.progress(Stage.DRY_RUNNING, "playing runs without a model", share=0.5)
            findings, certificate = await self._played(document)
            if errors_among(findings):
                self._refused = findings
                yield FoundWrong(self._refused)
                return
            warnings += findings
        yield Completed(
            document,
            tuple(warnings),
            self._asker.attempts,
            self._asker.spent,
            model=f"{answer.provider}/{answer.model}" if answer else "",
            without_model=answer is None or answer.provider == ProviderName.OFFLINE.value,
            certificate=certificate,
        )

    async def _played(self, document: bytes) -> tuple[tuple[Finding, ...], Certificate | None]:
        """What playing a specification shows, and its certificate where one was ordered."""
        program = await self._workers.run(sim.load, document)
        if self._order.level is Level.CERTIFICATE:
            certificate = await certificate_of(program, CertificateOptions(), self._workers)
            return certificate.findings, certificate
        found = await self._workers.run(proved, program)
        if errors_among(found):
            return found, None
        return (*(await verdict_of(program, DryRunOptions(), self._workers)).findings, *found), None

    def _given_up(self, findings: tuple[Finding, ...]) -> NotGenerated:
        spent = self._asker.exhausted()
        told = findings if spent is None or spent in findings else (*findings, spent)
        return NotGenerated(told, self._asker.attempts, self._asker.spent)

    def _schema(self) -> ResponseSchema:
        return ResponseSchema(SCENARIO_SPEC, schema_document(SCENARIO_SPEC), accept=self._problems)

    async def _problems(self, value: Any) -> list[Finding]:
        """What is wrong with a value that a model gave, at the level that was ordered."""
        return await self._workers.run(problems, self._document(value), self._order.level)

    def _canonical(self, value: Any) -> bytes:
        return sim.canonical(sim.parse(self._document(value)))

    def _document(self, value: dict[str, Any]) -> bytes:
        """The document with the seed of the order, whatever the model made of it."""
        return as_json({**value, "seed": self._seed})


def _seed(order: GenerationOrder) -> int:
    if order.seed is not None:
        return order.seed
    digest = hashlib.sha256(order.description.encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:_SEED_BYTES], "big")


def _told(finding: Finding) -> dict[str, str]:
    return {"code": finding.code, "path": finding.path, "message": finding.message}
