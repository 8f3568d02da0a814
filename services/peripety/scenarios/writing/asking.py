"""Model client of one order: sequential requests within its limits."""

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
# The rest of the progress to the next answer is the evaluation of this one.
_SHARE_OF_WRITING = 0.3
# Some servers store a sampling seed in 32 bits.
_SAMPLING_SEEDS = 2**31

_TOO_MUCH = frozenset({"CONTEXT_LENGTH_EXCEEDED", "PROVIDER_REFUSED_REQUEST"})
"""Errors after which a smaller request may succeed: the prompt or the schema was too large."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of a model.

    Attributes:
        value: the JSON value in it, valid or not; None without one.
        findings: violations of its schema, which is advisory.
        number: the number of the answer to the order, from 1.
        completion: the complete response.
        is_cut: True if it was truncated; then its value has only the complete members.
    """

    value: Any | None
    findings: tuple[Finding, ...]
    number: int
    completion: Completion
    is_cut: bool = False

    @property
    def spent(self) -> Spent:
        """Return its usage."""
        return Spent.on(self.completion)

    @property
    def model(self) -> str:
        """Return its author, as `provider/model`."""
        return f"{self.completion.provider}/{self.completion.model}"


class Asker:
    """Model client of one order.

    Args:
        limits: the limits of all answers together.
        seed: seed of the order, from which the sampling seeds are derived.

    Attributes:
        answer: the last answer; None after a failure.
        failure: the reason of a failure.
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
        """Return the number of requested answers."""
        return self._allowance.answers

    @property
    def spent(self) -> Spent:
        """Return the total usage."""
        return self._allowance.spent

    def used_up(self) -> Finding | None:
        """Return the exhausted limit as a finding; None if another request is possible."""
        return self._stopped or self._allowance.used_up()

    def progress(self, stage: Stage, message: str, *, share: float = 0.0) -> Progress:
        """Return the progress; `share` is the fraction of the way from the last answer to the next."""
        fraction = (self.answers + share) / (self._limits.answers + 1)
        self._furthest = max(self._furthest, min(fraction, 1.0))
        return Progress(stage, message, self._furthest, self.spent)

    def judging(self, step: Progress) -> Progress:
        """Return the progress of the evaluation of an answer."""
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
        """Send a request and wait for the answer, which is then in `answer`.

        Args:
            conversation: the conversation.
            question: the request, as a JSON object.
            schema: the schema of the answer; advisory, so that an invalid answer is returned, too.
            max_output_tokens: the maximum length of the answer.

        Raises:
            PeripetyError: the request failed, and a smaller one would not succeed.
        """
        self.answer, self.failure = None, self.used_up()
        if self.failure is not None:
            return
        try:
            left = self._allowance.left()
        except ResourceExhaustedError:
            # The time limit was reached just now.
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
