"""Command lines as the documentation writes them, held against the command line that exists."""

from __future__ import annotations

from typing import Any

from typer.main import get_command

from peripety.cli import app


def options_of(command: str) -> set[str]:
    """The options of a command, as they are written."""
    return {option for param in _commands()[command].params for option in param.opts if option[0] == "-"}


def command_exists(words: list[str]) -> bool:
    """Whether `peripety COMMAND ...` names a command and only options that it has."""
    commands = _commands()
    program, *rest = words
    if program != "peripety":
        return False
    if rest[:1] == ["--version"]:
        return True
    command = commands.get(rest[0]) if rest else None
    known = {option for param in command.params for option in param.opts} if command else set()
    return command is not None and all(word.split("=")[0] in known for word in rest if word.startswith("--"))


def _commands() -> dict[str, Any]:
    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]  # it is a group
    return commands
