"""Client operations on agent runs: start, follow, continue, rerun a phase, cancel, delete."""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.durable.requests import Request
from peripety.durable.runs import DurableRuns
from peripety.durable.workers import Workers
from peripety.errors import FailedPreconditionError, FieldViolation, InvalidArgumentError, NotFoundError
from peripety.gateway.agents.changes import changed
from peripety.gateway.agents.checks import check_manifest, check_replaced
from peripety.gateway.agents.joining import joined
from peripety.gateway.agents.model import Progress, Run, RunEnded, RunEvent, RunState
from peripety.gateway.agents.working import Work, spent_on
from peripety.gateway.conversations.model import Charter
from peripety.pages import Page, Position, page_of, page_size, position_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from peripety.durable.model import Change, Started
    from peripety.durable.recorder import Recorder
    from peripety.gateway.agents.changes import RunSummary
    from peripety.gateway.agents.model import Manifest, Phase
    from peripety.gateway.agents.store import RunStore
    from peripety.gateway.conversations.conversations import Conversations
    from peripety.gateway.model import Budget, ToolCall, ToolResult

__all__ = ["Runs"]

_RUNS = uuid.UUID("5d1b0c0e-61a4-4d52-9d5e-0f6a7a3f6c11")


class Runs(DurableRuns[Run, RunEvent]):
    """All agent runs of a database.

    Args:
        store: the tables of runs.
        conversations: the conversations that hold the runs' histories.
        now: clock, in microseconds since 1970.
    """

    def __init__(self, store: RunStore, conversations: Conversations, now: Callable[[], int]) -> None:
        self._store = store
        self._conversations = conversations
        self._now = now
        super().__init__(store, Workers(store, self._work, now, joined))

    async def start(
        self, manifest: Manifest, inputs: dict[str, str], budget: Budget | None, request: Request
    ) -> Started[Run]:
        """Start a run. Idempotent: a repeated request returns the same run.

        Raises:
            InvalidArgumentError: the manifest cannot run with these inputs.
            AlreadyExistsError: the request id was used for a different request; also raised by the other
                methods.
        """
        done = await self._store.started_by(request)
        if done is not None:
            return done
        check_manifest(manifest, inputs)
        run_id = _id_from(request)
        charter = Charter(manifest.system, manifest.tools, manifest.history, _without_time(budget))
        conversation = await self._conversations.create(charter, _derived(request, "conversation"))
        now = self._now()
        return await self._add(
            Run(run_id, manifest, inputs, budget, conversation.conversation_id, now, now), request
        )

    async def go_on(self, run_id: str, results: Sequence[ToolResult], request: Request) -> Started[Run]:
        """Continue a run with the tool results that it waits for. A repeated request has no effect.

        Raises:
            NotFoundError: the run does not exist; also raised by the other methods.
            FailedPreconditionError: the run does not wait for results.
            InvalidArgumentError: a result is missing, or matches no pending call.
        """

        def decide(run: Run) -> Change[RunEvent]:
            if run.state is not RunState.WAITING_FOR_TOOLS:
                raise _wrong_state(run, "does not wait for tool results", "NOT_WAITING_FOR_TOOLS")
            _check_results(run.progress.pending, results)
            answered = (*run.progress.answered, tuple(results))
            return changed(
                state=RunState.RUNNING, progress=replace(run.progress, answered=answered, pending=())
            )

        lease = self._workers.new_lease()
        started = await self._store.change(run_id, request, decide, lease)
        if started.run is not None:
            await self._workers.work_on(started.run, lease, anew=False)
        return started

    async def do_anew(self, run_id: str, phase: Phase, *, following: bool, request: Request) -> Started[Run]:
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
        done = await self._store.started_by(request)
        if done is not None:
            return done
        parent = await self._store.get(run_id)
        index = _index_of(phase.phase_id, parent)
        phases = parent.manifest.phases
        manifest = replace(
            parent.manifest, phases=(*phases[:index], phase, *(phases[index + 1 :] if following else ()))
        )
        check_replaced(manifest, index, parent.inputs)
        reached = parent.results[index] if index < len(parent.results) else parent.progress
        fork = await self._conversations.fork(
            parent.conversation_id, reached.turns_before, _derived(request, "conversation")
        )
        now = self._now()
        run = Run(
            _id_from(request),
            manifest,
            parent.inputs,
            parent.budget,
            fork.conversation_id,
            now,
            now,
            parent_id=run_id,
            progress=Progress(phase=index, turns_before=reached.turns_before),
            results=parent.results[:index],
        )
        return await self._add(run, request)

    async def list(self, state: RunState | None, asked_size: int, token: str) -> Page[RunSummary]:
        """Return a page of runs, newest first, optionally filtered by state."""
        size = page_size(asked_size)
        found = await self._store.newest(state, position_in(token, named=True), size + 1)
        return page_of(found, size, lambda one: Position(one.created, one.run_id))

    async def cancel(self, run_id: str, request: Request) -> Run:
        """Cancel a run and retain its results. A repeated request has no effect.

        Raises:
            FailedPreconditionError: the run has ended.
        """
        run = await self._store.get(run_id)
        spent = await spent_on(run, self._conversations)

        def decide(run: Run) -> Change[RunEvent]:
            if run.state not in {RunState.RUNNING, RunState.WAITING_FOR_TOOLS}:
                raise _wrong_state(run, "has ended", "RUN_ENDED")
            progress = replace(run.progress, pending=(), spent=spent)
            return changed(RunEnded(run), state=RunState.CANCELLED, progress=progress)

        await self._store.change(run_id, request, decide)
        await self._workers.stop(run_id)
        return await self._store.get(run_id)

    async def delete(self, run_id: str, request: Request) -> None:
        """Delete a run and its conversation. A repeated request has no effect."""
        if await self._store.started_by(request) is not None:
            return
        run = await self._store.get(run_id)
        await self._workers.stop(run_id)
        # The conversation is deleted first. After a crash in between, the repeated request still finds the
        # run.
        with suppress(NotFoundError):
            await self._conversations.delete(run.conversation_id, _derived(request, "conversation"))
        await self._store.delete(run_id, request)

    async def _work(self, run: Run, recorder: Recorder[RunEvent], *, anew: bool) -> None:
        await Work(run, self._conversations, recorder, self._now).go(anew=anew)


def _id_from(request: Request) -> str:
    """Return the id of the run that a request creates.

    It is derived, so a retry after a crash finds the same run.
    """
    return str(uuid.uuid5(_RUNS, request.request_id))


def _derived(request: Request, purpose: str) -> Request:
    """Return a sub-request with an id derived from the request and a purpose."""
    return Request(str(uuid.uuid5(uuid.UUID(request.request_id), purpose)), request.digest)


def _without_time(budget: Budget | None) -> Budget | None:
    """Return the budget of the run's conversation, without time limit.

    Only the run measures working time.
    """
    return None if budget is None else replace(budget, max_seconds=None)


def _index_of(phase_id: str, run: Run) -> int:
    index = next((at for at, one in enumerate(run.manifest.phases) if one.phase_id == phase_id), None)
    if index is None:
        raise NotFoundError(f".phase.phase_id: unknown phase: '{phase_id[:64]}'", code="UNKNOWN_PHASE")
    if index > run.progress.phase:
        raise _wrong_state(run, f"has not reached phase '{phase_id}'", "PHASE_NOT_REACHED")
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


def _wrong_state(run: Run, problem: str, code: str) -> FailedPreconditionError:
    return FailedPreconditionError(
        f"run {problem}: its state is {run.state.name}", code=code, details={"state": run.state.name}
    )
