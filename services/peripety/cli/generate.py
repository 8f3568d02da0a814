"""`peripety generate`: a description in, a specification out."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peripety.api.scenario.v1 import scenario_pb2
from peripety.cli.authoring import write_specification
from peripety.cli.choosing import ask
from peripety.cli.embedded import embedded_services
from peripety.cli.live import live_story
from peripety.cli.output import asides, require_place, results, save, write_bytes
from peripety.cli.spending import budget
from peripety.cli.text import read_text

if TYPE_CHECKING:
    from pathlib import Path

    from peripety.cli.view import View

__all__ = ["Wishes", "generate"]


@dataclass(frozen=True, slots=True)
class Wishes:
    """How a specification is to be written; 0 is no cap, or the server's own.

    Attributes:
        level: what it has to pass: SCHEMA, STATIC, DRY_RUN or CERTIFICATE.
        seed: the scenario's seed; None to have one follow from the description.
        model: who writes, as `provider/model`; empty for the configured one.
        attempts: most answers of the model.
        tokens: most tokens.
        dollars: most money.
        seconds: most time.
        refresh: whether to write anew what was written before.
    """

    level: str
    seed: int | None = None
    model: str = ""
    attempts: int = 0
    tokens: int = 0
    dollars: float = 0.0
    seconds: float = 0.0
    refresh: bool = False

    def request(self, description: str) -> scenario_pb2.GenerateScenarioRequest:
        """What asks for it, but for its id."""
        return scenario_pb2.GenerateScenarioRequest(
            description=description,
            seed=self.seed,
            model=self.model,
            max_attempts=self.attempts,
            budget=budget(tokens=self.tokens, dollars=self.dollars, seconds=self.seconds),
            level=scenario_pb2.ValidationLevel.Value(f"VALIDATION_LEVEL_{self.level}"),
            refresh=self.refresh,
        )


def generate(about: str | None, wishes: Wishes, *, as_json: bool, out: Path | None) -> None:
    """Write a specification to a file, or to standard output unless that is a terminal; tell how it goes.

    Args:
        about: the description; None to ask for it at a terminal.
        wishes: how to write it.
        as_json: whether it goes to standard output whatever that is, and to a file as well.
        out: the file.
    """
    require_place(out)
    if about is None:
        about = (ask("Describe the scenario > ") if sys.stdin.isatty() else None) or ""
    request = wishes.request(read_text(about, "--description"))
    is_piped = as_json or (out is None and not sys.stdout.isatty())
    with live_story(asides() if is_piped else results()) as story:
        spec = asyncio.run(_generate(request, story))
    if out is not None:
        save(spec + b"\n", out)
    if is_piped:
        write_bytes(spec)


async def _generate(request: scenario_pb2.GenerateScenarioRequest, view: View) -> bytes:
    async with embedded_services("gateway", "scenarios") as channel:
        return (await write_specification(channel, request, view)).spec
