"""One generation's talk with a model: its answers as events, and the caps on how often it is asked."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from peripety.errors import Finding, InvalidArgumentError, PeripetyError
from peripety.gateway.model import Completed, Options, Repairing, Spent, TextDelta
from peripety.gateway.objects.structured import parse_json_with_schema, used_until
from peripety.gateway.streams import following
from peripety.scenarios.diff import rule_edits
from peripety.scenarios.model import Draft, FoundWrong, Progress, Rewritten, Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from peripety.gateway.conversations import Conversation
    from peripety.gateway.model import Completion, GatewayEvent, ResponseSchema
    from peripety.scenarios.model import GenerationEvent, GenerationLimits

__all__ = ["Asker", "as_json"]

_CHARACTERS_BETWEEN_REPORTS = 2_000

_OTHERWISE = frozenset({"ANSWER_INVALID", "CONTEXT_LENGTH_EXCEEDED", "PROVIDER_REFUSED_REQUEST"})
"""Failures after which a smaller question may do: the answer was wrong, or prompt or schema too much."""


def as_json(value: Any) -> bytes:
    """A value that a model gave, as JSON in UTF-8."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


class Asker:
    """Asks a model, question after question, within the caps of one request.

    Args:
        limits: the caps.

    Attributes:
        attempts: answers of the model so far, refused ones included.
        spent: what was used of it so far.
        completion: the last answer; None when it was refused.
        findings: why it was refused.
    """

    def __init__(self, limits: GenerationLimits) -> None:
        self._limits = limits
        seconds = limits.budget.max_seconds
        self._deadline = None if seconds is None else _now() + seconds
        self.attempts = 0
        self.spent = Spent()
        self._spent_before = Spent()
        self.completion: Completion | None = None
        self.findings: tuple[Finding, ...] = ()

    def progress(self, stage: Stage, message: str, *, share: float = 0.0) -> Progress:
        """Where the work stands; `share` is how far it is on from the last answer to the next."""
        fraction = (self.attempts + share) / (self._limits.answers + 1)
        return Progress(stage, message, min(fraction, 1.0), self.spent)

    def exhausted(self) -> Finding | None:
        """What is used up, so that the model cannot be asked again."""
        limits, budget, usage = self._limits, self._limits.budget, self.spent.usage
        if self.attempts >= limits.answers:
            message = f"the {limits.answers} answers that were allowed are used up; allow more"
        elif budget.max_tokens is not None and usage.input_tokens + usage.output_tokens >= budget.max_tokens:
            message = f"the {budget.max_tokens} tokens that were allowed are used up; allow more"
        elif self._deadline is not None and _now() >= self._deadline:
            message = f"the {budget.max_seconds:g} s that were allowed are over; allow more"
        else:
            return None
        return Finding("BUDGET_USED_UP", "", message)

    async def ask(
        self,
        conversation: Conversation,
        question: dict[str, Any],
        schema: ResponseSchema,
        *,
        seed: int,
        max_output_tokens: int | None = None,
    ) -> AsyncIterator[GenerationEvent]:
        """Put a question, follow the answer and the one repair of it, and set `completion` and `findings`.

        Raises:
            PeripetyError: no answer came, for a reason that asking for less does not change.
        """
        self.completion, self.findings = None, ()
        self._spent_before = self.spent
        text = as_json(question).decode()
        options = Options(seed=seed, max_output_tokens=max_output_tokens, budget=self._limits.budget)
        stream = conversation.stream(text, schema=schema, options=options)
        draft = _Draft()
        self._begin_answer()
        try:
            async with following(stream):
                async for event in _in_time(stream, self._deadline):
                    for told in self._told(draft, event):
                        yield told
                    if self.findings:
                        return
        except PeripetyError as error:
            if error.code not in _OTHERWISE:
                raise
            self.findings = _findings(error)
            used = used_until(error)
            if used is not None:
                self._used(used)
            yield FoundWrong(self.findings)
        except TimeoutError:
            self._used(Spent(calls=1, cost=None, cache_savings=None))
            self.findings = tuple(filter(None, [self.exhausted()]))

    def _begin_answer(self) -> None:
        self.attempts += 1
        self.spent += Spent(calls=1)

    def _used(self, spent: Spent) -> None:
        """Count what the answer to the present question has used, its repair included."""
        self.spent = self._spent_before + spent

    def _told(self, draft: _Draft, event: GatewayEvent) -> Iterator[GenerationEvent]:
        """What an event of the gateway means for the generation."""
        match event:
            case TextDelta(text):
                if draft.grow(text):
                    yield self.progress(Stage.AUTHORING, f"{draft.length:,} characters so far", share=0.5)
            case Repairing(findings, usage, calls):
                self._used(Spent(calls, usage, cost=None, cache_savings=None))
                yield from draft.proposed(self.attempts)
                yield FoundWrong(findings)
                yield from self._repairing(findings)
            case Completed(completion):
                self.completion = completion
                self._used(Spent.on(completion))
                yield draft.final(completion, self.attempts)

    def _repairing(self, findings: tuple[Finding, ...]) -> Iterator[GenerationEvent]:
        spent = self.exhausted()
        if spent is not None:
            # Leaving the stream here is what keeps the gateway from asking again.
            self.findings = (*findings, spent)
            return
        yield self.progress(Stage.REPAIRING, "asking again with what is wrong")
        self._begin_answer()


class _Draft:
    """The present answer as it grows, and the refused one before it."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._refused: Any = None
        self.length = 0

    def grow(self, text: str) -> bool:
        """Add text; say whether there is enough of it for another report."""
        reports = self.length // _CHARACTERS_BETWEEN_REPORTS
        self._pieces.append(text)
        self.length += len(text)
        return self.length // _CHARACTERS_BETWEEN_REPORTS > reports

    def proposed(self, attempt: int) -> Iterator[Draft]:
        """The answer that was refused, if it is JSON at all; the next one begins."""
        try:
            self._refused = parse_json_with_schema("".join(self._pieces), {})
        except InvalidArgumentError:
            self._refused = None
        else:
            yield Draft(as_json(self._refused), attempt)
        self._pieces.clear()
        self.length = 0

    def final(self, completion: Completion, attempt: int) -> Draft | Rewritten:
        """The answer that was accepted."""
        document = as_json(completion.value)
        if completion.repaired:
            return Rewritten(document, attempt, rule_edits(self._refused, completion.value))
        return Draft(document, attempt, Spent.on(completion))


async def _in_time(
    events: AsyncIterator[GatewayEvent], deadline: float | None
) -> AsyncIterator[GatewayEvent]:
    """The same events; a `TimeoutError` when the next one is not there in time."""
    while True:
        # Around each wait and never around a yield: the time of whoever reads is not ours to end.
        async with asyncio.timeout_at(deadline):
            event = await anext(events, None)
        if event is None:
            return
        yield event


def _findings(error: PeripetyError) -> tuple[Finding, ...]:
    """What was wrong with an answer, from the violations that carry it."""
    found = []
    for violation in error.violations:
        code, _, message = violation.reason.partition(": ")
        found.append(Finding(code, violation.field.removesuffix("/"), message))
    return tuple(found) or (Finding(error.code, "", error.message),)


def _now() -> float:
    return asyncio.get_running_loop().time()
