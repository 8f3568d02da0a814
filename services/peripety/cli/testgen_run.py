"""`peripety testgen generate`, `resume` and `export`: tests as they are generated, and as a file."""

from __future__ import annotations

import asyncio
import shlex
import signal
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast
from uuid import uuid4

import typer

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.api.testgen.v1.testgen_pb2_grpc import TestGenServiceStub
from peripety.cli.embedded import services_at
from peripety.cli.failure import FOUND_WRONG, INTERRUPTED
from peripety.cli.jsonify import jsonify
from peripety.cli.output import asides, errors, require_place, results, sink, write_json
from peripety.cli.testgen_story import live_test_story
from peripety.cli.testgen_telling import error_line
from peripety.cli.text import in_one_line, printable
from peripety.errors import DeadlineError, PeripetyError

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
    from pathlib import Path

    from peripety.api.testgen.v1.testgen_pb2_grpc import TestGenServiceAsyncStub

__all__ = ["Wanted", "export", "generate", "resume", "testgen_at", "wanted"]

_ENDINGS = {".py": pb.TEST_FORMAT_PYTEST, ".json": pb.TEST_FORMAT_JSON, ".xml": pb.TEST_FORMAT_JUNIT}
_TARGET = 30


@dataclass(frozen=True, slots=True)
class Wanted:
    """Output options of a run.

    Attributes:
        server: `host:port` of a server; None runs everything in this process, on the configured database.
        out: a file for the tests; None for no file.
        form: the format of the file; unset without a file.
        as_json: True to print events as lines of JSON.
    """

    server: str | None
    out: Path | None
    form: pb.TestFormat.ValueType
    as_json: bool


@asynccontextmanager
async def testgen_at(server: str | None) -> AsyncIterator[TestGenServiceAsyncStub]:
    """Yield a stub of a server, or of an embedded service that may run the user's own commands."""
    names = ("gateway", "scenarios", "policies", "testgen")
    async with services_at(server, *names, testgen_commands=True) as channel:
        yield TestGenServiceStub(channel)


def wanted(server: str | None, out: Path | None, form: str | None, *, as_json: bool) -> Wanted:
    """Return the output options.

    Raises:
        BadParameter: the format cannot be derived from the file name, or the file cannot be created.
    """
    if out is not None:
        return Wanted(server, out, _form(out, form), as_json)
    if form is not None:
        raise typer.BadParameter("--format needs -o FILE")
    return Wanted(server, None, pb.TEST_FORMAT_UNSPECIFIED, as_json)


def generate(request: pb.GenerateTestsRequest, wanted: Wanted) -> int:
    """Start a run and show it until it ends; return the exit code.

    Args:
        request: the task; its id is set here.
        wanted: the output options.
    """
    request.request_id = str(uuid4())
    return _shown(request, wanted, request.config.target_total_tests or _TARGET)


def resume(run_id: str, wanted: Wanted) -> int:
    """Show a run from its beginning, resume it, and return the exit code."""
    return _shown(pb.ResumeTestsRequest(run_id=run_id), wanted, _TARGET)


def export(
    run_id: str, server: str | None, out: Path | None, form: str | None, *, counting_only: bool
) -> None:
    """Write the tests of a run to a file or to standard output.

    Raises:
        BadParameter: the format cannot be derived from the file name, or the file cannot be created.
    """
    request = pb.ExportTestsRequest(run_id=run_id, format=_form(out, form), counting_only=counting_only)
    asyncio.run(_exported(request, server, out))


def _shown(first: pb.GenerateTestsRequest | pb.ResumeTestsRequest, wanted: Wanted, target: int) -> int:
    run = _Shown(wanted)
    try:
        return asyncio.run(run.to_its_end(first, target))
    except (KeyboardInterrupt, asyncio.CancelledError):
        errors().print("interrupted")
        run.tell_how_to_go_on()
        raise typer.Exit(INTERRUPTED) from None
    except (PeripetyError, typer.BadParameter):  # an output error leaves the run usable
        run.tell_how_to_go_on()
        raise


