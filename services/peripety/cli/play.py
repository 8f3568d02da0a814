"""`peripety play`: play a description, a specification, a stored scenario or a stored session."""

from __future__ import annotations

import asyncio
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from peripety.api.scenario.v1 import scenario_pb2, scenario_pb2_grpc
from peripety.cli.embedded_services import services_at
from peripety.cli.game import LATEST, Game, short_id
from peripety.cli.input_documents import STDIN, read_specification
from peripety.cli.options import Description, Seed, Server
from peripety.cli.output import explain_error, read_text_argument, result_console
from peripety.cli.play_prompt import PlayPrompt
from peripety.cli.players import ForecastPlayer
from peripety.cli.prompt import PromptAbandonedError, prompt_line
from peripety.cli.render.console import JsonGameView
from peripety.cli.render.story import Detail, StoryView
from peripety.cli.scenario_generate import compile_scenario, write_specification
from peripety.cli.watched_file import WatchedFile, measure_draft
from peripety.core.config import Config
from peripety.errors import PeripetyError, SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import grpc.aio

    from peripety.cli.render.game_words import GameWords


commands = typer.Typer()


_SCENARIO_PREFIX = "scn_"


@dataclass(frozen=True)
class _GameSource:
    """Source of a game; exactly one of the first three is set.

    Attributes:
        description: a text from which a scenario is written.
        scenario: the file of a specification, or the id of a stored scenario.
        session: the id of a stored session.
        seed: the seed of a new session; None for the one of the scenario.
        pov: the entity whose point of view is played; None for the only one.
    """

    description: str | None
    scenario: str | None
    session: str | None
    seed: int | None
    pov: str | None

    async def open(self, channel: grpc.aio.Channel, view: StoryView | JsonGameView) -> Game:
        """Start or continue the session, and show it.

        Raises:
            SpecError: the scenario does not pass the checks; without its findings where the player may try
                again, because they are about rules that the player should not know.
        """
        if self.session is not None:
            game = await Game.resume(channel, self.session, pov=self.pov)
            await view.resume(game)
            return game
        if self.scenario is not None:
            scenario = await self._load_scenario(channel, self.scenario, view)
        else:
            scenario = await self._write_scenario(channel, self.description or "", view)
        game = await Game.start(channel, scenario, seed=self.seed, pov=self.pov)
        view.open(game)
        return game

    async def _load_scenario(
        self,
        channel: grpc.aio.Channel,
        source: str,
        view: StoryView | JsonGameView,
    ) -> scenario_pb2.CompiledScenario:
        if source.startswith(_SCENARIO_PREFIX) and not source.endswith(".json"):
            stub = scenario_pb2_grpc.ScenarioServiceStub(channel)
            found = await stub.GetScenario(scenario_pb2.GetScenarioRequest(scenario_id=source))
            scenario: scenario_pb2.CompiledScenario = found.scenario
            return scenario
        return await compile_scenario(channel, spec=read_specification(source), view=view)

    async def _write_scenario(
        self,
        channel: grpc.aio.Channel,
        description: str,
        view: StoryView | JsonGameView,
    ) -> scenario_pb2.CompiledScenario:
        # The scenario is compiled afterwards and must pass its dry-run; a certificate would only delay the
        # game.
        order = scenario_pb2.GenerateScenarioRequest(
            description=description,
            seed=self.seed,
            level=scenario_pb2.VALIDATION_LEVEL_DRY_RUN,
        )
        try:
            written = await write_specification(channel, order, view)
            return await compile_scenario(channel, spec=written.spec, view=view)
        except SpecError as error:
            hint = "`peripety generate` shows the findings, with the rules of the scenario"
            raise SpecError(f"{error.message}; {hint}", [], code=error.code) from None


async def _play_turns(
    game: Game,
    player: PlayPrompt | ForecastPlayer,
    view: StoryView | JsonGameView,
    limit: int | None,
) -> None:
    """Play until the player stops, the limit of turns is reached, or an automatic player's time is over."""
    is_automatic = isinstance(player, ForecastPlayer)
    played = 0
    while limit is None or played < limit:
        if is_automatic and (game.is_over or game.is_out_of_time):
            return
        choice = await player.choose(game)
        if choice is None:
            return
        if is_automatic:
            view.echo(game, choice.actions)
        before = game.session.turn
        try:
            async for event in game.take_turn(choice):
                view.turn(event)
        except PeripetyError as error:
            if is_automatic or isinstance(view, JsonGameView):
                raise
            view.note(f"{error.message}.")
            await game.refresh()
        if game.session.turn > before:
            view.status(game)
        # Words that led to no turn do not count.
        played += game.session.turn > before or not choice.words


async def _play_watched(
    source: _GameSource,
    view: StoryView,
    watched: WatchedFile,
    server: str | None,
) -> None:
    """Play a specification from its start after every save, with its findings and figures first."""
    async with services_at(server, "gateway", "scenarios", "sessions") as channel:
        while True:
            watched.accept()
            report = measure_draft(watched.name)
            for line in report.lines:
                view.line(line)
            if report.is_playable and await _play_until_saved(channel, source, view, watched, server):
                return
            if not watched.has_changed():
                view.note(f"Save {watched.name} to try again; Ctrl-C stops.")
            await watched.wait()
            view.line("")


