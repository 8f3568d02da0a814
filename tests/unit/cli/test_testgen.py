"""`peripety testgen` in front of a service that answers from a script."""

from __future__ import annotations

import json
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from typer.testing import CliRunner, Result

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.api.testgen.v1.testgen_pb2_grpc import (
    TestGenServiceServicer,
    add_TestGenServiceServicer_to_server,
)
from peripety.cli.app import app
from peripety.cli.render.testgen import TestProgressView
from peripety.errors import InvalidArgumentError, PeripetyError
from support.engine.policies import policy_document
from support.engine.specs import document

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


TEST = pb.GeneratedTest(test_id="t1", category="one", input="i", command=pb.CommandTest(stdin=b"5\n"))
EVENTS = [
    pb.TestGenEvent(run_id="run_1", sequence=1, start=pb.TestGenEvent.Start(task_description="alpha")),
    pb.TestGenEvent(run_id="run_1", sequence=2, test=TEST),
    pb.TestGenEvent(
        run_id="run_1",
        sequence=3,
        complete=pb.TestGenEvent.Complete(stats=pb.TestRunStats(total_tests=1, total_rounds=1)),
    ),
]


class Script(TestGenServiceServicer):
    """Fake service that answers from a script and records its requests.

    Attributes:
        requests: the requests, in order.
        breaks_after: sequence after which the stream breaks, and how; None for never.
        waits: True if the stream pauses after the first event until the caller disconnects.
        last: the last event of a run.
        statuses: outcomes of the tests that are run.
        seconds: remaining time of the caller's `RunTests` request.
    """

    __test__ = False

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.breaks_after: tuple[int, grpc.StatusCode] | None = None
        self.waits = False
        self.last = EVENTS[-1]
        self.statuses = [pb.TEST_STATUS_PASSED]
        self.seconds = 0.0

    def GenerateTests(  # noqa: N802 - the contract\'s name
        self,
        request: pb.GenerateTestsRequest,
        context: Any,
    ) -> Iterator[pb.GenerateTestsResponse]:
        self.requests.append(request)
        for event in self._events(0, context):
            yield pb.GenerateTestsResponse(event=event)

    def ResumeTests(self, request: pb.ResumeTestsRequest, context: Any) -> Iterator[pb.ResumeTestsResponse]:  # noqa: N802
        self.requests.append(request)
        self.breaks_after = None
        for event in self._events(request.after_sequence, context):
            yield pb.ResumeTestsResponse(event=event)

    def RunTests(self, request: pb.RunTestsRequest, context: Any) -> Iterator[pb.RunTestsResponse]:  # noqa: N802
        self.seconds = context.time_remaining()
        self.requests.append(request)
        for status in self.statuses:
            ran = pb.TestGenEvent.TestRan(test_id="t1", verdict=pb.TestVerdict(status=status))
            yield pb.RunTestsResponse(test_ran=ran)
        yield pb.RunTestsResponse(measured=pb.Quality(counting_tests=1))

    def GetTestRun(self, request: pb.GetTestRunRequest, _context: Any) -> pb.GetTestRunResponse:  # noqa: N802
        self.requests.append(request)
        reflection = pb.Reflection(category="one", text="nothing is missing")
        run = pb.TestRun(run_id="run_1", task_description="alpha", tests=[TEST], reflections=[reflection])
        return pb.GetTestRunResponse(run=run)

    def ListTestRuns(self, request: pb.ListTestRunsRequest, _context: Any) -> pb.ListTestRunsResponse:  # noqa: N802
        self.requests.append(request)
        ended = pb.TestRunSummary(run_id="run_1", task_id="task", stopped_by=pb.STOPPED_BY_SATISFIED)
        going_on = pb.TestRunSummary(
            run_id="run_2",
            phase=pb.TEST_GEN_PHASE_CATEGORY_GENERATION,
            total_tests=7,
        )
        return pb.ListTestRunsResponse(runs=[ended, going_on])

    def CancelTestRun(self, request: pb.CancelTestRunRequest, _context: Any) -> pb.CancelTestRunResponse:  # noqa: N802
        self.requests.append(request)
        return pb.CancelTestRunResponse(run=pb.TestRun(run_id="run_1", tests=[TEST]))

    def DeleteTestRun(self, request: pb.DeleteTestRunRequest, _context: Any) -> pb.DeleteTestRunResponse:  # noqa: N802
        self.requests.append(request)
        return pb.DeleteTestRunResponse()

    def ExportTests(self, request: pb.ExportTestsRequest, _context: Any) -> Iterator[pb.ExportTestsResponse]:  # noqa: N802
        self.requests.append(request)
        yield pb.ExportTestsResponse(sequence=1, chunk=b"one ")
        yield pb.ExportTestsResponse(sequence=2, chunk=b"two", written_tests=2, known_tests=1)

    def _events(self, after: int, context: Any) -> Iterator[pb.TestGenEvent]:
        for event in [*EVENTS[:-1], self.last]:
            if self.breaks_after and event.sequence > self.breaks_after[0]:
                context.abort(self.breaks_after[1], "so it is")
            if self.waits and event.sequence > 1:
                left = threading.Event()
                context.add_callback(left.set)
                left.wait()
            if event.sequence > after:
                yield event


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def server(script: Script) -> Iterator[str]:
    with ThreadPoolExecutor(4) as pool:
        running = grpc.server(pool)
        add_TestGenServiceServicer_to_server(script, running)
        port = running.add_insecure_port("127.0.0.1:0")
        running.start()
        yield f"127.0.0.1:{port}"
        running.stop(None).wait()


