"""Entry point of the `peripety` command: sub-commands, version and standard streams.

The root imports a command when it is named, so that help and usage errors appear at once. Results go to
standard output, everything else to standard error.

Exit codes: 0 success; 1 the work failed or found a problem; 2 wrong usage; 130 interrupted by Ctrl-C.
A server (`serve`, `simulate`) ends with 0 after Ctrl-C, when the calls in progress are finished.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer._click.exceptions import ClickException, NoArgsIsHelpError
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_group

from peripety.core.module_loader import load_module
from peripety.errors import InvalidArgumentError, PeripetyError
from peripety.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "COMMANDS",
    "DEBUG_VARIABLE",
    "CommandEntry",
    "app",
    "discard_output",
    "load_command",
    "main",
    "open_closed_streams",
    "version_text",
]


def open_closed_streams() -> None:
    """Connect each standard stream that was closed at the start (`>&-`) to the null device.

    Otherwise the next opened file, perhaps a database, would get its file descriptor.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open until the end


def discard_output() -> None:
    """Discard buffered standard output, because the interpreter would fail on it again at exit."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command that is imported when it is used.

    Attributes:
        module: the module of this package that declares the command, in its `commands`.
        summary: the line of the command in `peripety --help`: the first line of its own help.
        group: the heading above it.
    """

    module: str
    summary: str
    group: str


_PLAY = "Play"
_WRITE = "Write and measure scenarios"
_TEST = "Turn rules and texts into tests"
_MODELS = "Use language models"
_SERVE = "Run services and long work"


COMMANDS = {
    "play": CommandEntry("play", "Play a description, a specification or a session.", _PLAY),
    "sessions": CommandEntry("session", "List, show, fork, watch and verify sessions.", _PLAY),
    "replay": CommandEntry("session_files", "Replay a session from its bundle and verify it.", _PLAY),
    "generate": CommandEntry("scenario_generate", "Write a specification from a description.", _WRITE),
    "validate": CommandEntry("scenario_validate", "Check specifications.", _WRITE),
    "schema": CommandEntry("scenario_validate", "Write the JSON Schema of specifications.", _WRITE),
    "dry-run": CommandEntry(
        "scenario_analyze", "Simulate a specification; show loss rate and reasons.", _WRITE
    ),
    "balance": CommandEntry("scenario_analyze", "Tune numbers of a specification to a loss rate.", _WRITE),
    "certify": CommandEntry("scenario_analyze", "Measure how fair a specification is.", _WRITE),
    "graph": CommandEntry("scenario_analyze", "Show the dependency graph of a scenario.", _WRITE),
    "compile": CommandEntry("scenario_generate", "Validate, dry-run and store a specification.", _WRITE),
    "amend": CommandEntry("scenario_generate", "Change a stored scenario by a description.", _WRITE),
    "scenarios": CommandEntry("scenario", "List, show and delete stored scenarios.", _WRITE),
    "policy": CommandEntry("policy", "Compile a written policy into rules, and enforce them.", _TEST),
    "testgen": CommandEntry("testgen", "Generate tests and measure what they catch.", _TEST),
    "simulate": CommandEntry("simulate", "Serve a scripted LLM, or print its answers.", _TEST),
    "chat": CommandEntry("chat", "Chat with a model and see the usage of each turn.", _MODELS),
    "models": CommandEntry("gateway", "List known models: limits, prices, cache rules.", _MODELS),
    "usage": CommandEntry("gateway", "Show model usage: calls, tokens, cost, cache savings.", _MODELS),
    "agent": CommandEntry("agent", "Run agents: phases that share a conversation.", _MODELS),
    "bench-narrator": CommandEntry("bench_narrator", "Measure how well a model narrates.", _MODELS),
    "serve": CommandEntry("embedded_services", "Run all services and the HTTP edge, or one of them.", _SERVE),
    "runs": CommandEntry("runs", "List, show and stop runs of long commands.", _SERVE),
}


def load_command(name: str) -> TyperCommand | TyperGroup:
    """Import and return a command or a group of commands."""
    declared: typer.Typer = load_module(f"peripety.cli.{COMMANDS[name].module}").commands
    declared.rich_markup_mode = app.rich_markup_mode
    group = get_group(declared)
    _show_whole_summaries(group)
    for command in group.commands.values():
        for parameter in command.params:
            parameter.__class__ = _PlainArgument if isinstance(parameter, TyperArgument) else _PlainOption
    return group if group.name == name else cast("TyperCommand", group.commands[name])


def _show_whole_summaries(group: TyperGroup) -> None:
    group.__class__ = _PlainGroup
    for command in group.commands.values():
        if isinstance(command, TyperGroup):
            _show_whole_summaries(command)


_MAX_SUMMARY = 1_000


