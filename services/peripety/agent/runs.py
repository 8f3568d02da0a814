"""Client operations on agent runs: start, follow, continue, rerun a phase, cancel and delete.

Neighbouring deltas of an answer are coalesced into one recorded event, so that the event log stays short.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.agent.manifest import (
    AgentRun,
    AgentRunEnded,
    AgentRunEvent,
    AgentRunState,
    PhaseProgress,
    check_manifest,
    check_replacement,
)
from peripety.agent.runner import PhaseRunner, usage_of_run
from peripety.agent.store import make_run_update
from peripety.core.idempotency.store import RequestKey
from peripety.core.runs.worker import RunClient, RunWorker
from peripety.core.validation import Page, PagePosition, decode_page_token, make_page, resolve_page_size
from peripety.errors import FailedPreconditionError, FieldViolation, InvalidArgumentError, NotFoundError
from peripety.gateway.conversations.conversation import ConversationConfig
from peripety.gateway.types.response import ReasoningDelta, TextDelta, ToolCallDelta

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peripety.agent.manifest import Manifest, Phase
    from peripety.agent.store import AgentRunStore, AgentRunSummary
    from peripety.core.runs.event_log import RunEventWriter
    from peripety.core.runs.types import RunUpdate, StartResult
    from peripety.gateway.conversations.manager import ConversationManager
    from peripety.gateway.models.model_data import ModelData
    from peripety.gateway.types.message import ToolCall, ToolResult
    from peripety.gateway.types.request import Budget


def coalesce_deltas(earlier: AgentRunEvent, later: AgentRunEvent) -> AgentRunEvent | None:
    """Return two deltas of the same text as one; None if they cannot be joined."""
    match earlier, later:
        case (TextDelta(), TextDelta()):
            return TextDelta(earlier.text + later.text)
        case (ReasoningDelta(), ReasoningDelta()):
            return ReasoningDelta(earlier.text + later.text)
        case (ToolCallDelta(), ToolCallDelta()) if earlier.call_id == later.call_id:
            return replace(earlier, arguments_text=earlier.arguments_text + later.arguments_text)
    return None


_RUN_ID_NAMESPACE = uuid.UUID("5d1b0c0e-61a4-4d52-9d5e-0f6a7a3f6c11")


class AgentRuns(RunClient[AgentRun, AgentRunEvent]):
    """All agent runs of a database.

    Args:
        store: the tables of runs.
        conversations: the conversations that hold the runs' histories.
        now: clock, in microseconds since 1970.
        find_model: returns the data of a model, or of the configured one if None.
    """

    def __init__(
        self,
        store: AgentRunStore,
        conversations: ConversationManager,
        now: Callable[[], int],
        find_model: Callable[[str | None], ModelData | None] = lambda _: None,
    ) -> None:
        self._store: AgentRunStore = store
        self._conversations = conversations
        self._now = now
        self._find_model = find_model
        super().__init__(store, RunWorker(store, self._work, now, coalesce_deltas))

    async def start(
        self,
        manifest: Manifest,
        inputs: dict[str, str],
        budget: Budget | None,
        request: RequestKey,
    ) -> StartResult[AgentRun]:
        """Start a run. Idempotent: a repeated request returns the same run.

        Raises:
            InvalidArgumentError: the manifest cannot run with these inputs.
            AlreadyExistsError: the request id was used for a different request; also raised by the other
                methods.
        """
        done = await self._store.find_by_request_id(request)
        if done is not None:
            return done
        check_manifest(manifest, inputs)
        run_id = _derive_run_id(request)
        charter = ConversationConfig(
            manifest.system,
            manifest.tools,
            manifest.history,
            _remove_time_limit(budget),
        )
        conversation = await self._conversations.create(charter, _derive_request(request, "conversation"))
        now = self._now()
        return await self._start(
            AgentRun(run_id, manifest, inputs, budget, conversation.conversation_id, now, now),
            request,
        )

    async def continue_(
        self,
        run_id: str,
        results: Sequence[ToolResult],
        request: RequestKey,
    ) -> StartResult[AgentRun]:
        """Continue a run with the tool results that it waits for. A repeated request has no effect.

        Raises:
            NotFoundError: the run does not exist; also raised by the other methods.
            FailedPreconditionError: the run does not wait for results.
            InvalidArgumentError: a result is missing, or matches no pending call.
        """

        def decide(run: AgentRun) -> RunUpdate[AgentRunEvent]:
            if run.state is not AgentRunState.WAITING_FOR_TOOLS:
                raise _wrong_state_error(run, "does not wait for tool results", "NOT_WAITING_FOR_TOOLS")
            _check_results(run.progress.pending, results)
            answered = (*run.progress.answered, tuple(results))
            return make_run_update(
                state=AgentRunState.RUNNING,
                progress=replace(run.progress, answered=answered, pending=()),
            )

        lease = self._workers.new_lease()
        started = await self._store.update(run_id, request, decide, lease)
        if started.run is not None:
            await self._workers.execute(started.run, lease, restart=False)
        return started

    async def rerun_phase(
        self,
        run_id: str,
        phase: Phase,
        *,
        include_later: bool,
        request: RequestKey,
    ) -> StartResult[AgentRun]:
        """Start a new run that repeats one phase of another.

        Idempotent: a repeated request returns the same run.

        Args:
            run_id: the original run, which is not changed.
            phase: the replacement of the phase with the same id.
            following: whether to continue with the phases after it.
            request: the idempotency key.

        Raises:
            NotFoundError: the run does not exist, or has no phase of that id.
            FailedPreconditionError: the run has not reached that phase.
            InvalidArgumentError: the phase cannot run at that position.
        """
        done = await self._store.find_by_request_id(request)
        if done is not None:
            return done
        parent = await self._store.get(run_id)
        index = _find_phase_index(phase.phase_id, parent)
        phases = parent.manifest.phases
        manifest = replace(
            parent.manifest,
            phases=(*phases[:index], phase, *(phases[index + 1 :] if include_later else ())),
        )
        check_replacement(manifest, index, parent.inputs)
        reached = parent.results[index] if index < len(parent.results) else parent.progress
        fork = await self._conversations.fork(
            parent.conversation_id,
            reached.turns_before,
            _derive_request(request, "conversation"),
        )
        now = self._now()
        run = AgentRun(
            _derive_run_id(request),
            manifest,
            parent.inputs,
            parent.budget,
            fork.conversation_id,
            now,
            now,
            parent_id=run_id,
            progress=PhaseProgress(phase=index, turns_before=reached.turns_before),
            results=parent.results[:index],
        )
        return await self._start(run, request)

    async def list(self, state: AgentRunState | None, asked_size: int, token: str) -> Page[AgentRunSummary]:
        """Return a page of runs, newest first, optionally filtered by state."""
        size = resolve_page_size(asked_size)
        found = await self._store.list_newest(state, decode_page_token(token, has_name=True), size + 1)
        return make_page(found, size, lambda one: PagePosition(one.created, one.run_id))

    async def cancel(self, run_id: str, request: RequestKey) -> AgentRun:
        """Cancel a run and retain its results. A repeated request has no effect.

        Raises:
            FailedPreconditionError: the run has ended.
        """
        run = await self._store.get(run_id)
        spent = await usage_of_run(run, self._conversations)

        def decide(run: AgentRun) -> RunUpdate[AgentRunEvent]:
            if run.state not in {AgentRunState.RUNNING, AgentRunState.WAITING_FOR_TOOLS}:
                raise _wrong_state_error(run, "has ended", "RUN_ENDED")
            progress = replace(run.progress, pending=(), spent=spent)
            return make_run_update(AgentRunEnded(run), state=AgentRunState.CANCELLED, progress=progress)

        await self._store.update(run_id, request, decide)
        await self._workers.stop(run_id)
        return await self._store.get(run_id)

    async def delete(self, run_id: str, request: RequestKey) -> None:
        """Delete a run and its conversation. A repeated request has no effect."""
        if await self._store.find_by_request_id(request) is not None:
            return
        run = await self._store.get(run_id)
        await self._workers.stop(run_id)
        # The conversation is deleted first. After a crash in between, the repeated request still finds the
        # run.
        with suppress(NotFoundError):
            await self._conversations.delete(run.conversation_id, _derive_request(request, "conversation"))
        await self._store.delete(run_id, request)

    async def _work(self, run: AgentRun, recorder: RunEventWriter[AgentRunEvent], *, anew: bool) -> None:
        runner = PhaseRunner(run, self._conversations, recorder, self._now, self._find_model)
        await runner.run(restart=anew)


def _derive_run_id(request: RequestKey) -> str:
    """Return the id of the run that a request creates.

    It is derived, so a retry after a crash finds the same run.
    """
    return str(uuid.uuid5(_RUN_ID_NAMESPACE, request.request_id))


def _derive_request(request: RequestKey, purpose: str) -> RequestKey:
    """Return a sub-request with an id derived from the request and a purpose."""
    return RequestKey(str(uuid.uuid5(uuid.UUID(request.request_id), purpose)), request.digest)


def _remove_time_limit(budget: Budget | None) -> Budget | None:
    """Return the budget of the run's conversation, without time limit.

    Only the run measures working time.
    """
    return None if budget is None else replace(budget, max_seconds=None)


def _find_phase_index(phase_id: str, run: AgentRun) -> int:
    index = next((at for at, one in enumerate(run.manifest.phases) if one.phase_id == phase_id), None)
    if index is None:
        raise NotFoundError(f".phase.phase_id: unknown phase: '{phase_id[:64]}'", code="UNKNOWN_PHASE")
    if index > run.progress.phase:
        raise _wrong_state_error(run, f"has not reached phase '{phase_id}'", "PHASE_NOT_REACHED")
    return index


def _check_results(pending: Sequence[ToolCall], results: Sequence[ToolResult]) -> None:
    given = [result.call_id for result in results]
    wanted = [call.call_id for call in pending]
    violations = [
        FieldViolation(".results", f"must contain a result for the call '{call.call_id}' of {call.name}")
        for call in pending
        if call.call_id not in given
    ]
    violations += [
        FieldViolation(f".results[{index}].call_id", "is not a pending call, or is a duplicate")
        for index, call_id in enumerate(given)
        if call_id not in wanted or call_id in given[:index]
    ]
    if violations:
        reasons = "; ".join(f"{violation.field} {violation.reason}" for violation in violations)
        raise InvalidArgumentError(f"run cannot continue: {reasons}", violations=violations)


def _wrong_state_error(run: AgentRun, problem: str, code: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"run {problem}: its state is {run.state.name}",
        code=code,
        details={"state": run.state.name},
    )
