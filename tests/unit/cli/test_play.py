"""`peripety play` against fake services with scripted answers."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from typer.testing import CliRunner

from peripety.api.common.v1 import common_pb2, engine_pb2
from peripety.api.scenario.v1 import scenario_pb2, scenario_pb2_grpc
from peripety.api.session.v1 import session_pb2, session_pb2_grpc
from peripety.cli.app import app
from peripety.cli.players import ForecastPlayer, TurnInput
from peripety.errors import SpecError, get_remedy
from support.servers.apps import embedding

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


Written = scenario_pb2.GenerateScenarioResponse
Compiled = scenario_pb2.CompileScenarioResponse
Event = session_pb2.TurnEvent

SPEC = json.dumps(
    {"name": "alpha", "entities": [{"id": "a", "playable": True, "description": "wins at 9, loses at 0"}]},
).encode()


def finding(code: str, message: str, severity: common_pb2.Severity.ValueType) -> common_pb2.Finding:
    return common_pb2.Finding(code=code, message=message, severity=severity)


def warning(code: str, message: str) -> common_pb2.Finding:
    return finding(code, message, common_pb2.SEVERITY_WARNING)


class Fakes(scenario_pb2_grpc.ScenarioServiceServicer, session_pb2_grpc.SessionServiceServicer):
    """Fake services in which every step fails once, is repaired, and is reported."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.session = session_pb2.Session(
            session_id="s" * 36,
            scenario_id="scn_1",
            status=engine_pb2.RunStatus(kind=engine_pb2.RUN_STATUS_KIND_ONGOING),
            legal_actions=[engine_pb2.LegalAction(action_id="act", name="Act now")],
            usage=common_pb2.ModelUsage(
                calls=2, tokens=common_pb2.TokenUsage(input_tokens=90, output_tokens=7)
            ),
        )

    async def GenerateScenario(self, request: Any, _context: Any) -> AsyncIterator[Written]:  # noqa: N802 - the contract's
        assert request.level == scenario_pb2.VALIDATION_LEVEL_DRY_RUN
        wrong = finding("MISSING_KEY", "a key is missing", common_pb2.SEVERITY_ERROR)
        yield Written(findings=scenario_pb2.Findings(findings=[wrong], total=3))
        edits = [scenario_pb2.RuleEdit(summary="added event b")]
        yield Written(repaired=Written.Repaired(attempt=2, edits=edits))
        remaining = [warning("WORDS_ONLY", "the model gave the words")]
        yield Written(completed=Written.Completed(spec=SPEC, model="p/m", findings=remaining))

    async def CompileScenario(self, _request: Any, _context: Any) -> AsyncIterator[Compiled]:  # noqa: N802 - the contract's
        edit = scenario_pb2.NumberEdit(summary="event 'a': weight 0.1 → 0.15 (+50%)")
        yield Compiled(repaired=Compiled.Repaired(edits=[edit]))
        remaining = [warning("LOST_AT_ONCE", "every run ends in its first turn")]
        yield Compiled(compiled=scenario_pb2.CompiledScenario(spec=SPEC, findings=remaining))

    async def CreateSession(self, request: Any, _context: Any) -> session_pb2.CreateSessionResponse:  # noqa: N802 - the contract's
        self.requests.append(request)
        return session_pb2.CreateSessionResponse(session=self.session)

    async def TakeTurn(self, request: Any, _context: Any) -> AsyncIterator[session_pb2.TakeTurnResponse]:  # noqa: N802 - the contract's
        self.requests.append(request)
        if request.input == "mumble":
            question = "Which of the two?"
            failure = Event.RuleFailed(code="NOT_UNDERSTOOD", message=question, turn_abandoned=True)
            yield session_pb2.TakeTurnResponse(event=Event(turn=1, rule_failed=failure))
            return
        lost = engine_pb2.RunStatus(kind=engine_pb2.RUN_STATUS_KIND_LOST, message="All is spent.")
        self.session.turn += 1
        self.session.status.CopyFrom(lost)
        committed = Event.Committed(resolution=session_pb2.RESOLUTION_SERVER_RESOLVED, status=lost)
        for event in (
            Event(turn=1, narrative_chunk=Event.NarrativeChunk(text="never so")),
            Event(turn=1, narrative_retracted=Event.NarrativeRetracted(reason="not JSON")),
            Event(turn=1, degraded=Event.Degraded(reason="OUTCOME_INVALID", message="no valid answer")),
            Event(turn=1, committed=committed),
        ):
            yield session_pb2.TakeTurnResponse(event=event)

    async def AskSession(self, request: Any, _context: Any) -> session_pb2.AskSessionResponse:  # noqa: N802 - the contract's
        self.requests.append(request)
        return session_pb2.AskSessionResponse(answer="A: 1.", found=True, turns=[0, 2])

    async def GetSession(self, request: Any, _context: Any) -> session_pb2.GetSessionResponse:  # noqa: N802 - the contract's
        self.requests.append(request)
        return session_pb2.GetSessionResponse(session=self.session)

    async def GetScenario(self, request: Any, _context: Any) -> scenario_pb2.GetScenarioResponse:  # noqa: N802 - the contract's
        self.requests.append(request)
        return scenario_pb2.GetScenarioResponse(scenario=scenario_pb2.CompiledScenario(spec=SPEC))

    async def ListSessions(self, _request: Any, _context: Any) -> session_pb2.ListSessionsResponse:  # noqa: N802 - the contract's
        summary = session_pb2.SessionSummary(session_id=self.session.session_id)
        return session_pb2.ListSessionsResponse(sessions=[summary])

    async def ForecastOutcomes(  # noqa: N802 - the contract's
        self, request: Any, _context: Any
    ) -> AsyncIterator[session_pb2.ForecastOutcomesResponse]:
        yield session_pb2.ForecastOutcomesResponse(runs=request.runs)


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Fakes:
    services = Fakes()
    embedded = embedding(
        partial(scenario_pb2_grpc.add_ScenarioServiceServicer_to_server, services),
        partial(session_pb2_grpc.add_SessionServiceServicer_to_server, services),
    )
    monkeypatch.setattr("peripety.cli.embedded_services.embedded_services", embedded)
    return services


