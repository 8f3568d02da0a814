"""`peripety runs`, and `--follow` of the commands whose work is a run."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from typer.testing import CliRunner

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.policy.v1 import policy_pb2 as policy
from peripety.api.policy.v1 import policy_pb2_grpc
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1 import scenario_pb2_grpc
from peripety.cli.app import app, load_command
from peripety.errors import NotFoundError, UnavailableError
from peripety.rpc.messages import time_to_proto
from support.servers.apps import embedding

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from typer.testing import Result


def run_of(run_id: str, method: str, at: int, **fields: Any) -> common.CallRun:
    begun = time_to_proto(at * 1_000_000)
    return common.CallRun(run_id=run_id, method=method, title="any\ntext", create_time=begun, **fields)


GENERATION = run_of("run_1", "GenerateScenario", 1, state=common.CALL_RUN_STATE_RUNNING, last_sequence=2)
FAILED = run_of(
    "run_2",
    "AmendScenario",
    3,
    state=common.CALL_RUN_STATE_FAILED,
    error=common.ItemError(reason="PROVIDER_UNAVAILABLE", message="no answer"),
)
COMPILATION = run_of("run_3", "CompilePolicy", 2, state=common.CALL_RUN_STATE_COMPLETED, last_sequence=1)
SPEC = b'{"name":"alpha","actions":[],"random_events":[],"loss_conditions":[]}'


class Scenarios(scenario_pb2_grpc.ScenarioServiceServicer):
    """Fake service with two runs, which records the requests that change one."""

    def __init__(self) -> None:
        self.changed: list[Any] = []
        self.resumed: list[pb.ResumeScenarioRunRequest] = []
        self.breaks = False

    async def ListScenarioRuns(self, _request: Any, _context: Any) -> pb.ListScenarioRunsResponse:  # noqa: N802 - the contract's
        return pb.ListScenarioRunsResponse(runs=[FAILED, GENERATION])

    async def GetScenarioRun(self, request: Any, context: Any) -> pb.GetScenarioRunResponse:  # noqa: N802 - the contract's
        found = {run.run_id: run for run in (FAILED, GENERATION)}.get(request.run_id)
        if found is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown run")
        return pb.GetScenarioRunResponse(run=found)

    async def CancelScenarioRun(self, request: Any, _context: Any) -> pb.CancelScenarioRunResponse:  # noqa: N802 - the contract's
        self.changed.append(request)
        return pb.CancelScenarioRunResponse()

    async def ResumeScenarioRun(  # noqa: N802 - the contract's
        self,
        request: pb.ResumeScenarioRunRequest,
        context: Any,
    ) -> AsyncIterator[pb.ResumeScenarioRunResponse]:
        self.resumed.append(request)
        written = pb.GenerateScenarioResponse
        events = [
            written(draft=written.Draft(spec=SPEC, attempt=1)),
            written(completed=written.Completed(spec=SPEC, model="p/m")),
        ]
        for sequence, event in enumerate(events, start=1):
            event.sequence, event.run_id = sequence, request.run_id
            if sequence > request.after_sequence:
                yield pb.ResumeScenarioRunResponse(sequence=sequence, generation=event)
            if self.breaks and len(self.resumed) == 1:
                await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "late")


class Policies(policy_pb2_grpc.PolicyServiceServicer):
    """Fake service with one run."""

    def __init__(self) -> None:
        self.changed: list[Any] = []

    async def ListPolicyRuns(self, _request: Any, _context: Any) -> policy.ListPolicyRunsResponse:  # noqa: N802 - the contract's
        return policy.ListPolicyRunsResponse(runs=[COMPILATION])

    async def GetPolicyRun(self, request: Any, context: Any) -> policy.GetPolicyRunResponse:  # noqa: N802 - the contract's
        if request.run_id != COMPILATION.run_id:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown run")
        return policy.GetPolicyRunResponse(run=COMPILATION)

    async def DeletePolicyRun(self, request: Any, _context: Any) -> policy.DeletePolicyRunResponse:  # noqa: N802 - the contract's
        self.changed.append(request)
        return policy.DeletePolicyRunResponse()

    async def ResumePolicyRun(  # noqa: N802 - the contract's
        self,
        _request: Any,
        _context: Any,
    ) -> AsyncIterator[policy.ResumePolicyRunResponse]:
        verified = policy.CompilePolicyResponse.Verified(passed=3)
        event = policy.CompilePolicyResponse(sequence=1, run_id="run_3", verified=verified)
        yield policy.ResumePolicyRunResponse(event=event)


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> tuple[Scenarios, Policies]:
    scenarios, policies = Scenarios(), Policies()
    add: tuple[Callable[..., None], ...] = (
        partial(scenario_pb2_grpc.add_ScenarioServiceServicer_to_server, scenarios),
        partial(policy_pb2_grpc.add_PolicyServiceServicer_to_server, policies),
    )
    for module in ("runs", "scenario_generate"):
        load_command({"runs": "runs", "scenario_generate": "generate"}[module])
        monkeypatch.setattr(f"peripety.cli.{module}.services_at", embedding(*add))
    return scenarios, policies


def peripety(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


@pytest.mark.usefixtures("services")
def test_the_runs_of_all_services_are_one_list_newest_first() -> None:
    lines = peripety("runs", "list").stdout.splitlines()
    assert [line.split()[:4] for line in lines[1:]] == [
        ["run_2", "1970-01-01", "00:00:03", "AmendScenario"],
        ["run_3", "1970-01-01", "00:00:02", "CompilePolicy"],
        ["run_1", "1970-01-01", "00:00:01", "GenerateScenario"],
    ]
    assert lines[1].split()[4:] == ["failed", "any", "text"]
    (first, *rest) = peripety("runs", "list", "--json", "--count", "2").stdout.splitlines()
    assert (json.loads(first)["run_id"], len(rest)) == ("run_2", 1)


def test_a_run_is_shown_with_its_drafts_and_not_continued(services: tuple[Scenarios, Policies]) -> None:
    shown = peripety("runs", "show", "run_1").stdout
    assert shown.startswith("run_1: GenerateScenario, running\n  any text\n")
    assert "written by p/m" in shown
    lines = peripety("runs", "show", "run_1", "--json").stdout.splitlines()
    assert json.loads(lines[1])["draft"]["attempt"] == 1
    assert [request.recorded_only for request in services[0].resumed] == [True, True]
    assert "3 passed" in peripety("runs", "show", "run_3").stdout
    assert "error: no answer (PROVIDER_UNAVAILABLE)" in peripety("runs", "show", "run_2").stderr


def test_a_run_is_changed_in_the_service_that_has_it(services: tuple[Scenarios, Policies]) -> None:
    scenarios, policies = services
    assert peripety("runs", "cancel", "run_1").stdout == "run_1 is cancelled\n"
    assert peripety("runs", "delete", "run_3").stdout == "run_3 is deleted\n"
    assert [request.run_id for request in scenarios.changed] == ["run_1"]
    assert [request.run_id for request in policies.changed] == ["run_3"]
    assert isinstance(peripety("runs", "cancel", "run_4").exception, NotFoundError)


def test_a_run_is_followed_by_its_id_and_again_when_a_call_reaches_its_deadline(
    services: tuple[Scenarios, Policies],
) -> None:
    services[0].breaks = True
    done = peripety("generate", "--follow", "run_1", "--json")
    assert (done.exit_code, done.stdout_bytes) == (0, SPEC + b"\n")
    assert [(one.run_id, one.after_sequence) for one in services[0].resumed] == [("run_1", 0), ("run_1", 1)]


@pytest.mark.usefixtures("services")
def test_a_run_of_another_command_is_not_followed() -> None:
    assert isinstance(peripety("amend", "--follow", "run_1").exception, NotFoundError)


@pytest.mark.parametrize(
    "arguments",
    [
        ("generate", "--follow", "r", "--description", "x"),
        ("generate", "--follow", "r", "--random", "1"),
        ("amend",),
        ("amend", "scn_1"),
        ("amend", "scn_1", "longer", "--follow", "r"),
        ("policy", "compile", "--follow", "r", "--tools", "x"),
    ],
)
def test_a_run_to_follow_excludes_what_would_start_another(arguments: tuple[str, ...]) -> None:
    assert peripety(*arguments).exit_code == 2


def test_after_an_error_it_is_told_that_the_run_can_be_continued(
    services: tuple[Scenarios, Policies],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def failing(self: Scenarios, request: Any, context: Any) -> AsyncIterator[Any]:
        progress = pb.GenerateScenarioResponse(sequence=1, run_id=request.run_id, progress=pb.Progress())
        yield pb.ResumeScenarioRunResponse(sequence=1, generation=progress)
        await context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

    monkeypatch.setattr(services[0], "ResumeScenarioRun", partial(failing, services[0]))
    done = peripety("generate", "--follow", "run_1")
    assert isinstance(done.exception, UnavailableError)
    assert "the command that started it continues it" in done.stderr
