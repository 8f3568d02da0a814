"""Model client of one order: the conversation of generation or amendment, its budget, and feedback.

Requests are sequential, with a constant prefix for the prompt cache. Feedback about an answer is the next
message.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.core.concurrency import closing
from peripety.engine.schema_validation import format_pointer
from peripety.engine.spec_sections import part_name_at
from peripety.errors import Finding, PeripetyError, ResourceExhaustedError, Severity
from peripety.gateway.budgets.order_budget import OrderBudget
from peripety.gateway.conversations.conversation import Conversation
from peripety.gateway.structured_output.validator import is_used_up
from peripety.gateway.types.request import CacheConfig, GenerationOptions, ReasoningEffort
from peripety.gateway.types.response import Completed, TextDelta, UsageTotal
from peripety.scenario.generation.draft_cache import load_prompt
from peripety.scenario.generation.evaluation import encode_json
from peripety.scenario.types import Progress, ProgressStage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from peripety.gateway.types.request import ResponseSchema
    from peripety.gateway.types.response import Completion, ModelGateway
    from peripety.scenario.types import GenerationLimits, NumberEdit


_CHARACTERS_BETWEEN_REPORTS = 2_000
# The rest of the progress to the next answer is the evaluation of this one.
_SHARE_OF_WRITING = 0.3
# Some servers store a sampling seed in 32 bits.
_SAMPLING_SEEDS = 2**31

_TOO_LARGE_CODES = frozenset({"CONTEXT_LENGTH_EXCEEDED", "PROVIDER_REFUSED_REQUEST"})
"""Errors after which a smaller request may succeed: the prompt or the schema was too large."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """Answer of a model.

    Attributes:
        value: the JSON value in it, valid or not; None without one.
        findings: violations of its schema, which is advisory.
        number: the number of the answer to the order, from 1.
        completion: the complete response.
        is_truncated: True if it was truncated; then its value has only the complete members.
    """

    value: Any | None
    findings: tuple[Finding, ...]
    number: int
    completion: Completion
    is_truncated: bool = False

    @property
    def spent(self) -> UsageTotal:
        """Return its usage."""
        return UsageTotal.from_completion(self.completion)

    @property
    def model(self) -> str:
        """Return its author, as `provider/model`."""
        return f"{self.completion.provider}/{self.completion.model}"


class ModelClient:
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
        self._order_budget = OrderBudget(limits.budget, limits.answers)
        self._seed = seed % _SAMPLING_SEEDS
        self._max_fraction = 0.0
        self._stopped: Finding | None = None
        self._used_up = 0
        self.answer: ModelAnswer | None = None
        self.failure: Finding | None = None

    @property
    def answer_count(self) -> int:
        """Return the number of requested answers."""
        return self._order_budget.requested_answers

    @property
    def spent(self) -> UsageTotal:
        """Return the total usage."""
        return self._order_budget.spent

    def exhausted_limit(self) -> Finding | None:
        """Return the exhausted limit as a finding; None if another request is possible."""
        return self._stopped or self._order_budget.find_exhausted_limit()

    def progress(self, stage: ProgressStage, message: str, *, share: float = 0.0) -> Progress:
        """Return the progress; `share` is the fraction of the way from the last answer to the next."""
        fraction = (self.answer_count + share) / (self._limits.answers + 1)
        self._max_fraction = max(self._max_fraction, min(fraction, 1.0))
        return Progress(stage, message, self._max_fraction, self.spent)

    def evaluation_progress(self, step: Progress) -> Progress:
        """Return the progress of the evaluation of an answer."""
        share = _SHARE_OF_WRITING + (1 - _SHARE_OF_WRITING) * step.fraction
        return self.progress(step.stage, step.message, share=share)

    async def request(
        self,
        conversation: Conversation,
        question: Mapping[str, Any],
        schema: ResponseSchema,
        *,
        answer_tokens: int | None = None,
    ) -> AsyncIterator[Progress]:
        """Send a request and wait for the answer, which is then in `answer`.

        Args:
            conversation: the conversation.
            question: the request, as a JSON object.
            schema: the schema of the answer; advisory, so that an invalid answer is returned, too.
            answer_tokens: the maximum length of the answer, without the model's thoughts. After an answer
                that thoughts have used up, it is at least twice the room of that one.

        Raises:
            PeripetyError: the request failed, and a smaller one would not succeed.
        """
        self.answer, self.failure = None, self.exhausted_limit()
        if self.failure is not None:
            return
        try:
            left = self._order_budget.remaining()
        except ResourceExhaustedError:
            # The time limit was reached just now.
            self.failure = self.exhausted_limit()
            return
        options = GenerationOptions(
            seed=self._seed,
            answer_tokens=max(2 * self._used_up, answer_tokens or 0) or None,
            budget=left,
            reasoning_effort=ReasoningEffort.MEDIUM,
        )
        self._order_budget.count_request()
        length = 0
        try:
            stream = conversation.stream(encode_json(question).decode(), schema=schema, options=options)
            async with closing(stream) as events:
                async for event in events:
                    if isinstance(event, TextDelta):
                        reports = length // _CHARACTERS_BETWEEN_REPORTS
                        length += len(event.text)
                        if length // _CHARACTERS_BETWEEN_REPORTS > reports:
                            message = f"{length:,} characters so far"
                            yield self.progress(ProgressStage.AUTHORING, message, share=_SHARE_OF_WRITING)
                    elif isinstance(event, Completed):
                        self._set_answer(event.completion)
        except PeripetyError as error:
            self._stopped = self.failure = self._order_budget.add_failed_usage(error)
            if self.failure is None:
                if error.code not in _TOO_LARGE_CODES:
                    raise
                self.failure = Finding(error.code, "", error.message)

    def _set_answer(self, completion: Completion) -> None:
        self._order_budget.add_usage(UsageTotal.from_completion(completion))
        self._used_up = completion.usage.output_tokens if is_used_up(completion) else 0
        self.answer = ModelAnswer(completion.value, completion.findings, self.answer_count, completion)


def start_document_conversation(
    gateway: ModelGateway,
    model: str | None,
    limits: GenerationLimits,
) -> Conversation:
    """Return a new conversation for the repair loop, with a system prompt and schema that are cacheable.

    Args:
        gateway: the model gateway.
        model: as in `GenerateRequest.model`.
        limits: the maximum number of requests, all with the same schema.
    """
    cache = CacheConfig(expected_reuse=limits.answers - 1)
    return Conversation(gateway, load_prompt("generate"), options=GenerationOptions(model=model, cache=cache))


_MAX_FINDINGS = 20


@dataclass(frozen=True, slots=True)
class Feedback:
    """Feedback about an answer.

    Attributes:
        findings: the findings, errors first.
        document: the document of the findings.
        ignored: changes that were ignored, because the parts had no finding.
        rolled_back: parts that were rolled back after a regression; "" is the whole document.
        moved_numbers: the moved numbers.
        figures: a line about each player that was measured, those inside their bands as well.
        trials: lines about numbers that would bring the players into their bands.
        is_accepted: True if the document has passed, so that an answer is optional.
    """

    findings: tuple[Finding, ...]
    document: Mapping[str, Any]
    ignored: tuple[str, ...] = ()
    rolled_back: tuple[str, ...] = ()
    moved_numbers: tuple[NumberEdit, ...] = ()
    figures: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    is_accepted: bool = False

    def render(self) -> dict[str, Any]:
        """Return the message as a JSON object; empty members are omitted, and long lists are truncated."""
        told = self.findings[:_MAX_FINDINGS]
        message = {
            "accepted": self.is_accepted,
            "findings": [self._render_finding(finding) for finding in told],
            "fixes": {finding.code: finding.remedy for finding in told if finding.remedy},
            "more_findings": len(self.findings) - len(told),
            "measured": list(self.figures),
            "tried": list(self.trials),
            "ignored": list(self.ignored[:_MAX_FINDINGS]),
            "undone": list(self.rolled_back[:_MAX_FINDINGS]),
            "moved": [
                {"path": edit.path, "before": edit.before, "after": edit.after} for edit in self.moved_numbers
            ],
        }
        return {key: value for key, value in message.items() if value}

    def _render_finding(self, finding: Finding) -> dict[str, str]:
        told = {"code": finding.code, "path": finding.path, "message": finding.message}
        part = format_pointer(part_name_at(self.document, finding.path))
        if not f"{finding.path}/".startswith(f"{part}/"):
            # The author of a part knows its id, not its position.
            told["part"] = part
        if finding.severity is Severity.WARNING:
            told["severity"] = finding.severity.value
        return told
