"""`peripety play` against fake services with scripted answers."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from peripety.api.common.v1 import common_pb2, engine_pb2
from peripety.api.scenario.v1 import scenario_pb2, scenario_pb2_grpc
from peripety.api.session.v1 import session_pb2, session_pb2_grpc
from peripety.cli.app import app
from peripety.cli.players import TurnInput
from peripety.errors import get_remedy
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
        return session_pb2.CreateSessionResponse(session=session_pb2.Session(session_id="s"))

    async def TakeTurn(self, request: Any, _context: Any) -> AsyncIterator[session_pb2.TakeTurnResponse]:  # noqa: N802 - the contract's
        self.requests.append(request)
        committed = Event.Committed(
            resolution=session_pb2.RESOLUTION_SERVER_RESOLVED,
            status=engine_pb2.RunStatus(kind=engine_pb2.RUN_STATUS_KIND_LOST),
        )
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
        used = common_pb2.ModelUsage(calls=2, tokens=common_pb2.TokenUsage(input_tokens=90, output_tokens=7))
        return session_pb2.GetSessionResponse(session=session_pb2.Session(session_id="s", usage=used))


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> Fakes:
    services = Fakes()
    embedded = embedding(
        partial(scenario_pb2_grpc.add_ScenarioServiceServicer_to_server, services),
        partial(session_pb2_grpc.add_SessionServiceServicer_to_server, services),
    )
    monkeypatch.setattr("peripety.cli.play.embedded_services", embedded)
    return services


def told(*arguments: str) -> list[str]:
    done = CliRunner().invoke(app, [*arguments, "--description", "x"])
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


AUTHORING = [
    "    error MISSING_KEY /: a key is missing",
    f"      fix: {get_remedy('MISSING_KEY')}",
    "    ... and 2 more",
    "  repaired by answer 2",
    "    added event b",
    "alpha: 0 actions, 0 events, 0 ways to lose",
    "  written by p/m",
    "    warning WORDS_ONLY /: the model gave the words",
    f"      fix: {get_remedy('WORDS_ONLY')}",
]


@pytest.mark.usefixtures("fakes")
def test_play_tells_every_repair_and_every_warning() -> None:
    lines = told("play", "--auto")
    assert lines[: len(AUTHORING)] == AUTHORING
    for line in (
        "    event 'a': weight 0.1 → 0.15 (+50%)",
        "    warning LOST_AT_ONCE /: every run ends in its first turn",
        "  (this narration is void: not JSON)",
        "  (fallback narration, OUTCOME_INVALID: no valid answer)",
        "  committed , fallback narration: lost",
    ):
        assert line in lines
    assert lines[-1] == (
        "1 turn: 0 narrated, 0 repaired, 1 fallback, 0 abandoned: 2 calls · 90 in (0 cached, 0%) · 7 out"
    )


class AskingPlayer:
    """A player with a question before the first turn."""

    def __init__(self) -> None:
        self.turns: list[int] = []

    def choose(self, turn: int, _legal: Any) -> TurnInput:
        self.turns.append(turn)
        return TurnInput(question="how many?") if len(self.turns) == 1 else TurnInput()


def test_a_question_is_answered_with_its_turns_and_costs_no_turn(
    fakes: Fakes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    player = AskingPlayer()
    monkeypatch.setattr("peripety.cli.play.RoundRobinPlayer", lambda: player)
    assert "  A: 1. [the start, turn 2]" in told("play", "--auto", "--turns", "1")
    (asked,) = (one for one in fakes.requests if isinstance(one, session_pb2.AskSessionRequest))
    assert (asked.session_id, asked.question, asked.pov_entity_id) == ("s", "how many?", "a")
    assert player.turns == [1, 1]


def test_the_only_playable_entity_is_taken_and_what_it_wins_by_is_told(fakes: Fakes) -> None:
    lines = told("play", "--auto")
    start = lines.index("  point of view: a (a)")
    assert lines[start + 1] == "    wins at 9, loses at 0"
    assert [request.pov_entity_id for request in fakes.requests] == ["a", "a", "a"]


def test_a_point_of_view_that_is_not_there_starts_no_session(fakes: Fakes) -> None:
    done = CliRunner().invoke(app, ["play", "--auto", "--pov", "b"])
    assert "use one of a" in str(done.exception)
    assert fakes.requests == []
