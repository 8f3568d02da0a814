"""The play screen: opening and prose first, then one dim line of changes and a status line.

Paths and causes are shown on request, and logs, hashes and shares of runs only with all details.
"""

from __future__ import annotations

import json
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from peripety.api.common.v1 import engine_pb2
from peripety.api.session.v1 import session_pb2
from peripety.cli.game import ENDED
from peripety.cli.output import one_line, printable
from peripety.cli.players import describe_domain, format_value
from peripety.cli.render.console import (
    NOT_UNDERSTOOD,
    ConsoleView,
    format_answer,
    format_event,
    is_quoted,
    is_retold,
    list_notes,
)
from peripety.cli.render.gauges import BAR_CELLS, PLAIN_BAR_CELLS, ScenarioNames
from peripety.cli.render.prose import ProseWriter, line_width, print_parts, print_prose

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rich.console import Console
    from rich.status import Status

    from peripety.api.scenario.v1 import scenario_pb2
    from peripety.cli.game import Game
    from peripety.cli.render.game_words import GameWords


class Detail(IntEnum):
    """Amount of mechanics that is shown."""

    STORY = 0
    MECHANICS = 1
    ALL = 2


_MECHANICS = frozenset({"action_resolved", "world_resolved", "rolled"})
_END_WORDS = {
    engine_pb2.RUN_STATUS_KIND_WON: ("won", "green"),
    engine_pb2.RUN_STATUS_KIND_LOST: ("lost", "red"),
}
_SURVIVED = ("ended", "yellow")


