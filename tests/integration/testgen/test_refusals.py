"""Invalid requests of runs are rejected by name, and secrets are not disclosed."""

from __future__ import annotations

import logging
import sqlite3
import sys
from typing import TYPE_CHECKING, Any

import pytest

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.policy.v1 import policy_pb2 as policy
from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from support.engine.policies import policy_document, rule
from support.servers.apps import config_for
from support.testgen.fake_run import always, kinds, serving_runs, written

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.testgen.fake_run import TestRuns


POLICY = pb.Subject(policy=policy.PolicySource(document=policy_document(rules=[rule()])))
MISSING = "1b671a64-40d5-491e-99b0-da01ff1f3341"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[TestRuns]:
    """A server that runs commands."""
    async with serving_runs(config_for(tmp_path, testgen_commands=True), always()) as client:
        yield client


def config(**fields: Any) -> dict[str, Any]:
    return {"config": pb.TestGenConfig(**fields)}


def files(**fields: Any) -> dict[str, Any]:
    return {"environment": pb.EnvironmentInfo(files=[pb.FilePreview(**{"path": "a", **fields})])}


def command(**fields: Any) -> dict[str, Any]:
    return {"subject": pb.Subject(command=pb.CommandSubject(**{"argv": ["true"], **fields}))}


def custom(*categories: pb.Category) -> dict[str, Any]:
    return {"context": pb.TASK_CONTEXT_CUSTOM, "categories": categories}


