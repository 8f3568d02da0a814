"""A gRPC service as a subject: its requests, its measurements, its baseline tests, and exported tests."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import InvalidArgumentError
from peripety.testgen.export.suite import ExportedCommand, ExportedSubject, TestFormat, render
from peripety.testgen.pb.responses import body_from_proto, case_to_proto
from peripety.testgen.subjects.grpc_service.subject import GrpcSubject, RunningGrpcService
from peripety.testgen.subjects.http_service.document import to_request
from peripety.testgen.subjects.schema_values import valid_values
from peripety.testgen.subjects.subject import SubjectKind
from peripety.testgen.types import TestCase, TestStatus
from support.testgen.suites import run_pytest, suite_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peripety.testgen.subjects.subject import RunResult

PROGRAM = Path(__file__).parents[4] / "support" / "testgen" / "grpc_notes.py.txt"
SERVICE = "/notes.v1.NoteService"
COMMAND = (sys.executable, "server.py", "50051")
NEW = '{"title": "abc", "stars": 5, "color": "BLUE"}'


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("notes")
    shutil.copy(PROGRAM, place / "server.py")
    return place


@contextmanager
def started(directory: Path, defect: str) -> Iterator[str]:
    """Run the service without a fence, and yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = subprocess.Popen([sys.executable, "server.py", str(port), defect], cwd=directory)
    try:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert running.poll() is None
                time.sleep(0.05)
        yield f"127.0.0.1:{port}"
    finally:
        running.kill()
        running.wait()


@pytest.fixture(scope="module")
def address(directory: Path) -> Iterator[str]:
    with started(directory, "crash") as place:
        yield place


@pytest.fixture(scope="module")
def running(address: str) -> RunningGrpcService:
    return RunningGrpcService(address, 20.0)


def request(method: str, body: str, **members: Any) -> dict[str, Any]:
    return to_request("POST", f"{SERVICE}/{method}", body=body, **members)


def case(*requests: dict[str, Any], source: str = "") -> TestCase:
    return TestCase("t1", "correctness", "requests", body={"requests": [*requests]}, source=source)


def run(subject: GrpcSubject, *requests: dict[str, Any]) -> RunResult:
    test = case(*requests)
    assert not subject.problems(test.body or {})
    return subject.run(test)


def test_requests_refer_to_earlier_responses(running: RunningGrpcService) -> None:
    created = request("CreateNote", NEW, status="OK", response='{"title": "abc", "color": "BLUE"}')
    body = '{"note_id": "{$response.1.body#/id}"}'
    read = request("GetNote", body, status="OK", response="{$response.1.body}")
    watched = request("WatchNotes", '{"limit": 1}', status="OK")
    result = run(running, created, read, watched)
    assert (result.status, result.findings) == (TestStatus.PASSED, ())
    assert result.covered >= {
        "operation:/notes.v1.NoteService/CreateNote",
        "response:/notes.v1.NoteService/WatchNotes/OK",
    }
    assert [line.partition("  ")[2][:1] for line in result.observed.splitlines()] == ["{", "{", "["]


def test_expectations_that_are_not_met_are_told(running: RunningGrpcService) -> None:
    unknown = '{"note_id": "none"}'
    met = run(running, request("GetNote", unknown, status="NOT_FOUND", response="no such note"))
    assert met.status is TestStatus.PASSED
    unmet = run(running, request("GetNote", unknown, status="OK", response="{}"))
    assert [one.path for one in unmet.findings] == ["/requests/0/status", "/requests/0/response"]
    assert unmet.findings[0].message == "the status is NOT_FOUND; expected OK"
    wrong = run(running, request("GetNote", '{"no_such_field": 1}', status="OK"))
    assert "the request is not a notes.v1.NoteRequest" in wrong.findings[-1].message


def test_an_error_of_the_server_fails_a_test_that_does_not_require_it(running: RunningGrpcService) -> None:
    body = '{"title": "a", "stars": 6}'
    result = run(running, request("CreateNote", body))
    assert [one.code for one in result.findings] == ["DOCUMENT_VIOLATED"]
    assert "notes.v1.NoteService/CreateNote answers UNKNOWN" in result.findings[0].message
    assert run(running, request("CreateNote", body, status="UNKNOWN")).status is TestStatus.PASSED


