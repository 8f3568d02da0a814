"""Commands and options of `peripety testgen`."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from peripety.cli.caps import MAX_COUNT, MAX_SECONDS, MAX_TOKENS
from peripety.cli.options import Model, Server  # noqa: TC001 - typer reads the annotations

__all__ = ["testgen"]

testgen = typer.Typer(
    name="testgen",
    help="Write tests for a task in rounds, run them, and measure what they catch.",
    no_args_is_help=True,
)


class Context(Enum):
    """Kinds of tasks that tests are generated for."""

    BENCHMARK = "benchmark"
    PROMPT = "prompt"
    SCENARIO = "scenario"
    POLICY = "policy"
    CUSTOM = "custom"


class Format(Enum):
    """Formats of a test file."""

    PYTEST = "pytest"
    JSON = "json"
    JUNIT = "junit"


RunId = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run; see `peripety testgen list`.")]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="Write the tests to this file: .py, .json or .xml."),
]
As = Annotated[
    Format | None, typer.Option("--format", help="Format of the file. [default: derived from its name]")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print lines of JSON.")]
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
        help="Run the tests on the command after --, without network access; see docs/testgen.md.",
    ),
]
Environment = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Directory to describe to the model; the command runs in copies of it.",
    ),
]


@testgen.command()
def generate(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DESCRIPTION] [-- ARGV...]",
            help="Description of what to test (use - for standard input); with --command, also the command.",
        ),
    ] = None,
    file: Annotated[
        str | None, typer.Option(metavar="FILE", help="File with the description; use - for standard input.")
    ] = None,
    context: Annotated[
        Context | None, typer.Option(help="Kind of the task. [default: derived from the subject]")
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
    environment: Environment = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_TOKENS, help="Maximum tokens, input and output. [default: 50000]"),
    ] = None,
    max_time: Annotated[
        float | None,
        typer.Option(min=1e-3, max=MAX_SECONDS, metavar="SECONDS", help="Maximum time. [default: 180]"),
    ] = None,
    max_rounds: Annotated[
        int | None, typer.Option(min=1, max=MAX_COUNT, help="Maximum number of rounds. [default: 17]")
    ] = None,
    target: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_COUNT, help="Number of tests at which the run stops. [default: 30]"),
    ] = None,
    no_baseline: Annotated[
        bool, typer.Option("--no-baseline", help="Leave out the tests that are derived without a model.")
    ] = False,
    parallel: Annotated[
        bool, typer.Option("--parallel", help="Process all categories at the same time.")
    ] = False,
    model: Model = "",
    task_id: Annotated[str, typer.Option(metavar="NAME", help="Name of the task.")] = "",
    out: Out = None,
    format_: As = None,
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
    """  # noqa: D301 - keeps the lines of the examples apart
    from peripety.api.testgen.v1 import testgen_pb2 as pb  # noqa: PLC0415 - loads protobuf
    from peripety.cli import testgen_input as given  # noqa: PLC0415
    from peripety.cli import testgen_run as running  # noqa: PLC0415 - loads the services

    named = [*(words or ())]
    about = named.pop(0) if named and file is None else None
    if named and not command:
        raise typer.BadParameter(f"unexpected argument {named[0]}: quote the description, or add --command")
    wanted = running.wanted(server, out, format_.value if format_ else None, as_json=as_json)
    task = given.description(about, file)
    subject = given.subject(scenario, policy, named if command else None, environment)
    limits = given.Limits(max_tokens, max_time, max_rounds, target, not no_baseline, parallel)
    request = pb.GenerateTestsRequest(
        task_id=task_id,
        task_description=task,
        context=given.context(context.value if context else None, subject, own=bool(category)),
        categories=given.categories(category or ()),
        config=limits.config(),
        subject=subject,
        model=model,
        environment=None if environment is None else given.environment(environment, task),
    )
    raise typer.Exit(running.generate(request, wanted))


@testgen.command()
def resume(
    run_id: RunId, out: Out = None, format_: As = None, server: Server = None, as_json: Events = False
) -> None:
    """Show a run from its beginning and continue it."""
    from peripety.cli import testgen_run as running  # noqa: PLC0415 - loads the services

    wanted = running.wanted(server, out, format_.value if format_ else None, as_json=as_json)
    raise typer.Exit(running.resume(run_id, wanted))


@testgen.command()
def run(
    run_id: RunId,
    argv: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGV...]", help="With --command: the command.")
    ] = None,
    scenario: Scenario = None,
    policy: Policy = None,
    command: Command = False,
    environment: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Working directory of the command.")
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, max=100, help="Number of times to run each test.")] = 5,
    mutation: Annotated[bool, typer.Option("--mutation", help="Also measure the mutation score.")] = False,
    server: Server = None,
    as_json: Events = False,
) -> None:
    """Run the tests of a run again. No model is called.

    Exit code 0 if all tests pass, 1 if one fails. Without options the tests run on their original subject
    and the run stores the results; the options select another subject.

    \b
    Examples:
      peripety testgen run RUN
      peripety testgen run RUN --policy build/changed --mutation
      peripety testgen run RUN --environment . --command -- python3 tool.py
    """  # noqa: D301 - keeps the lines of the examples apart
    from peripety.cli import testgen_input as given  # noqa: PLC0415 - loads protobuf
    from peripety.cli import testgen_stored as stored  # noqa: PLC0415 - loads the services

    if argv and not command:
        raise typer.BadParameter("a command needs --command")
    subject = given.subject(scenario, policy, argv or [] if command else None, environment)
    raise typer.Exit(stored.run_tests(run_id, subject, repeat, server, mutation=mutation, as_json=as_json))


@testgen.command("list")
def list_(
    task_id: Annotated[str, typer.Option(metavar="NAME", help="Show only runs of this task.")] = "",
    count: Annotated[int, typer.Option(min=1, max=1000, help="Maximum number of entries.")] = 20,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""
    from peripety.cli.testgen_stored import list_runs  # noqa: PLC0415 - loads the services

    list_runs(task_id, count, server, as_json=as_json)


@testgen.command()
def show(run_id: RunId, server: Server = None, as_json: AsJson = False) -> None:
    """Show the tests of a run, their results and quality."""
    from peripety.cli import testgen_stored as stored  # noqa: PLC0415 - loads the services

    stored.show(run_id, server, as_json=as_json)


@testgen.command()
def export(
    run_id: RunId,
    out: Out = None,
    format_: As = None,
    counting_only: Annotated[
        bool, typer.Option("--counting-only", help="Leave out tests that are unstable, unsound or redundant.")
    ] = False,
    server: Server = None,
) -> None:
    """Export the tests of a run: pytest, JSON or JUnit."""
    from peripety.cli import testgen_run as running  # noqa: PLC0415 - loads the services

    running.export(run_id, server, out, format_.value if format_ else None, counting_only=counting_only)


@testgen.command()
def cancel(run_id: RunId, server: Server = None) -> None:
    """Stop a run. Its tests remain stored."""
    from peripety.cli import testgen_stored as stored  # noqa: PLC0415 - loads the services

    stored.cancel(run_id, server)


@testgen.command()
def delete(run_id: RunId, server: Server = None) -> None:
    """Delete a run with its tests."""
    from peripety.cli import testgen_stored as stored  # noqa: PLC0415 - loads the services

    stored.delete(run_id, server)
