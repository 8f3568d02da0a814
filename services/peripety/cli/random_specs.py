"""`peripety generate --random`: many specifications from a seed, a line each."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

import typer

from peripety.cli.output import progress
from peripety.scenarios.random_specs import random_spec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["generate_random"]


def generate_random(count: int, *, seed: int, out: Path | None) -> None:
    """Write specifications as JSON Lines to a file or to standard output, as they are made."""
    with _sink(out) as sink, progress("generating", count) as advance:
        for index in range(count):
            sink.write(random_spec(seed, index) + b"\n")
            advance(1)


@contextmanager
def _sink(out: Path | None) -> Iterator[IO[bytes]]:
    if out is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        with out.open("wb") as file:
            yield file
    except OSError as error:
        raise typer.BadParameter(f"cannot write {out}: {error.strerror}") from None