NEGATIVE = pb.TestGenConfig()
NEGATIVE.max_total_time.FromSeconds(-1)
RANGES = [pb.LineRange(first=1, last=1), pb.LineRange(first=2, last=1)]
CHANGES = pb.SubjectChanges(revision="r", files=[pb.ChangedFile(path="a.py", lines=RANGES)])
LATE = pb.CommandSubject(argv=["true"])
LATE.timeout.FromSeconds(301)


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"request_id": "1"}, "request_id"),
        ({"task_description": " \n"}, "task_description"),
        ({"task_description": "x" * 102_401}, "task_description"),
        ({"task_id": "x" * 257}, "task_id"),
        ({"task_id": "a\0"}, "task_id"),
        ({"model": "x" * 257}, "model"),
        ({"context": 99}, "context"),
        ({"categories": [pb.Category(name="a")]}, "categories"),
        (custom(), "categories"),
        (custom(pb.Category(name="Not Snake")), "categories[0].name"),
        (custom(pb.Category(name="a", description="x" * 10_241)), "categories[0].description"),
        (config(min_tests_per_category=-1), "config.min_tests_per_category"),
        (config(target_tests_per_category=0), "config.target_tests_per_category"),
        (config(max_rounds_per_category=0), "config.max_rounds_per_category"),
        (config(min_comprehensiveness_score=11), "config.min_comprehensiveness_score"),
        (config(max_global_refinement_rounds=-1), "config.max_global_refinement_rounds"),
        (config(min_total_tests=1_001), "config.min_total_tests"),
        (config(target_total_tests=0), "config.target_total_tests"),
        (config(max_total_rounds=0), "config.max_total_rounds"),
        (config(max_total_tokens=0), "config.max_total_tokens"),
        ({"config": NEGATIVE}, "config.max_total_time"),
        ({"budget": common.Budget(max_calls=-1)}, "budget.max_calls"),
        ({"environment": pb.EnvironmentInfo(cpu_count=-1)}, "environment.cpu_count"),
        ({"environment": pb.EnvironmentInfo(platform="x" * 5_000)}, "environment.platform"),
        ({"environment": pb.EnvironmentInfo(languages=["x"] * 1_001)}, "environment.languages"),
        ({"environment": pb.EnvironmentInfo(files=[pb.FilePreview(path="a")] * 101)}, "environment.files"),
        (files(path=""), "environment.files[0].path"),
        (files(size_bytes=-1), "environment.files[0].size_bytes"),
        (files(preview="x" * 16_385), "environment.files[0].preview"),
        (files(structure=["x" * 5_000]), "environment.files[0].structure[0]"),
        ({"subject": pb.Subject()}, "subject"),
        ({"subject": pb.Subject(spec=b"")}, "subject.spec"),
        ({"subject": pb.Subject(spec=b"x" * (2**20 + 1))}, "subject.spec"),
        ({"subject": pb.Subject(scenario_id="")}, "subject.scenario_id"),
        ({"subject": pb.Subject(policy=policy.PolicySource())}, "subject.policy"),
        ({"subject": pb.Subject(policy=policy.PolicySource(document=b""))}, "subject.policy.document"),
        ({"subject": pb.Subject(policy=policy.PolicySource(policy_id=""))}, "subject.policy.policy_id"),
        (command(argv=[]), "subject.command.argv"),
        (command(argv=["a\0"]), "subject.command.argv[0]"),
        (command(argv=["x"] * 101), "subject.command.argv"),
        (command(argv=["x" * 30_000] * 20), "subject.command"),
        (command(environment={"1": "a"}), "subject.command.environment[1]"),
        (command(environment={"A": "a\0"}), "subject.command.environment[A]"),
        (command(memory_bytes=1), "subject.command.memory_bytes"),
        ({"subject": pb.Subject(command=LATE)}, "subject.command.timeout"),
        (command(grpc=True, openapi="a"), "subject.command.grpc"),
        (command(grpc=True, function="a:b"), "subject.command.function"),
        (command(changes=pb.SubjectChanges()), "subject.command.changes.revision"),
        (command(changes=CHANGES), "subject.command.changes.files[0].lines[1]"),
    ],
)
async def test_a_wrong_field_of_an_order_is_named(
    client: TestRuns,
    fields: dict[str, Any],
    place: str,
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await client.generate(**fields)
    assert [violation.field for violation in caught.value.violations] == [place]
    assert place in caught.value.message
    assert not (await client.page()).runs


def given(**fields: Any) -> pb.GeneratedTest:
    return pb.GeneratedTest(**{"test_id": "a", "input": "a", **fields})


def played(**fields: Any) -> pb.GeneratedTest:
    return given(scenario=pb.ScenarioTest(**fields))


EMPTY_PARAM = engine.ActionCall(action_id="a", params={"p": engine.ParamValue()})


@pytest.mark.slow_after(3, reason="each case starts a service")
@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"tests": []}, "tests"),
        ({"tests": [given()] * 1_001}, "tests"),
        ({"tests": [given(), given()]}, "tests[1].test_id"),
        ({"tests": [given(test_id="")]}, "tests[0].test_id"),
        ({"tests": [given(confidence=1.5)]}, "tests[0].confidence"),
        ({"tests": [given(input="x" * 102_401)]}, "tests[0].input"),
        ({"tests": [played(seed=-1)]}, "tests[0].scenario.seed"),
        ({"tests": [played(steps=[pb.ScenarioStep(expect=b"{")])]}, "tests[0].scenario.steps[0].expect"),
        (
            {"tests": [played(steps=[pb.ScenarioStep(actions=[EMPTY_PARAM])])]},
            "tests[0].scenario.steps[0].actions[0].params[p]",
        ),
        ({"tests": [given(policy=policy.PolicyScenario())]}, "tests[0].policy.request.server_name"),
        ({"tests": [given(command=pb.CommandTest(stdin=b"\xff"))]}, "tests[0].command.stdin"),
        ({"tests": [given()], "subject": None}, "subject"),
        ({"tests": [given()], "repetitions": 101}, "repetitions"),
        ({"tests": [given()], "repetitions": -1}, "repetitions"),
        ({"tests": [given()], "after_sequence": -1}, "after_sequence"),
        ({"tests": [given()], "request_id": ""}, "request_id"),
        ({"tests": [given()], "run_id": MISSING}, "tests"),
        ({"run_id": MISSING}, "subject"),
    ],
)
async def test_a_wrong_field_of_tests_to_run_is_named(
    client: TestRuns,
    fields: dict[str, Any],
    place: str,
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await client.run(**{"subject": POLICY, **fields})
    assert [violation.field for violation in caught.value.violations] == [place]


async def test_what_is_not_there_and_what_cannot_be_now_is_said(client: TestRuns) -> None:
    for call in (
        client.get(MISSING),
        client.resume(MISSING),
        client.run(run_id=MISSING),
        client.cancel(MISSING),
        client.delete(MISSING),
        client.export(MISSING, pb.TEST_FORMAT_JSON),
    ):
        with pytest.raises(NotFoundError, match="run_id"):
            await call
    run_id = (await client.generate(**config(max_total_rounds=1)))[0].run_id
    with pytest.raises(InvalidArgumentError, match="after_sequence"):
        await client.resume(run_id, 99)
    with pytest.raises(InvalidArgumentError, match="format"):
        await client.export(run_id, pb.TEST_FORMAT_UNSPECIFIED)
    with pytest.raises(FailedPreconditionError, match="subject"):
        await client.run(run_id=run_id)
    with pytest.raises(InvalidArgumentError, match="page_token"):
        await client.page(page_token="x")  # noqa: S106 - none of those
    for call in (client.get(""), client.resume(""), client.cancel(""), client.delete("")):
        with pytest.raises(InvalidArgumentError, match="run_id"):
            await call


async def test_a_document_with_errors_is_refused_with_what_is_wrong(client: TestRuns) -> None:
    for subject in (
        pb.Subject(spec=b"{}"),
        pb.Subject(policy=policy.PolicySource(document=policy_document(rules=[rule(then="perhaps")]))),
    ):
        with pytest.raises(InvalidArgumentError) as caught:
            await client.generate(subject=subject)
        assert caught.value.violations


async def test_commands_are_refused_unless_the_server_allows_them(tmp_path: Path) -> None:
    async with serving_runs(config_for(tmp_path), always()) as client:
        with pytest.raises(FailedPreconditionError, match="PERIPETY_TESTGEN_COMMANDS") as caught:
            await client.generate(**command())
        with pytest.raises(FailedPreconditionError, match="PERIPETY_TESTGEN_COMMANDS"):
            await client.run(tests=[given()], **command())
        assert not (await client.page()).runs
    assert caught.value.code == "COMMANDS_NOT_ALLOWED"


async def test_stored_documents_of_other_processes_need_an_address(tmp_path: Path) -> None:
    async with serving_runs(config_for(tmp_path), always()) as client:
        with pytest.raises(FailedPreconditionError, match="PERIPETY_SCENARIOS_ADDRESS"):
            await client.generate(subject=pb.Subject(scenario_id="a"))
        with pytest.raises(FailedPreconditionError, match="PERIPETY_POLICIES_ADDRESS"):
            await client.generate(subject=pb.Subject(policy=policy.PolicySource(policy_id="a")))


@pytest.mark.slow(reason="runs commands with many environments")
async def test_what_the_variables_of_a_command_hold_is_told_to_nobody(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "hunter2-of-the-service"  # noqa: S105 - a made-up one
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "tell.py").write_text(
        "import os, sys\nprint(os.environ['API_TOKEN'])\nprint(os.environ, file=sys.stderr)\n",
    )
    subject = pb.Subject(
        command=pb.CommandSubject(
            argv=[sys.executable, "tell.py"],
            working_directory=str(tmp_path / "work"),
            environment={"API_TOKEN": secret},
        ),
    )
    author = always([written("one", "another", body={"arguments": ["x"], "stdin": "", "exit_code": 0})])
    async with serving_runs(config_for(tmp_path, testgen_commands=True), author) as client:
        events = await client.generate(subject=subject, config=pb.TestGenConfig(max_total_rounds=1))
        run_id = events[0].run_id
        told = await client.run(run_id=run_id, mutation=True)
        run = await client.get(run_id)
        formats = [one for one in pb.TestFormat.values() if one != pb.TEST_FORMAT_UNSPECIFIED]
        files = [b"".join(await client.export(run_id, one)) for one in formats]
    assert kinds(events)[-1] == "complete"
    (wrong,) = [test for test in run.tests if not test.combinatorial]
    assert "$API_TOKEN" in wrong.verdict.observed
    assert any("$API_TOKEN" in test.expected_output for test in run.tests if test.combinatorial)
    asked = [repr(question.request) for question in author.questions]
    assert any("tell.py" in text for text in asked)
    records = [str(vars(record)) for record in caplog.records]
    for text in (*map(str, events), *map(str, told), str(run), *map(repr, files), *asked, *records):
        assert secret not in text
    with sqlite3.connect(tmp_path / "test.db") as database:
        (bodies,) = database.execute("SELECT group_concat(body) FROM testgen_events").fetchone()
    assert secret not in bodies
