"""Narrator of turns: a language model that may act, read and roll dice with tools, and then writes the prose.

The model sees only what the point of view may see, and decides nothing: the engine validates every call and
every change. Its prose is streamed while it is written. A budget limits time, calls, tokens and money.
Whatever fails, the turn gets a narration.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from peripety.core import call_context, logging_setup
from peripety.core.concurrency import closing, run_in_thread_if_large
from peripety.core.config import ProviderName
from peripety.errors import DeadlineError, FieldViolation, InvalidArgumentError, PeripetyError
from peripety.gateway.budgets.order_budget import remaining_budget, usage_of_error
from peripety.gateway.budgets.types import BudgetAmount
from peripety.gateway.provider_selection import choose_provider
from peripety.gateway.request_checks import unsupported_tools
from peripety.gateway.structured_output.validator import was_truncated
from peripety.gateway.types.message import ChatMessage, ChatRole, ToolChoice, ToolChoiceMode
from peripety.gateway.types.request import Budget, GenerateRequest, ReasoningEffort
from peripety.gateway.types.response import Completed, Repairing, StopReason, UsageTotal
from peripety.session.narration.actor import actor_request
from peripety.session.narration.outcome_schema import is_code_like, normalize_text
from peripety.session.narration.prompt_room import PromptRoom
from peripety.session.narration.turn_context import to_json_text
from peripety.session.narration.turn_narration import (
    NarrationResult,
    TurnNarration,
    TurnNotPlayed,
    invalid_answer_error,
)
from peripety.session.narration.turn_prompt import (
    build_messages,
    cache_plan,
    render_system_text,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Iterator

    from peripety.gateway.types.message import Tool, ToolResult
    from peripety.gateway.types.response import Completion, GatewayEvent, ModelGateway
    from peripety.session.narration.tool_executor import VoiceCue
    from peripety.session.narration.turn_context import NarrationContext
    from peripety.session.narration.turn_narration import NarrationEvent
    from peripety.session.types import NarratorOptions, Session


# Part of the caller's time reserved for storing the turn.
_RESERVE_SECONDS = 1.0


class NarrationBudget:
    """Budget and usage of one narration.

    Args:
        seconds_left: time limit; never more than the caller has left.
        options: budgets of the turn and of the session.
        before: usage of the session before the turn.
    """

    def __init__(self, seconds: float, options: NarratorOptions, before: UsageTotal) -> None:
        left = call_context.remaining()
        if left is not None:
            seconds = min(seconds, left - min(_RESERVE_SECONDS, left / 4))
        self._started = time.monotonic()
        self._deadline = self._started + seconds
        self._options = options
        self._usage_before = before
        self._completed_usage = UsageTotal()
        self._current_usage = UsageTotal()

    @property
    def usage(self) -> UsageTotal:
        """Known usage of all calls so far."""
        return self._completed_usage + self._current_usage

    @property
    def seconds_left(self) -> float:
        """Remaining seconds, never negative."""
        return max(0.0, self._deadline - time.monotonic())

    def record_usage(self, spent: UsageTotal, *, ended: bool = True) -> None:
        """Record the usage of a model call.

        Args:
            spent: total usage of the call so far.
            ended: True if that is final.
        """
        self._current_usage = spent
        if ended:
            self._completed_usage, self._current_usage = self.usage, UsageTotal()

    def remaining_budget(self) -> Budget | None:
        """Return the budget of the next call: the remainder of both budgets, or None for no limit.

        Raises:
            ResourceExhaustedError: the budget is used up (code BUDGET_EXHAUSTED).
        """
        turn, session = self._options.turn_budget, self._options.session_budget
        left = []
        if turn is not None:
            left.append(
                remaining_budget(turn, BudgetAmount.from_usage(self.usage), time.monotonic() - self._started)
            )
        if session is not None:
            used = BudgetAmount.from_usage(self._usage_before + self.usage)
            left.append(remaining_budget(session, used, 0.0))
        return _intersect(left) if left else None


def _intersect(budgets: list[Budget]) -> Budget:
    """Return the budget that satisfies all given budgets."""
    return Budget(
        max_calls=_min_limit(budget.max_calls for budget in budgets),
        max_tokens=_min_limit(budget.max_tokens for budget in budgets),
        max_cost=_min_limit(budget.max_cost for budget in budgets),
        max_seconds=min(
            (budget.max_seconds for budget in budgets if budget.max_seconds is not None),
            default=None,
        ),
    )


def _min_limit(caps: Iterable[int | None]) -> int | None:
    return min((cap for cap in caps if cap is not None), default=None)


DEFAULT_TIME_LIMIT_SECONDS = 90.0
"""Default time limit of a narration in seconds, including its repair."""

_MAX_TOOL_ROUNDS = 4
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
        default_provider: provider of sessions without a model of their own.
        seconds: time limit of a narration; never more than the caller has left.
        choose_room: returns the room of the prompt for a model, or for the configured one if None.
    """

    def __init__(
        self,
        gateway: ModelGateway,
        *,
        default_provider: ProviderName = ProviderName.GENERIC,
        seconds: float = DEFAULT_TIME_LIMIT_SECONDS,
        choose_room: Callable[[str | None], PromptRoom] = lambda _: PromptRoom.for_window(0),
    ) -> None:
        self._gateway = gateway
        self._default_provider = default_provider
        self.seconds = seconds
        self._choose_room = choose_room

    def room_for(self, session: Session) -> PromptRoom:
        """Return the room of the prompts of a session."""
        return self._choose_room(session.narrator.model)

    def check_options(self, options: NarratorOptions) -> None:
        """Raise an error if the narrator cannot have the options of a new session.

        Raises:
            InvalidArgumentError: people cannot be voiced by a model with a small context window.
        """
        if options.actors and self._choose_room(options.model).is_small:
            reason = (
                "is not supported in the profile local-lite, which has room for one point of view; use a"
                " model with a context window of 16k tokens or more, or set PERIPETY_PROFILE=full"
            )
            raise InvalidArgumentError(
                f"narrator.actors: {reason}",
                code="ACTORS_UNSUPPORTED",
                violations=[FieldViolation(".narrator.actors", reason)],
            )

    async def narrate(
        self,
        scene: NarrationContext,
    ) -> AsyncGenerator[NarrationEvent | NarrationResult | TurnNotPlayed, None]:
        """Narrate a turn: yield its events as they occur, then the result. Model errors are not raised."""
        narration = TurnNarration(scene)
        for happened in narration.opening_events:
            yield happened
        budget = NarrationBudget(self.seconds, scene.session.narrator, scene.session.usage)
        result: NarrationResult | TurnNotPlayed | None = None
        problem: Exception = invalid_answer_error("the answer has no final event")
        try:
            tools = self._supported_tools(scene, narration)
            calls = await run_in_thread_if_large(
                lambda: _ModelCalls(self._gateway, scene, narration, budget, tools),
                len(scene.session.snapshot),
            )
            while calls.result is None:
                request = calls.begin()
                try:
                    async with closing(self._gateway.stream(request)) as answer:
                        while (event := await calls.next_event(answer)) is not None:
                            for happened in await calls.on_event(event):
                                yield happened
                    calls.check_answer()
                except PeripetyError as error:
                    calls.on_error(error)
                    continue
                for happened in await calls.finish():
                    yield happened
            result = calls.result
        except Exception as error:  # noqa: BLE001 - the turn continues whatever a model does
            problem = error
        if result is not None:
            yield replace(result, usage=budget.usage)
            return
        async for item in _fall_back(scene, narration, problem):
            yield _with_usage(item, budget.usage)

    def _supported_tools(self, scene: NarrationContext, telling: TurnNarration) -> tuple[Tool, ...]:
        """Return the tools of the scenario, or none if the provider is known not to support them."""
        provider, _ = choose_provider(scene.session.narrator.model, self._default_provider)
        tools = telling.tool_executor.tools
        return () if provider is None or any(unsupported_tools(tools, provider)) else tools