@pytest.mark.parametrize(
    ("members", "place"),
    [({"status": "404"}, "/requests/0/status"), ({"status": "NO_SUCH_STATUS"}, "/requests/0/status")],
)
def test_a_status_is_one_of_grpc(running: RunningGrpcService, members: dict[str, Any], place: str) -> None:
    problems = running.problems({"requests": [request("GetNote", "{}", **members)]})
    assert [one.path for one in problems] == [place]
    assert not running.problems({"requests": [request("GetNote", "{}", status="NOT_FOUND")]})
    assert [one.code for one in running.soundness(case(request("GetNote", "{}")))] == ["STUB"]


def test_reflection_gives_the_methods_and_their_messages(running: RunningGrpcService) -> None:
    methods = {one["path"].rpartition("/")[2]: one for one in running.material["grpc"]["methods"]}
    assert [*methods] == ["CreateNote", "GetNote", "DeleteNote", "ListNotes", "WatchNotes"]
    values = valid_values(methods["CreateNote"]["request"])
    assert values[0] == {"title": "a", "stars": 1, "color": "RED"}
    assert {"title": "a", "stars": -(2**31), "color": "RED"} in values
    assert methods["WatchNotes"]["response"]["type"] == "array"


def test_a_service_without_reflection_is_refused() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{silent.getsockname()[1]}"
        for bad in (place, "nowhere"):
            with pytest.raises(InvalidArgumentError) as refused:
                RunningGrpcService(bad, 2.0)
            assert refused.value.code == "BAD_GRPC_SERVICE"


@pytest.mark.slow(reason="runs pytest")
def test_an_exported_module_uses_the_address_of_the_environment(
    directory: Path, address: str, tmp_path: Path
) -> None:
    command = ExportedCommand(COMMAND, str(directory), grpc=True, port=50051)
    tested = ExportedSubject(SubjectKind.COMMAND, command=command)
    suite = suite_of([case(request("GetNote", '{"note_id": "x"}', status="NOT_FOUND"))], tested)
    module = tmp_path / "test_notes.py"
    module.write_bytes(b"".join(render(suite, TestFormat.PYTEST, directory=str(tmp_path)).parts))
    text = module.read_text()
    assert "SUBJECT = checking.grpc_service(" in text
    assert 'address=os.environ.get("ADDRESS", "")' in text
    assert [*run_pytest(module, ADDRESS=address).values()] == ["passed"]


def test_a_body_comes_back_as_it_was() -> None:
    test = case(request("CreateNote", NEW, status="OK", response="{}"), request("GetNote", "{}"))
    assert body_from_proto(case_to_proto(test), ".test") == test.body


@pytest.mark.slow(reason="starts a service behind the fence for each mutant")
def test_a_service_in_python_is_measured(directory: Path) -> None:
    subject = GrpcSubject(50051, COMMAND, working_directory=directory, timeout_seconds=60.0)
    test = case(request("GetNote", '{"note_id": "x"}', status="NOT_FOUND"))
    result = subject.run(test)
    assert (result.status, result.findings) == (TestStatus.PASSED, ())
    assert any(target.startswith("line:/server.py/") for target in result.covered)
    mutants = [one.mutant_id for one in subject.mutants if b"not in NOTES" in (one.before or b"")]
    assert mutants
    assert not subject.unmeasured_lines
    assert subject.kills(test, mutants) == {*mutants}


@pytest.mark.parametrize(
    ("defect", "name", "law"),
    [
        ("crash", "createnote_no_server_error", "no error of the server"),
        ("forget", "getnote_created_can_be_read", "can be read by GetNote"),
        ("keep", "deletenote_deleted_is_gone", "GetNote answers NOT_FOUND"),
    ],
)
def test_a_law_that_is_broken_is_the_first_test(directory: Path, defect: str, name: str, law: str) -> None:
    with started(directory, defect) as place:
        subject = RunningGrpcService(place, 20.0)
        first = next(iter(subject.baseline_tests()))
        assert name[:30] in first.name
        assert law in first.source
        test = TestCase("t", "correctness", first.input, body=first.body, source=first.source)
        assert subject.run(test).status is TestStatus.FAILED


def test_other_tests_try_boundaries_missing_fields_and_unknown_ids(running: RunningGrpcService) -> None:
    drafts = [*running.baseline_tests()]
    requests = [one for draft in drafts for one in (draft.body or {})["requests"]]
    sent = {(one["path"].rpartition("/")[2], one["body"], one["status"]) for one in requests}
    assert ("CreateNote", '{"stars": 1, "color": "RED"}', "INVALID_ARGUMENT") in sent
    assert ("GetNote", '{"note_id": "no-such-id"}', "NOT_FOUND") in sent
    assert ("ListNotes", '{"limit": -2147483648}', "INVALID_ARGUMENT") in sent
    assert any("has no side effects" in draft.source for draft in drafts)
