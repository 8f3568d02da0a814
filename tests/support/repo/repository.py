"""The repository under test: tracked files, docs pages, command lines, distributions, error tree."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from typer.testing import CliRunner

from peripety.cli.app import COMMANDS, app, load_command
from peripety.errors import FieldViolation, Finding, PeripetyError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator


def options_of(command: str) -> set[str]:
    """The options of a command, as they are written."""
    return {option for param in _commands()[command].params for option in param.opts if option[0] == "-"}


def every_option() -> list[tuple[str, ...]]:
    """The options of all commands, each with all its spellings."""
    pending, found = list(_commands().values()), []
    while pending:
        command = pending.pop()
        pending += getattr(command, "commands", {}).values()
        found += [tuple(param.opts) for param in command.params if param.opts[0][0] == "-"]
    return found


def command_exists(words: list[str]) -> bool:
    """Return True if `peripety COMMAND ...` names a command and only options that it has."""
    program, *rest = words
    if program != "peripety":
        return False
    if rest[:1] == ["--version"]:
        return True
    if not rest or rest[0] not in _commands():
        return False
    command = _commands()[rest.pop(0)]
    while rest and rest[0] in getattr(command, "commands", {}):
        command = command.commands[rest.pop(0)]
    known = {option for param in command.params for option in param.opts}
    asked = rest[: rest.index("--")] if "--" in rest else rest  # what follows is another program's
    return all(word.split("=")[0] in known for word in asked if word.startswith("--"))


def _commands() -> dict[str, Any]:
    return {name: load_command(name) for name in COMMANDS}


@dataclass(frozen=True)
class Distribution:
    """A distribution as it is published."""

    wheel: Path
    sdist: Path


@dataclass(frozen=True)
class Installation:
    """An environment with wheels in it; the test's own environment lends the libraries they need."""

    home: Path
    site: Path

    def run(
        self,
        *command: str,
        check: bool = True,
        core: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, away from the tree, with the core of the tests or another."""
        program = str(self.home / "bin" / command[0])
        return subprocess.run(
            [program, *command[1:]],
            cwd=self.home,
            check=check,
            capture_output=True,
            text=True,
            env={
                "HOME": str(self.home),
                "PERIPETY_SIMCORE": core or os.environ.get("PERIPETY_SIMCORE", "auto"),
            },
        )


def _below(root: type[PeripetyError]) -> Iterator[type[PeripetyError]]:
    for child in root.__subclasses__():
        yield child
        yield from _below(child)


# Classes that other modules derive from these reach a client as one of these.
ALL_ERRORS = sorted(
    (error for error in _below(PeripetyError) if error.__module__ == PeripetyError.__module__),
    key=lambda error: error.__name__,
)


def example(error: type[PeripetyError], *, code: str | None = "SOME_CODE") -> PeripetyError:
    """An error of that class that uses everything an error can carry."""
    if issubclass(error, SpecError):
        return error("the document is refused", [Finding("A", "/b", "must be c")], code=code)
    rest: dict[str, Any] = {"details": {"limit": "7"}, "violations": [FieldViolation("a.b", "is required")]}
    return error("a sentence with ü and 語", code=code, retry_after=1.5, **rest)


ROOT = Path(__file__).parents[3]


def tracked_files() -> list[Path]:
    """Every file of the repository that git tracks."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [path for name in listing.stdout.split("\0") if name and (path := ROOT / name).is_file()]


def text_of(path: Path) -> str:
    """The text of a file; of a binary one, what can be read as text."""
    return path.read_text(encoding="utf-8", errors="replace")


_SHOWN = re.compile(r"```json\n(.*?)```", re.DOTALL)


def with_output(page: Path, *arguments: str) -> bytes:
    """The page with what a command prints now; the last argument is a file of the repository."""
    command = f"\n$ peripety {' '.join(arguments)}\n"
    *before, file = arguments
    printed = CliRunner().invoke(app, [*before, str(ROOT / file)]).stdout
    start, found, rest = page.read_text(encoding="utf-8").partition(command)
    assert found, f"{page.name} does not show: {command.strip()}"
    return f"{start}{command}{printed}{rest[rest.index('```') :]}".encode()


def document_shown(section: str) -> dict[str, Any]:
    """Return the document whose parts a section shows, each as JSON; lists continue from part to part."""
    document: dict[str, Any] = {}
    for part in _SHOWN.findall(section):
        for key, value in json.loads(part).items():
            if isinstance(value, list):
                document.setdefault(key, []).extend(value)
            else:
                assert key not in document, key
                document[key] = value
    return document