def _with_usage(
    item: NarrationEvent | NarrationResult | TurnNotPlayed,
    usage: UsageTotal,
) -> NarrationEvent | NarrationResult | TurnNotPlayed:
    return replace(item, usage=usage) if isinstance(item, NarrationResult | TurnNotPlayed) else item


async def _fall_back(
    scene: NarrationContext,
    narration: TurnNarration,
    problem: Exception,
) -> AsyncIterator[NarrationEvent | NarrationResult | TurnNotPlayed]:
    """Finish a turn without the model: yield its events, then its result.

    After a chosen action the fallback narration is committed. Words alone are not played without a model.
    """
    reason = _degraded_reason(problem)
    _log.warning(
        "narrator gave up",
        extra={"reason": reason, **logging_setup.describe_error(problem)},
    )
    message, rejected_paths = _DEGRADED_MESSAGES[reason], _rejected_paths(problem)
    if scene.words_only:
        is_whole = rejected_paths is not None and not _was_truncated(problem)
        async for item in narration.leave_unplayed(reason, message, was_rejected=is_whole):
            yield item
        return
    for happened in narration.fall_back(reason, message, rejected_paths):
        yield happened


class _ModelCalls:
    """Model calls of one turn: the next request, and the response to each event, error and answer."""

    def __init__(
        self,
        gateway: ModelGateway,
        scene: NarrationContext,
        narration: TurnNarration,
        budget: NarrationBudget,
        tools: tuple[Tool, ...],
    ) -> None:
        self._gateway = gateway
        self._scene = scene
        self._narration = narration
        self._budget = budget
        self._tools = tools
        self._messages = build_messages(scene, narration.known_result)
        self._tool_exchanges: tuple[ChatMessage, ...] = ()
        self._tools_allowed = True
        self._repaired_before = self._repaired = False
        self._completion: Completion | None = None
        self.result: NarrationResult | TurnNotPlayed | None = None
        """Result of the narration once the turn is finished."""

    def begin(self) -> GenerateRequest:
        """Return the request of the next call, and prepare for its answer.

        Raises:
            ResourceExhaustedError: the budget is used up (code BUDGET_EXHAUSTED).
        """
        request = self._build_request()
        self._narration.begin_answer()
        self._completion = None
        return request

    async def next_event(self, answer: AsyncIterator[GatewayEvent]) -> GatewayEvent | None:
        """Return the next event; the time limit applies to the wait only, not to the consumer."""
        async with call_context.timeout_at_deadline(self._budget.seconds_left):
            return await anext(answer, None)

    async def on_event(self, event: GatewayEvent) -> Iterable[NarrationEvent]:
        """Count the usage of an event, and return the events of the turn that result from it."""
        if isinstance(event, Completed):
            self._completion = event.completion
            self._repaired_before = self._repaired
            self._repaired = self._repaired or event.completion.repaired
            self._budget.record_usage(UsageTotal.from_completion(event.completion))
        elif isinstance(event, Repairing):
            self._budget.record_usage(UsageTotal(event.calls, event.usage, None, None), ended=False)
        return await self._narration.on_event(event)

    def on_error(self, error: PeripetyError) -> None:
        """Count the usage of a failed call, and continue without tools if the request was rejected.

        Raises:
            PeripetyError: the given error, if another call is not worth a try.
        """
        if self._completion is None:
            self._budget.record_usage(usage_of_error(error))
        if self._tool_exchanges or not self._tools or not _is_request_rejected(error):
            raise error
        # Some models do not support tools, or have no context left for them.
        self._tools = ()

    def check_answer(self) -> None:
        """Raise an error if an answer is not valid after the one repair of the turn."""
        completion = self._completion
        if completion is not None and self._repaired_before and completion.findings:
            raise invalid_answer_error("the answer is not valid after its one repair", completion.findings)

    async def finish(self) -> Iterable[NarrationEvent]:
        """Execute the tool calls of an answer, or finish the turn with it, which sets the result.

        Raises:
            FailedPreconditionError: the answer is not valid (code ANSWER_INVALID).
        """
        completion = self._completion
        if completion is None:
            raise invalid_answer_error("the answer has no final event")
        if self._tools and completion.stop_reason is StopReason.TOOL_USE:
            return await self._execute_calls(completion)
        return self._finish_turn(completion)

    def _finish_turn(self, completion: Completion) -> Iterator[NarrationEvent]:
        for item in self._narration.finish(completion, repaired=self._repaired):
            if isinstance(item, NarrationResult):
                self.result = item
            else:
                yield item

    async def _execute_calls(self, completion: Completion) -> Iterable[NarrationEvent]:
        """Execute the tool calls of a model."""
        hands, calls = self._narration.tool_executor, completion.tool_calls
        if not self._tools_allowed:
            hands.reject(calls)
            raise invalid_answer_error("the narrator called tools although it must narrate")
        if not hands.can_execute(
            calls,
            [call.call_id for message in self._tool_exchanges for call in message.tool_calls],
        ):
            self._tools_allowed = False
            return ()
        results, events = await run_in_thread_if_large(
            lambda: hands.execute(calls, may_ask=not self._narration.has_streamed),
            len(self._scene.session.snapshot),
        )
        if hands.question is not None:
            question = normalize_text(hands.question).strip()
            is_fit = any(map(str.isalnum, question)) and not is_code_like(question)
            findings = await self._narration.validator.check_text(question) if is_fit else ()
            self.result = self._narration.ask_player(question if is_fit and not findings else "")
            return events
        results = await self._fill_voices(results)
        self._tool_exchanges = (
            *self._tool_exchanges,
            completion.message,
            ChatMessage(ChatRole.USER, results),
        )
        self._tools_allowed = hands.stats.tool_rounds < _MAX_TOOL_ROUNDS
        return events

    async def _fill_voices(self, results: tuple[ToolResult, ...]) -> tuple[ToolResult, ...]:
        """Return the results of a round with the words of the people that the narrator let speak."""
        filled = list(results)
        for cue in self._narration.tool_executor.cues:
            utterance = await self._voice(cue)
            told: dict[str, Any] = {"silent": True}
            if utterance is not None:
                self._narration.add_utterance(cue.entity_id, utterance)
                told = {"utterance": utterance}
            filled[cue.place] = replace(filled[cue.place], text=to_json_text(told))
        return tuple(filled)

    async def _voice(self, cue: VoiceCue) -> str | None:
        """Return the words of a person; None if the call fails, or the player may not know the words."""
        request = replace(
            actor_request(self._scene, cue, self._narration.tool_executor.known_result),
            budget=self._budget.remaining_budget(),
        )
        try:
            async with call_context.timeout_at_deadline(self._budget.seconds_left):
                completion = await self._gateway.generate(request)
        except PeripetyError as error:
            self._budget.record_usage(usage_of_error(error))
            _log.warning("a person could not be voiced", extra=logging_setup.describe_error(error))
            return None
        self._budget.record_usage(UsageTotal.from_completion(completion))
        said = completion.value["utterance"] if isinstance(completion.value, dict) else ""
        utterance = normalize_text(said).strip()
        if not any(map(str.isalnum, utterance)):
            return None
        return None if await self._narration.validator.check_text("", [utterance]) else utterance

    def _build_request(self) -> GenerateRequest:
        options = self._scene.session.narrator
        choice = None if self._tools_allowed or not self._tools else ToolChoice(ToolChoiceMode.NONE)
        return GenerateRequest(
            system=render_system_text(self._scene),
            messages=(*self._messages, *self._tool_exchanges),
            # One repair per turn, even across tool rounds.
            schema=self._narration.validator.schema(advisory=self._repaired),
            model=options.model,
            answer_tokens=self._scene.room.answer_tokens,
            reasoning_effort=ReasoningEffort.LOW,
            tools=self._tools,
            tool_choice=choice,
            cache=cache_plan(self._scene),
            budget=self._budget.remaining_budget(),
        )


def _is_request_rejected(error: PeripetyError) -> bool:
    """Return True if the provider rejected the request itself, so that a different request may succeed."""
    return isinstance(error, InvalidArgumentError) or error.code == "TOOLS_UNSUPPORTED"


def _was_truncated(error: Exception) -> bool:
    return isinstance(error, PeripetyError) and was_truncated(error)


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