class _Response(Protocol):
    """A response of a call that streams a run."""

    @property
    def event(self) -> pb.TestGenEvent: ...


class _Shown:
    """A run on display that can be resumed.

    Args:
        wanted: the output options.
    """

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._last = pb.TestGenEvent()

    async def to_its_end(self, first: pb.GenerateTestsRequest | pb.ResumeTestsRequest, target: int) -> int:
        """Show the run until it ends, and save its tests; return the exit code."""
        task = cast("asyncio.Task[int]", asyncio.current_task())
        # A signal delivered to another thread wakes the event loop only if the loop itself handles it.
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
        out = self._wanted.out
        async with testgen_at(self._wanted.server) as stub:
            with _teller(target, as_json=self._wanted.as_json) as tell:
                await self._follow(stub, first, tell)
            last = self._last
            if last.HasField("error"):
                errors().print(error_line(last.error), style="red")
                errors().print(f"the tests made so far are stored; see: {self._command('show')}")
            if out is not None and last.run_id:
                await _export(stub, pb.ExportTestsRequest(run_id=last.run_id, format=self._wanted.form), out)
                asides().print(f"the tests are in {printable(str(out))}", style="dim")
        return FOUND_WRONG if last.HasField("error") else 0

    def tell_how_to_go_on(self) -> None:
        """Print the command that resumes the run, if the run has started."""
        if self._last.run_id:
            errors().print(f"the tests made so far are stored; continue with: {self._command('resume')}")

    def _command(self, name: str) -> str:
        server = f" --server {shlex.quote(self._wanted.server)}" if self._wanted.server else ""
        return f"peripety testgen {name} {shlex.quote(in_one_line(self._last.run_id))}{server}"

    async def _follow(
        self,
        stub: TestGenServiceAsyncStub,
        first: pb.GenerateTestsRequest | pb.ResumeTestsRequest,
        tell: Callable[[pb.TestGenEvent], None],
    ) -> None:
        """Process the events of a run until it ends.

        A call has a deadline and a run does not, so calls are repeated.
        """
        responses: AsyncIterable[_Response]
        if isinstance(first, pb.GenerateTestsRequest):
            responses = stub.GenerateTests(first)
        else:
            responses = stub.ResumeTests(first)
        while True:
            try:
                async for response in responses:
                    self._last = response.event
                    tell(response.event)
            except DeadlineError:
                if not self._last.sequence:
                    raise
                on = pb.ResumeTestsRequest(run_id=self._last.run_id, after_sequence=self._last.sequence)
                responses = stub.ResumeTests(on)
            else:
                return


@contextmanager
def _teller(target: int, *, as_json: bool) -> Iterator[Callable[[pb.TestGenEvent], None]]:
    if as_json:
        yield lambda event: write_json(jsonify(event))
        return
    with live_test_story(results(), target) as story:
        yield story.tell


async def _exported(request: pb.ExportTestsRequest, server: str | None, out: Path | None) -> None:
    async with testgen_at(server) as stub:
        await _export(stub, request, out)


async def _export(stub: TestGenServiceAsyncStub, request: pb.ExportTestsRequest, out: Path | None) -> None:
    # Open the file last: a failed request must not truncate it.
    chunks = [response.chunk async for response in stub.ExportTests(request)]
    with sink(out) as file:
        file.writelines(chunks)


def _form(out: Path | None, form: str | None) -> pb.TestFormat.ValueType:
    """Return the format of a file: the given one, else derived from its suffix."""
    require_place(out)
    if form is not None:
        return pb.TestFormat.Value(f"TEST_FORMAT_{form.upper()}")
    if out is None:
        raise typer.BadParameter("the output is missing: add -o FILE, or --format pytest to print")
    if out.suffix not in _ENDINGS:
        raise typer.BadParameter(f"{out} does not end in {', '.join(_ENDINGS)}: add --format")
    return _ENDINGS[out.suffix]
