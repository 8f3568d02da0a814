"""`peripety testgen generate` and `resume`, and the inputs of a run as messages."""

from __future__ import annotations

import asyncio
import re
import shlex
import signal
import sys
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, cast
from uuid import uuid4

import typer

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.cli.git_changes import find_changes
from peripety.cli.input_documents import read_document, read_specification
from peripety.cli.options import MAX_COUNT, MAX_SECONDS, MAX_TOKENS, Model, Server
from peripety.cli.output import (
    EXIT_FAILED,
    EXIT_INTERRUPTED,
    error_console,
    one_line,
    printable,
    read_text_argument,
    result_console,
    write_json,
)
from peripety.cli.policy_author import policy_input
from peripety.cli.render.testgen import format_error, live_test_view
from peripety.cli.testgen_export import (
    Append,
    As,
    Out,
    OutputSettings,
    RunId,
    export_tests,
    output_settings,
    testgen_at,
)
from peripety.errors import DeadlineError, FailedPreconditionError, InvalidArgumentError, PeripetyError
from peripety.rpc.messages import copy_fields
from peripety.rpc.proto_json import to_json
from peripety.testgen.environment import scan_environment
from peripety.testgen.subjects.command.sandbox import find_fence
from peripety.testgen.subjects.http_service.document import DEFAULT_PORT

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable, Iterator, Sequence

    from peripety.api.testgen.v1.testgen_pb2_grpc import TestGenServiceAsyncStub


commands = typer.Typer()


class ContextOption(Enum):
    """Kinds of tasks that tests are generated for."""

    BENCHMARK = "benchmark"
    PROMPT = "prompt"
    SCENARIO = "scenario"
    POLICY = "policy"
    CUSTOM = "custom"


class ProfileOption(Enum):
    """Modes of a run."""

    DIRECT = "direct"
    REASONING = "reasoning"


Events = Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")]

Scenario = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|ID",
        help="Run the tests on this scenario: a specification, or the id of a stored scenario.",
    ),
]

Policy = Annotated[
    str | None,
    typer.Option(
        metavar="POLICY",
        help="Run the tests on this policy: a compiled folder, a document, or the id of a stored policy.",
    ),
]

Command = Annotated[
    bool,
    typer.Option(
        "--command",
        help="Run the tests on the command after --, without network; see docs/how-to/generate-tests.md.",
    ),
]

Function = Annotated[
    str | None,
    typer.Option(
        metavar="PACKAGE.MODULE[:NAME]",
        help="Run the tests on this Python function, or on all public ones of the module. After --: their"
        " interpreter, if not that of Peripety.",
    ),
]

OpenApi = Annotated[
    str | None,
    typer.Option(
        "--openapi",
        metavar="FILE|PATH",
        help="The command starts an HTTP service with this OpenAPI document: a file of the directory, or a"
        " path of the service, such as /openapi.json.",
    ),
]

Grpc = Annotated[
    bool,
    typer.Option(
        "--grpc", help="The command starts a gRPC service, without TLS and with server reflection, at --port."
    ),
]

Port = Annotated[
    int,
    typer.Option(
        min=1, max=65_535, help="With --openapi or --grpc: port at which the service accepts connections."
    ),
]

Environment = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Directory to describe to the model; the command runs in copies of it.",
    ),
]


Readable = Annotated[
    list[Path] | None,
    typer.Option("--read", metavar="PATH", help="Path that the command may also read; may be repeated."),
]

Unfenced = Annotated[
    bool,
    typer.Option(
        "--unfenced", help="Run the command even if this machine does not support a fence around it."
    ),
]


