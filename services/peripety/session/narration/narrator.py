"""The narrator: tool rounds, repair, budget.

Narration of turns by a language model, with a fallback narration if the model fails.

Budget of a narration: time, calls, tokens and money.

Narrator of turns: a language model that may act, read and roll dice with tools, and then writes the prose.

The model sees only what the point of view may see, and decides nothing: the engine validates every call and
every change. Its prose is streamed while it is written. Whatever fails, the turn gets a narration.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.core import call_context, logging_setup
from peripety.core.concurrency import closing, run_in_thread_if_large
from peripety.core.config import ProviderName
from peripety.errors import DeadlineError, InvalidArgumentError, PeripetyError
from peripety.gateway.budgets.order_budget import remaining_budget, usage_of_error
from peripety.gateway.budgets.types import BudgetAmount
from peripety.gateway.provider_selection import choose_provider
from peripety.gateway.request_checks import unsupported_tools
from peripety.gateway.types.message import ChatMessage, ChatRole, ToolChoice, ToolChoiceMode
from peripety.gateway.types.request import Budget, GenerateRequest
from peripety.gateway.types.response import Completed, Repairing, StopReason, UsageTotal
from peripety.session.narration.turn_narration import NarrationResult, TurnNarration, invalid_answer_error
from peripety.session.narration.turn_prompt import (
    build_user_message,
    cache_plan,
    render_system_text,
    static_size,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable

    from peripety.gateway.types.message import Tool
    from peripety.gateway.types.response import Completion, GatewayEvent, ModelGateway
    from peripety.session.narration.turn_context import NarrationContext
    from peripety.session.narration.turn_narration import NarrationEvent
    from peripety.session.types import NarratorOptions


# Part of the caller's time reserved for storing the turn.
_RESERVE_SECONDS = 1.0


class NarrationBudget:
    """Budget and usage of one narration.

    Args:
        seconds: time limit; never more than the caller has left.
        options: budgets of the turn and of the session.
        before: usage of the session before the turn.
    """

    def __init__(self, seconds: float, options: NarratorOptions, before: UsageTotal) -> None:
        left = call_context.remaining()
        if left is not None:
            seconds = min(seconds, left - min(_RESERVE_SECONDS, left / 4))
        self._began = time.monotonic()
        self._until = self._began + seconds
        self._options = options
        self._before = before
        self._used = UsageTotal()
        self._under_way = UsageTotal()

    @property
    def used(self) -> UsageTotal:
        """Known usage of all calls so far."""
        return self._used + self._under_way

    @property
    def seconds(self) -> float:
        """Remaining seconds, never negative."""
        return max(0.0, self._until - time.monotonic())

    def note(self, spent: UsageTotal, *, ended: bool = True) -> None:
        """Record the usage of a model call.

        Args:
            spent: total usage of the call so far.
            ended: True if that is final.
        """
        self._under_way = spent
        if ended:
            self._used, self._under_way = self.used, UsageTotal()

    def budget(self) -> Budget | None:
        """Return the budget of the next call: the remainder of both budgets, or None for no limit.

        Raises:
            ResourceExhaustedError: the budget is used up (code BUDGET_EXHAUSTED).
        """
        turn, session = self._options.turn_budget, self._options.session_budget
        left = []
        if turn is not None:
            left.append(remaining_budget(turn, _to_amount(self.used), time.monotonic() - self._began))
        if session is not None:
            left.append(remaining_budget(session, _to_amount(self._before + self.used), 0.0))
        return _intersect(left) if left else None


def _to_amount(spent: UsageTotal) -> BudgetAmount:
    tokens = spent.usage.input_tokens + spent.usage.output_tokens
    return BudgetAmount(spent.calls, tokens, spent.cost or 0)


def _intersect(budgets: list[Budget]) -> Budget:
    """Return the budget that satisfies all given budgets."""
    return Budget(
        max_calls=_min_limit(budget.max_calls for budget in budgets),
        max_tokens=_min_limit(budget.max_tokens for budget in budgets),
        max_cost=_min_limit(budget.max_cost for budget in budgets),
        max_seconds=min(
            (budget.max_seconds for budget in budgets if budget.max_seconds is not None), default=None
        ),
    )


def _min_limit(caps: Iterable[int | None]) -> int | None:
    return min((cap for cap in caps if cap is not None), default=None)


DEFAULT_TIME_LIMIT_SECONDS = 90.0
"""Default time limit of a narration in seconds, including its repair."""

_MAX_TOOL_ROUNDS = 4
_MAX_OUTPUT_TOKENS = 1_024
_ANSWER_INVALID = "ANSWER_INVALID"
_DEGRADED_REASONS = {
    _ANSWER_INVALID: "OUTCOME_INVALID",
    "ANSWER_REFUSED": "OUTCOME_INVALID",
    "BUDGET_EXHAUSTED": "BUDGET_EXHAUSTED",
}
_DEGRADED_MESSAGES = {
    "OUTCOME_INVALID": "the narrator's answer is not valid",
    "NARRATOR_TIMEOUT": "the narrator did not answer in time",
    "MODEL_UNAVAILABLE": "the narrator is unavailable",
    "NARRATOR_FAILED": "the narrator failed",
    "BUDGET_EXHAUSTED": "the budget for narrators is used up",
}

_log = logging.getLogger(__name__)


class Narrator:
    """Narrator of turns.

    Args:
        gateway: access to models.
        configured: provider of sessions without a model of their own.
        seconds: time limit of a narration; never more than the caller has left.
    """

    def __init__(
        self,
        gateway: ModelGateway,
        *,
        configured: ProviderName = ProviderName.GENERIC,
        seconds: float = DEFAULT_TIME_LIMIT_SECONDS,
    ) -> None:
        self._gateway = gateway
        self._configured = configured
        self._seconds = seconds

    async def tell(self, scene: NarrationContext) -> AsyncGenerator[NarrationEvent | NarrationResult, None]:
        """Narrate a turn: yield its events as they occur, then the result. Model errors are not raised."""
        telling = TurnNarration(scene)
        for happened in telling.opening:
            yield happened
        allowance = NarrationBudget(self._seconds, scene.session.narrator, scene.session.usage)
        told: NarrationResult | None = None
        problem: Exception = invalid_answer_error("the answer has no final event")
        try:
            tools = self._tools(scene, telling)
            questions = await run_in_thread_if_large(
                lambda: _NarrationLoop(scene, telling, allowance, self._gateway, tools),
                len(scene.session.snapshot),
            )
            async with closing(questions.ask()) as happening:
                async for item in happening:
                    if isinstance(item, NarrationResult):
                        told = item
                    else:
                        yield item
        except Exception as error:  # noqa: BLE001 - the turn continues whatever a model does
            problem = error
        if told is None:
            reason = _degraded_reason(problem)
            _log.warning(
                "narrator gave up", extra={"reason": reason, **logging_setup.describe_error(problem)}
            )
            for item in telling.give_up(reason, _DEGRADED_MESSAGES[reason], _rejected_paths(problem)):
                if isinstance(item, NarrationResult):
                    told = item
                else:
                    yield item
        assert told is not None  # noqa: S101 - the fallback ends with Told
        yield replace(told, usage=allowance.used)

    def _tools(self, scene: NarrationContext, telling: TurnNarration) -> tuple[Tool, ...]:
        """Return the tools of the scenario, or none if the provider is known not to support them."""
        provider, _ = choose_provider(scene.session.narrator.model, self._configured)
        tools = telling.hands.tools
        return () if provider is None or any(unsupported_tools(tools, provider)) else tools


class _NarrationLoop:
    """Loop of model calls for one turn, until it is narrated."""

    def __init__(
        self,
        scene: NarrationContext,
        telling: TurnNarration,
        allowance: NarrationBudget,
        gateway: ModelGateway,
        tools: tuple[Tool, ...],
    ) -> None:
        self._scene = scene
        self._telling = telling
        self._allowance = allowance
        self._gateway = gateway
        self._tools = tools
        beside = static_size(tools)
        self._question = ChatMessage.user(build_user_message(scene, telling.known, beside=beside))
        self._said: tuple[ChatMessage, ...] = ()
        self._may_call = True
        self._repaired = False
        self._completion: Completion | None = None

    async def ask(self) -> AsyncGenerator[NarrationEvent | NarrationResult, None]:
        """Call the model, execute its tool calls, and repeat; the last item is the result.

        Raises:
            PeripetyError: the reason why the narration failed.
        """
        while True:
            try:
                async with closing(self._follow()) as happening:
                    async for happened in happening:
                        yield happened
            except PeripetyError as error:
                if self._said or not self._tools or not _is_request_rejected(error):
                    raise
                # Some models do not support tools, or have no context left for them.
                self._tools = ()
                continue
            completion = self._completion
            if completion is None:
                raise invalid_answer_error("the answer has no final event")
            if not (self._tools and completion.stop_reason is StopReason.TOOL_USE):
                for item in self._telling.finish(completion, repaired=self._repaired):
                    yield item
                return
            async with closing(self._answer(completion)) as answered:
                async for happened in answered:
                    yield happened

    async def _follow(self) -> AsyncGenerator[NarrationEvent, None]:
        """Stream the answer to one model call to its end."""
        request = self._request()
        self._telling.expect()
        self._completion = None
        try:
            async with closing(self._gateway.stream(request)) as answer:
                while (event := await self._next(answer)) is not None:
                    if isinstance(event, Completed):
                        self._end(event.completion)
                    elif isinstance(event, Repairing):
                        self._allowance.note(UsageTotal(event.calls, event.usage, None, None), ended=False)
                    async with closing(self._telling.take(event)) as happening:
                        async for happened in happening:
                            yield happened
        except PeripetyError as error:
            if self._completion is None:
                self._allowance.note(usage_of_error(error))
            raise
        completion = self._completion
        if completion is not None and self._repaired_before and completion.findings:
            raise invalid_answer_error("the answer is not valid after its one repair", completion.findings)

    async def _next(self, answer: AsyncIterator[GatewayEvent]) -> GatewayEvent | None:
        """Return the next event; the time limit applies to the wait only, not to the consumer."""
        async with call_context.timeout_at_deadline(self._allowance.seconds):
            return await anext(answer, None)

    def _end(self, completion: Completion) -> None:
        self._completion = completion
        self._repaired_before, self._repaired = self._repaired, self._repaired or completion.repaired
        self._allowance.note(UsageTotal.on(completion))

    async def _answer(self, completion: Completion) -> AsyncGenerator[NarrationEvent, None]:
        """Execute the tool calls of a model."""
        hands, calls = self._telling.hands, completion.tool_calls
        if not self._may_call:
            hands.refuse(calls)
            raise invalid_answer_error("the narrator called tools although it must narrate")
        if not hands.takes(calls, [call.call_id for message in self._said for call in message.tool_calls]):
            self._may_call = False
            return
        results, events = await run_in_thread_if_large(
            lambda: hands.carry_out(calls), len(self._scene.session.snapshot)
        )
        for event in events:
            yield event
        self._said = (*self._said, completion.message, ChatMessage(ChatRole.USER, results))
        self._may_call = hands.conduct.tool_rounds < _MAX_TOOL_ROUNDS

    def _request(self) -> GenerateRequest:
        options = self._scene.session.narrator
        choice = None if self._may_call or not self._tools else ToolChoice(ToolChoiceMode.NONE)
        return GenerateRequest(
            system=render_system_text(self._scene),
            messages=(self._question, *self._said),
            # One repair per turn, even across tool rounds.
            schema=self._telling.outcomes.schema(advisory=self._repaired),
            model=options.model,
            max_output_tokens=_MAX_OUTPUT_TOKENS,
            tools=self._tools,
            tool_choice=choice,
            cache=cache_plan(self._scene),
            budget=self._allowance.budget(),
        )


def _is_request_rejected(error: PeripetyError) -> bool:
    """Return True if the provider rejected the request itself, so that a different request may succeed."""
    return isinstance(error, InvalidArgumentError) or error.code == "TOOLS_NOT_TAKEN"


def _rejected_paths(error: Exception) -> list[str] | None:
    """Return the paths of the errors in the last answer, or None if it was not rejected."""
    if isinstance(error, PeripetyError) and error.code == _ANSWER_INVALID:
        return [violation.field for violation in error.violations]
    return None


def _degraded_reason(error: Exception) -> str:
    if isinstance(error, DeadlineError):
        return "NARRATOR_TIMEOUT"
    if isinstance(error, PeripetyError):
        return _DEGRADED_REASONS.get(error.code, "MODEL_UNAVAILABLE")
    return "NARRATOR_FAILED"
