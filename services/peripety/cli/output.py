"""Output streams: results to standard output, the rest to standard error; colour only on a terminal."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from functools import cache
from typing import IO, TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

__all__ = [
    "asides",
    "errors",
    "progress",
    "require_place",
    "results",
    "save",
    "sink",
    "tables",
    "write_bytes",
    "write_json",
    "write_lines",
]

_WIDEST = 1_000


@cache
def results() -> Console:
    """Return the console of standard output. Lines are never wrapped, because the reader may be a program."""
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True)


@cache
def tables() -> Console:
    """Return the console of standard output for tables, which may be wider than the terminal."""
    return Console(width=_WIDEST, highlight=False, markup=False, emoji=False, soft_wrap=True)


@cache
def errors() -> Console:
    """Return the console of standard error."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)


def asides() -> Console:
    """Return the console for output that is only useful to a person: standard error if it is a terminal."""
    return Console(stderr=True, quiet=not sys.stderr.isatty(), highlight=False, markup=False, emoji=False)


@contextmanager
def progress(doing: str, total: float | None) -> Iterator[Callable[[float], None]]:
    """Show a progress bar on standard error if it is a terminal; yield a function that advances it."""
    with Progress(console=errors(), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(doing, total=total)
        yield lambda done: bar.advance(task, done)


def require_place(out: Path | None) -> None:
    """Check that a file can be created, before the work starts.

    Raises:
        BadParameter: the path is a folder, or its folder does not exist.
    """
    if out is not None and (out.is_dir() or not out.parent.is_dir()):
        raise typer.BadParameter(f"cannot write {out}: choose a file in an existing folder")


def save(content: bytes, out: Path) -> None:
    """Write a file.

    Raises:
        BadParameter: the file cannot be written.
    """
    try:
        out.write_bytes(content)
    except OSError as error:
        raise typer.BadParameter(f"cannot write {out}: {error.strerror}") from None


@contextmanager
def sink(out: Path | None) -> Iterator[IO[bytes]]:
    """Open a file for incremental output; standard output if none is given.

    Raises:
        BadParameter: the file cannot be written.
    """
    if out is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        with out.open("wb") as file:
            yield file
    except OSError as error:
        raise typer.BadParameter(f"cannot write {out}: {error.strerror}") from None


def write_lines(lines: Sequence[str], *, style: str) -> None:
    """Write lines to standard output; on a terminal, style the first one."""
    console = results()
    if console.is_terminal:
        console.print(lines[0], style=style)
        for line in lines[1:]:
            console.print(line)
    else:
        # Without a terminal there is nothing to style, and the console is slower than many a check.
        sys.stdout.write("\n".join([*lines, ""]))
        sys.stdout.flush()


def write_json(value: Any) -> None:
    """Write a value to standard output as one line of JSON, in UTF-8 for any locale."""
    write_bytes(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def write_bytes(line: bytes) -> None:
    """Write a line of bytes to standard output unchanged."""
    sys.stdout.flush()
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()
