"""`peripety play`: generate, compile and play a scenario in one command."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer

from peripety.api.common.v1 import engine_pb2
from peripety.api.scenario.v1 import scenario_pb2
from peripety.api.session.v1 import session_pb2, session_pb2_grpc
from peripety.cli.embedded_services import embedded_services
from peripety.cli.options import Description, Seed
from peripety.cli.output import read_text_argument, result_console
from peripety.cli.players import PUBLIC_VIEW, HumanPlayer, RoundRobinPlayer, prompt_line, select_point_of_view
from peripety.cli.render.console import ConsoleView, JsonGameView
from peripety.cli.scenario_generate import compile_scenario, write_specification

if TYPE_CHECKING:
    import grpc.aio

    from peripety.cli.players import GamePlayer, PointOfView, TurnInput
    from peripety.cli.render.console import GameView


commands = typer.Typer()


DEFAULT_TURNS = 5


@dataclass
class _PlayedGame:
    """A game in progress."""

    channel: grpc.aio.Channel
    player: GamePlayer
    view: GameView
    viewpoint: PointOfView = PUBLIC_VIEW

    async def prepare(self, description: str, seed: int | None, pov: str | None) -> session_pb2.Session:
        """Create a scenario from the description and start a session, with the point of view `pov`."""
        # The scenario is compiled afterwards and must pass its dry-run; a certificate would only delay the
        # game.
        order = scenario_pb2.GenerateScenarioRequest(
            description=description,
            seed=seed,
            level=scenario_pb2.VALIDATION_LEVEL_DRY_RUN,
        )
        written = await write_specification(self.channel, order, self.view)
        scenario = await compile_scenario(self.channel, spec=written.spec, view=self.view)
        self.viewpoint = select_point_of_view(scenario.spec, pov)
        request = session_pb2.CreateSessionRequest(
            request_id=str(uuid4()),
            scenario_id=scenario.scenario_id,
            seed=seed,
            pov_entity_id=self.viewpoint.entity_id,
        )
        session: session_pb2.Session = (await self._session_stub.CreateSession(request)).session
        self.view.session(session, self.viewpoint)
        return session

    async def run(self, session: session_pb2.Session, turns: int | None) -> None:
        """Play until the run ends, the player stops, or the turn limit is reached; then print the summary."""
        await self._play_turns(session, turns)
        request = session_pb2.GetSessionRequest(
            session_id=session.session_id,
            pov_entity_id=self.viewpoint.entity_id,
        )
        self.view.end((await self._session_stub.GetSession(request)).session)

    async def _play_turns(self, session: session_pb2.Session, turns: int | None) -> None:
        played, legal, next_turn = 0, list(session.legal_actions), session.turn + 1
        while turns is None or played < turns:
            choice = self.player.choose(played + 1, legal)
            if choice is None:
                return
            if choice.question:
                self.view.answer(await self._ask(session.session_id, choice.question))
                continue
            end = await self._play_turn(session.session_id, next_turn, choice)
            if not (choice.words and end.rule_failed.turn_abandoned):
                # Words that led to no turn do not count.
                played += 1
            if end.HasField("committed"):
                next_turn, legal = end.turn + 1, list(end.committed.legal_actions)
                if end.committed.status.kind != engine_pb2.RUN_STATUS_KIND_ONGOING:
                    return

    async def _ask(self, session_id: str, question: str) -> session_pb2.AskSessionResponse:
        request = session_pb2.AskSessionRequest(
            session_id=session_id,
            question=question,
            pov_entity_id=self.viewpoint.entity_id,
        )
        return await self._session_stub.AskSession(request)

    async def _play_turn(self, session_id: str, turn: int, choice: TurnInput) -> session_pb2.TurnEvent:
        """Play a turn and return its last event."""
        request = session_pb2.TakeTurnRequest(
            session_id=session_id,
            request_id=str(uuid4()),
            expected_turn=turn,
            actions=choice.actions,
            input=choice.words,
            pov_entity_id=self.viewpoint.entity_id,
        )
        last = session_pb2.TurnEvent()
        async for response in self._session_stub.TakeTurn(request):
            last = response.event
            self.view.turn(last)
        return last

    @property
    def _session_stub(self) -> session_pb2_grpc.SessionServiceAsyncStub:
        return session_pb2_grpc.SessionServiceStub(self.channel)


@commands.command()
def play(
    description: Description = None,
    turns: Annotated[
        int | None,
        typer.Option(min=1, help="Stop after this number of turns. [default: 5 with --auto, else no limit]"),
    ] = None,
    auto: Annotated[
        bool,
        typer.Option("--auto", help="Let the computer choose the actions, by a fixed rule."),
    ] = False,
    seed: Seed = None,
    pov: Annotated[
        str | None,
        typer.Option(
            metavar="ENTITY",
            help="Entity whose point of view you play. [default: the only playable entity, else public]",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as a line of JSON.")] = False,
) -> None:
    """Turn a description into a scenario and play it.

    Everything runs in this process: you need no server.
    """
    if not auto and not (sys.stdin.isatty() and description != "-"):
        raise typer.BadParameter(
            "standard input is not a terminal: add --auto, and --turns N to limit the game",
        )
    if description is None:
        description = "" if auto else prompt_line("Describe the scenario > ") or ""
    limit = turns if turns is not None or not auto else DEFAULT_TURNS
    player: GamePlayer = RoundRobinPlayer() if auto else HumanPlayer()
    text = read_text_argument(description, "--description")
    view = JsonGameView() if as_json else ConsoleView(result_console())

    async def start() -> None:
        async with embedded_services("gateway", "scenarios", "sessions") as channel:
            game = _PlayedGame(channel, player, view)
            session = await game.prepare(text, seed, pov)
            await game.run(session, limit)

    asyncio.run(start())