def told(*arguments: str) -> list[str]:
    done = CliRunner().invoke(app, ["play", "--auto", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


@pytest.mark.usefixtures("fakes")
def test_the_story_is_told_without_its_making() -> None:
    assert told("--description", "x") == [
        "",
        "alpha",
        "",
        "wins at 9, loses at 0",
        "",
        "the model gave the words",
        "",
        "> Act now",
        "never so",
        "(Another version follows.)",
        "(The narrator failed, and rules write this: no valid answer)",
        "",
        "All is spent.",
        "",
        "You have lost after 1 turn.",
        "Play it yourself: peripety play scn_1",
    ]


AUTHORING = [
    "    3 findings",
    "  repaired by answer 2",
    "    1 change",
    "alpha: 0 actions, 0 events, 0 ways to lose",
    "  written by p/m",
    "    warning WORDS_ONLY /: the model gave the words",
    f"      fix: {get_remedy('WORDS_ONLY')}",
]


@pytest.mark.usefixtures("fakes")
def test_all_details_count_repairs_and_findings_and_show_no_rule() -> None:
    lines = told("--description", "x", "-v")
    assert lines[: len(AUTHORING)] == AUTHORING
    for line in ("    1 change", "    1 finding", "  committed , fallback narration: lost - All is spent."):
        assert line in lines
    assert (
        "1 turn: 0 narrated, 0 repaired, 1 fallback, 0 abandoned: 2 calls · 90 in (0 cached, 0%) · 7 out"
        in lines
    )


class SpeakingPlayer(ForecastPlayer):
    """A player whose words are not understood at first."""

    said: ClassVar[list[str]] = []

    async def choose(self, _game: Any) -> TurnInput:
        self.said.append("mumble" if len(self.said) < 2 else "")
        return TurnInput(words=self.said[-1])


@pytest.mark.usefixtures("fakes")
def test_words_that_are_not_understood_count_as_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpeakingPlayer, "said", [])
    monkeypatch.setattr("peripety.cli.play.ForecastPlayer", SpeakingPlayer)
    assert told("--description", "x", "--turns", "1").count("Which of the two?") == 2
    assert len(SpeakingPlayer.said) == 3


def test_the_only_playable_entity_is_the_point_of_view(fakes: Fakes) -> None:
    told("--description", "x")
    assert {request.pov_entity_id for request in fakes.requests} == {"a"}


@pytest.mark.parametrize("wanted", ["scn_1"])
def test_a_stored_scenario_is_played_without_writing_one(fakes: Fakes, wanted: str) -> None:
    assert "alpha" in told(wanted)
    assert fakes.requests[0].scenario_id == wanted


@pytest.mark.parametrize("wanted", [("--session", "ssss"), ("--session", "latest"), ("--continue",)])
def test_a_session_is_continued_by_the_start_of_its_id(fakes: Fakes, wanted: tuple[str, ...]) -> None:
    told(*wanted)
    assert fakes.requests[0].session_id == "s" * 36
    assert not any(isinstance(request, session_pb2.CreateSessionRequest) for request in fakes.requests)


@pytest.mark.parametrize("more", [("--description", "x"), ("--session", "s"), ("--continue",)])
def test_only_one_thing_is_played(more: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, ["play", "--auto", "scn_1", *more])
    assert done.exit_code == 2
    assert "give one of" in done.stderr


def test_a_point_of_view_that_is_not_there_starts_no_session(fakes: Fakes) -> None:
    done = CliRunner().invoke(app, ["play", "--auto", "--pov", "b"])
    assert "use one of a" in str(done.exception)
    assert fakes.requests == []


def test_a_refused_scenario_is_refused_without_its_rules(
    fakes: Fakes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_request: Any, _context: Any) -> AsyncIterator[Written]:
        wrong = finding("UNKNOWN_PATH", "planted", common_pb2.SEVERITY_ERROR)
        yield Written(findings=scenario_pb2.Findings(findings=[wrong]))
        yield Written(rejected=Written.Rejected(findings=scenario_pb2.Findings(findings=[wrong])))

    monkeypatch.setattr(fakes, "GenerateScenario", refuse)
    done = CliRunner().invoke(app, ["play", "--auto", "--description", "x"])
    assert done.exit_code != 0
    assert isinstance(done.exception, SpecError)
    assert done.exception.findings == ()
    assert "peripety generate" in done.exception.message
    assert "planted" not in done.output
