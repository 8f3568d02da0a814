"""`peripety generate`: a description in, a specification out."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from peripety.cli.authoring import write_specification
from peripety.cli.choosing import ask
from peripety.cli.embedded import embedded_services
from peripety.cli.output import asides, require_place, results, save, write_bytes
from peripety.cli.story import Story
from peripety.cli.text import read_about

if TYPE_CHECKING:
    from pathlib import Path

    from peripety.cli.view import View

__all__ = ["generate"]


def generate(*, about: str | None, seed: int | None, as_json: bool, out: Path | None) -> None:
    """Write a specification to standard output, to a file, or only tell what it holds."""
    require_place(out)
    if about is None:
        about = (ask("What is the scenario about? > ") if sys.stdin.isatty() else None) or ""
    spec = asyncio.run(_generate(read_about(about), seed, Story(asides() if as_json else results())))
    if out is not None:
        save(spec + b"\n", out)
    if as_json:
        write_bytes(spec)


async def _generate(description: str, seed: int | None, view: View) -> bytes:
    async with embedded_services("gateway", "scenarios") as channel:
        completed = await write_specification(channel, description=description, seed=seed, view=view)
    return completed.spec