class _PlainGroup(TyperGroup):
    """A group whose help shows the summary of each command as a whole, wrapped."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - given by typer
        _write_commands(formatter, "Commands", self.commands)


def _write_commands(formatter: Any, heading: str, listed: Mapping[str, Any]) -> None:
    with formatter.section(heading):
        width = max(map(len, COMMANDS))
        formatter.write_dl(
            [
                (name.ljust(width), command.get_short_help_str(_MAX_SUMMARY))
                for name, command in listed.items()
            ]
        )


class _PlainArgument(TyperArgument):
    """An argument that the help shows as its metavar, without a Python type."""

    def _usage_display_name(self) -> str:
        return self.display_name_raw

    def display_type_rich(self, ctx: Any) -> None:  # noqa: ARG002 - given by typer
        return None

    def get_help_record(self, ctx: Any) -> tuple[str, str] | None:
        return _join_notes(super().get_help_record(ctx))

    def _get_number_range_help_str(self) -> str | None:
        return _describe_range(self.min, self.max)


class _PlainOption(TyperOption):
    """An option that the help shows with its metavar or its choices, without a Python type."""

    def display_type_rich(self, ctx: Any) -> str:  # noqa: ARG002 - given by typer
        if self.metavar is not None:
            return self.metavar
        choices = self.type_descriptor.choices
        if choices:
            return "|".join(str(choice.value) for choice in choices)
        return "N" if self.type_descriptor.is_ranged else "TEXT"

    def get_help_record(self, ctx: Any) -> tuple[str, str] | None:
        return _join_notes(super().get_help_record(ctx))

    def _get_number_range_help_str(self) -> str | None:
        return _describe_range(self.min, self.max)


def _join_notes(record: tuple[str, str] | None) -> tuple[str, str] | None:
    """Join a default in the help text and the notes that typer adds: `[default: 2 per core; 1 to 256]`."""
    return record and (record[0], record[1].replace("]  [", "; "))


def _describe_range(low: float | None, high: float | None) -> str | None:
    numbers = [f"{end:,.6f}".rstrip("0").rstrip(".") for end in (low, high) if end is not None]
    return " to ".join(numbers) if len(numbers) > 1 else f"{numbers[0]} or more" if numbers else None


class _LazyGroup(TyperGroup):
    """The root of the command line: lists summaries, and imports only the command that is named."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, entry in COMMANDS.items():
            self.add_command(TyperCommand(name, help=entry.summary))

    def main(self, *args: Any, **settings: Any) -> Any:
        """Run the command line. Wrong usage is explained in the style of all errors."""
        is_standalone = settings.get("standalone_mode", True)
        settings["standalone_mode"] = False
        if not is_standalone:
            return super().main(*args, **settings)
        try:
            code = super().main(*args, **settings)
        except ClickException as error:
            sys.exit(_explain_usage(error))
        except typer.Abort:
            sys.exit(1)
        sys.exit(code if isinstance(code, int) else 0)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - given by typer
        for heading in dict.fromkeys(entry.group for entry in COMMANDS.values()):
            listed = {name: self.commands[name] for name, entry in COMMANDS.items() if entry.group == heading}
            _write_commands(formatter, heading, listed)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in COMMANDS:
            self.add_command(load_command(args[0]))
        return super().resolve_command(ctx, args)


DEBUG_VARIABLE = "PERIPETY_DEBUG"

app = typer.Typer(
    name="peripety",
    cls=_LazyGroup,
    help="Turn free text into a validated scenario and play it, turn by turn.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich would read `[default: ...]` as a style, and drop it
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line and exit the process."""
    open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # Print a substitute for characters that the terminal cannot encode, instead of failing.
        getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
    try:
        app()
    except PeripetyError as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        from peripety.cli.output import explain_error  # noqa: PLC0415 - loads rich

        sys.exit(explain_error(error))
    except UnicodeEncodeError as error:
        # Arguments that are not UTF-8 arrive as surrogates, which no protobuf message can hold.
        if os.environ.get(DEBUG_VARIABLE):
            raise
        from peripety.cli.output import explain_error  # noqa: PLC0415 - loads rich

        told = f"argument is not UTF-8: {error.object[:80]!a}; encode it as UTF-8"
        sys.exit(explain_error(InvalidArgumentError(told, code="BAD_TEXT")))
    except OSError as error:
        # Input errors are reported where the input is read; an OSError that arrives at this point is an
        # output error.
        if os.environ.get(DEBUG_VARIABLE):
            raise
        discard_output()
        sys.exit(f"error: cannot write {error.filename or 'the output'}: {error.strerror or error}")
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE):
            raise
        sys.exit(f"error: {type(error).__name__}: {error} ({DEBUG_VARIABLE}=1 shows where)")


_USAGE_WORDS = (
    (re.compile(r"^Invalid value(?: for)?:? "), ""),
    (re.compile(r": Input should be greater than or equal to "), " must be at least "),
    (re.compile(r": Input should be less than or equal to "), " must be at most "),
    (re.compile(r": Input should be a valid integer.*"), " must be a whole number"),
    (re.compile(r": Input should be a valid number.*"), " must be a number"),
    (re.compile(r": Input should be "), " must be "),
    (re.compile(r": Value error, "), ": "),
)


def _explain_usage(error: ClickException) -> int:
    """Print wrong usage and return the exit code."""
    if isinstance(error, NoArgsIsHelpError):
        error.show()
        return error.exit_code
    message = error.format_message().removesuffix(".")
    for pattern, words in _USAGE_WORDS:
        message = pattern.sub(words, message)
    message = re.sub(r"^'(.+?)'", r"\1", message)
    if message[1:2].islower():  # not the name of an argument, such as TURN
        message = message[:1].lower() + message[1:]
    sys.stderr.write(f"error: {message}\n  see: {_command_path(error)} --help\n")
    return error.exit_code


def _command_path(error: ClickException) -> str:
    """Return the command that was used wrongly, by the name of the program that is documented."""
    names: list[str] = []
    context = getattr(error, "ctx", None)
    while context is not None and context.parent is not None:
        names.insert(0, context.info_name)
        context = context.parent
    return " ".join(["peripety", *names])


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version_text())
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the version and the engine: native or python.",
        ),
    ] = False,
) -> None:
    """Turn free text into a validated scenario and play it, turn by turn."""


def version_text() -> str:
    """Return the version of the package and the active core."""
    from peripety import engine  # noqa: PLC0415 - help does without the engine

    return f"peripety {__version__} (core: {engine.BACKEND} {engine.BACKEND_VERSION})"