_STORED_ID = re.compile(r"scn_[0-9a-f]{24}")


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits of a run; None for the default of the server.

    Attributes:
        tokens: maximum tokens.
        seconds: maximum time.
        rounds: maximum number of rounds.
        target: number of tests at which the run stops.
        baseline: True to start with baseline tests, which need no model.
        parallel: True to process categories at the same time.
        profile: the mode of the run; None for the default.
    """

    tokens: int | None
    seconds: float | None
    rounds: int | None
    target: int | None
    baseline: bool
    parallel: bool
    profile: ProfileOption | None = None

    def to_config(self) -> pb.TestGenConfig:
        """Return the limits as a message. The server applies the defaults."""
        config = pb.TestGenConfig(
            max_total_tokens=self.tokens,
            max_total_rounds=self.rounds,
            target_total_tests=self.target,
            parallel_categories=self.parallel,
            combinatorial_floor=None if self.baseline else False,
        )
        if self.profile is not None:
            config.profile = pb.TestGenProfile.Value(f"TEST_GEN_PROFILE_{self.profile.name}")
        if self.seconds is not None:
            config.max_total_time.FromTimedelta(timedelta(seconds=self.seconds))
        return config


def read_description(given: str | None, file: str | None) -> str:
    """Return the description of what to test.

    Raises:
        BadParameter: no description is given, or two.
        InvalidArgumentError: the file cannot be read.
    """
    if (given is None) == (file is None):
        raise typer.BadParameter("the description is missing: add DESCRIPTION or --file FILE")
    if file is None:
        return read_text_argument(given or "", "DESCRIPTION")
    document = read_document(file)
    if document.is_too_large:
        reason = "is longer than 1 MiB; the limit is 100 KiB"
        raise InvalidArgumentError(f"{printable(file)} {reason}", code="BAD_TEXT")
    try:
        return document.content.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f"{printable(file)} is not UTF-8 (byte {error.start + 1}); save or convert it as UTF-8",
            code="BAD_TEXT",
        ) from None


def parse_categories(given: Sequence[str]) -> list[pb.Category]:
    """Return custom categories: each a name, with its description after =."""
    parts = (one.partition("=") for one in given)
    return [pb.Category(name=name.strip(), description=about.strip()) for name, _, about in parts]


def task_context(given: str | None, subject: pb.Subject | None, *, own: bool) -> pb.TaskContext.ValueType:
    """Return the kind of the task: the given one, else derived from the categories and the subject."""
    if given is not None:
        return pb.TaskContext.Value(f"TASK_CONTEXT_{given.upper()}")
    if own:
        return pb.TASK_CONTEXT_CUSTOM
    match subject.WhichOneof("subject") if subject else None:
        case "spec" | "scenario_id":
            return pb.TASK_CONTEXT_SCENARIO
        case "policy":
            return pb.TASK_CONTEXT_POLICY
        case "command":
            return pb.TASK_CONTEXT_BENCHMARK
    return pb.TASK_CONTEXT_PROMPT


def make_subject(
    scenario: str | None,
    policy: str | None,
    argv: Sequence[str] | None,
    directory: Path | None,
    readable: Sequence[Path] = (),
    function: str | None = None,
    openapi: str | None = None,
    port: int = DEFAULT_PORT,
    *,
    grpc: bool = False,
) -> pb.Subject | None:
    """Return the subject that tests run on; None if no option names one.

    Args:
        scenario: a specification, or the id of a stored scenario.
        policy: a folder, a document, or the id of a stored policy.
        argv: a command; None for no command.
        directory: the working directory of the command.
        readable: paths that the command may also read.
        function: a Python function or module; the command is then its interpreter.
        openapi: the OpenAPI document of the HTTP service that the command starts.
        port: the port of the service.
        grpc: True if the command starts a gRPC service.

    Raises:
        BadParameter: several subjects are given, or the command is empty or missing.
    """
    if openapi is not None and (argv is None or function is not None):
        raise typer.BadParameter("--openapi needs the command that starts the service: --command -- PROGRAM")
    if grpc and (argv is None or function is not None or openapi is not None):
        raise typer.BadParameter("--grpc needs the command that starts the service: --command -- PROGRAM")
    given = (scenario, policy, argv if function is None else None, function)
    if sum(one is not None for one in given) > 1:
        raise typer.BadParameter("--scenario, --policy, --command and --function exclude each other; use one")
    if scenario is not None:
        if _STORED_ID.fullmatch(scenario) and not Path(scenario).exists():
            return pb.Subject(scenario_id=scenario)
        return pb.Subject(spec=read_specification(scenario))
    if policy is not None:
        return pb.Subject(policy=policy_input(policy).policy)
    if argv is None and function is None:
        return None
    if not argv and function is None:
        raise typer.BadParameter(
            "the command is missing: add it after --, such as: --command -- python3 tool.py"
        )
    where = "" if directory is None else str(directory.resolve())
    paths = [str(path.absolute()) for path in readable]
    return pb.Subject(
        command=pb.CommandSubject(
            argv=argv,
            working_directory=where,
            readable_paths=paths,
            function=function or "",
            openapi=openapi or "",
            port=port if openapi is not None or grpc else 0,
            grpc=grpc,
        ),
    )


def add_changes(subject: pb.Subject | None, directory: Path | None, revision: str) -> bool:
    """Limit a subject to the lines that have changed since a revision; return False if none has.

    Raises:
        BadParameter: the subject is not a command or a function, or its directory is missing.
        InvalidArgumentError: the revision or its repository is not found.
    """
    if subject is None or not subject.HasField("command") or directory is None:
        raise typer.BadParameter("--diff needs --environment DIR, with --command or --function")
    changes = find_changes(directory, revision)
    subject.command.changes.CopyFrom(changes)
    return bool(changes.files)


def confirm_unfenced(subject: pb.Subject | None, server: str | None, *, unfenced: bool) -> bool:
    """Return True if a command runs without a fence where none works; at a terminal, the user decides.

    Args:
        subject: the subject.
        server: the server that runs it; None for this process.
        unfenced: True if the user has agreed already.
    """
    if unfenced or server is not None or subject is None or not subject.HasField("command"):
        return unfenced
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or find_fence() is not None:
        return False
    question = "This machine does not support a fence around the command. Run it with your own rights?"
    return typer.confirm(question, default=False, err=True)


def describe_environment(directory: Path, task: str) -> pb.EnvironmentInfo:
    """Describe the content of a directory of this machine. Nothing in it is executed.

    Raises:
        InvalidArgumentError: the path is not a directory.
    """
    return copy_fields(pb.EnvironmentInfo, scan_environment(directory, task))


_TARGET = 30
_NOTHING_CHANGED = "NOTHING_CHANGED"


def _show_run(
    first: pb.GenerateTestsRequest | pb.ResumeTestsRequest,
    wanted: OutputSettings,
    target: int,
) -> int:
    run = _RunView(wanted)
    try:
        return asyncio.run(run.show_to_end(first, target))
    except (KeyboardInterrupt, asyncio.CancelledError):
        error_console().print("interrupted")
        run.print_resume_hint()
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except FailedPreconditionError as error:
        if error.code != _NOTHING_CHANGED:
            raise
        # In a pipeline, a change that needs no test is not a failure.
        result_console().print(one_line(error.message))
        return 0
    except (PeripetyError, typer.BadParameter):  # an output error leaves the run usable
        run.print_resume_hint()
        raise


class _TestRunResponse(Protocol):
    """A response of a call that streams a run."""

    @property
    def event(self) -> pb.TestGenEvent: ...


class _RunView:
    """A run on display that can be resumed.

    Args:
        wanted: the output options.
    """

    def __init__(self, wanted: OutputSettings) -> None:
        self._settings = wanted
        self._last_event = pb.TestGenEvent()

    async def show_to_end(self, first: pb.GenerateTestsRequest | pb.ResumeTestsRequest, target: int) -> int:
        """Show the run until it ends, and save its tests; return the exit code."""
        task = cast("asyncio.Task[int]", asyncio.current_task())
        # A signal delivered to another thread wakes the event loop only if the loop itself handles it.
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
        out = self._settings.out
        async with testgen_at(self._settings.server, unfenced=self._settings.unfenced) as stub:
            with _event_printer(target, as_json=self._settings.as_json) as tell:
                await self._follow(stub, first, tell)
            last = self._last_event
            if last.HasField("error"):
                error_console().print(format_error(last.error), style="red")
                error_console().print(f"the tests made so far are stored; see: {self._command('show')}")
            if out is not None and last.run_id:
                request = pb.ExportTestsRequest(run_id=last.run_id, format=self._settings.test_format)
                await export_tests(stub, request, out, self._settings.server, append=self._settings.append)
        return EXIT_FAILED if last.HasField("error") else 0

    def print_resume_hint(self) -> None:
        """Print the command that resumes the run, if the run has started."""
        if self._last_event.run_id:
            error_console().print(
                f"the tests made so far are stored; continue with: {self._command('resume')}",
            )

    def _command(self, name: str) -> str:
        server = f" --server {shlex.quote(self._settings.server)}" if self._settings.server else ""
        return f"peripety testgen {name} {shlex.quote(one_line(self._last_event.run_id))}{server}"

    async def _follow(
        self,
        stub: TestGenServiceAsyncStub,
        first: pb.GenerateTestsRequest | pb.ResumeTestsRequest,
        tell: Callable[[pb.TestGenEvent], None],
    ) -> None:
        """Process the events of a run until it ends.

        A call has a deadline and a run does not, so calls are repeated.
        """
        responses: AsyncIterable[_TestRunResponse]
        if isinstance(first, pb.GenerateTestsRequest):
            responses = stub.GenerateTests(first)
        else:
            responses = stub.ResumeTests(first)
        while True:
            try:
                async for response in responses:
                    self._last_event = response.event
                    tell(response.event)
            except DeadlineError:
                if not self._last_event.sequence:
                    raise
                on = pb.ResumeTestsRequest(
                    run_id=self._last_event.run_id,
                    after_sequence=self._last_event.sequence,
                )
                responses = stub.ResumeTests(on)
            else:
                return


@contextmanager
def _event_printer(target: int, *, as_json: bool) -> Iterator[Callable[[pb.TestGenEvent], None]]:
    if as_json:
        yield lambda event: write_json(to_json(event))
        return
    with live_test_view(result_console(), target) as story:
        yield story.show


@commands.command()
def generate(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DESCRIPTION] [-- COMMAND...]",
            help="Description of what to test (use - for standard input); with --command, also the command.",
        ),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File with the description; use - for standard input."),
    ] = None,
    context: Annotated[
        ContextOption | None,
        typer.Option(help="Kind of the task. [default: derived from the subject]"),
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[=TEXT]",
            help="Custom category and its description; may be repeated. Replaces the default categories.",
        ),
    ] = None,
    scenario: Scenario = None,
    policy: Policy = None,
    command: Command = False,
    function: Function = None,
    openapi: OpenApi = None,
    grpc: Grpc = False,
    port: Port = DEFAULT_PORT,
    environment: Environment = None,
    diff: Annotated[
        str | None,
        typer.Option(
            "--diff",
            metavar="REV",
            help="Test only what has changed in the directory since this Git revision. Only for programs"
            " whose lines are measured.",
        ),
    ] = None,
    readable: Readable = None,
    unfenced: Unfenced = False,
    profile: Annotated[
        ProfileOption | None,
        typer.Option(
            help="direct: one large first round over all categories, then at most three on what it did not"
            " detect. reasoning: 900 seconds and 200,000 tokens, for a model that reasons.",
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_TOKENS, help="Maximum tokens, input and output. [default: 50,000]"),
    ] = None,
    max_time: Annotated[
        float | None,
        typer.Option(
            min=1e-3, max=MAX_SECONDS, metavar="SECONDS", help="Maximum time in seconds. [default: 180]"
        ),
    ] = None,
    max_rounds: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_COUNT, help="Maximum number of rounds. [default: 17]"),
    ] = None,
    target: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_COUNT, help="Stop when there are this many tests. [default: 30]"),
    ] = None,
    no_baseline: Annotated[
        bool,
        typer.Option("--no-baseline", help="Leave out the tests that are derived without a model."),
    ] = False,
    parallel: Annotated[
        bool,
        typer.Option("--parallel", help="Process all categories at the same time."),
    ] = False,
    model: Model = "",
    task_id: Annotated[str, typer.Option(metavar="NAME", help="Name of the task.")] = "",
    out: Out = None,
    format_: As = None,
    append: Append = False,
    server: Server = None,
    as_json: Events = False,
) -> None:
    """Generate tests from a description.

    Shows each test as soon as it exists. Ctrl-C stops the run without losing tests; `peripety testgen
    resume` continues it.

    \b
    Examples:
      peripety testgen generate "A parser of dates" -o tests.json
      peripety testgen generate "It stays winnable" --scenario examples/scenario.json -o test_it.py
      peripety testgen generate "Only the folder" --policy build/office --target 20
      peripety testgen generate --file task.md --environment . --command -- python3 tool.py
      peripety testgen generate "A slug of a title" --environment src --function blog.text:slugify
      peripety testgen generate "A slug of a title" --environment src --function blog.text --diff main
      peripety testgen generate "Notes" --environment . --openapi /openapi.json --command -- python3 server.py
      peripety testgen generate "Notes" --environment . --grpc --port 50051 --command -- python3 server.py
    """  # noqa: D301 - keeps the lines of the examples apart
    named = [*(words or ())]
    about = named.pop(0) if named and file is None else None
    if named and not command and function is None:
        raise typer.BadParameter(f"unexpected argument {named[0]}: quote the description, or add --command")
    if command and function is not None:
        raise typer.BadParameter("--command and --function exclude each other; use one")
    wanted = output_settings(server, out, format_.value if format_ else None, as_json=as_json, append=append)
    task = read_description(about, file)
    argv = named if command or function is not None else None
    subject = make_subject(
        scenario, policy, argv, environment, readable or (), function, openapi, port, grpc=grpc
    )
    if diff is not None and not add_changes(subject, environment, diff):
        result_console().print(
            f"no file of {printable(str(environment))} has changed since {printable(diff)}"
        )
        raise typer.Exit
    wanted = replace(wanted, unfenced=confirm_unfenced(subject, server, unfenced=unfenced))
    limits = RunLimits(max_tokens, max_time, max_rounds, target, not no_baseline, parallel, profile)
    request = pb.GenerateTestsRequest(
        request_id=str(uuid4()),
        task_id=task_id,
        task_description=task,
        context=task_context(context.value if context else None, subject, own=bool(category)),
        categories=parse_categories(category or ()),
        config=limits.to_config(),
        subject=subject,
        model=model,
        environment=None if environment is None else describe_environment(environment, task),
    )
    raise typer.Exit(_show_run(request, wanted, target or _TARGET))


@commands.command()
def resume(
    run_id: RunId,
    out: Out = None,
    format_: As = None,
    append: Append = False,
    unfenced: Unfenced = False,
    server: Server = None,
    as_json: Events = False,
) -> None:
    """Show a run from its beginning and continue it."""
    wanted = output_settings(server, out, format_.value if format_ else None, as_json=as_json, append=append)
    wanted = replace(wanted, unfenced=unfenced)
    raise typer.Exit(_show_run(pb.ResumeTestsRequest(run_id=run_id), wanted, _TARGET))