class StoryView:
    """Printer of a game as a story.

    Args:
        out: the console.
        detail: how much of the mechanics to show.
    """

    def __init__(self, out: Console, detail: Detail = Detail.STORY) -> None:
        self._out = out
        self._detail = detail
        self._details = ConsoleView(out, hides_rules=True)
        self._names = ScenarioNames({})
        self._prose = ProseWriter(out)
        self._waiting: Status | None = None
        self._told = ""
        self._has_opened = False
        self._notes: list[str] = []
        self._mechanics: list[str] = []

    @property
    def words(self) -> GameWords:
        """The words of the terminal in the language of the story."""
        return self._names.words

    def generation(self, event: scenario_pb2.GenerateScenarioResponse) -> None:
        """Show that a scenario is written; remember the notes of its author."""
        if self._detail is Detail.ALL:
            self._details.generation(event)
            return
        self._wait("Writing the scenario")
        if event.WhichOneof("event") in {"completed", "rejected"}:
            self._stop_waiting()
        if event.HasField("completed"):
            self._notes.extend(list_notes(event.completed.findings))
            # The reader has something to read while the scenario is measured.
            self._print_opening(json.loads(event.completed.spec or b"{}"))

    def compilation(self, event: scenario_pb2.CompileScenarioResponse) -> None:
        """Show that a scenario is checked and measured."""
        if self._detail is Detail.ALL:
            self._details.compilation(event)
            return
        self._wait(self.words.say("measuring"))
        if event.WhichOneof("event") in {"compiled", "rejected"}:
            self._stop_waiting()

    def open(self, game: Game) -> None:
        """Print the title, the opening and the aim of a new game, and its first status line."""
        if self._detail is Detail.ALL:
            self._details.session(game.session, game.viewpoint)
        if not self._has_opened:
            self._print_opening(game.spec)
        self._has_opened = False
        self._names = ScenarioNames(game.spec)
        if game.viewpoint.description:
            self.prose(game.viewpoint.description)
            self._blank()
        for note in self._notes:
            self.note(note)
        self.status(game)

    async def resume(self, game: Game) -> None:
        """Print the title of a game that continues, its last turn, and its status line."""
        if not game.session.turn:
            self.open(game)
            return
        self._names = ScenarioNames(game.spec)
        self._print_title()
        async for event in game.recall_last_turn():
            self.turn(event)
        self.status(game)

    def echo(self, game: Game, calls: Iterable[engine_pb2.ActionCall]) -> None:
        """Print the actions that an automatic player takes, as a user would read them."""
        names = {action.action_id: action.name for action in game.legal_actions}
        self._blank()
        for call in calls:
            values = "".join(f" {format_value(value)}" for _, value in sorted(call.params.items()))
            self.line(f"> {printable(names.get(call.action_id, call.action_id))}{values}", "bold cyan")

    def turn(self, event: session_pb2.TurnEvent) -> None:
        """Print an event of a turn."""
        kind = event.WhichOneof("event")
        if kind in _MECHANICS:
            self._mechanics.extend(format_event(event, with_log=self._detail is Detail.ALL))
        match kind:
            case "accepted":
                self._told, self._mechanics = "", []
                self._blank()
                self._wait("…")
            case "action_resolved" if not event.action_resolved.accepted:
                self.note(self.words.say("impossible"))
            case "narrative_chunk" | "narrative_retracted" | "dialogue" | "degraded":
                self._tell(event)
            case "committed":
                self._end_turn(event.committed)
            case "rule_failed":
                self._fail(event.rule_failed)

    def _tell(self, event: session_pb2.TurnEvent) -> None:
        self._stop_waiting()
        match event.WhichOneof("event"):
            case "narrative_chunk":
                self._told += event.narrative_chunk.text
                self._prose.write(event.narrative_chunk.text)
            case "narrative_retracted":
                self._told = ""
                self.note(self.words.say("retracted"))
            case "dialogue" if not is_quoted(event.dialogue.utterance, self._told):
                self._prose.end()
                self._say(self._names.entity(event.dialogue.entity_id), event.dialogue.utterance)
            case "degraded":
                self.note(self.words.say("degraded", reason=event.degraded.message))

    def status(self, game: Game) -> None:
        """Print the status line; how the run ended if it did."""
        if game.is_over or game.session.turn == game.spec.get("horizon"):
            self._end(game)
        else:
            print_parts(
                self._out, self._names.status_parts(game.state, game.session.turn, self._cells), "cyan"
            )

    def describe_status(self, game: Game) -> None:
        """Print each quantity with its bar, its amount and its band, and the time that is left."""
        self._table(
            (gauge.name, gauge.bar(self._cells), gauge.amount, gauge.band)
            for gauge in self._names.gauges(game.state)
        )
        time = "" if game.is_over else self._names.time_left(game.session.turn, game.state)
        left = self.words.say("left", time=time) if time else ""
        self.note(self.words.say("turn_number", turn=game.session.turn, left=left))

    def look(self, game: Game) -> None:
        """Print where the player is, who and what is there, what is known, statements and promises."""
        spec = game.spec
        places = game.state.get("places") or {}
        here = places.get(game.viewpoint.entity_id)
        if here is not None:
            place = (spec.get("places") or {}).get(here) or {}
            self.prose(f"{self._names.place(here)}. {place.get('description', '')}".strip())
            beside = [
                who for who, where in places.items() if where == here and who != game.viewpoint.entity_id
            ]
            if beside:
                self.prose(self.words.say("here", names=self.words.join(map(self._names.entity, beside))))
            exits = [one for one in place.get("exits") or () if one != here]
            if exits:
                names = self.words.join(map(self._names.place, exits))
                self.prose(self.words.say("exits", names=names))
        else:
            self.prose(self._names.premise or spec.get("opening") or self._names.title)
        for text in (game.state.get("clues") or {}).values():
            if text:
                self.prose(self.words.say("known", text=text))
        for key, text in (game.state.get("statements") or {}).items():
            if text:
                self._say(
                    self._names.entity(((spec.get("statements") or {}).get(key) or {}).get("by", key)), text
                )
        for key, status in (game.state.get("promises") or {}).items():
            promise = (spec.get("promises") or {}).get(key) or {}
            if status:
                to = self.words.say("promise", name=self._names.entity(promise.get("to", key)))
                self.prose(" ".join(filter(None, (f"{to}: {status}.", promise.get("terms")))))
        self.status(game)

    def actions(self, keys: Iterable[tuple[str, engine_pb2.LegalAction]]) -> None:
        """Print the legal actions with their keys."""
        rows = []
        for key, action in keys:
            params = "; ".join(describe_domain(param) for param in action.params)
            about = " - ".join(filter(None, (params, one_line(action.description))))
            rows.append((key, f"{one_line(action.name)}  {about}".strip()))
        self._table(rows)
        if not rows:
            self.note(self.words.say("only_wait"))

    def commands(self) -> None:
        """Print the commands of the prompt with their meanings."""
        self._table(self.words.commands)

    def explain_refusal(self, game: Game, action_id: str) -> None:
        """Print why an action is not legal now."""

        def name(path: str) -> str:
            return self._names.name(tuple(path.split(".")))

        self.note(self.words.explain_refusal(game.spec, action_id, game.state, name))

    def answer(self, answer: session_pb2.AskSessionResponse) -> None:
        """Print the answer to a question, with the turns that it rests on."""
        turn, start = self.words.say("cited_turn", turn="{turn}"), self.words.say("cited_start")
        self.prose(format_answer(answer, turn=turn, start=start))

    def odds(self, forecast: session_pb2.ForecastOutcomesResponse) -> None:
        """Print how often simulated futures end in which way."""
        ends = sorted(forecast.outcomes, key=lambda one: -one.rate.value)
        rows = [
            (f"{end.rate.value:.0%}", self._names.message(end.condition) or end.condition) for end in ends
        ]
        self._table([*rows, (f"{forecast.survived.value:.0%}", self.words.say("survived_all"))])
        self.note(self.words.say("futures", runs=f"{forecast.runs:,}"))

    def prose(self, text: str) -> None:
        """Print a text, wrapped."""
        print_prose(self._out, text)

    def note(self, text: str) -> None:
        """Print a remark that is not part of the story."""
        self._stop_waiting()
        self._prose.end()
        print_prose(self._out, text, "dim")

    def end(self, game: Game) -> None:
        """Print the model usage and the resolutions, with all details."""
        self._stop_waiting()
        if self._detail is Detail.ALL:
            self._details.end(game.session)

    def _end_turn(self, committed: session_pb2.TurnEvent.Committed) -> None:
        self._stop_waiting()
        self._prose.end()
        summary = self._names.summarize(committed.changes)
        for speaker, text in summary.learned:
            if not is_retold(text, self._told):
                self._say(speaker, text)
        if summary.parts or committed.status.kind not in ENDED:
            self._blank()
        print_parts(self._out, summary.parts, "dim")
        if self._detail >= Detail.MECHANICS:
            for line in self._mechanics:
                self.line(line, "dim")
        if self._detail is Detail.ALL:
            self._details.turn(session_pb2.TurnEvent(committed=committed))

    def _fail(self, failure: session_pb2.TurnEvent.RuleFailed) -> None:
        self._stop_waiting()
        self._prose.end()
        if failure.code == NOT_UNDERSTOOD:
            self.prose(failure.message)
            self.note(self.words.say("not_understood"))
        elif failure.turn_abandoned and not failure.rule:
            self.note(self.words.say("no_time", reason=failure.message))
        elif self._detail >= Detail.MECHANICS or failure.turn_abandoned:
            what = "Nothing has changed" if failure.turn_abandoned else "A rule was skipped"
            where = f" at {failure.rule}" if self._detail >= Detail.MECHANICS else ""
            self.note(f"{what}: {failure.message} ({failure.code}{where})")

    def _end(self, game: Game) -> None:
        self._prose.end()
        status = game.session.status
        end, style = _END_WORDS.get(status.kind, _SURVIVED)
        epilogue = status.epilogue or status.message
        self._blank()
        if epilogue and not is_quoted(epilogue, self._told):
            self.prose(epilogue)
            self._blank()
        self.line(self.words.say(end, turns=self.words.count_played(game.session.turn)), f"bold {style}")

    def _print_opening(self, spec: Mapping[str, Any]) -> None:
        self._has_opened = True
        self._names = ScenarioNames(spec)
        self._print_title()
        self._blank()
        opening = spec.get("opening") or self._names.premise
        if opening:
            self.prose(opening)
            self._blank()

    def _print_title(self) -> None:
        if self._names.title:
            self._blank()
            print_prose(self._out, self._names.title, "bold")

    def _say(self, speaker: str, words: str) -> None:
        if speaker:
            self.prose(f"{speaker}: “{words.strip('“”')}”")
        else:
            self.prose(words)

    def _wait(self, words: str) -> None:
        """Show that something is under way; only on a terminal."""
        if not self._out.is_terminal:
            return
        if self._waiting is None:
            self._waiting = self._out.status(words, spinner="dots")
            self._waiting.start()
        else:
            self._waiting.update(words)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.stop()
            self._waiting = None

    def _table(self, rows: Iterable[Iterable[str]]) -> None:
        """Print rows of short texts; the first column is a key, and the last one is wrapped."""
        table = Table.grid(padding=(0, 2, 0, 0))
        for row in rows:
            first, *others = map(one_line, row)
            table.add_row(Text(f"  {first}", style="cyan"), *map(Text, others))
        self._out.print(table, soft_wrap=False, width=line_width(self._out))

    def _blank(self) -> None:
        self._out.print()

    def line(self, text: str, style: str = "") -> None:
        """Print a line as it is."""
        self._out.print(Text(text, style=style))

    @property
    def _cells(self) -> str:
        try:
            BAR_CELLS.encode(self._out.encoding)
        except (LookupError, UnicodeEncodeError):
            return PLAIN_BAR_CELLS
        return BAR_CELLS
