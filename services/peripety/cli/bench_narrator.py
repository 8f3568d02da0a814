"""`peripety bench-narrator`: measure how well a model narrates.

The reference is the engine's own record of each turn.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from rich.table import Table

from peripety.api.scenario.v1 import scenario_pb2
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub
from peripety.authoring import author
from peripety.cli.authoring import compile_scenario
from peripety.cli.choosing import Wanderer
from peripety.cli.documents import read_specification
from peripety.cli.embedded import embedded_services
from peripety.cli.failure import FOUND_WRONG
from peripety.cli.live import live_story
from peripety.cli.output import asides, progress, tables, write_json
from peripety.cli.rehearsal import Stage, rehearse
from peripety.cli.spending import dollars
from peripety.cli.viewpoint import viewpoint_of
from peripety.sessions.canaries import planted
from peripety.sessions.grading import Grade

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import grpc.aio

__all__ = ["Plan", "bench_narrator"]

_WRITTEN = 3
# A cached answer has no meaningful latency.
_NO_STORED_ANSWERS = {"response_cache_memory_bytes": 0, "response_cache_disk_bytes": 0}
_SHARES = (
    ("clean_rounds", "rounds without any error"),
    ("repaired", "rounds whose answer was repaired once"),
    ("server_resolved", "rounds with fallback narration by the server"),
    ("dead_turns", "lost turns"),
)
_COUNTS = (
    ("event_condition_errors", "rejected actions"),
    ("variable_update_errors", "rejected state changes"),
    ("malformed_answers", "malformed answers"),
    ("refused_calls", "other rejected tool calls"),
    ("withheld_secrets", "answers withheld because they contain a secret"),
    ("leaks", "rounds that revealed a secret"),
    ("unfounded_numbers", "unfounded numbers in the prose"),
    ("tool_calls", "tool calls"),
    ("model_calls", "requests to the model"),
    ("input_tokens", "tokens in"),
    ("cached_tokens", "of which cached"),
    ("output_tokens", "tokens out"),
)
_TIMES = (
    ("first_prose_p50", "seconds to the first prose, median"),
    ("first_prose_p95", "seconds to the first prose, 95th percentile"),
    ("seconds_p50", "seconds to the end of a turn, median"),
    ("seconds_p95", "seconds to the end of a turn, 95th percentile"),
)


@dataclass(frozen=True, slots=True)
class Plan:
    """Settings of a benchmark.

    Attributes:
        files: specifications; empty to generate some offline.
        sessions: number of games.
        turns: maximum turns of a game.
        at_once: number of games played at the same time.
        seed: the seed of all random choices.
        model: the narrator, as `provider/model`; empty for the configured one.
        pov: the entity whose point of view is used; None for the only playable entity, else the public view.
    """

    files: tuple[str, ...]
    sessions: int
    turns: int
    at_once: int
    seed: int
    model: str = ""
    pov: str | None = None

    def specifications(self) -> Iterator[bytes]:
        """Yield the specifications to play, before secrets are planted in them."""
        if self.files:
            yield from map(read_specification, self.files)
        else:
            for number in range(min(_WRITTEN, self.sessions)):
                yield json.dumps(author("", self.seed + number)).encode()


def bench_narrator(plan: Plan, *, as_json: bool) -> int:
    """Play the games, print the measurements, and return the exit code."""
    grade = asyncio.run(_graded(plan))
    figures = {"sessions": plan.sessions, "turns": plan.turns, "seed": plan.seed, **grade.figures()}
    if as_json:
        write_json(figures)
    else:
        tables().print(_table(figures))
    return 0 if grade.is_safe else FOUND_WRONG


async def _graded(plan: Plan) -> Grade:
    grade = Grade()
    services = ("gateway", "scenarios", "sessions")
    async with embedded_services(*services, **_NO_STORED_ANSWERS) as channel:
        stages = [await _stage(channel, spec, plan) for spec in plan.specifications()]
        free = asyncio.Semaphore(plan.at_once)
        with progress("playing", total=plan.sessions) as advance:

            async def play(number: int) -> None:
                async with free:
                    await rehearse(
                        channel,
                        stages[number % len(stages)],
                        Wanderer(f"{plan.seed}/{number}"),
                        seed=plan.seed + number,
                        turns=plan.turns,
                        model=plan.model,
                        note=grade.add,
                    )
                    advance(1)

            try:
                await asyncio.gather(*map(play, range(plan.sessions)))
            finally:
                await _delete(channel, stages)
    return grade


async def _stage(channel: grpc.aio.Channel, document: bytes, plan: Plan) -> Stage:
    """Store a specification with secret words planted where the point of view has no access."""
    pov = viewpoint_of(document, plan.pov).entity_id
    spec, secrets = planted(json.loads(document), pov or None, plan.seed)
    with live_story(asides()) as story:
        compiled = await compile_scenario(channel, spec=json.dumps(spec).encode(), view=story)
    return Stage(compiled.scenario_id, spec, pov, secrets)


async def _delete(channel: grpc.aio.Channel, stages: list[Stage]) -> None:
    stub = ScenarioServiceStub(channel)
    for stage in stages:
        request = scenario_pb2.DeleteScenarioRequest(request_id=str(uuid4()), scenario_id=stage.scenario_id)
        await stub.DeleteScenario(request)


def _table(figures: Mapping[str, Any]) -> Table:
    rounds = figures["rounds"]
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="left", no_wrap=True)
    for _ in range(2):
        table.add_column(justify="right", no_wrap=True)
    table.add_row("rounds", f"{rounds:,}", "")
    for name, words in _SHARES:
        table.add_row(words, f"{figures[name]:,}", f"{figures[name] / max(rounds, 1):.1%}")
    for name, words in _COUNTS:
        table.add_row(words, f"{figures[name]:,}", f"{figures[name] / max(rounds, 1):,.2f} per round")
    cost = figures["cost_pico_dollars"]
    table.add_row("cost", "?" if cost is None else dollars(cost), "")
    for name, words in _TIMES:
        table.add_row(words, f"{figures[name]:.2f}", "")
    for reason, count in figures["degraded"].items():
        table.add_row(f"fallback narration: {reason}", f"{count:,}", "")
    return table
