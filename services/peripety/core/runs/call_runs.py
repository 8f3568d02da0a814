"""Durable runs of streaming calls: a call whose work outlives its client.

The run of a call stores the request and the responses as the messages that the call receives and sends, so
any service can make a streaming call durable without tables of its own. The stream only follows the run. A
process that continues a run repeats its work with the answers that the run has received (`RunAnswers`), and
records only the responses that the log does not have yet.
"""

from __future__ import annotations

import hashlib
import uuid
from base64 import b64decode, b64encode
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from sqlalchemy import Column, LargeBinary, Text, delete, select

from peripety.core import call_context
from peripety.core.concurrency import closing
from peripety.core.idempotency.store import IdempotencyStore, PendingResponse, RequestKey
from peripety.core.idempotency.stream import request_fingerprint
from peripety.core.runs import store as durable
from peripety.core.runs.store import (
    RunAnswers,
    answer_table,
    current_answers,
    run_tables,
    unknown_run_error,
)
from peripety.core.runs.types import (
    RUNNING,
    LostLeaseError,
    RunUpdate,
    StartResult,
    decode_error,
    encode_error,
    public_error,
)
from peripety.core.runs.worker import RunClient, RunWorker
from peripety.core.validation import (
    Page,
    PagePosition,
    check_request_id,
    decode_page_token,
    make_page,
    resolve_page_size,
)
from peripety.errors import (
    FailedPreconditionError,
    InternalError,
    NotFoundError,
    ResourceExhaustedError,
    UnavailableError,
    require_field,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from peripety.core.runs.event_log import RunEventWriter
    from peripety.core.runs.types import Lease, RecordedEvent
    from peripety.core.storage.database import Database
    from peripety.errors import PeripetyError


class CallRunState(Enum):
    """State of a run of a call."""

    RUNNING = RUNNING
    COMPLETED = "completed"
    REJECTED = "rejected"
    """The work ended without a result; its last event has the reasons."""
    FAILED = "failed"
    """The work stopped with an error; the same request continues it."""
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class CallRun:
    """A run of a call.

    Attributes:
        run_id: id of the run.
        method: name of the call, such as `GenerateScenario`.
        caller: the caller that started it, see `call_context.caller`; no other caller can reach it.
        digest: digest of everything that determines the work; equal work has the same one.
        title: beginning of the text that the call was given, for lists.
        request: the request message, encoded.
        created: creation time in microseconds since 1970.
        updated: time of the last event in microseconds since 1970.
        state: its state.
        error: the error of a failed run; None for any other.
        last_sequence: sequence of the last event.
    """

    run_id: str
    method: str
    caller: str
    digest: str
    title: str
    request: bytes
    created: int
    updated: int
    state: CallRunState = CallRunState.RUNNING
    error: PeripetyError | None = None
    last_sequence: int = 0


@dataclass(frozen=True, slots=True)
class CallEvent:
    """A response of a call: the name of its event, and the message without sequence and run id."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class CallMethod:
    """A streaming call whose work is a run.

    Its messages have the fields `request_id`, `after_sequence` and `sequence`, `run_id`, and the oneof
    `event`, in which `progress` has a `fraction`.

    Attributes:
        request_type: type of the request message; it names the call.
        response_type: type of the response messages.
        check: raises the error of a request that cannot be executed, before a run is stored.
        work: yields the events of a request.
        respond: converts an event to a response; a pending one is made when the run completes.
        title: returns the text of a request that names the run in lists.
        endings: the states in which the last events leave a run, by their names.
        without_times: returns a response without the times in it, to compare it with a repeated one.
    """

    request_type: Any
    response_type: Any
    check: Callable[[Any], Awaitable[None]]
    work: Callable[[Any], AsyncIterator[Any]]
    respond: Callable[[Any], Any]
    title: Callable[[Any], str]
    endings: Mapping[str, CallRunState]
    without_times: Callable[[Any], Any] = lambda response: response

    @property
    def name(self) -> str:
        """Name of the call."""
        return _call_name(self.request_type)


_RETENTION_MICROS = 7 * 24 * 3600 * 1_000_000
_TITLE_CHARACTERS = 80
_MAX_BYTES = 64 * 1024 * 1024
_MAX_ACTIVE_RUNS = 256
_WHOLE_LOG = 1_000_000
_RUN_ID_NAMESPACE = uuid.UUID("2f6d4b0e-5b5c-4c0b-9a35-8f0e6f1d7c42")

_tables = run_tables(
    "call",
    Column("method", Text, nullable=False),
    Column("caller", Text, nullable=False),
    Column("digest", Text, nullable=False, index=True),
    Column("title", Text, nullable=False),
    Column("request", LargeBinary, nullable=False),
    Column("error", Text),
)
_runs = _tables.runs
_answers = answer_table(_runs, "call_answers")


class CallRunStore(durable.RunStore[CallRun, CallEvent]):
    """Tables of the runs of calls, of all services, with their events, answers and requests.

    A run that has ended, or that nothing works on, is deleted 7 days after its last event.

    Args:
        database: the database of the process.
        now: returns the time in microseconds since 1970; see the base class.
    """

    def __init__(self, database: Database, now: Callable[[], int]) -> None:
        super().__init__(database, _tables, now)
        # Calls that are not runs share the request ids: an id names one request of any call.
        self._answered_requests = IdempotencyStore(database, now=now)

    def answers_of(self, run_id: str) -> RunAnswers:
        """Return the answers of a run, for one execution of it."""
        return RunAnswers(self._database, _runs, _answers, run_id)

    async def start(self, run: CallRun, lease: Lease, request: RequestKey) -> StartResult[CallRun]:
        """Store a new run, or find the one that a request continues.

        A request that was executed before has its run. Another one joins a run of the same caller with equal
        work that has not ended. A failed run gets work to do again in both cases.

        Args:
            run: the run to store if there is none yet.
            lease: its lease.
            request: the request.

        Returns:
            The run if the caller must work on it.

        Raises:
            AlreadyExistsError: the request id was used for a different request.
        """
        async with self._database.write() as connection:
            done = await self._find_request(connection, request)
            run_id = await self._find_equal(connection, run) if done is None else done.run_id
            if done is None:
                if await self._answered_requests.find(connection, request) is None:
                    await self._answered_requests.record(connection, request)
                await self._requests.record(connection, request, run_id=run_id or run.run_id, sequence=0)
            if run_id is not None:
                return await self._take_up(connection, run_id, lease)
            await self._delete_expired(connection)
            await self._insert_run(connection, run, lease)
        return StartResult(run.run_id, 0, run)

    async def list_newest(
        self,
        caller: str,
        methods: Collection[str],
        state: CallRunState | None,
        before: tuple[Any, ...] | None,
        limit: int,
    ) -> list[CallRun]:
        """Return the runs of a caller, newest first, without their requests.

        Args:
            caller: the caller.
            methods: names of the calls.
            state: only runs in this state; None for all.
            before: creation time and id of the last run of the previous page.
            limit: maximum number of runs.
        """
        columns = _runs.c
        conditions = [columns.caller == caller, columns.method.in_(methods)]
        if state is not None:
            conditions.append(columns.state == state.value)
        selected = [column for column in columns if column is not columns.request]
        rows = await self._list_newest(selected, conditions, before, limit)
        return [_run_of_row(row, b"") for row in rows]

    async def _find_equal(self, connection: AsyncConnection, run: CallRun) -> str | None:
        """Return the newest run of the same caller with equal work that has not ended, or None."""
        columns = _runs.c
        unfinished = (CallRunState.RUNNING.value, CallRunState.FAILED.value)
        query = select(columns.run_id).where(
            columns.digest == run.digest,
            columns.caller == run.caller,
            columns.state.in_(unfinished),
        )
        found: str | None = await connection.scalar(query.order_by(columns.created.desc()).limit(1))
        return found

    async def _take_up(
        self,
        connection: AsyncConnection,
        run_id: str,
        lease: Lease,
    ) -> StartResult[CallRun]:
        """Give a failed run work to do; another run is followed as it is."""
        row = await self._load_row(connection, run_id)
        if row.state != CallRunState.FAILED.value:
            return StartResult(run_id, 0)
        await self._update_columns(
            connection,
            run_id,
            state=RUNNING,
            lease=lease.name,
            leased_until=lease.until,
            error=None,
        )
        return StartResult(run_id, 0, await self._read(connection, run_id))

    async def _delete_expired(self, connection: AsyncConnection) -> None:
        now = self._now()
        idle = (_runs.c.state != RUNNING) | (_runs.c.leased_until <= now)
        await connection.execute(delete(_runs).where(_runs.c.updated < now - _RETENTION_MICROS, idle))

    def _run_columns(self, run: CallRun) -> dict[str, Any]:
        return {
            "method": run.method,
            "caller": run.caller,
            "digest": run.digest,
            "title": run.title,
            "request": run.request,
            "error": None,
        }

    def _encode_event(self, event: CallEvent) -> tuple[str, str]:
        return event.name, b64encode(event.data).decode()

    async def _run_from_row(self, _connection: AsyncConnection, row: Row[Any]) -> CallRun:
        return _run_of_row(row, row.request)

    async def _event_from_row(self, _connection: AsyncConnection, row: Row[Any]) -> CallEvent:
        return CallEvent(row.kind, b64decode(row.body))


def _run_of_row(row: Row[Any], request: bytes) -> CallRun:
    return CallRun(
        run_id=row.run_id,
        method=row.method,
        caller=row.caller,
        digest=row.digest,
        title=row.title,
        request=request,
        created=row.created,
        updated=row.updated,
        state=CallRunState(row.state),
        error=decode_error(row.error),
        last_sequence=row.last_sequence,
    )


class CallRuns(RunClient[CallRun, CallEvent]):
    """The runs of the calls of one service.

    Args:
        store: stores the runs.
        methods: the calls.
        configured: fingerprint of the configuration that work depends on besides its request.
        now: returns the time in microseconds since 1970.
    """

    def __init__(
        self,
        store: CallRunStore,
        methods: Iterable[CallMethod],
        configured: str,
        now: Callable[[], int],
    ) -> None:
        self._store: CallRunStore = store
        self._methods = {method.name: method for method in methods}
        self._configured = configured
        self._now = now
        super().__init__(store, RunWorker(store, self._work, now))

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        """Start or continue the run of a request, and yield its responses until it ends.

        Leaving the iteration early does not stop the run.

        Args:
            request: the request message of one of the calls.

        Raises:
            InvalidArgumentError: the request is invalid.
            NotFoundError: `after_sequence` is set, but the request has no run.
            AlreadyExistsError: the request id was used for a different request.
            FailedPreconditionError: the run was cancelled.
            ResourceExhaustedError: this process executes too many runs.
            PeripetyError: the error of a failed run.
        """
        method = self._methods[_call_name(request)]
        check_request_id(request.request_id)
        require_field(request.after_sequence >= 0, ".after_sequence", "must not be negative")
        key = RequestKey(request.request_id, _scope_digest(request_fingerprint(request)))
        if await self._store.find_by_request_id(key) is None:
            if request.after_sequence:
                raise NotFoundError(
                    "no recorded responses for this request; send it again with after_sequence 0",
                    code="WORK_NOT_FOUND",
                )
            await method.check(request)
            self._require_room()
        lease = self._workers.new_lease()
        started = await self._store.start(self._new_run(method, request), lease, key)
        if started.run is not None:
            await self._workers.execute(started.run, lease, restart=True)
        async with closing(self._follow_responses(started.run_id, request.after_sequence)) as responses:
            async for response in responses:
                yield response

    async def resume_stream(
        self,
        run_id: str,
        after: int,
        *,
        recorded_only: bool = False,
    ) -> AsyncIterator[Any]:
        """Yield the responses of a run after a sequence, as messages of its call; see `stream`.

        Args:
            run_id: the run.
            after: number of responses to skip.
            recorded_only: True to end after the recorded responses, without continuing the run.

        Raises:
            NotFoundError: the caller has no such run; also for all methods below.
            InvalidArgumentError: the sequence is beyond the last event.
        """
        run = await self.get(run_id)
        reason = f"must be from 0 to {run.last_sequence}, the last event"
        require_field(0 <= after <= run.last_sequence, ".after_sequence", reason)
        if recorded_only:
            response_type = self._methods[run.method].response_type
            for recorded in (await self._store.read_log(run_id, after, _WHOLE_LOG)).events:
                yield _to_response(response_type, run_id, recorded)
            return
        async with closing(self._follow_responses(run_id, after)) as responses:
            async for response in responses:
                yield response

    async def get(self, run_id: str) -> CallRun:
        """Return a run of the caller."""
        run = await self._store.get(run_id)
        if run.caller != call_context.caller() or run.method not in self._methods:
            raise unknown_run_error(run_id)
        return run

    async def list(self, state: CallRunState | None, asked_size: int, token: str) -> Page[CallRun]:
        """Return a page of the caller's runs, newest first, optionally filtered by state."""
        size, caller = resolve_page_size(asked_size), call_context.caller()
        before = decode_page_token(token, has_name=True)
        found = await self._store.list_newest(caller, self._methods.keys(), state, before, size + 1)
        return make_page(found, size, lambda one: PagePosition(one.created, one.run_id))

    async def cancel(self, run_id: str, request: RequestKey) -> CallRun:
        """Cancel a run and retain its events; a repeated request has no effect.

        Raises:
            FailedPreconditionError: the run has ended.
        """

        def decide(run: CallRun) -> RunUpdate[CallEvent]:
            if run.state is not CallRunState.RUNNING:
                raise FailedPreconditionError("run has already ended", code="RUN_ENDED")
            return RunUpdate(state=CallRunState.CANCELLED.value)

        await self.get(run_id)
        await self._store.update(run_id, request, decide)
        await self._workers.stop(run_id)
        return await self._store.get(run_id)

    async def delete(self, run_id: str, request: RequestKey) -> None:
        """Delete a run with its events; a repeated request has no effect."""
        if await self._store.find_by_request_id(request) is not None:
            return
        await self.get(run_id)
        await self._store.delete(run_id, request)
        await self._workers.stop(run_id)

    def _new_run(self, method: CallMethod, request: Any) -> CallRun:
        now = self._now()
        work = type(request)()
        work.CopyFrom(request)
        work.ClearField("request_id")
        return CallRun(
            run_id=str(uuid.uuid5(_RUN_ID_NAMESPACE, request.request_id)),
            method=method.name,
            caller=call_context.caller(),
            digest=hashlib.sha256(f"{self._configured}\n{request_fingerprint(work)}".encode()).hexdigest(),
            title=" ".join(method.title(request).split())[:_TITLE_CHARACTERS],
            request=request.SerializeToString(),
            created=now,
            updated=now,
        )

    def _require_room(self) -> None:
        if self._workers.active_count >= _MAX_ACTIVE_RUNS:
            raise ResourceExhaustedError(
                f"server executes {_MAX_ACTIVE_RUNS} runs, its limit; retry after a second",
                code="TOO_MANY_CALLS",
                retry_after=1.0,
            )

    async def _follow_responses(self, run_id: str, after: int) -> AsyncIterator[Any]:
        run = await self.get(run_id)
        response_type = self._methods[run.method].response_type
        async with closing(self.follow(run_id, after)) as events:
            async for recorded in events:
                yield _to_response(response_type, run_id, recorded)
        run = await self._store.get(run_id)
        if run.error is not None:
            raise run.error
        if run.state is CallRunState.CANCELLED:
            raise FailedPreconditionError("run was cancelled; start a new one", code="RUN_ENDED")

    async def _work(self, run: CallRun, recorder: RunEventWriter[CallEvent], *, anew: bool) -> None:  # noqa: ARG002
        try:
            await self._execute(run, recorder)
        except LostLeaseError:
            raise
        except Exception as error:  # error boundary: the failure is stored with the run
            if isinstance(error, UnavailableError) and error.code.startswith("STORAGE_"):
                raise
            failure = encode_error(public_error(error, run.run_id))
            await recorder.commit(RunUpdate(state=CallRunState.FAILED.value, values={"error": failure}))

    async def _execute(self, run: CallRun, recorder: RunEventWriter[CallEvent]) -> None:
        """Do the work of a run, and record the responses that its log does not have.

        Raises:
            ResourceExhaustedError: the responses exceed the size limit of a run.
            PeripetyError: as raised by the work.
        """
        method = self._methods[run.method]
        log = (await self._store.read_log(run.run_id, 0, _WHOLE_LOG)).events
        recorded = _RecordedResponses(method, (one.event for one in log))
        current_answers.set(self._store.answers_of(run.run_id))
        request, has_ended = method.request_type.FromString(run.request), False
        async with closing(method.work(request)) as events:
            async for event in events:
                response = method.respond(event)
                if isinstance(response, PendingResponse):
                    # First the buffered events: a failure of the last one must not lose them.
                    await recorder.commit(RunUpdate())
                    ended = RunUpdate(state=CallRunState.COMPLETED.value, pending=response.map(_to_event))
                    await recorder.commit(ended)
                    has_ended = True
                    continue
                told = _to_event(response)
                ending = method.endings.get(told.name)
                if ending is not None:
                    await recorder.commit(RunUpdate((told,), state=ending.value))
                    has_ended = True
                elif recorded.is_new(response):
                    recorded.size += len(told.data)
                    if recorded.size > _MAX_BYTES:
                        raise _too_large_error()
                    if told.name == _PROGRESS:
                        recorder.append(told)
                    else:
                        # Written at once, so that a cancelled run has each draft.
                        await recorder.commit(RunUpdate((told,)))
        if not has_ended:
            raise InternalError("the work of a call ended without a result")


_PROGRESS = "progress"


class _RecordedResponses:
    """Responses in the log of a run that is continued: its repeated work yields them again.

    They are compared by content, because concurrent work may yield them in another order. Progress is new if
    it goes beyond the recorded one.
    """

    def __init__(self, method: CallMethod, events: Iterable[CallEvent]) -> None:
        self._method = method
        self._known: Counter[bytes] = Counter()
        self._fraction = -1.0
        self.size = 0
        for event in events:
            response = method.response_type.FromString(event.data)
            self.size += len(event.data)
            if event.name == _PROGRESS:
                self._fraction = max(self._fraction, response.progress.fraction)
            else:
                self._known[self._content(response)] += 1

    def is_new(self, response: Any) -> bool:
        """Return True if a response of the work has to be recorded."""
        if response.WhichOneof("event") == _PROGRESS:
            return bool(response.progress.fraction > self._fraction)
        content = self._content(response)
        if self._known[content] == 0:
            return True
        self._known[content] -= 1
        return False

    def _content(self, response: Any) -> bytes:
        return hashlib.sha256(_encode(self._method.without_times(response))).digest()


def _to_response(response_type: Any, run_id: str, recorded: RecordedEvent[CallEvent]) -> Any:
    response = response_type.FromString(recorded.event.data)
    response.sequence, response.run_id = recorded.sequence, run_id
    return response


def _encode(response: Any) -> bytes:
    data: bytes = response.SerializeToString(deterministic=True)
    return data


def _call_name(message: Any) -> str:
    name: str = message.DESCRIPTOR.name
    return name.removesuffix("Request")


def _to_event(response: Any) -> CallEvent:
    return CallEvent(response.WhichOneof("event"), _encode(response))


def _scope_digest(digest: str) -> str:
    """Return the digest of a request of the current caller: another caller's request is a different one."""
    caller = call_context.caller()
    return hashlib.sha256(f"{caller}\n{digest}".encode()).hexdigest() if caller else digest


def _too_large_error() -> ResourceExhaustedError:
    return ResourceExhaustedError(
        f"the events of the run exceed {_MAX_BYTES // (1024 * 1024)} MiB; request less, or fewer attempts",
    )