async def _play_until_saved(
    channel: grpc.aio.Channel,
    source: _GameSource,
    view: StoryView,
    watched: WatchedFile,
    server: str | None,
) -> bool:
    """Play until the user stops, then return True; or until the file changes or is refused."""
    try:
        game = await source.open(channel, view)
        prompt = _make_prompt(view, server, watched.has_changed)
        with _way_back(prompt, game, view):
            await _play_turns(game, prompt, view, None)
    except PromptAbandonedError:
        return False
    except SpecError as error:
        explain_error(error)
        return False
    prompt.say_goodbye(game)
    return True


def _make_prompt(
    view: StoryView, server: str | None, abandon: Callable[[], bool] | None = None
) -> PlayPrompt:
    return PlayPrompt(
        view,
        lambda session: _continue_command(session, server),
        lambda words: _describe_store(words, server),
        abandon,
    )


@contextmanager
def _way_back(prompt: PlayPrompt, game: Game, view: StoryView) -> Iterator[None]:
    """Show the command that continues the game also after Ctrl-C."""
    try:
        yield
    except (KeyboardInterrupt, asyncio.CancelledError):  # at the prompt, and during a turn
        view.line("")
        prompt.say_goodbye(game)
        raise


def _continue_command(session_id: str, server: str | None) -> str:
    return _play_command(f"--session {short_id(session_id)}", server)


def _play_command(what: str, server: str | None) -> str:
    return f"peripety play {what}{f' --server {server}' if server else ''}"


def _describe_store(words: GameWords, server: str | None) -> str:
    """Return where sessions are stored, as the end of a sentence."""
    if server is not None:
        return words.say("stored_by", server=server)
    url = Config.from_environment().database_url.get_secret_value()
    if not url.startswith("sqlite"):
        return words.say("stored_database")
    return words.say("stored_in", file=url.removeprefix("sqlite:///"))


async def _play(
    source: _GameSource,
    view: StoryView | JsonGameView,
    server: str | None,
    turns: int | None,
    *,
    auto: bool,
) -> None:
    async with services_at(server, "gateway", "scenarios", "sessions") as channel:
        game = await source.open(channel, view)
        if isinstance(view, JsonGameView):
            await _play_turns(game, ForecastPlayer(), view, turns)
            view.end(game)
            return
        prompt = _make_prompt(view, server)
        with _way_back(prompt, game, view):
            await _play_turns(game, ForecastPlayer() if auto else prompt, view, turns)
        view.end(game)
        if auto:
            view.note(view.words.say("play_yourself", how=_play_command(game.session.scenario_id, server)))
        else:
            prompt.say_goodbye(game)


@commands.command()
def play(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE|SCENARIO]",
            help="Specification to play, or the id of a stored scenario. [default: a description]",
        ),
    ] = None,
    description: Description = None,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Continue this session: its id, its first characters, or latest. [default: a new session]",
        ),
    ] = None,
    latest: Annotated[
        bool, typer.Option("--continue", help="Continue the session that was played last.")
    ] = False,
    auto: Annotated[
        bool,
        typer.Option("--auto", help="Let the computer play sensibly, to an ending, as a story."),
    ] = False,
    turns: Annotated[
        int | None,
        typer.Option(min=1, help="Stop after this number of turns. [default: no limit]"),
    ] = None,
    seed: Seed = None,
    pov: Annotated[
        str | None,
        typer.Option(
            metavar="ENTITY",
            help="Entity whose point of view you play. [default: the only playable entity, else public]",
        ),
    ] = None,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Restart FILE after every save, with its findings and figures."),
    ] = False,
    mechanics: Annotated[
        bool, typer.Option("--mechanics", help="Show which rule changed which path after each turn.")
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Show logs, hashes, measurements and model usage, too."),
    ] = False,
    server: Server = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each event as a line of JSON; requires --auto.")
    ] = False,
) -> None:
    """Play a description, a specification or a session.

    Everything runs in this process, unless you name a server. Each turn is stored at once, so --continue
    works after the process ended, too. At the prompt, type what you do; help lists the commands.
    """
    if sum(one is not None for one in (what, description, session)) + latest > 1:
        raise typer.BadParameter("give one of FILE or SCENARIO, --description, --session and --continue")
    if as_json and not auto:
        raise typer.BadParameter("--json is for programs: add --auto, and --turns N to limit the game")
    if not auto and (not sys.stdin.isatty() or STDIN in {what, description}):
        raise typer.BadParameter(
            "standard input is not a terminal: add --auto, and --turns N to limit the game",
        )
    if watch and (auto or what is None or what == STDIN or what.startswith(_SCENARIO_PREFIX)):
        raise typer.BadParameter(
            "--watch needs the FILE that you edit, and you at the prompt: leave out --auto"
        )
    if what is None and session is None and not latest:
        if description is None:
            description = "" if auto else prompt_line("Describe the scenario > ") or ""
        description = read_text_argument(description, "--description")
    source = _GameSource(description, what, LATEST if latest else session, seed, pov)
    detail = Detail.ALL if verbose else Detail.MECHANICS if mechanics else Detail.STORY
    view = JsonGameView() if as_json else StoryView(result_console(), detail)
    if watch and what is not None and isinstance(view, StoryView):
        asyncio.run(_play_watched(source, view, WatchedFile(what), server))
    else:
        asyncio.run(_play(source, view, server, turns, auto=auto))
