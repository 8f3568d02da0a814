"""Executor of a run: works through its phases from the recorded position.

A phase is a model request followed by rounds of tool calls. Each round is one turn of the run's conversation.
A turn that was committed before an interruption is replayed from the conversation and never requested again.
A phase can therefore always restart from its beginning.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections import deque
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from peripety.agent.manifest import (
    AgentRunEnded,
    AgentRunState,
    PhaseCompleted,
    PhaseProgress,
    PhaseResult,
    PhaseStarted,
    ToolsRequested,
    render_template,
)
from peripety.agent.store import make_run_update
from peripety.core import call_context
from peripety.core.concurrency import closing
from peripety.core.idempotency.store import RequestKey
from peripety.core.runs.types import LostLeaseError, public_error
from peripety.errors import (
    ConflictError,
    DeadlineError,
    FailedPreconditionError,
    InternalError,
    NotFoundError,
    ResourceExhaustedError,
    UnavailableError,
)
from peripety.gateway.conversations.conversation import PendingTurn
from peripety.gateway.types.message import ChatMessage, ChatRole, ToolChoice, ToolChoiceMode, ToolResult
from peripety.gateway.types.request import GenerateRequest
from peripety.gateway.types.response import Completed, FallingBack, UsageTotal, replay_completion

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence

    from peripety.agent.manifest import AgentRun, AgentRunEvent, Phase
    from peripety.core.runs.event_log import RunEventWriter
    from peripety.gateway.conversations.manager import ConversationManager
    from peripety.gateway.models.model_data import ModelData
    from peripety.gateway.types.message import ToolCall
    from peripety.gateway.types.response import Completion, GatewayEvent


_MICROSECONDS = 1_000_000

_log = logging.getLogger(__name__)


class _TurnAlreadyCommittedError(Exception):
    """Raised when a previous lease holder committed the turn that this worker requested."""


async def usage_of_run(run: AgentRun, conversations: ConversationManager) -> UsageTotal:
    """Return the usage of a run so far. Falls back to the recorded usage if its conversation was deleted."""
    try:
        return (await conversations.get(run.conversation_id)).spent
    except NotFoundError:
        _log.warning("conversation of a run was deleted", extra={"run_id": run.run_id})
        return run.progress.spent


class PhaseRunner:
    """Execution of one run by a lease holder.

    Args:
        run: the run as stored.
        conversations: the store of its history.
        recorder: records events and renews the lease.
        now: clock, in microseconds since 1970.
        find_model: returns the data of a model, or of the configured one if None.
    """

    def __init__(
        self,
        run: AgentRun,
        conversations: ConversationManager,
        recorder: RunEventWriter[AgentRunEvent],
        now: Callable[[], int],
        find_model: Callable[[str | None], ModelData | None] = lambda _: None,
    ) -> None:
        self._find_model = find_model
        self._run = run
        self._conversations = conversations
        self._recorder = recorder
        self._now = now
        self._started_at = now()
        self._progress = run.progress
        self._answers = {result.phase_id: _quotable_text(result.completion) for result in run.results}

    async def run(self, *, restart: bool) -> None:
        """Execute phases until the run ends or waits for tools.

        Args:
            anew: True to start or restart the current phase; False to continue after the tool results that
                the run waited for.

        Raises:
            LostLeaseError: another worker holds the lease, or the run was cancelled.
            UnavailableError: the database is unavailable; the run can be resumed later.
        """
        try:
            while (phase := self._current_phase()) is not None:
                if restart:
                    await self._start_phase(phase)
                with suppress(_TurnAlreadyCommittedError):
                    if not await self._execute_phase(phase, emit=restart):
                        return
                restart = True
        except LostLeaseError:
            raise
        except Exception as error:  # error boundary: the failure is recorded as an event of the run
            if isinstance(error, UnavailableError) and error.code.startswith("STORAGE_"):
                raise
            failure = public_error(error, self._run.run_id)
            so_far = await self._current_progress()
            ended = make_run_update(
                AgentRunEnded(self._run),
                state=AgentRunState.FAILED,
                progress=so_far,
                error=failure,
            )
            await self._recorder.commit(ended)

    def _current_phase(self) -> Phase | None:
        return replace(self._run, progress=self._progress).phase

    async def _start_phase(self, phase: Phase) -> None:
        self._progress = replace(self._progress, started=self._progress.started or self._now())
        self._warn_about_reasoning(phase)
        started = PhaseStarted(phase.phase_id, self._render_input(phase))
        await self._recorder.commit(make_run_update(started, progress=self._progress))

    def _warn_about_reasoning(self, phase: Phase) -> None:
        """Log a warning if the tools of the run turn the reasoning of the model off."""
        if not self._run.manifest.tools:
            return
        data = self._find_model(phase.options.model or self._run.manifest.options.model)
        if data is not None and data.stops_reasoning_for_tools:
            use = f"phase '{phase.phase_id}' of an agent with tools"
            _log.warning(
                "the model does not reason; use a model that calls tools while it reasons",
                extra={"model": f"{data.provider}/{data.name}", "use": use, "run_id": self._run.run_id},
            )

    def _options_of(self, phase: Phase) -> dict[str, Any]:
        """Return the options of a phase; its limit is that of the answer, besides the model's thoughts."""
        options = self._run.manifest.options.set_fields() | phase.options.set_fields()
        if "max_output_tokens" in options:
            options["answer_tokens"] = options.pop("max_output_tokens")
        return options

    async def _execute_phase(self, phase: Phase, *, emit: bool) -> bool:
        """Complete a phase; return False if it waits for tools.

        Args:
            phase: the phase.
            emit: whether to emit the events of rounds whose tool results already exist.
        """
        text = self._render_input(phase)
        said = ChatMessage.user(f"{phase.system}\n\n{text}" if phase.system else text)
        spent = UsageTotal()
        answered = deque(self._progress.answered)
        for number in count():
            completion = await self._request_or_replay(phase, number, said, emit=emit or not answered)
            spent += UsageTotal.from_completion(completion)
            calls = completion.tool_calls
            if not calls:
                await self._complete_phase(phase, text, completion, spent, rounds=number + 1)
                return True
            if number >= phase.tool_rounds:
                raise _too_many_rounds_error(phase)
            wanted = tuple(call for call in calls if call.name in phase.tool_names)
            if wanted and not answered:
                await self._wait_for_tools(phase, wanted)
                return False
            said = _to_results_message(phase, calls, answered.popleft() if wanted else ())
        raise AssertionError  # pragma: no cover - the rounds are counted without end

    async def _request_or_replay(
        self,
        phase: Phase,
        number: int,
        message: ChatMessage,
        *,
        emit: bool,
    ) -> Completion:
        """Request one answer of a phase, or replay the committed one."""
        kept = await self._find_committed(number, message)
        events = self._stream_answer(phase, number, message) if kept is None else _replay(kept)
        async with closing(events):
            async for event in events:
                if isinstance(event, Completed):
                    return event.completion
                # A fallback model starts only before any delta was released, so nothing has to be retracted.
                if emit and not isinstance(event, FallingBack):
                    self._recorder.append(event)
        raise InternalError("event stream ended without a Completed event")

    async def _find_committed(self, number: int, message: ChatMessage) -> Completion | None:
        """Return the committed answer to a request of the phase; None if the turn does not exist."""
        turn = await self._conversations.turn(
            self._run.conversation_id,
            self._progress.turns_before + number + 1,
        )
        return turn.turn.completion if turn is not None and turn.turn.user_messages == (message,) else None

    async def _stream_answer(
        self,
        phase: Phase,
        number: int,
        message: ChatMessage,
    ) -> AsyncIterator[GatewayEvent]:
        # The id is derived from the run: of two workers that request the same turn, only one commits it.
        request_id = str(uuid.uuid5(uuid.UUID(self._run.run_id), f"{self._progress.phase}/{number}"))
        question = PendingTurn(
            conversation_id=self._run.conversation_id,
            request_key=RequestKey(request_id, request_id),
            request=GenerateRequest(
                None,
                (message,),
                schema=phase.schema,
                tool_choice=self._tool_choice(phase, number),
                **self._options_of(phase),
            ),
            expected_turn_count=self._progress.turns_before + number,
        )
        try:
            async with (
                call_context.timeout_at_deadline(self._remaining_seconds()),
                closing(self._conversations.stream(question)) as events,
            ):
                async for event in events:
                    yield event
        except DeadlineError:
            self._remaining_seconds()  # raises if the run's own time limit is exceeded
            raise
        except ConflictError as error:
            if await self._find_committed(number, message) is None:
                raise
            raise _TurnAlreadyCommittedError from error

    def _tool_choice(self, phase: Phase, number: int) -> ToolChoice | None:
        if not self._run.manifest.tools:
            return None
        free = phase.tool_names and number < phase.tool_rounds
        return ToolChoice(ToolChoiceMode.AUTO if free else ToolChoiceMode.NONE)

    async def _wait_for_tools(self, phase: Phase, calls: tuple[ToolCall, ...]) -> None:
        waiting = replace(await self._current_progress(), pending=calls)
        requested = ToolsRequested(phase.phase_id, calls)
        await self._recorder.commit(
            make_run_update(requested, state=AgentRunState.WAITING_FOR_TOOLS, progress=waiting),
        )

    async def _complete_phase(
        self,
        phase: Phase,
        text: str,
        completion: Completion,
        spent: UsageTotal,
        *,
        rounds: int,
    ) -> None:
        done = await self._current_progress()
        result = PhaseResult(
            phase.phase_id,
            text,
            completion,
            spent,
            done.turns_before,
            done.started,
            self._now(),
        )
        self._answers[phase.phase_id] = _quotable_text(completion)
        self._progress = PhaseProgress(
            done.phase + 1,
            done.turns_before + rounds,
            worked=done.worked,
            spent=done.spent,
        )
        self._started_at = self._now()
        completed: list[AgentRunEvent] = [PhaseCompleted(result)]
        state = None
        if self._current_phase() is None:
            completed.append(AgentRunEnded(self._run))
            state = AgentRunState.COMPLETED
        await self._recorder.commit(make_run_update(*completed, state=state, progress=self._progress))

    def _render_input(self, phase: Phase) -> str:
        return render_template(phase.input_template, self._run.inputs, self._answers)

    async def _current_progress(self) -> PhaseProgress:
        """Return the progress with the usage so far."""
        return replace(
            self._progress,
            worked=self._working_time(),
            spent=await usage_of_run(self._run, self._conversations),
        )

    def _working_time(self) -> int:
        return self._progress.worked + self._now() - self._started_at

    def _remaining_seconds(self) -> float | None:
        budget = self._run.budget
        if budget is None or budget.max_seconds is None:
            return None
        left = budget.max_seconds - self._working_time() / _MICROSECONDS
        if left <= 0:
            raise ResourceExhaustedError(
                f"run exceeded the time limit of its budget: {budget.max_seconds:g} s;"
                " start a new run with more, or rerun its last phase",
                code="BUDGET_EXHAUSTED",
            ) from None
        return left


async def _replay(completion: Completion) -> AsyncIterator[GatewayEvent]:
    for event in replay_completion(completion):
        yield event


def _quotable_text(completion: Completion) -> str:
    """Return the text that later phases may quote: only the JSON value, if there is one."""
    if completion.value is None:
        return completion.text
    return json.dumps(completion.value, ensure_ascii=False, separators=(",", ":"))


def _to_results_message(
    phase: Phase,
    calls: Iterable[ToolCall],
    submitted: Sequence[ToolResult],
) -> ChatMessage:
    """Return the submitted tool results, and an error for each call that the phase does not allow."""
    by_call = {result.call_id: result for result in submitted}
    offered = ", ".join(phase.tool_names) or "none"
    refusal = f"This tool cannot be called now. Tools that can be called now: {offered}."
    parts = (by_call.get(call.call_id, ToolResult(call.call_id, refusal, is_error=True)) for call in calls)
    return ChatMessage(ChatRole.USER, tuple(parts))


def _too_many_rounds_error(phase: Phase) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"phase '{phase.phase_id}': the model called tools in more than {phase.tool_rounds} rounds;"
        " raise max_tool_rounds, or simplify the task",
        code="TOOL_ROUNDS_USED_UP",
    )
