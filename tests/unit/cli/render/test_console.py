"""Console output of a game."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from peripety.api.common.v1 import common_pb2, engine_pb2
from peripety.api.scenario.v1 import scenario_pb2
from peripety.api.session.v1 import session_pb2
from peripety.cli.players import PUBLIC_VIEW, PointOfView
from peripety.cli.render.console import ConsoleView
from peripety.errors import get_remedy

Event = session_pb2.TurnEvent
ONGOING = engine_pb2.RunStatus(kind=engine_pb2.RUN_STATUS_KIND_ONGOING)


class Told:
    """Console view with its captured output."""

    def __init__(self, *, terminal: bool = False) -> None:
        self.stream = io.StringIO()
        options = {"force_terminal": True, "color_system": "standard"} if terminal else {}
        self.story = ConsoleView(Console(file=self.stream, width=80, soft_wrap=True, **options))  # type: ignore[arg-type]  # both fit

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


@pytest.fixture
def told() -> Told:
    return Told()


def change(before: bytes | None, after: bytes | None) -> engine_pb2.Change:
    cause = engine_pb2.Cause(kind=engine_pb2.CAUSE_KIND_ACTION, id="act")
    return engine_pb2.Change(path="state.a", before=before, after=after, cause=cause)


def test_an_action_shows_its_parameters_and_what_it_changed(told: Told) -> None:
    resolved = Event.ActionResolved(action_id="act", accepted=True, changes=[change(b"1", b"2")])
    resolved.params["n"].number = 2
    resolved.params["b"].flag = True
    resolved.params["t"].text = "x"
    told.story.turn(Event(action_resolved=resolved))
    assert told.lines == ['  > act(b=yes, n=2, t="x")', "    state.a  1 → 2  (action act)"]


def test_a_rejected_action_shows_why(told: Told) -> None:
    reason = engine_pb2.RuleError(code="PRECONDITION_FAILED", message="not now")
    told.story.turn(Event(action_resolved=Event.ActionResolved(action_id="act", reasons=[reason])))
    assert told.lines == ["  > act(): rejected", "    not now"]


def test_values_that_appear_and_vanish_are_told_so(told: Told) -> None:
    changes = [change(None, b"1"), change(b"1", None), change(b"1", b'"' + b"x" * 100 + b'"')]
    told.story.turn(Event(world_resolved=Event.WorldResolved(event_id="storm", changes=changes)))
    assert told.lines[0] == "  event: storm"
    assert "(nothing) → 1" in told.lines[1]
    assert "1 → (nothing)" in told.lines[2]
    assert told.lines[3].endswith("…  (action act)")


def test_prose_appears_at_once_and_ends_before_the_next_event(told: Told) -> None:
    told.story.turn(Event(narrative_chunk=Event.NarrativeChunk(text="one ")))
    assert told.text == "\none "
    told.story.turn(Event(narrative_chunk=Event.NarrativeChunk(text="two")))
    told.story.turn(Event(committed=Event.Committed(state_hash="ab" * 32, status=ONGOING)))
    assert told.lines == ["", "one two", "", "  committed abababababab: ongoing"]


def test_a_line_that_the_prose_quotes_is_not_printed_twice(told: Told) -> None:
    told.story.turn(Event(narrative_chunk=Event.NarrativeChunk(text="“Go now,” says b.")))
    told.story.turn(Event(dialogue=Event.Dialogue(entity_id="b", utterance="Go now.")))
    told.story.turn(Event(narrative_chunk=Event.NarrativeChunk(text=" It is dark.")))
    told.story.turn(Event(dialogue=Event.Dialogue(entity_id="b", utterance="Stay.")))
    assert told.lines == ["", "“Go now,” says b. It is dark.", "", "  b: Stay."]


def test_a_line_of_an_earlier_turn_may_be_printed_again(told: Told) -> None:
    told.story.turn(Event(narrative_chunk=Event.NarrativeChunk(text="“Go now.”")))
    told.story.turn(Event(accepted=Event.Accepted(), turn=2))
    told.story.turn(Event(dialogue=Event.Dialogue(entity_id="b", utterance="Go now.")))
    assert told.lines[-1] == "  b: Go now."


def test_a_question_of_the_narrator_takes_the_place_of_the_turn(told: Told) -> None:
    failure = Event.RuleFailed(code="NOT_UNDERSTOOD", message="Which of the two?", turn_abandoned=True)
    told.story.turn(Event(rule_failed=failure))
    assert told.lines == ["  Which of the two?", "  (no turn was spent)"]


def test_words_that_led_to_no_turn_have_no_rule(told: Told) -> None:
    failure = Event.RuleFailed(code="OUTCOME_INVALID", message="no turn was spent", turn_abandoned=True)
    told.story.turn(Event(rule_failed=failure))
    assert told.lines == ["  turn not played: no turn was spent (OUTCOME_INVALID)"]


def test_long_prose_is_not_broken_into_lines(told: Told) -> None:
    told.story.turn(Event(narrative_chunk=Event.NarrativeChunk(text="word " * 100)))
    assert told.text.count("\n") == 1


def test_markup_and_escapes_in_prose_are_shown_as_text(told: Told) -> None:
    told.story.turn(Event(narrative_chunk=Event.NarrativeChunk(text="[bold]x[/bold] \x1b[31m:smile:")))
    assert told.text == "\n[bold]x[/bold] \ufffd[31m:smile:"


@pytest.mark.parametrize(
    ("resolution", "words"),
    [
        (session_pb2.RESOLUTION_NARRATED, "committed abababababab: "),
        (session_pb2.RESOLUTION_REPAIRED, "narration repaired once"),
        (session_pb2.RESOLUTION_SERVER_RESOLVED, "fallback narration"),
    ],
)
def test_how_the_turn_came_about_is_said(
    told: Told,
    resolution: session_pb2.Resolution.ValueType,
    words: str,
) -> None:
    told.story.turn(
        Event(committed=Event.Committed(state_hash="ab" * 32, status=ONGOING, resolution=resolution)),
    )
    assert words in told.text


def test_a_game_ends_with_how_its_turns_came_about_and_what_they_used(told: Told) -> None:
    for resolution in (
        session_pb2.RESOLUTION_NARRATED,
        session_pb2.RESOLUTION_NARRATED,
        session_pb2.RESOLUTION_REPAIRED,
        session_pb2.RESOLUTION_SERVER_RESOLVED,
    ):
        told.story.turn(Event(accepted=Event.Accepted()))
        told.story.turn(Event(committed=Event.Committed(status=ONGOING, resolution=resolution)))
    told.story.turn(Event(rule_failed=Event.RuleFailed(turn_abandoned=True)))
    used = common_pb2.ModelUsage(calls=5, tokens=common_pb2.TokenUsage(input_tokens=200, output_tokens=30))
    told.story.end(session_pb2.Session(usage=used))
    assert told.lines[-1] == (
        "5 turns: 2 narrated, 1 repaired, 1 fallback, 1 abandoned: 5 calls · 200 in (0 cached, 0%) · 30 out"
    )


def test_a_game_without_a_model_ends_without_figures_of_one(told: Told) -> None:
    told.story.end(session_pb2.Session())
    assert told.lines == ["", "0 turns: 0 narrated, 0 repaired, 0 fallback, 0 abandoned"]


def test_the_end_of_a_run_is_told_with_its_condition(told: Told) -> None:
    lost = engine_pb2.RunStatus(
        kind=engine_pb2.RUN_STATUS_KIND_LOST,
        condition="first",
        message="It is over.",
    )
    told.story.turn(Event(committed=Event.Committed(status=lost)))
    assert told.text.endswith("lost first - It is over.\n")


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (Event(degraded=Event.Degraded(reason="R", message="no answer")), "fallback narration, R: no answer"),
        (Event(narrative_retracted=Event.NarrativeRetracted(reason="invalid")), "void: invalid"),
        (Event(dialogue=Event.Dialogue(entity_id="b", utterance="well")), "  b: well"),
        (
            Event(rolled=Event.Rolled(roll=engine_pb2.Roll(kind="try", value=7, difficulty=9))),
            "7 against 9, failure",
        ),
        (
            Event(rule_failed=Event.RuleFailed(code="C", rule="/a", message="m", turn_abandoned=True)),
            "turn abandoned",
        ),
        (Event(rule_failed=Event.RuleFailed(code="C", rule="/a", message="m")), "rule skipped: m (C at /a)"),
    ],
)
def test_every_event_that_matters_is_told(told: Told, event: session_pb2.TurnEvent, words: str) -> None:
    told.story.turn(event)
    assert words in told.text


def test_a_session_begins_with_whose_eyes_see_it_and_what_is_at_stake(told: Told) -> None:
    session = session_pb2.Session(session_id="s", seed=7)
    told.story.session(session, PointOfView("a", "Alpha", "wins at 9\nloses at 0\x1b[2J"))
    assert told.lines == [
        "",
        "Session s, seed 7, turn 0",
        "  point of view: Alpha (a)",
        "    wins at 9",
        "    loses at 0\ufffd[2J",
    ]


def test_a_session_that_nobody_in_particular_sees_says_so(told: Told) -> None:
    told.story.session(session_pb2.Session(session_id="s"), PUBLIC_VIEW)
    assert told.lines[-1] == "  point of view: the public view"


def test_an_event_of_a_later_version_is_skipped(told: Told) -> None:
    told.story.turn(Event())
    assert told.text == ""


def test_the_specification_is_summed_up(told: Told) -> None:
    spec = b'{"name":"Alpha","actions":[{},{}],"random_events":[{}],"loss_conditions":[{},{}]}'
    completed = scenario_pb2.GenerateScenarioResponse.Completed(spec=spec, authored_without_model=True)
    told.story.generation(scenario_pb2.GenerateScenarioResponse(completed=completed))
    assert told.lines == [
        "Alpha: 2 actions, 1 events, 2 ways to lose",
        "  written by rules, without a language model",
    ]


def test_what_was_repaired_is_told(told: Told) -> None:
    finding = common_pb2.Finding(
        code="MISSING_KEY",
        path="/a",
        message="the key 'b' is missing",
        severity=common_pb2.SEVERITY_ERROR,
    )
    edit = scenario_pb2.RuleEdit(summary="b was added")
    repaired = scenario_pb2.GenerateScenarioResponse.Repaired(attempt=2, edits=[edit])
    told.story.generation(
        scenario_pb2.GenerateScenarioResponse(findings=scenario_pb2.Findings(findings=[finding])),
    )
    told.story.generation(scenario_pb2.GenerateScenarioResponse(repaired=repaired))
    assert told.lines == [
        "    error MISSING_KEY /a: the key 'b' is missing",
        f"      fix: {get_remedy('MISSING_KEY')}",
        "  repaired by answer 2",
        "    b was added",
    ]


def test_the_compile_report_shows_rate_interval_losses_and_edits(told: Told) -> None:
    report = scenario_pb2.DryRunReport(
        runs=200,
        lost=50,
        fail_rate=0.25,
        wilson_low=0.195,
        wilson_high=0.314,
        persona=engine_pb2.PERSONA_RANDOM,
        losses=[engine_pb2.NamedCount(id="first", count=50)],
    )
    summary = "event 'a': weight 0.1 → 0.125 (+25%)"
    edit = scenario_pb2.NumberEdit(path="/random_events/0/weight", before=0.1, after=0.125, summary=summary)
    repaired = scenario_pb2.CompileScenarioResponse.Repaired(edits=[edit], before=report)
    told.story.compilation(scenario_pb2.CompileScenarioResponse(repaired=repaired))
    told.story.compilation(
        scenario_pb2.CompileScenarioResponse(compiled=scenario_pb2.CompiledScenario(dry_run=report)),
    )
    rate = "50 of 200 runs lost (25.0%; 95% interval 19.5% to 31.4%), persona random"
    assert told.lines == [
        f"  missed its budget: {rate}",
        f"    {summary}",
        f"  dry-run: {rate}",
        "    first: 50",
    ]


def test_progress_is_told_once_for_each_stage(told: Told) -> None:
    for fraction in (0.1, 0.2):
        progress = scenario_pb2.Progress(
            stage=scenario_pb2.STAGE_DRY_RUNNING,
            message="playing",
            fraction=fraction,
        )
        told.story.compilation(scenario_pb2.CompileScenarioResponse(progress=progress))
    assert told.lines == ["  dry running: playing"]


def test_colour_is_for_terminals() -> None:
    on_paper, on_screen = Told(), Told(terminal=True)
    for told in (on_paper, on_screen):
        told.story.turn(Event(committed=Event.Committed(status=ONGOING)))
    assert "\x1b[" not in on_paper.text
    assert "\x1b[" in on_screen.text


def test_a_reader_who_is_about_to_play_is_shown_no_rule() -> None:
    stream = io.StringIO()
    story = ConsoleView(Console(file=stream, width=80, soft_wrap=True), hides_rules=True)
    planted = common_pb2.Finding(code="UNKNOWN_PATH", message="planted")
    written = common_pb2.Finding(
        code="WITHOUT_MODEL", message="by rules", severity=common_pb2.SEVERITY_WARNING
    )
    edits = [scenario_pb2.RuleEdit(summary="planted")] * 2
    generated = scenario_pb2.GenerateScenarioResponse
    story.generation(generated(findings=scenario_pb2.Findings(findings=[planted] * 2)))
    story.generation(generated(repaired=generated.Repaired(attempt=2, edits=edits)))
    completed = generated.Completed(spec=b'{"name": "a"}', model="m", findings=[planted, written])
    story.generation(generated(completed=completed))
    moved = [scenario_pb2.NumberEdit(summary="planted")]
    compiled = scenario_pb2.CompileScenarioResponse
    story.compilation(compiled(repaired=compiled.Repaired(edits=moved)))
    losses = [engine_pb2.NamedCount(id="planted", count=3)]
    report = scenario_pb2.DryRunReport(runs=3, losses=losses)
    story.compilation(compiled(compiled=scenario_pb2.CompiledScenario(dry_run=report, findings=[planted])))
    assert "planted" not in stream.getvalue()
    for line in ("    2 findings", "    2 changes", "    1 finding", "    1 change"):
        assert line in stream.getvalue().splitlines()
    assert "WITHOUT_MODEL" in stream.getvalue()