def run(server: str, *arguments: str, given: str | None = None) -> Result:
    command, *others = arguments
    return CliRunner().invoke(app, ["testgen", command, "--server", server, *others], input=given)


def test_a_run_is_asked_for_as_the_options_say_and_told(server: str, script: Script) -> None:
    options = [
        "--max-tokens",
        "9000",
        "--max-time",
        "2.5",
        "--max-rounds",
        "3",
        "--target",
        "4",
        "--no-baseline",
    ]
    more = [
        "--parallel",
        "--model",
        "a/b",
        "--task-id",
        "task",
        "--category",
        "one=about it",
        "--category",
        "two",
    ]
    done = run(server, "generate", "what it does", *options, *more)
    assert done.exit_code == 0, done.output
    assert "● t1 one" in done.stdout
    assert "1 test in 1 round" in done.stdout
    (asked,) = script.requests
    assert asked.request_id
    assert (asked.task_description, asked.task_id, asked.model) == ("what it does", "task", "a/b")
    config = asked.config
    assert (config.max_total_tokens, config.max_total_rounds, config.target_total_tests) == (9_000, 3, 4)
    assert config.max_total_time.ToTimedelta().total_seconds() == 2.5
    assert (config.parallel_categories, config.combinatorial_floor) == (True, False)
    assert config.HasField("combinatorial_floor")
    assert asked.context == pb.TASK_CONTEXT_CUSTOM
    assert [(one.name, one.description) for one in asked.categories] == [("one", "about it"), ("two", "")]


def test_what_is_not_said_is_left_to_the_server(server: str, script: Script) -> None:
    run(server, "generate", "-", given="from standard input")
    (asked,) = script.requests
    assert asked.task_description == "from standard input"
    assert asked.config == pb.TestGenConfig()
    assert asked.context == pb.TASK_CONTEXT_PROMPT
    assert not asked.HasField("subject")
    assert not asked.HasField("environment")


