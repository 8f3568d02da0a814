"""Tests, runs and events to protobuf; tests from protobuf."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from peripety import engine as engine_api
from peripety.api.policy.v1 import policy_pb2 as policy
from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.core.validation import require_unique
from peripety.errors import PeripetyError, field_error, require_field
from peripety.gateway.pb.responses import spent_to_proto
from peripety.policy.pb import responses
from peripety.policy.pb.requests import EXPECTATIONS, tool_request_from_proto
from peripety.rpc.messages import copy_fields, params_from_proto
from peripety.rpc.status import item_error_to_proto
from peripety.testgen.events import (
    DuplicateDropped,
    GenerationCompleted,
    GenerationFailed,
    GenerationProgressed,
    GenerationStarted,
    QualityMeasured,
    ReflectionCompleted,
    TestAdded,
    TestRan,
)
from peripety.testgen.pb.requests import config_to_proto
from peripety.testgen.subjects.policy import parse_scenario_body
from peripety.testgen.subjects.scenario.case_body import parse_body
from peripety.testgen.types import TestCase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.core.runs.types import RecordedEvent
    from peripety.core.validation import Page
    from peripety.testgen.events import (
        GenerationEvent,
        GenerationStats,
    )
    from peripety.testgen.store import GenerationRunSummary, RunRecord
    from peripety.testgen.subjects.scenario.case_body import BodyStep
    from peripety.testgen.task_folder import TestTask
    from peripety.testgen.types import CaseVerdict, SuiteQuality


def body_to_proto(test: TestCase, written: pb.GeneratedTest) -> None:
    """Write the body of a test to its message; an invalid body is left out."""
    body = test.body or {}
    try:
        if "steps" in body:
            written.scenario.CopyFrom(_scenario_to_proto(body))
        elif "tool_name" in body:
            written.policy.CopyFrom(_policy_to_proto(test, body))
        elif "requests" in body:
            written.http.CopyFrom(_http_to_proto(body))
        elif "arguments" in body or "call" in body:
            written.command.CopyFrom(_command_to_proto(body))
    except (PeripetyError, KeyError, TypeError, ValueError, AttributeError):
        # A model may write anything. The verdict of the test describes the defect.
        written.ClearField("body")


def body_from_proto(test: pb.GeneratedTest, field: str) -> Mapping[str, Any] | None:
    """Parse the body of a test; None for text only.

    Args:
        test: the test.
        field: its path in the request.

    Raises:
        InvalidArgumentError: a field is invalid.
    """
    match test.WhichOneof("body"):
        case "scenario":
            return _scenario_from_proto(test.scenario, f"{field}.scenario")
        case "policy":
            return _policy_from_proto(test.policy, f"{field}.policy")
        case "command":
            return _command_from_proto(test.command, f"{field}.command")
        case "http":
            return {"requests": [*map(_http_step_from_proto, test.http.requests)]}
        case _:
            return None


def _scenario_to_proto(body: Mapping[str, Any]) -> pb.ScenarioTest:
    read = parse_body(body)
    return pb.ScenarioTest(seed=read.seed, steps=map(_step_to_proto, read.steps))


def _step_to_proto(step: BodyStep) -> pb.ScenarioStep:
    expect = b"" if step.expect is None else json.dumps(step.expect, separators=(",", ":")).encode()
    return copy_fields(pb.ScenarioStep, step, expect=expect, expect_accepted=step.accepted)


def _scenario_from_proto(test: pb.ScenarioTest, field: str) -> Mapping[str, Any]:
    seed = test.seed if test.HasField("seed") else None
    require_field(
        seed is None or 0 <= seed <= engine_api.MAX_SEED,
        f"{field}.seed",
        f"must be from 0 to {engine_api.MAX_SEED}",
    )
    return {
        "seed": seed,
        "steps": [_step_from_proto(step, f"{field}.steps[{at}]") for at, step in enumerate(test.steps)],
    }


def _step_from_proto(step: pb.ScenarioStep, field: str) -> Mapping[str, Any]:
    actions = [
        {
            "action_id": action.action_id,
            "params": params_from_proto(f"{field}.actions[{at}]", action.params),
        }
        for at, action in enumerate(step.actions)
    ]
    accepted = step.expect_accepted if step.HasField("expect_accepted") else None
    try:
        expect = engine_api.parse(step.expect) if step.expect else None
    except PeripetyError as error:
        raise field_error(f"{field}.expect", f"is not JSONLogic as JSON: {error.message}") from None
    return {"actions": actions, "accepted": accepted, "expect": expect}


def _policy_to_proto(test: TestCase, body: Mapping[str, Any]) -> policy.PolicyScenario:
    scenario = parse_scenario_body(body)
    return policy.PolicyScenario(
        scenario_id=test.test_id,
        description=test.input,
        request=responses.tool_request_to_proto(scenario.request),
        expected=responses.expectation_to_proto(scenario.expected_decision),
        reasoning=test.reasoning,
    )


def _policy_from_proto(scenario: policy.PolicyScenario, field: str) -> Mapping[str, Any]:
    request = tool_request_from_proto(scenario.request, f"{field}.request")
    expected = EXPECTATIONS.get(scenario.expected)
    require_field(expected, f"{field}.expected", "is required; set the expected decision")
    return {
        "server_name": request.server_name,
        "tool_name": request.tool_name,
        "arguments": request.arguments,
        "roles": [*request.roles],
        "expected": EXPECTATIONS[scenario.expected].value,
    }


def _command_to_proto(body: Mapping[str, Any]) -> pb.CommandTest:
    stdin = body.get("stdin") or ""
    return pb.CommandTest(
        arguments=body.get("arguments") or (),
        stdin=stdin.encode(errors="surrogateescape"),
        expect_exit_code=body.get("exit_code"),
        call=pb.PythonCall(**body["call"]) if body.get("call") else None,
        expect_stderr=body.get("stderr"),
        files=[pb.TestFile(**file) for file in body.get("files") or ()],
        expect_files=[pb.TestFile(**file) for file in body.get("expected_files") or ()],
    )


def _command_from_proto(test: pb.CommandTest, field: str) -> Mapping[str, Any]:
    try:
        stdin = test.stdin.decode()
    except UnicodeDecodeError:
        raise field_error(f"{field}.stdin", "is not UTF-8") from None
    body: dict[str, Any] = {
        "arguments": [*test.arguments],
        "stdin": stdin,
        "exit_code": test.expect_exit_code if test.HasField("expect_exit_code") else None,
    }
    if test.HasField("expect_stderr"):
        body["stderr"] = test.expect_stderr
    for name, files in (("files", test.files), ("expected_files", test.expect_files)):
        if files:
            body[name] = [_file_from_proto(file) for file in files]
    if not test.HasField("call"):
        return body
    require_field(_MODULE_PATTERN.fullmatch(test.call.module), f"{field}.call.module", "is not a dotted name")
    require_field(test.call.code, f"{field}.call.code", "is required; set the statements to run")
    return {**body, "call": {"module": test.call.module, "code": test.call.code}}


def _http_to_proto(body: Mapping[str, Any]) -> pb.HttpTest:
    return pb.HttpTest(
        requests=[
            pb.HttpStep(
                method=one["method"],
                path=one["path"],
                headers=[pb.HttpHeader(**header) for header in one.get("headers") or ()],
                body=one.get("body"),
                expect_status=one.get("status"),
                expect_response=one.get("response"),
            )
            for one in body["requests"]
        ],
    )


def _http_step_from_proto(step: pb.HttpStep) -> Mapping[str, Any]:
    return {
        "method": step.method,
        "path": step.path,
        "headers": [{"name": one.name, "value": one.value} for one in step.headers],
        "body": step.body if step.HasField("body") else None,
        "status": step.expect_status if step.HasField("expect_status") else None,
        "response": step.expect_response if step.HasField("expect_response") else None,
    }


def _file_from_proto(file: pb.TestFile) -> Mapping[str, Any]:
    return {"path": file.path, "content": file.content if file.HasField("content") else None}


_MODULE_PATTERN = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")

MAX_TESTS = 1_000

_MAX_NAME_BYTES = 256
_MAX_TEXT_BYTES = 100 * 1024


def case_to_proto(test: TestCase, verdict: CaseVerdict | None = None) -> pb.GeneratedTest:
    """Convert a test with its verdict."""
    written = copy_fields(
        pb.GeneratedTest,
        test,
        combinatorial=test.is_combinatorial,
        verdict=None if verdict is None else verdict_to_proto(verdict),
        **dict.fromkeys(("scenario", "policy", "command", "http")),
        **{"global": test.is_global},  # `global` is a Python keyword
    )
    body_to_proto(test, written)
    return written


def cases_from_proto(tests: Sequence[pb.GeneratedTest], field: str = ".tests") -> tuple[TestCase, ...]:
    """Parse tests, without their verdicts.

    Raises:
        InvalidArgumentError: there are too many, or a field is invalid.
    """
    require_field(len(tests) <= MAX_TESTS, field, f"has more than {MAX_TESTS} tests; send fewer")
    read = tuple(_case_from_proto(test, f"{field}[{at}]") for at, test in enumerate(tests))
    require_unique([test.test_id for test in read], field, "test_id")
    return read


def verdict_to_proto(verdict: CaseVerdict) -> pb.TestVerdict:
    """Convert a verdict."""
    examined = verdict.examined
    return copy_fields(
        pb.TestVerdict,
        verdict,
        status=examined.status,
        runs=examined.runs,
        observed=examined.observed,
    )


def quality_to_proto(quality: SuiteQuality) -> pb.Quality:
    """Convert a quality measurement."""
    mutation = quality.mutation
    return pb.Quality(
        coverage=responses.coverage_to_proto(quality.coverage),
        mutation=None if mutation is None else responses.mutation_score_to_proto(mutation),
        counting_tests=quality.counting_tests,
        unmeasured_lines=quality.unmeasured_lines,
        changed_since=quality.changed_since,
    )


def _case_from_proto(test: pb.GeneratedTest, field: str) -> TestCase:
    for name, most in (
        ("test_id", _MAX_NAME_BYTES),
        ("name", _MAX_NAME_BYTES),
        ("category", _MAX_NAME_BYTES),
        ("input", _MAX_TEXT_BYTES),
        ("expected_output", _MAX_TEXT_BYTES),
        ("reasoning", _MAX_TEXT_BYTES),
        ("source", _MAX_TEXT_BYTES),
    ):
        require_field(
            len(getattr(test, name).encode()) <= most,
            f"{field}.{name}",
            f"has more than {most} bytes",
        )
    require_field(test.test_id, f"{field}.test_id", "is required")
    require_field(0 <= test.confidence <= 1, f"{field}.confidence", "must be from 0 to 1")
    return TestCase(
        test_id=test.test_id,
        category=test.category,
        input=test.input,
        expected_output=test.expected_output if test.HasField("expected_output") else None,
        reasoning=test.reasoning,
        confidence=test.confidence,
        body=body_from_proto(test, field),
        round=test.round,
        is_global=bool(getattr(test, "global")),
        is_combinatorial=test.combinatorial,
        source=test.source,
        name=test.name,
    )


_MAX_MESSAGE_BYTES = 3_500_000
"""Size limit of a message, below the gRPC default."""

_SHORT_OBSERVED_CHARACTERS = 200


def run_to_proto(run: RunRecord) -> pb.TestRun:
    """Convert a run with its tests; observed outputs are shortened if the message is too large."""
    written = _run_to_proto(run)
    if written.ByteSize() > _MAX_MESSAGE_BYTES:
        for test in written.tests:
            test.verdict.observed = test.verdict.observed[:_SHORT_OBSERVED_CHARACTERS]
    return written


def _run_to_proto(run: RunRecord) -> pb.TestRun:
    state, order, verdicts = run.run_state, run.order, run.verdicts
    return copy_fields(
        pb.TestRun,
        run,
        task_id=order.task_id,
        task_description=order.description,
        environment=order.environment,
        context=order.context,
        categories=order.categories,
        config=config_to_proto(order.config),
        phase=state.phase if run.events else None,
        current_category=state.category,
        tests=(case_to_proto(test, verdicts.get(test.test_id)) for test in state.tests.values()),
        reflections=state.reflections,
        stats=stats_to_proto(run.stats),
        fenced=run.is_fenced,
        create_time=run.created,
        update_time=run.updated,
    )


def runs_to_proto(page: Page[GenerationRunSummary]) -> pb.ListTestRunsResponse:
    """Convert a page of runs."""
    return pb.ListTestRunsResponse(
        runs=map(_summary_to_proto, page.items),
        next_page_token=page.next_page_token,
    )


def tasks_to_proto(page: Page[TestTask]) -> pb.ListTestTasksResponse:
    """Convert a page of tasks."""
    return pb.ListTestTasksResponse(
        tasks=(copy_fields(pb.TestTask, task, task_description=task.description) for task in page.items),
        next_page_token=page.next_page_token,
    )


def stats_to_proto(stats: GenerationStats) -> pb.TestRunStats:
    """Convert statistics of a run."""
    usage = stats.spent.usage
    return copy_fields(
        pb.TestRunStats,
        stats,
        total_tokens_used=usage.input_tokens + usage.output_tokens,
        usage=spent_to_proto(stats.spent),
        quality=None if stats.quality is None else quality_to_proto(stats.quality),
        duration=stats.seconds,
    )


def _summary_to_proto(run: GenerationRunSummary) -> pb.TestRunSummary:
    return copy_fields(pb.TestRunSummary, run, create_time=run.created, update_time=run.updated)


def event_to_proto(run_id: str, recorded: RecordedEvent[GenerationEvent]) -> pb.TestGenEvent:
    """Convert an event of a run."""
    written = pb.TestGenEvent(run_id=run_id, sequence=recorded.sequence)
    match recorded.event:
        case GenerationStarted() as event:
            written.start.CopyFrom(_started_to_proto(event))
        case TestAdded(test):
            written.test.CopyFrom(case_to_proto(test))
        case GenerationProgressed() as event:
            written.progress.CopyFrom(_progress_to_proto(event))
        case ReflectionCompleted(reflection):
            written.reflection.CopyFrom(copy_fields(pb.Reflection, reflection))
        case DuplicateDropped(test, of) as event:
            test_message = case_to_proto(test)
            written.duplicate.CopyFrom(
                copy_fields(pb.TestGenEvent.Duplicate, event, test=test_message, duplicate_of=of),
            )
        case TestRan() as event:
            written.test_ran.CopyFrom(_test_ran_to_proto(event))
        case QualityMeasured(quality):
            written.measured.CopyFrom(quality_to_proto(quality))
        case GenerationCompleted(stats):
            written.complete.CopyFrom(pb.TestGenEvent.Complete(stats=stats_to_proto(stats)))
        case GenerationFailed(error):
            written.error.CopyFrom(item_error_to_proto(error))
    return written


def rerun_event_to_proto(event: TestRan | QualityMeasured) -> pb.RunTestsResponse:
    """Convert an event of a rerun, without its sequence number."""
    if isinstance(event, TestRan):
        return pb.RunTestsResponse(test_ran=_test_ran_to_proto(event))
    return pb.RunTestsResponse(measured=quality_to_proto(event.quality))


def _started_to_proto(event: GenerationStarted) -> pb.TestGenEvent.Start:
    return copy_fields(
        pb.TestGenEvent.Start,
        event.order,
        task_description=event.order.description,
        fenced=event.is_fenced,
        suggested_profile=event.suggested_profile,
    )


def _progress_to_proto(event: GenerationProgressed) -> pb.TestGenEvent.Progress:
    return copy_fields(
        pb.TestGenEvent.Progress,
        event,
        current_category=event.category,
        round_number=event.round,
    )


def _test_ran_to_proto(event: TestRan) -> pb.TestGenEvent.TestRan:
    return pb.TestGenEvent.TestRan(test_id=event.test_id, verdict=verdict_to_proto(event.verdict))
