"""`peripety testgen export`, and the file that a run writes its tests to."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.api.testgen.v1.testgen_pb2_grpc import TestGenServiceStub
from peripety.cli.embedded_services import services_at
from peripety.cli.options import Server
from peripety.cli.output import open_output, person_console, printable, require_writable
from peripety.cli.render.policy import format_count
from peripety.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.api.testgen.v1.testgen_pb2_grpc import TestGenServiceAsyncStub


commands = typer.Typer()


class FormatOption(Enum):
    """Formats of a test file."""

    PYTEST = "pytest"
    JSON = "json"
    JUNIT = "junit"
    SARIF = "sarif"
    MARKDOWN = "markdown"


RunId = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run; see `peripety testgen list`.")]

Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Write the tests to this file: .py, .json, .xml (JUnit), .sarif or .md.",
    ),
]

Append = Annotated[
    bool,
    typer.Option(
        "--append",
        help="Add the tests to the pytest module of -o. Tests that it already has are not changed.",
    ),
]

As = Annotated[
    FormatOption | None,
    typer.Option("--format", help="Format of the file. [default: derived from its name]"),
]

_ENDINGS = {
    ".py": pb.TEST_FORMAT_PYTEST,
    ".json": pb.TEST_FORMAT_JSON,
    ".xml": pb.TEST_FORMAT_JUNIT,
    ".sarif": pb.TEST_FORMAT_SARIF,
    ".md": pb.TEST_FORMAT_MARKDOWN,
}


@dataclass(frozen=True, slots=True)
class OutputSettings:
    """Output options of a run.

    Attributes:
        server: `host:port` of a server; None runs everything in this process, on the configured database.
        out: a file for the tests; None for no file.
        test_format: the format of the file; unset without a file.
        as_json: True to print events as lines of JSON.
        append: True to add the tests to the file.
        unfenced: True to run commands without a fence if this machine supports none.
    """

    server: str | None
    out: Path | None
    test_format: pb.TestFormat.ValueType
    as_json: bool
    append: bool = False
    unfenced: bool = False


@asynccontextmanager
async def testgen_at(
    server: str | None,
    *,
    unfenced: bool = False,  # noqa: PT028 - not a test
) -> AsyncIterator[TestGenServiceAsyncStub]:
    """Yield a stub of a server, or of an embedded service that may run the user's own commands."""
    settings = {"testgen_unfenced": True} if unfenced else {}
    names = ("gateway", "scenarios", "policies", "testgen")
    async with services_at(server, *names, testgen_commands=True, **settings) as channel:
        yield TestGenServiceStub(channel)


def output_settings(
    server: str | None,
    out: Path | None,
    form: str | None,
    *,
    as_json: bool,
    append: bool,
) -> OutputSettings:
    """Return the output options.

    Raises:
        BadParameter: the format cannot be derived from the file name, the file cannot be created, or the
            tests cannot be added to a file of this format.
    """
    if out is not None:
        return OutputSettings(server, out, _select_format(out, form, append=append), as_json, append)
    if form is not None or append:
        raise typer.BadParameter(f"{'--append' if append else '--format'} needs -o FILE")
    return OutputSettings(server, None, pb.TEST_FORMAT_UNSPECIFIED, as_json)


async def _export_to(
    request: pb.ExportTestsRequest,
    server: str | None,
    out: Path | None,
    *,
    append: bool,
) -> None:
    async with testgen_at(server) as stub:
        await export_tests(stub, request, out, server, append=append)


async def export_tests(
    stub: TestGenServiceAsyncStub,
    request: pb.ExportTestsRequest,
    out: Path | None,
    server: str | None,
    *,
    append: bool,
) -> None:
    """Write the tests of a run to a file, or to standard output.

    Args:
        stub: the service.
        request: the request, without the parts that depend on the file.
        out: the file; None for standard output.
        server: the address of the service; None for this process.
        append: True to add the tests to the file.

    Raises:
        BadParameter: the file cannot be read or written, or is not a module that can be extended.
    """
    if out is not None and server is None:  # a path of this machine means nothing on a server
        request.directory = str(out.parent.resolve())
    if append and out is not None:
        request.append_to = _read_module(out)
    try:
        responses = [response async for response in stub.ExportTests(request)]
    except InvalidArgumentError as error:
        if not error.message.startswith("append_to "):
            raise
        raise typer.BadParameter(f"{out} {error.message.removeprefix('append_to ')}") from None
    # Open the file last: a failed request must not truncate it.
    with open_output(out) as file:
        file.writelines(response.chunk for response in responses)
    if out is not None:
        last = responses[-1] if responses else pb.ExportTestsResponse()
        known = f", {last.known_tests:,} were there already" if last.known_tests else ""
        counted = format_count(last.written_tests, "test")
        person_console().print(f"{counted} written to {printable(str(out))}{known}", style="dim")


def _read_module(out: Path) -> bytes:
    """Return the module to which tests are added; empty for a new one."""
    try:
        return out.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise typer.BadParameter(f"cannot read {out}: {error.strerror}") from None


def _select_format(out: Path | None, form: str | None, *, append: bool) -> pb.TestFormat.ValueType:
    """Return the format of a file: the given one, else derived from its suffix."""
    require_writable(out)
    if form is not None:
        chosen = pb.TestFormat.Value(f"TEST_FORMAT_{form.upper()}")
    elif out is None:
        raise typer.BadParameter("the output is missing: add -o FILE, or --format pytest to print")
    elif out.suffix not in _ENDINGS:
        raise typer.BadParameter(f"{out} does not end in {', '.join(_ENDINGS)}: add --format")
    else:
        chosen = _ENDINGS[out.suffix]
    if append and (out is None or chosen != pb.TEST_FORMAT_PYTEST):
        raise typer.BadParameter("--append needs -o FILE.py: tests are added to pytest modules only")
    return chosen


@commands.command()
def export(
    run_id: RunId,
    out: Out = None,
    format_: As = None,
    append: Append = False,
    counting_only: Annotated[
        bool,
        typer.Option("--counting-only", help="Leave out tests that are unstable, unsound or redundant."),
    ] = False,
    with_redundant: Annotated[
        bool,
        typer.Option(
            "--with-redundant",
            help="For pytest: also write the baseline tests of a command that add nothing.",
        ),
    ] = False,
    server: Server = None,
) -> None:
    """Export the tests of a run: pytest, JSON, JUnit, SARIF or Markdown.

    \b
    Examples:
      peripety testgen export RUN -o tests/test_tool.py --append
      peripety testgen export RUN -o findings.sarif
    """  # noqa: D301 - keeps the lines of the examples apart
    request = pb.ExportTestsRequest(
        run_id=run_id,
        format=_select_format(out, format_.value if format_ else None, append=append),
        counting_only=counting_only,
        with_redundant=with_redundant,
    )
    asyncio.run(_export_to(request, server, out, append=append))
