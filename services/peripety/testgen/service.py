"""TestGenService: one handler per RPC."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.api.testgen.v1.testgen_pb2_grpc import TestGenServiceServicer
from peripety.core.concurrency import closing
from peripety.core.idempotency.store import PendingResponse
from peripety.core.idempotency.stream import ResponseRecorder
from peripety.errors import require_field
from peripety.gateway.pb.resources import request_key_from_proto
from peripety.rpc.messages import members_by_number
from peripety.testgen.evaluation.suite import DEFAULT_REPETITIONS
from peripety.testgen.export.suite import TestFormat, render, to_exported_suite
from peripety.testgen.pb.requests import order_from_proto, subject_from_proto
from peripety.testgen.pb.responses import (
    cases_from_proto,
    event_to_proto,
    rerun_event_to_proto,
    run_to_proto,
    runs_to_proto,
    tasks_to_proto,
)
from peripety.testgen.task_folder import list_tasks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from peripety.core.idempotency.store import IdempotencyStore
    from peripety.testgen.events import QualityMeasured, TestRan
    from peripety.testgen.export.suite import RenderedSuite
    from peripety.testgen.generation_runs import GenerationReruns, GenerationRuns
    from peripety.testgen.store import RunRecord


_MAX_REPETITIONS = 100
_FORMATS = members_by_number(pb.TestFormat, TestFormat)


class TestGenServicer(TestGenServiceServicer):
    """gRPC servicer of test generation runs.

    Args:
        runs: the runs.
        reruns: the reruns of existing tests.
        requests: the idempotency log of requests.
        tasks: the folder of tasks; None for no tasks.
    """

    __test__ = False

    def __init__(
        self,
        runs: GenerationRuns,
        reruns: GenerationReruns,
        requests: IdempotencyStore,
        tasks: Path | None = None,
    ) -> None:
        self._tasks = tasks
        self._runs = runs
        self._reruns = reruns
        self._record = ResponseRecorder(requests, {"measured"})

    async def GenerateTests(  # noqa: N802 - the contract's name
        self,
        request: pb.GenerateTestsRequest,
        _context: Any,
    ) -> AsyncIterator[pb.GenerateTestsResponse]:
        """Start a run and stream its events."""
        source = subject_from_proto(request.subject) if request.HasField("subject") else None
        started = await self._runs.start(order_from_proto(request), source, request_key_from_proto(request))
        async with closing(self._runs.follow(started.run_id)) as events:
            async for recorded in events:
                yield pb.GenerateTestsResponse(event=event_to_proto(started.run_id, recorded))

    async def ResumeTests(  # noqa: N802 - the contract's name
        self,
        request: pb.ResumeTestsRequest,
        _context: Any,
    ) -> AsyncIterator[pb.ResumeTestsResponse]:
        """Stream the events of a run after a given sequence number."""
        require_field(request.run_id, ".run_id", "is required")
        async with closing(self._runs.resume(request.run_id, request.after_sequence)) as events:
            async for recorded in events:
                yield pb.ResumeTestsResponse(event=event_to_proto(request.run_id, recorded))

    async def RunTests(  # noqa: N802 - the contract's name
        self,
        request: pb.RunTestsRequest,
        _context: Any,
    ) -> AsyncIterator[pb.RunTestsResponse]:
        """Run tests on a subject, and measure them."""
        async with closing(self._rerun_responses(request)) as responses:
            async for response in responses:
                yield response

    async def GetTestRun(  # noqa: N802 - the contract's name
        self,
        request: pb.GetTestRunRequest,
        _context: Any,
    ) -> pb.GetTestRunResponse:
        """Read a run with its tests."""
        require_field(request.run_id, ".run_id", "is required")
        return pb.GetTestRunResponse(run=run_to_proto(await self._runs.get(request.run_id)))

    async def ListTestRuns(  # noqa: N802 - the contract's name
        self,
        request: pb.ListTestRunsRequest,
        _context: Any,
    ) -> pb.ListTestRunsResponse:
        """List runs, newest first."""
        return runs_to_proto(await self._runs.list(request.task_id, request.page_size, request.page_token))

    async def ListTestTasks(  # noqa: N802 - the contract's name
        self,
        request: pb.ListTestTasksRequest,
        _context: Any,
    ) -> pb.ListTestTasksResponse:
        """List the tasks that this server offers, by name."""
        # Describing an environment reads its files.
        page = await asyncio.to_thread(list_tasks, self._tasks, request.page_size, request.page_token)
        return tasks_to_proto(page)

    async def CancelTestRun(  # noqa: N802 - the contract's name
        self,
        request: pb.CancelTestRunRequest,
        _context: Any,
    ) -> pb.CancelTestRunResponse:
        """Stop a run and retain its tests."""
        require_field(request.run_id, ".run_id", "is required")
        run = await self._runs.cancel(request.run_id, request_key_from_proto(request))
        return pb.CancelTestRunResponse(run=run_to_proto(run))

    async def DeleteTestRun(  # noqa: N802 - the contract's name
        self,
        request: pb.DeleteTestRunRequest,
        _context: Any,
    ) -> pb.DeleteTestRunResponse:
        """Delete a run with its tests."""
        require_field(request.run_id, ".run_id", "is required")
        await self._runs.delete(request.run_id, request_key_from_proto(request))
        return pb.DeleteTestRunResponse()

    async def ExportTests(  # noqa: N802 - the contract's name
        self,
        request: pb.ExportTestsRequest,
        _context: Any,
    ) -> AsyncIterator[pb.ExportTestsResponse]:
        """Stream the tests of a run as a file."""
        require_field(request.run_id, ".run_id", "is required")
        require_field(request.format in _FORMATS, ".format", "is required; use pytest, JSON or a report")
        is_pytest = request.format == pb.TEST_FORMAT_PYTEST
        require_field(not request.append_to or is_pytest, ".append_to", "needs the format pytest")
        is_path = not request.directory or request.directory.startswith("/")
        require_field(is_path, ".directory", "is not an absolute path; send one, or leave it out")
        run = await self._runs.get(request.run_id)
        # Rendering a large document would block the event loop.
        file = await asyncio.to_thread(_render_file, run, request)
        for sequence, chunk in enumerate(file.parts, start=1):
            yield pb.ExportTestsResponse(
                sequence=sequence,
                chunk=chunk,
                written_tests=file.written,
                known_tests=file.known,
            )

    def _rerun_responses(self, request: pb.RunTestsRequest) -> AsyncIterator[pb.RunTestsResponse]:
        most, repetitions = _MAX_REPETITIONS, request.repetitions or DEFAULT_REPETITIONS
        require_field(0 < repetitions <= most, ".repetitions", f"must be 0, or from 1 to {most}")
        how: dict[str, Any] = {"repetitions": repetitions, "mutation": request.mutation}
        tests = cases_from_proto(request.tests)
        if request.run_id:
            require_field(not tests, ".tests", "conflict with run_id; leave one of them out")
            require_field(
                not request.HasField("subject"),
                ".subject",
                "conflicts with run_id; leave one of them out",
            )
            of_run = self._reruns.rerun_run(request.run_id, **how)
            return self._record.stream(request, of_run, _rerun_response, pb.RunTestsResponse)
        require_field(tests, ".tests", "is empty; send tests, or the run_id of a run with tests")
        require_field(request.HasField("subject"), ".subject", "is required without a run")
        of_tests = self._reruns.rerun_tests(tests, subject_from_proto(request.subject), **how)
        return self._record.stream(request, of_tests, rerun_event_to_proto, pb.RunTestsResponse)


def _render_file(run: RunRecord, request: pb.ExportTestsRequest) -> RenderedSuite:
    return render(
        to_exported_suite(run),
        _FORMATS[request.format],
        counting_only=request.counting_only,
        with_redundant=request.with_redundant,
        directory=request.directory,
        append_to=request.append_to,
    )


def _rerun_response(
    event: TestRan | PendingResponse[QualityMeasured],
) -> pb.RunTestsResponse | PendingResponse[pb.RunTestsResponse]:
    return (
        event.map(rerun_event_to_proto) if isinstance(event, PendingResponse) else rerun_event_to_proto(event)
    )
