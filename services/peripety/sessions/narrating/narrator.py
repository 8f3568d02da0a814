"""Narrator of turns: a language model that may act, read and roll dice with tools, and then writes the prose.

The model sees only what the point of view may see, and decides nothing: the engine validates every call and
every change. Its prose is streamed while it is written. Whatever fails, the turn gets a narration.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety import context, logs
from peripety.config import ProviderName
from peripety.errors import DeadlineError, InvalidArgumentError, PeripetyError
from peripety.gateway.choosing import choose_provider
from peripety.gateway.model import (
    ChatMessage,
    ChatRole,
    Completed,
    GenerateRequest,
    Repairing,
    Spent,
    StopReason,
    ToolChoice,
    ToolChoiceMode,
)
from peripety.gateway.streams import following
from peripety.gateway.tool_limits import not_taken
from peripety.gateway.used import used_by
from peripety.sessions.narrating.allowance import Allowance
from peripety.sessions.narrating.context import cache_plan, fixed_bytes, question, system_text
from peripety.sessions.narrating.telling import Telling, Told, invalid
from peripety.tasks import aside

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from peripety.gateway.model import Completion, GatewayEvent, ModelGateway, Tool
    from peripety.sessions.narrating.scene import Scene
    from peripety.sessions.narrating.telling import Happening

__all__ = ["DEFAULT_SECONDS", "Narrator", "Told"]

DEFAULT_SECONDS = 90.0
"""Default time limit of a narration in seconds, including its repair."""

_TOOL_ROUNDS = 4
_OUTPUT_TOKENS = 1_024
_ANSWER_INVALID = "ANSWER_INVALID"
_REASON_OF_CODE = {
    _ANSWER_INVALID: "OUTCOME_INVALID",
    "ANSWER_REFUSED": "OUTCOME_INVALID",
    "BUDGET_EXHAUSTED": "BUDGET_EXHAUSTED",
}
_PROBLEMS = {
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
        seconds: float = DEFAULT_SECONDS,
    ) -> None:
        self._gateway = gateway
        self._configured = configured
        self._seconds = seconds

    async def tell(self, scene: Scene) -> AsyncGenerator[Happening | Told, None]:
        """Narrate a turn: yield its events as they occur, then the result. Model errors are not raised."""
        telling = Telling(scene)
        for happened in telling.opening:
            yield happened
        allowance = Allowance(self._seconds, scene.session.narrator, scene.session.usage)
        told: Told | None = None
        problem: Exception = invalid("the answer has no final event")
        try:
            tools = self._tools(scene, telling)
            questions = await aside(
                lambda: _Questions(scene, telling, allowance, self._gateway, tools),
                len(scene.session.snapshot),
            )
            async with following(questions.ask()) as happening:
                async for item in happening:
                    if isinstance(item, Told):
                        told = item
                    else:
                        yield item
        except Exception as error:  # noqa: BLE001 - the turn continues whatever a model does
            problem = error
        if told is None:
            reason = _reason(problem)
            _log.warning("narrator gave up", extra={"reason": reason, **logs.outline(problem)})
            for item in telling.give_up(reason, _PROBLEMS[reason], _refused_in(problem)):
                if isinstance(item, Told):
                    told = item
                else:
                    yield item
        assert told is not None  # noqa: S101 - the fallback ends with Told
        yield replace(told, usage=allowance.used)

    def _tools(self, scene: Scene, telling: Telling) -> tuple[Tool, ...]:
        """Return the tools of the scenario, or none if the provider is known not to support them."""
        provider, _ = choose_provider(scene.session.narrator.model, self._configured)
        tools = telling.hands.tools
        return () if provider is None or any(not_taken(tools, provider)) else tools


class _Questions:
    """Loop of model calls for one turn, until it is narrated."""

    def __init__(
        self,
        scene: Scene,
        telling: Telling,
        allowance: Allowance,
        gateway: ModelGateway,
        tools: tuple[Tool, ...],
    ) -> None:
        self._scene = scene
        self._telling = telling
        self._allowance = allowance
        self._gateway = gateway
        self._tools = tools
        beside = fixed_bytes(tools)
        self._question = ChatMessage.user(question(scene, telling.known, beside=beside))
        self._said: tuple[ChatMessage, ...] = ()
        self._may_call = True
        self._repaired = False
        self._completion: Completion | None = None

    async def ask(self) -> AsyncGenerator[Happening | Told, None]:
        """Call the model, execute its tool calls, and repeat; the last item is the result.

        Raises:
            PeripetyError: the reason why the narration failed.
        """
        while True:
            try:
                async with following(self._follow()) as happening:
                    async for happened in happening:
                        yield happened
            except PeripetyError as error:
                if self._said or not self._tools or not _refuses_the_question(error):
                    raise
                # Some models do not support tools, or have no context left for them.
                self._tools = ()
                continue
            completion = self._completion
            if completion is None:
                raise invalid("the answer has no final event")
            if not (self._tools and completion.stop_reason is StopReason.TOOL_USE):
                for item in self._telling.finish(completion, repaired=self._repaired):
                    yield item
                return
            async with following(self._answer(completion)) as answered:
                async for happened in answered:
                    yield happened

    async def _follow(self) -> AsyncGenerator[Happening, None]:
        """Stream the answer to one model call to its end."""
        request = self._request()
        self._telling.expect()
        self._completion = None
        try:
            async with following(self._gateway.stream(request)) as answer:
                while (event := await self._next(answer)) is not None:
                    if isinstance(event, Completed):
                        self._end(event.completion)
                    elif isinstance(event, Repairing):
                        self._allowance.note(Spent(event.calls, event.usage, None, None), ended=False)
                    async with following(self._telling.take(event)) as happening:
                        async for happened in happening:
                            yield happened
        except PeripetyError as error:
            if self._completion is None:
                self._allowance.note(used_by(error))
            raise
        completion = self._completion
        if completion is not None and self._repaired_before and completion.findings:
            raise invalid("the answer is not valid after its one repair", completion.findings)

    async def _next(self, answer: AsyncIterator[GatewayEvent]) -> GatewayEvent | None:
        """Return the next event; the time limit applies to the wait only, not to the consumer."""
        async with context.bounded(self._allowance.seconds):
            return await anext(answer, None)

    def _end(self, completion: Completion) -> None:
        self._completion = completion
        self._repaired_before, self._repaired = self._repaired, self._repaired or completion.repaired
        self._allowance.note(Spent.on(completion))

    async def _answer(self, completion: Completion) -> AsyncGenerator[Happening, None]:
        """Execute the tool calls of a model."""
        hands, calls = self._telling.hands, completion.tool_calls
        if not self._may_call:
            hands.refuse(calls)
            raise invalid("the narrator called tools although it must narrate")
        if not hands.takes(calls, [call.call_id for message in self._said for call in message.tool_calls]):
            self._may_call = False
            return
        results, events = await aside(lambda: hands.carry_out(calls), len(self._scene.session.snapshot))
        for event in events:
            yield event
        self._said = (*self._said, completion.message, ChatMessage(ChatRole.USER, results))
        self._may_call = hands.conduct.tool_rounds < _TOOL_ROUNDS

    def _request(self) -> GenerateRequest:
        options = self._scene.session.narrator
        choice = None if self._may_call or not self._tools else ToolChoice(ToolChoiceMode.NONE)
        return GenerateRequest(
            system=system_text(self._scene),
            messages=(self._question, *self._said),
            # One repair per turn, even across tool rounds.
            schema=self._telling.outcomes.schema(advisory=self._repaired),
            model=options.model,
            max_output_tokens=_OUTPUT_TOKENS,
            tools=self._tools,
            tool_choice=choice,
            cache=cache_plan(self._scene),
            budget=self._allowance.budget(),
        )


def _refuses_the_question(error: PeripetyError) -> bool:
    """Return True if the provider rejected the request itself, so that a different request may succeed."""
    return isinstance(error, InvalidArgumentError) or error.code == "TOOLS_NOT_TAKEN"


def _refused_in(error: Exception) -> list[str] | None:
    """Return the paths of the errors in the last answer, or None if it was not rejected."""
    if isinstance(error, PeripetyError) and error.code == _ANSWER_INVALID:
        return [violation.field for violation in error.violations]
    return None


def _reason(error: Exception) -> str:
    if isinstance(error, DeadlineError):
        return "NARRATOR_TIMEOUT"
    if isinstance(error, PeripetyError):
        return _REASON_OF_CODE.get(error.code, "MODEL_UNAVAILABLE")
    return "NARRATOR_FAILED"