def test_each_kind_of_subject_is_named_and_brings_its_context(
    server: str,
    script: Script,
    tmp_path: Path,
) -> None:
    spec, policy, task = tmp_path / "spec.json", tmp_path / "policy.json", tmp_path / "task.md"
    spec.write_bytes(document())
    policy.write_bytes(policy_document())
    task.write_text("run python3; do not use awk", encoding="utf-8")
    (tmp_path / "tool.py").write_text("def act(): ...\n")
    run(server, "generate", "d", "--scenario", str(spec))
    run(server, "generate", "d", "--scenario", f"scn_{'0' * 24}")
    run(server, "generate", "d", "--policy", str(policy))
    run(server, "generate", "d", "--policy", f"pol_{'0' * 24}", "--context", "prompt")
    command = ["--environment", str(tmp_path), "--command", "--", "python3", "tool.py", "--flag"]
    done = run(server, "generate", "--file", str(task), *command)
    assert done.exit_code == 0, done.output
    first, second, third, fourth, fifth = script.requests
    assert (first.subject.spec, first.context) == (document(), pb.TASK_CONTEXT_SCENARIO)
    assert second.subject.scenario_id == f"scn_{'0' * 24}"
    assert (third.subject.policy.document, third.context) == (policy_document(), pb.TASK_CONTEXT_POLICY)
    assert (fourth.subject.policy.policy_id, fourth.context) == (f"pol_{'0' * 24}", pb.TASK_CONTEXT_PROMPT)
    assert [*fifth.subject.command.argv] == ["python3", "tool.py", "--flag"]
    assert fifth.subject.command.working_directory == str(tmp_path)
    assert fifth.context == pb.TASK_CONTEXT_BENCHMARK
    assert fifth.task_description == "run python3; do not use awk"
    assert [*fifth.environment.prohibited_tools] == ["awk"]
    assert "tool.py" in {file.path for file in fifth.environment.files}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "the description is missing"),
        (["a", "--file", "b"], "unexpected argument"),
        (["a", "b"], "unexpected argument b"),
        (
            ["a", "--scenario", "s", "--policy", "p"],
            "--scenario, --policy, --command and --function exclude each other",
        ),
        (["a", "--command"], "the command is missing: add it after --"),
        (["a", "--grpc"], "--grpc needs the command that starts the service"),
        (["a", "--diff", "HEAD"], "--diff needs --environment DIR"),
        (["a", "--diff", "HEAD", "--command", "--", "cat"], "--diff needs --environment DIR"),
        (["a", "--format", "json"], "--format needs -o"),
        (["a", "-o", "tests.txt"], "add --format"),
        (["a", "--target", "9999999999"], "1000000000"),
        (["a", "--max-rounds", "9999999999"], "1000000000"),
        (["a", "-o", "no/such/folder/tests.py"], "choose a file in an existing folder"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_anybody_is_asked(
    server: str,
    script: Script,
    arguments: list[str],
    told: str,
) -> None:
    done = run(server, "generate", *arguments)
    assert done.exit_code == 2
    assert told in " ".join(done.output.split())
    assert not script.requests


def test_a_description_that_cannot_be_read_is_refused(server: str, tmp_path: Path) -> None:
    (tmp_path / "task").write_bytes(b"\xff")
    for name in ("task", "none"):
        refused = run(server, "generate", "--file", str(tmp_path / name))
        assert isinstance(refused.exception, InvalidArgumentError), refused.output


def test_a_description_that_is_too_long_is_called_so_even_where_it_is_cut_in_a_character(
    server: str,
    tmp_path: Path,
) -> None:
    (tmp_path / "task").write_text("é" * 2**20, encoding="utf-8")
    refused = run(server, "generate", "--file", str(tmp_path / "task"))
    assert isinstance(refused.exception, InvalidArgumentError), refused.output
    assert "is longer than 1 MiB" in refused.exception.message


def test_events_are_lines_of_json(server: str) -> None:
    done = run(server, "generate", "d", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["sequence"] for line in lines] == [1, 2, 3]
    assert lines[1]["test"]["command"] == {"stdin": "5\n"}


def test_tests_are_written_to_a_file_by_its_name(server: str, script: Script, tmp_path: Path) -> None:
    forms = {"a.py": "PYTEST", "b.json": "JSON", "c.xml": "JUNIT", "d.sarif": "SARIF", "e.md": "MARKDOWN"}
    for name, form in forms.items():
        out = tmp_path / name
        assert run(server, "generate", "d", "-o", str(out)).exit_code == 0
        assert out.read_bytes() == b"one two"
        assert script.requests[-1].run_id == "run_1"
        assert script.requests[-1].format == pb.TestFormat.Value(f"TEST_FORMAT_{form}")
    printed = run(server, "export", "run_1", "--format", "json", "--counting-only")
    assert printed.stdout == "one two"
    assert script.requests[-1].counting_only
    assert not script.requests[-1].with_redundant
    run(server, "export", "run_1", "-o", str(tmp_path / "a.py"), "--with-redundant")
    assert script.requests[-1].with_redundant
    assert run(server, "export", "run_1").exit_code == 2


def test_tests_are_added_to_an_existing_module(server: str, script: Script, tmp_path: Path) -> None:
    out = tmp_path / "test_own.py"
    out.write_bytes(b"own ")
    done = run(server, "export", "run_1", "-o", str(out), "--append")
    assert done.exit_code == 0, done.output
    assert script.requests[-1].append_to == b"own "
    assert not script.requests[-1].directory, "a path of this machine means nothing on a server"
    new = tmp_path / "test_new.py"
    assert run(server, "generate", "d", "-o", str(new), "--append").exit_code == 0
    assert (script.requests[-1].append_to, new.read_bytes()) == (b"", b"one two")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("export", "run_1", "-o", "a.json", "--append"), "--append needs -o FILE.py"),
        (("export", "run_1", "--format", "pytest", "--append"), "--append needs -o FILE.py"),
        (("generate", "d", "--append"), "--append needs -o FILE"),
    ],
)
def test_tests_are_added_to_pytest_modules_only(server: str, words: tuple[str, ...], told: str) -> None:
    done = run(server, *words)
    assert done.exit_code == 2
    assert told in " ".join(done.output.split())


def test_a_call_that_runs_out_of_time_is_followed_on(server: str, script: Script) -> None:
    script.breaks_after = (2, grpc.StatusCode.DEADLINE_EXCEEDED)
    done = run(server, "generate", "d", "--json")
    assert done.exit_code == 0, done.output
    assert [json.loads(line)["sequence"] for line in done.stdout.splitlines()] == [1, 2, 3]
    assert script.requests[-1] == pb.ResumeTestsRequest(run_id="run_1", after_sequence=2)


