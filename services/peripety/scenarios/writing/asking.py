"""Questions to a model, one after the other, within what an order allows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.errors import Finding, PeripetyError, ResourceExhaustedError
from peripety.gateway.allowance import Allowance
from peripety.gateway.model import Completed, Options, Spent, TextDelta
from peripety.gateway.streams import following
from peripety.scenarios.model import Progress, Stage
from peripety.scenarios.writing.judging import as_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from peripety.gateway.conversations import Conversation
    from peripety.gateway.model import Completion, ResponseSchema
    from peripety.scenarios.model import GenerationLimits

__all__ = ["Answer", "Asker"]

_CHARACTERS_BETWEEN_REPORTS = 2_000
# The rest of the way to the next answer is for looking into this one.
_SHARE_OF_WRITING = 0.3
# Servers keep a seed for sampling in as few as 32 bits.
_SAMPLING_SEEDS = 2**31

_TOO_MUCH = frozenset({"CONTEXT_LENGTH_EXCEEDED", "PROVIDER_REFUSED_REQUEST"})
"""Failures after which a smaller question may do: the prompt or the schema was too much."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a model.

    Attributes:
        value: the JSON value in it, whatever is wrong with that; None when there is none.
        findings: what is wrong with it as an answer to its schema, which asked for it without insisting.
        number: which answer to the order it is, from 1.
        completion: all of it.
        is_cut: whether it was cut off, and its value is what is whole of it.
    """

    value: Any | None
    findings: tuple[Finding, ...]
    number: int
    completion: Completion
    is_cut: bool = False

    @property
    def spent(self) -> Spent:
        """What it used."""
        return Spent.on(self.completion)

    @property
    def model(self) -> str:
        """Who gave it, as `provider/model`."""
        return f"{self.completion.provider}/{self.completion.model}"


class Asker:
    """Asks models for one order, question after question.

    Args:
        limits: what all answers together may use.
        seed: seed of the order, which the seed for sampling follows from.

    Attributes:
        answer: the last answer; None when none came.
        failure: why none came.
    """

    def __init__(self, limits: GenerationLimits, seed: int) -> None:
        self._limits = limits
        self._allowance = Allowance(limits.budget, limits.answers)
        self._seed = seed % _SAMPLING_SEEDS
        self._furthest = 0.0
        self._stopped: Finding | None = None
        self.answer: Answer | None = None
        self.failure: Finding | None = None

    @property
    def answers(self) -> int:
        """How many answers were asked for."""
        return self._allowance.answers

    @property
    def spent(self) -> Spent:
        """What they used."""
        return self._allowance.spent

    def used_up(self) -> Finding | None:
        """What keeps the model from being asked again; None while there is something left."""
        return self._stopped or self._allowance.used_up()

    def progress(self, stage: Stage, message: str, *, share: float = 0.0) -> Progress:
        """Where the work stands; `share` is how far it is on from the last answer to the next."""
        fraction = (self.answers + share) / (self._limits.answers + 1)
        self._furthest = max(self._furthest, min(fraction, 1.0))
        return Progress(stage, message, self._furthest, self.spent)

    def judging(self, step: Progress) -> Progress:
        """Where the work stands while an answer is looked into."""
        share = _SHARE_OF_WRITING + (1 - _SHARE_OF_WRITING) * step.fraction
        return self.progress(step.stage, step.message, share=share)

    async def ask(
        self,
        conversation: Conversation,
        question: Mapping[str, Any],
        schema: ResponseSchema,
        *,
        max_output_tokens: int | None = None,
    ) -> AsyncIterator[Progress]:
        """Put a question and follow the answer, which is then in `answer`.

        Args:
            conversation: with whom.
            question: what to say, as a JSON object.
            schema: what to answer; advisory, so that an answer that is wrong comes as well.
            max_output_tokens: stops the answer there.

        Raises:
            PeripetyError: no answer came, and asking for less would not change that.
        """
        self.answer, self.failure = None, self.used_up()
        if self.failure is not None:
            return
        try:
            left = self._allowance.left()
        except ResourceExhaustedError:
            # Its time ended just now.
            self.failure = self.used_up()
            return
        options = Options(seed=self._seed, max_output_tokens=max_output_tokens, budget=left)
        self._allowance.ask()
        length = 0
        try:
            stream = conversation.stream(as_json(question).decode(), schema=schema, options=options)
            async with following(stream) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        reports = length // _CHARACTERS_BETWEEN_REPORTS
                        length += len(event.text)
                        if length // _CHARACTERS_BETWEEN_REPORTS > reports:
                            message = f"{length:,} characters so far"
                            yield self.progress(Stage.AUTHORING, message, share=_SHARE_OF_WRITING)
                    elif isinstance(event, Completed):
                        self._answered(event.completion)
        except PeripetyError as error:
            self._stopped = self.failure = self._allowance.failed(error)
            if self.failure is None:
                if error.code not in _TOO_MUCH:
                    raise
                self.failure = Finding(error.code, "", error.message)

    def _answered(self, completion: Completion) -> None:
        self._allowance.count(Spent.on(completion))
        self.answer = Answer(completion.value, completion.findings, self.answers, completion)
