"""`peripety generate`: write a specification from a description."""

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
    """Options of a generation; 0 means no limit, or the limit of the server.

    Attributes:
        level: the checks to pass: SCHEMA, STATIC, DRY_RUN or CERTIFICATE.
        seed: the scenario's seed; None to derive it from the description.
        model: the model, as `provider/model`; empty for the configured one.
        attempts: maximum number of model answers.
        tokens: maximum tokens.
        dollars: maximum cost.
        seconds: maximum time.
        refresh: True to ignore a cached specification.
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
        """Return the request, without its id."""
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
    """Write a specification to a file or to standard output; print progress to standard error.

    On a terminal, the specification itself is only printed with `as_json`.

    Args:
        about: the description; None to prompt for it at a terminal.
        wishes: the options.
        as_json: True to print the specification on a terminal and beside a file, too.
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
