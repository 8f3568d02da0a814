"""The play screen."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.console import Console

from peripety.api.common.v1 import common_pb2, engine_pb2
from peripety.api.scenario.v1 import scenario_pb2
from peripety.api.session.v1 import session_pb2
from peripety.cli.render.console import is_retold
from peripety.cli.render.story import Detail, StoryView
from support.session.games import StoredGame, action, number

Event = session_pb2.TurnEvent

SPEC: dict[str, Any] = {
    "name": "A way",
    "horizon": 9,
    "premise": {"text": "You share a store."},
    "opening": "It is late, and the way is long.",
    "state": {"alpha": 10},
    "labels": {"state.alpha": {"name": "Alpha"}},
    "entities": [{"id": "me", "name": "You"}, {"id": "omega", "name": "Omega"}],
    "loss_conditions": [{"id": "spent", "when": {}, "message": "All is spent."}],
}
LOST = engine_pb2.RunStatus(
    kind=engine_pb2.RUN_STATUS_KIND_LOST,
    condition="spent",
    message="All is spent.",
    epilogue="The store stays shut.",
)


class Shown:
    """A story view with its captured output."""

    def __init__(
        self, detail: Detail = Detail.STORY, width: int = 60, spec: dict[str, Any] | None = None
    ) -> None:
        self.stream = io.StringIO()
        console = Console(file=self.stream, width=width, soft_wrap=True, highlight=False, markup=False)
        self.view = StoryView(console, detail)
        self.game = StoredGame(SPEC if spec is None else spec, state={"alpha": 10})
        self.view.open(self.game)
        self.opening = self.lines
        self.stream.truncate(0)
        self.stream.seek(0)

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()

    def tell(self, *pieces: str) -> None:
        for piece in pieces:
            self.view.turn(Event(narrative_chunk=Event.NarrativeChunk(text=piece)))


def changed(before: int, after: int) -> engine_pb2.Change:
    cause = engine_pb2.Cause(kind=engine_pb2.CAUSE_KIND_ACTION, id="act")
    return engine_pb2.Change(
        path="state.alpha", before=json.dumps(before).encode(), after=json.dumps(after).encode(), cause=cause
    )


def committed(*changes: engine_pb2.Change) -> Event:
    return Event(turn=1, committed=Event.Committed(state_hash="ab" * 32, changes=changes))


def a_turn(shown: Shown) -> None:
    """Show a turn with every kind of event that mechanics have."""
    shown.view.turn(Event(turn=1, accepted=Event.Accepted()))
    line = engine_pb2.LogLine(message="a log line")
    resolved = Event.ActionResolved(action_id="act", accepted=True, changes=[changed(10, 8)], log=[line])
    shown.view.turn(Event(action_resolved=resolved))
    shown.view.turn(Event(world_resolved=Event.WorldResolved(event_id="storm", changes=[changed(8, 8)])))
    shown.tell("You go ", "on.")
    shown.view.turn(committed(changed(10, 8), changed(8, 8)))


def test_a_game_opens_with_its_title_and_its_opening() -> None:
    assert Shown().opening == [
        "",
        "A way",
        "",
        "It is late, and the way is long.",
        "",
        "Alpha ▆▆▆ · 9 turns",
    ]


def test_without_an_opening_the_premise_is_told() -> None:
    assert "You share a store." in Shown(spec={**SPEC, "opening": None}).opening


def test_a_turn_is_prose_and_one_line_of_changes() -> None:
    shown = Shown()
    a_turn(shown)
    assert shown.lines == ["", "You go on.", "", "Alpha \N{MINUS SIGN}2"]


def test_mechanics_show_paths_and_causes_but_no_log_and_no_hash() -> None:
    shown = Shown(Detail.MECHANICS)
    a_turn(shown)
    assert "    state.alpha  10 → 8  (action act)" in shown.lines
    assert "  event: storm" in shown.lines
    assert not any("log line" in line or "abab" in line for line in shown.lines)


def test_all_details_show_logs_and_hashes() -> None:
    shown = Shown(Detail.ALL)
    a_turn(shown)
    assert "    “a log line”" in shown.lines
    assert any("committed abababababab" in line for line in shown.lines)


def test_speech_has_the_name_of_its_speaker_unless_the_prose_quotes_it() -> None:
    shown = Shown()
    shown.tell("“Go now,” says Omega.")
    for words in ("Go now.", "Stay."):
        shown.view.turn(Event(dialogue=Event.Dialogue(entity_id="omega", utterance=words)))
    shown.tell("It is dark.")
    shown.view.turn(committed())
    assert shown.lines == ["“Go now,” says Omega.", "Omega: “Stay.”", "It is dark.", ""]


def test_words_that_are_not_understood_are_asked_about() -> None:
    shown = Shown()
    failure = Event.RuleFailed(code="NOT_UNDERSTOOD", message="Which of the two?", turn_abandoned=True)
    shown.view.turn(Event(rule_failed=failure))
    assert shown.lines[0] == "Which of the two?"
    assert "No time has passed" in shown.lines[1]


def test_an_action_that_is_not_possible_is_told_so_without_a_path() -> None:
    shown = Shown()
    reason = engine_pb2.RuleError(code="X", rule="/actions/0", message="the preconditions do not hold")
    shown.view.turn(Event(action_resolved=Event.ActionResolved(action_id="act", reasons=[reason])))
    assert shown.lines == ["That is not possible now."]


def test_prose_that_is_void_is_told_anew() -> None:
    shown = Shown()
    shown.tell("never so")
    shown.view.turn(Event(narrative_retracted=Event.NarrativeRetracted(reason="not JSON")))
    degraded = Event.Degraded(reason="OUTCOME_INVALID", message="no valid answer")
    shown.view.turn(Event(degraded=degraded))
    assert shown.lines[1] == "(Another version follows.)"
    assert "no valid answer" in " ".join(shown.lines)
    assert "OUTCOME_INVALID" not in " ".join(shown.lines)


def test_the_end_is_the_epilogue_and_how_it_went() -> None:
    shown = Shown()
    shown.view.status(StoredGame(SPEC, turn=4, status=LOST))
    assert shown.lines == ["", "The store stays shut.", "", "You have lost after 4 turns."]


def test_an_epilogue_that_the_prose_has_told_is_not_repeated() -> None:
    shown = Shown()
    shown.tell("The store stays shut. It is over.")
    shown.view.status(StoredGame({**SPEC}, turn=4, status=LOST))
    assert [line for line in shown.lines if "stays shut" in line] == ["The store stays shut. It is over."]


def test_a_game_that_reaches_its_horizon_says_so() -> None:
    shown = Shown()
    shown.view.status(StoredGame(SPEC, turn=9, state={"alpha": 1}))
    assert shown.lines[-1] == "The time is over after 9 turns."


def test_actions_are_listed_with_their_keys_and_values() -> None:
    shown = Shown()
    shown.view.actions([("2", action("gather", number(1, 3), about="A short way."))])
    assert [line.rstrip() for line in shown.lines] == ["  2  Gather  1 to 3 - A short way."]


def test_look_tells_the_place_the_people_and_what_is_known() -> None:
    places = {"north": {"name": "North room", "description": "A table.", "exits": ["south", "north"]}}
    state = {"places": {"me": "north", "omega": "north"}, "clues": {"a": "The ink is red."}, "alpha": 10}
    shown = Shown()
    shown.view.open(StoredGame({**SPEC, "places": places}, state=state))
    shown.view.look(StoredGame({**SPEC, "places": places}, state=state))
    for line in ("North room. A table.", "Here: Omega.", "Exits: South.", "You know: The ink is red."):
        assert line in shown.lines


def test_look_tells_what_was_said_and_promised() -> None:
    spec = {
        **SPEC,
        "statements": {"a": {"by": "omega", "text": "Never."}},
        "promises": {
            "b": {"to": "omega", "terms": "To wait.", "due": 3},
            "c": {"to": "omega", "terms": "x", "due": 3},
        },
    }
    state = {"statements": {"a": "Never."}, "promises": {"b": "open", "c": ""}, "alpha": 10}
    shown = Shown()
    shown.view.open(StoredGame(spec, state=state))
    shown.view.look(StoredGame(spec, state=state))
    assert "Omega: “Never.”" in shown.lines
    assert [line for line in shown.lines if "promise" in line] == ["promise to Omega: open. To wait."]


@pytest.mark.parametrize(
    ("text", "prose", "is_told"),
    [
        ("The ink is red. It is dry.", "The ink is red, you see. It is dry.", True),
        ("The ink is red and it has dried.", "You find the ink: red.", False),
        (
            "Omega says: “It was me. Each time, at night.”",
            "Omega says it twice. “It was me. Each time, at night.”",
            True,
        ),
        (
            "\u58a8\u6c34\u662f\u7ea2\u8272\u7684\u3002",
            "\u4f60\u770b\u89c1\u58a8\u6c34\u662f\u7ea2\u8272\u7684\u3002",
            True,
        ),
        ("Red.", "Blue.", False),
    ],
)
def test_what_the_prose_tells_is_not_printed_again(text: str, prose: str, is_told: bool) -> None:
    assert is_retold(text, prose) is is_told


def test_odds_are_told_in_the_words_of_the_endings() -> None:
    shown = Shown()
    end = session_pb2.OutcomeProbability(condition="spent", rate=common_pb2.Rate(value=0.42))
    shown.view.odds(session_pb2.ForecastOutcomesResponse(runs=1000, outcomes=[end]))
    assert shown.lines[0].split() == ["42%", "All", "is", "spent."]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    shown = Shown(width=width, spec={**SPEC, "opening": "word " * 80})
    shown.view.actions([("2", action("gather", about="long words " * 20))])
    shown.tell(*["more words "] * 40)
    shown.view.turn(committed())
    assert max(len(line.rstrip()) for line in [*shown.opening, *shown.lines]) <= width


def test_what_the_author_says_openly_follows_the_opening() -> None:
    stream = io.StringIO()
    view = StoryView(Console(file=stream, width=60, soft_wrap=True))
    finding = common_pb2.Finding(code="WITHOUT_MODEL", message="written by rules")
    rule = common_pb2.Finding(code="UNKNOWN_PATH", message="planted")
    completed = scenario_pb2.GenerateScenarioResponse.Completed(
        findings=[finding, rule], spec=json.dumps(SPEC).encode()
    )
    view.generation(scenario_pb2.GenerateScenarioResponse(completed=completed))
    # The opening is there while the scenario is measured.
    assert stream.getvalue().splitlines() == Shown().opening[:5]
    view.open(StoredGame(SPEC))
    assert stream.getvalue().count("It is late") == 1
    lines = stream.getvalue().splitlines()
    assert lines.index("written by rules") > lines.index("It is late, and the way is long.")
    assert "planted" not in stream.getvalue()