def test_who_loses_the_server_is_told_how_to_go_on(server: str, script: Script) -> None:
    script.breaks_after = (1, grpc.StatusCode.INTERNAL)
    done = run(server, "generate", "d")
    assert isinstance(done.exception, PeripetyError)
    assert f"continue with: peripety testgen resume run_1 --server {server}" in done.stderr


def test_who_cannot_write_the_tests_is_told_how_to_come_to_them(server: str) -> None:
    done = run(server, "generate", "d", "-o", "/dev/full", "--format", "json")
    assert done.exit_code == 2
    assert "cannot write /dev/full" in done.stderr
    assert "the tests made so far are stored; continue with: peripety testgen resume run_1" in done.stderr


def test_what_a_server_calls_its_runs_and_errors_steers_no_terminal_and_no_shell(
    server: str,
    script: Script,
) -> None:
    error = common.ItemError(reason="SO\x1b[2J", message="so\x1b[2J")
    script.last = pb.TestGenEvent(run_id="a; b\x1b[2J\n", sequence=3, error=error)
    done = run(server, "generate", "d")
    assert "\x1b" not in done.output
    assert "peripety testgen show 'a; b\N{REPLACEMENT CHARACTER}[2J' --server" in done.stderr


def test_ctrl_c_leaves_a_run_that_can_be_gone_on_with(
    server: str,
    script: Script,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script.waits = True
    with monkeypatch.context() as patched:
        patched.setattr(TestProgressView, "show", lambda _story, _event: signal.raise_signal(signal.SIGINT))
        done = run(server, "generate", "d")
    assert done.exit_code == 130
    assert f"continue with: peripety testgen resume run_1 --server {server}" in done.stderr
    script.waits = False
    assert "1 test in 1 round" in run(server, "resume", "run_1").stdout


def test_a_run_that_fails_says_why(server: str, script: Script) -> None:
    error = common.ItemError(reason="SO_IT_IS", message="so it is")
    script.last = pb.TestGenEvent(run_id="run_1", sequence=3, error=error)
    done = run(server, "generate", "d")
    assert done.exit_code == 1
    assert "error: so it is (SO_IT_IS)" in done.stderr
    assert "see: peripety testgen show run_1" in done.stderr


def test_a_test_that_fails_makes_the_exit_code_1(server: str, script: Script) -> None:
    passing = run(server, "run", "run_1", "--repeat", "2", "--mutation")
    assert (passing.exit_code, passing.stdout.splitlines()[-1]) == (0, "1 passed, 0 failed")
    asked = script.requests[-1]
    assert (asked.run_id, asked.repetitions, asked.mutation, len(asked.tests)) == ("run_1", 2, True, 0)
    assert script.seconds > 3_600
    script.statuses = [pb.TEST_STATUS_PASSED, pb.TEST_STATUS_UNSTABLE]
    failing = run(server, "run", "run_1")
    assert (failing.exit_code, failing.stdout.splitlines()[-1]) == (1, "1 passed, 1 failed")
    assert run(server, "run", "run_1", "--json").exit_code == 1


def test_tests_of_a_run_are_run_on_another_subject(server: str, script: Script) -> None:
    done = run(server, "run", "run_1", "--command", "--", "python3", "tool.py")
    assert done.exit_code == 0, done.output
    asked = script.requests[-1]
    assert (asked.run_id, [*asked.subject.command.argv]) == ("", ["python3", "tool.py"])
    assert [test.test_id for test in asked.tests] == ["t1"]
    assert run(server, "run", "run_1", "--", "python3").exit_code == 2


def test_runs_are_listed_shown_stopped_and_deleted(server: str, script: Script) -> None:
    listed = run(server, "list", "--task-id", "task", "--count", "3").stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["run", "run_1", "run_2"]
    assert "ended: the tests were complete" in listed[1]
    assert "category generation" in listed[2]
    assert (script.requests[-1].task_id, script.requests[-1].page_size) == ("task", 3)
    assert json.loads(run(server, "list", "--json").stdout.splitlines()[0])["run_id"] == "run_1"
    shown = run(server, "show", "run_1").stdout
    assert "● t1 one" in shown
    assert "nothing is missing" in shown
    assert json.loads(run(server, "show", "run_1", "--json").stdout)["tests"][0]["test_id"] == "t1"
    assert run(server, "cancel", "run_1").stdout == "run_1 is stopped; 1 test stored\n"
    assert script.requests[-1].request_id
    assert run(server, "delete", "run_1").stdout == "run_1 is deleted\n"
