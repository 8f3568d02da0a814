"""Command lines as the documentation writes them, held against the command line that exists."""

from __future__ import annotations

from typing import Any

from typer.main import get_command

from peripety.cli.app import app


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
    """Whether `peripety COMMAND ...` names a command and only options that it has."""
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
    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]  # it is a group
    return commands
