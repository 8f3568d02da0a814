"""`peripety bench-narrator`: measure how well a model narrates.

It plays games and compares each narration with the engine's own record of the turn.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

import typer
from google.protobuf.json_format import MessageToDict
from rich.table import Table

from peripety.api.common.v1 import engine_pb2
from peripety.api.scenario.v1 import scenario_pb2
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub
from peripety.api.session.v1 import session_pb2 as pb
from peripety.api.session.v1.session_pb2_grpc import SessionServiceStub
from peripety.author.spec_author import author_from_text
from peripety.cli.embedded_services import embedded_services
from peripety.cli.input_documents import read_specification
from peripety.cli.options import MAX_SEED
from peripety.cli.output import (
    EXIT_FAILED,
    format_dollars,
    person_console,
    progress_bar,
    table_console,
    write_json,
)
from peripety.cli.players import RandomPlayer, TurnInput, select_point_of_view
from peripety.cli.render.console import live_view
from peripety.cli.scenario_generate import compile_scenario
from peripety.errors import PeripetyError
from peripety.gateway.types.response import Usage, UsageTotal
from peripety.rpc.proto_json import to_json
from peripety.session.narrator_metrics import (
    NarratorMetrics,
    TurnMetrics,
    find_unsupported_numbers,
    insert_canaries,
    numbers_in,
)
from peripety.session.types import NarratorStats, Resolution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import grpc.aio

    from peripety.api.common.v1 import common_pb2
    from peripety.api.session.v1.session_pb2_grpc import SessionServiceAsyncStub
    from peripety.cli.players import GamePlayer


commands = typer.Typer()


_MAX_REJECTED_CHOICES = 3


@dataclass(frozen=True, slots=True)
class BenchmarkStage:
    """A stored scenario prepared for the benchmark.

    Attributes:
        scenario_id: the stored scenario.
        spec: its specification.
        pov: the entity whose point of view is used; empty for the public view.
        secrets: words that must not appear in the narration.
    """

    scenario_id: str
    spec: dict[str, Any]
    pov: str
    secrets: tuple[str, ...]


@dataclass
class _BenchmarkGame:
    """A session in progress, with all numbers sent to its narrator so far."""

    sessions: SessionServiceAsyncStub
    stage: BenchmarkStage
    session: pb.Session
    known_numbers: set[float] = field(default_factory=set)

    @property
    def is_running(self) -> bool:
        return self.session.status.kind == engine_pb2.RUN_STATUS_KIND_ONGOING

    def add_known_numbers(self, *values: Any) -> None:
        for value in values:
            self.known_numbers.update(numbers_in(value))

    async def read_session(self) -> None:
        request = pb.GetSessionRequest(session_id=self.session.session_id, pov_entity_id=self.stage.pov)
        self.session = (await self.sessions.GetSession(request)).session
        self.add_known_numbers(json.loads(self.session.state), self.session.turn + 1)

    async def play(self, choice: TurnInput) -> TurnMetrics | None:
        """Play a turn; return None if the rules reject the choice."""
        request = pb.TakeTurnRequest(
            session_id=self.session.session_id,
            request_id=str(uuid4()),
            expected_turn=self.session.turn + 1,
            actions=choice.actions,
            input=choice.words,
            pov_entity_id=self.stage.pov,
        )
        heard = _TurnRecord()
        try:
            async for response in self.sessions.TakeTurn(request):
                heard.record(response.event)
        except PeripetyError as error:
            heard.broke_off = error.code
        heard.seconds = heard.now
        if heard.was_abandoned:
            return None
        await self.read_session()
        self.add_known_numbers(choice.words, *map(to_json, choice.actions), *heard.mechanics)
        self.known_numbers.update(heard.number_differences())
        return heard.to_round(
            find_unsupported_numbers(heard.prose, self.known_numbers),
            leaked=any(secret in heard.all_text for secret in self.stage.secrets),
        )


class _TurnRecord:
    """The events of one turn, with their times."""

    def __init__(self) -> None:
        self._start_time = time.perf_counter()
        self._first_prose: float | None = None
        self._committed: pb.TurnEvent.Committed | None = None
        self._dialogue: list[str] = []
        self._changes: list[engine_pb2.Change] = []
        self._degraded = ""
        self._text: list[str] = []
        self.mechanics: list[Any] = []
        self.was_abandoned = False
        self.broke_off = ""
        self.seconds = 0.0

    @property
    def now(self) -> float:
        """Return the seconds since the request."""
        return time.perf_counter() - self._start_time

    def record(self, event: pb.TurnEvent) -> None:
        """Record an event."""
        kind = event.WhichOneof("event")
        self._text.append(json.dumps(MessageToDict(event), ensure_ascii=False))
        match kind:
            case "accepted":
                self._dialogue.clear()
                self._changes.clear()
                self._degraded = ""
            case "narrative_chunk":
                if self._first_prose is None:
                    self._first_prose = self.now
                self._text.append(event.narrative_chunk.text)
            case "dialogue":
                self._dialogue.append(event.dialogue.utterance)
            case "narrative_retracted":
                self._dialogue.clear()
            case "degraded":
                self._degraded = event.degraded.reason
            case "committed":
                self._committed = event.committed
                self._changes += event.committed.changes
            case "rule_failed":
                self.was_abandoned |= event.rule_failed.turn_abandoned
        if kind in {"action_resolved", "rolled", "world_resolved", "rule_failed"}:
            self.mechanics.append(to_json(event))

    @property
    def prose(self) -> str:
        """The final prose."""
        told = "" if self._committed is None else self._committed.narrative
        return "\n".join([told, *self._dialogue])

    @property
    def all_text(self) -> str:
        """All text of the turn, including retracted text.

        Prose is also joined without the boundaries of its chunks.
        """
        chunks = "".join(text for text in self._text if not text.startswith("{"))
        return "\n".join([*self._text, chunks])

    def number_differences(self) -> Iterator[float]:
        """Yield the differences between changed numbers: a narrator may mention them."""
        for change in self._changes:
            before, after = (json.loads(value or b"null") for value in (change.before, change.after))
            if all(isinstance(value, int | float) for value in (before, after)):
                yield abs(after - before)

    def to_round(self, numbers: tuple[str, ...], *, leaked: bool) -> TurnMetrics:
        """Return the measurements of the turn."""
        end = self._committed
        if end is None:
            reason = self.broke_off or self._degraded
            return TurnMetrics(None, degraded=reason, has_leak=leaked, seconds=self.seconds)
        return TurnMetrics(
            resolution=_RESOLUTIONS[end.resolution],
            conduct=NarratorStats(
                **{field.name: getattr(end.narrator_stats, field.name) for field in _CONDUCT},
            ),
            degraded=self._degraded,
            # Text of the server's fallback narration does not count against the narrator.
            unsupported_numbers=() if end.resolution == pb.RESOLUTION_SERVER_RESOLVED else numbers,
            has_leak=leaked,
            usage=_usage_tokens(end.usage),
            seconds=self.seconds,
            seconds_to_prose=self._first_prose,
        )


_CONDUCT = pb.NarratorStats.DESCRIPTOR.fields
_RESOLUTIONS = {
    pb.RESOLUTION_NARRATED: Resolution.NARRATED,
    pb.RESOLUTION_REPAIRED: Resolution.REPAIRED,
    pb.RESOLUTION_SERVER_RESOLVED: Resolution.SERVER_RESOLVED,
}


async def play_session(
    channel: grpc.aio.Channel,
    stage: BenchmarkStage,
    player: GamePlayer,
    *,
    seed: int,
    turns: int,
    model: str,
    on_round: Callable[[TurnMetrics], None],
) -> None:
    """Play one session up to a number of turns, and delete it.

    Args:
        channel: to the services.
        stage: the scenario.
        player: chooses the input of each turn.
        seed: of the session.
        turns: the maximum number of turns.
        model: the narrator, as `provider/model`; empty for the configured one.
        on_round: called with each turn that was played.
    """
    sessions = SessionServiceStub(channel)
    created = await sessions.CreateSession(
        pb.CreateSessionRequest(
            request_id=str(uuid4()),
            scenario_id=stage.scenario_id,
            seed=seed,
            pov_entity_id=stage.pov,
            narrator=pb.NarratorOptions(model=model),
        ),
    )
    game = _BenchmarkGame(sessions, stage, created.session)
    game.add_known_numbers({key: value for key, value in stage.spec.items() if key != "state"})
    try:
        await game.read_session()
        failed = 0
        for number in range(1, turns + 1):
            if not game.is_running or failed == _MAX_REJECTED_CHOICES:
                return
            played = await game.play(player.choose(number, game.session.legal_actions) or TurnInput())
            # The choice was rejected; waiting is always legal.
            played = played or await game.play(TurnInput())
            if played is not None:
                on_round(played)
                failed = failed + 1 if played.resolution is None else 0
    finally:
        request = pb.DeleteSessionRequest(request_id=str(uuid4()), session_id=game.session.session_id)
        await asyncio.shield(sessions.DeleteSession(request))


def _usage_tokens(used: common_pb2.ModelUsage) -> UsageTotal:
    tokens = used.tokens
    usage = Usage(
        tokens.input_tokens,
        tokens.output_tokens,
        tokens.cache_read_tokens,
        tokens.cache_write_tokens,
    )
    return UsageTotal(used.calls, usage, used.cost.pico_units if used.HasField("cost") else None, None)


_GENERATED_OFFLINE = 3
# A cached answer has no meaningful latency.
_CACHE_OFF = {"response_cache_memory_bytes": 0, "response_cache_disk_bytes": 0}
_RATE_FIGURES = (
    ("clean_rounds", "rounds without any error"),
    ("repaired", "rounds whose answer was repaired once"),
    ("server_resolved", "rounds with fallback narration by the server"),
    ("dead_turns", "lost turns"),
)
_COUNT_FIGURES = (
    ("event_condition_errors", "rejected actions"),
    ("variable_update_errors", "rejected state changes"),
    ("malformed_answers", "malformed answers"),
    ("refused_calls", "other rejected tool calls"),
    ("withheld_secrets", "answers withheld because they contain a secret"),
    ("contradictions", "answers withheld because they contradict the record"),
    ("unchecked_answers", "answers that are not in English, so their claims were not checked"),
    ("leaks", "rounds that revealed a secret"),
    ("unfounded_numbers", "unfounded numbers in the prose"),
    ("tool_calls", "tool calls"),
    ("model_calls", "requests to the model"),
    ("input_tokens", "tokens in"),
    ("cached_tokens", "of which cached"),
    ("output_tokens", "tokens out"),
)
_TIME_FIGURES = (
    ("first_prose_p50", "seconds to the first prose, median"),
    ("first_prose_p95", "seconds to the first prose, 95th percentile"),
    ("seconds_p50", "seconds to the end of a turn, median"),
    ("seconds_p95", "seconds to the end of a turn, 95th percentile"),
)


@dataclass(frozen=True, slots=True)
class BenchmarkPlan:
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
            for number in range(min(_GENERATED_OFFLINE, self.sessions)):
                yield json.dumps(author_from_text("", self.seed + number)).encode()


async def _run_games(plan: BenchmarkPlan) -> NarratorMetrics:
    grade = NarratorMetrics()
    services = ("gateway", "scenarios", "sessions")
    async with embedded_services(*services, **_CACHE_OFF) as channel:
        stages = [await _prepare_stage(channel, spec, plan) for spec in plan.specifications()]
        free = asyncio.Semaphore(plan.at_once)
        with progress_bar("playing", total=plan.sessions) as advance:

            async def play(number: int) -> None:
                async with free:
                    await play_session(
                        channel,
                        stages[number % len(stages)],
                        RandomPlayer(f"{plan.seed}/{number}"),
                        seed=plan.seed + number,
                        turns=plan.turns,
                        model=plan.model,
                        on_round=grade.add,
                    )
                    advance(1)

            try:
                await asyncio.gather(*map(play, range(plan.sessions)))
            finally:
                await _delete_stages(channel, stages)
    return grade


async def _prepare_stage(channel: grpc.aio.Channel, document: bytes, plan: BenchmarkPlan) -> BenchmarkStage:
    """Store a specification with secret words planted where the point of view has no access."""
    pov = select_point_of_view(document, plan.pov).entity_id
    spec, secrets = insert_canaries(json.loads(document), pov or None, plan.seed)
    with live_view(person_console()) as story:
        compiled = await compile_scenario(channel, spec=json.dumps(spec).encode(), view=story)
    return BenchmarkStage(compiled.scenario_id, spec, pov, secrets)


async def _delete_stages(channel: grpc.aio.Channel, stages: list[BenchmarkStage]) -> None:
    stub = ScenarioServiceStub(channel)
    for stage in stages:
        request = scenario_pb2.DeleteScenarioRequest(request_id=str(uuid4()), scenario_id=stage.scenario_id)
        await stub.DeleteScenario(request)


def _figures_table(figures: Mapping[str, Any]) -> Table:
    rounds = figures["rounds"]
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="left", no_wrap=True)
    for _ in range(2):
        table.add_column(justify="right", no_wrap=True)
    table.add_row("rounds", f"{rounds:,}", "")
    for name, words in _RATE_FIGURES:
        table.add_row(words, f"{figures[name]:,}", f"{figures[name] / max(rounds, 1):.1%}")
    for name, words in _COUNT_FIGURES:
        table.add_row(words, f"{figures[name]:,}", f"{figures[name] / max(rounds, 1):,.2f} per round")
    cost = figures["cost_pico_dollars"]
    table.add_row("cost", "?" if cost is None else format_dollars(cost), "")
    for name, words in _TIME_FIGURES:
        table.add_row(words, f"{figures[name]:.2f}", "")
    for reason, count in figures["degraded"].items():
        table.add_row(f"fallback narration: {reason}", f"{count:,}", "")
    return table


@commands.command("bench-narrator")
def bench_narrator(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Specifications to play. [default: specifications generated offline]",
        ),
    ] = None,
    sessions: Annotated[int, typer.Option(min=1, max=100_000, help="Number of games.")] = 10,
    turns: Annotated[int, typer.Option(min=1, max=10_000, help="Maximum turns of a game.")] = 20,
    at_once: Annotated[
        int,
        typer.Option(min=1, max=128, help="Number of games played at the same time."),
    ] = 4,
    seed: Annotated[int, typer.Option(min=0, max=MAX_SEED, help="Seed of the games.")] = 1,
    model: Annotated[
        str,
        typer.Option(metavar="NAME", help="Narrator model: provider/model. [default: the configured model]"),
    ] = "",
    pov: Annotated[
        str | None,
        typer.Option(
            metavar="ENTITY",
            help="Entity whose point of view is used. [default: the only playable entity, else public]",
        ),
    ] = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print the measurements as one line of JSON."),
    ] = False,
) -> None:
    """Measure how well a model narrates.

    Plays random games, with actions and free text, and deletes them afterwards. Compares the narration with
    the engine: rules, secrets, cost and time. Exit code 1 if a turn was lost or a secret was revealed. See
    docs/how-to/compare-narrators.md for the measurements.
    """
    plan = BenchmarkPlan(tuple(files or ()), sessions, turns, at_once, seed, model, pov)
    grade = asyncio.run(_run_games(plan))
    figures = {"sessions": sessions, "turns": turns, "seed": seed, **grade.to_figures()}
    if as_json:
        write_json(figures)
    else:
        table_console().print(_figures_table(figures))
    raise typer.Exit(0 if grade.is_safe else EXIT_FAILED)
