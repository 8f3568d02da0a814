"""An HTTP service as a subject: its requests, its measurements, and its baseline tests."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import InvalidArgumentError
from peripety.testgen.evaluation.suite import evaluate_test
from peripety.testgen.export.suite import ExportedCommand, ExportedSubject, TestFormat, render
from peripety.testgen.pb.responses import body_from_proto, case_to_proto
from peripety.testgen.subjects.http_service.document import ServiceDocument, to_request
from peripety.testgen.subjects.http_service.subject import ServiceSubject
from peripety.testgen.subjects.subject import SubjectKind
from peripety.testgen.types import TestCase, TestStatus
from support.testgen.suites import run_pytest, suite_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.testgen.subjects.subject import RunResult
    from peripety.testgen.types import DraftTest

PROGRAM = Path(__file__).parents[4] / "support" / "testgen" / "notes.py.txt"
COMMAND = (sys.executable, "server.py", "8080")
NEW = json.dumps({"title": "abc"})


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("notes")
    shutil.copy(PROGRAM, place / "server.py")
    return place


def subject_of(directory: Path, *arguments: str, **options: Any) -> ServiceSubject:
    argv = (*COMMAND, *arguments)
    return ServiceSubject("/openapi.json", 8080, argv, working_directory=directory, **options)


@pytest.fixture(scope="module")
def subject(directory: Path) -> ServiceSubject:
    return subject_of(directory)


def case(*requests: dict[str, Any], source: str = "") -> TestCase:
    return TestCase("t1", "correctness", "requests", body={"requests": [*requests]}, source=source)


def run(subject: ServiceSubject, *requests: dict[str, Any]) -> RunResult:
    test = case(*requests)
    assert not subject.problems(test.body or {})
    return subject.run(test)


def messages(result: RunResult) -> list[str]:
    return [finding.message for finding in result.findings]


def test_requests_refer_to_earlier_responses_and_cover_documented_ones(subject: ServiceSubject) -> None:
    created = to_request("POST", "/notes", body=NEW, status="201", response='{"title": "abc"}')
    read = to_request("GET", "/notes/{$response.1.body#/id}", status="2XX", response="{$response.1.body}")
    result = run(subject, created, read)
    assert (result.status, messages(result)) == (TestStatus.PASSED, [])
    assert result.covered >= {
        "operation:/POST /notes",
        "response:/POST /notes/201",
        "response:/GET /notes/{noteId}/200",
    }
    assert any(target.startswith("line:/server.py/") for target in result.covered)


def test_a_test_tells_each_expectation_that_is_not_met(subject: ServiceSubject) -> None:
    created = to_request("POST", "/notes", body=NEW, status="4XX", response='{"title": "other"}')
    found = run(subject, created, to_request("GET", "/notes/{$response.1.body#/none}")).findings
    assert [one.path for one in found] == ["/requests/0/status", "/requests/0/response", "/requests/1"]
    assert "no response has the part of /notes/{$response.1.body#/none}" in found[-1].message


def test_tests_kill_mutants_of_the_code_that_answers_and_not_of_the_start(subject: ServiceSubject) -> None:
    test = case(to_request("GET", "/notes/7", status="404"))
    killed = subject.kills(test, {mutant.mutant_id for mutant in subject.mutants})
    assert any(
        "404" in (mutant.before or b"").decode() for mutant in subject.mutants if mutant.mutant_id in killed
    )
    assert not any(b"3.1.0" in (mutant.before or b"") for mutant in subject.mutants)


@pytest.mark.parametrize(
    ("defect", "cited"),
    [
        ("limit", "GET /notes /parameters/0 (limit)/maximum"),
        pytest.param(
            "type",
            "POST /notes responses 201, 422",
            marks=pytest.mark.slow(reason="starts the service many times"),
        ),
        pytest.param(
            "kept",
            "law: what DELETE /notes/{noteId} has deleted is gone",
            marks=pytest.mark.slow(reason="starts the service many times"),
        ),
        pytest.param(
            "crash",
            "GET /notes/{noteId} responses 200, 404, 422",
            marks=pytest.mark.slow(reason="starts the service many times"),
        ),
    ],
)
def test_a_defect_fails_a_baseline_test_that_cites_the_document_or_a_law(
    directory: Path, defect: str, cited: str
) -> None:
    buggy, correct = subject_of(directory, defect), subject_of(directory)
    citing = [test for test in _sourced(buggy) if cited in test.source]
    found = next(test for test in citing if _status(buggy, test) is TestStatus.FAILED)
    assert _status(correct, found) is TestStatus.PASSED


def _sourced(subject: ServiceSubject) -> Sequence[DraftTest]:
    return [test for test in subject.baseline_tests() if test.source]


def _status(subject: ServiceSubject, draft: DraftTest) -> TestStatus:
    return subject.run(TestCase("t", "", "", body=draft.body, source=draft.source)).status


@pytest.mark.slow(reason="starts the service many times")
def test_baseline_tests_pass_on_a_correct_service_and_reach_each_documented_response(
    subject: ServiceSubject,
) -> None:
    drafts = [*subject.baseline_tests()]
    results = [
        subject.run(TestCase(str(number), "", "", body=draft.body, source=draft.source))
        for number, draft in enumerate(drafts)
    ]
    assert [messages(one) for one in results if one.status is not TestStatus.PASSED] == []
    responses = {target.target_id for target in subject.targets if target.kind == "response"}
    assert responses <= frozenset().union(*(one.covered for one in results))
    assert {bool(draft.source) for draft in drafts} == {True, False}


def test_a_test_that_requires_nothing_is_a_stub_and_one_that_cannot_be_sent_is_named(
    subject: ServiceSubject,
) -> None:
    assert [one.code for one in subject.soundness(case(to_request("GET", "/notes")))] == ["STUB"]
    assert not subject.soundness(case(to_request("GET", "/notes"), source="notes.json: GET /notes"))
    for body, place in (
        ({"requests": []}, "/requests"),
        ({"requests": [to_request("SEND", "/notes")]}, "/requests/0/method"),
        ({"requests": [to_request("GET", "notes with spaces")]}, "/requests/0/path"),
        ({"requests": [to_request("GET", "/notes", status="4")]}, "/requests/0/status"),
    ):
        assert [one.path for one in subject.problems(body)] == [place]


def test_secret_values_are_left_out_of_responses(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps(_document_of("/secret")))
    (tmp_path / "server.py").write_text(
        "import http.server, os\n"
        "class Handler(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        body = os.environ['API_TOKEN'].encode()\n"
        "        self.send_response(200)\n"
        "        self.send_header('Content-Length', str(len(body)))\n"
        "        self.end_headers()\n"
        "        self.wfile.write(body)\n"
        "http.server.HTTPServer(('127.0.0.1', 8080), Handler).serve_forever()\n"
    )
    subject = ServiceSubject(
        "api.json", 8080, COMMAND, working_directory=tmp_path, environment={"API_TOKEN": "abcdefgh"}
    )
    observed = run(subject, to_request("GET", "/secret", status="200")).observed
    assert "$API_TOKEN" in observed
    assert "abcdefgh" not in observed


def test_a_service_reaches_no_other_machine_and_no_other_process(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps(_document_of("/")))
    (tmp_path / "server.py").write_text("import socket\nsocket.create_connection(('192.0.2.1', 80), 5)\n")
    subject = ServiceSubject("api.json", 8080, COMMAND, working_directory=tmp_path)
    result = run(subject, to_request("GET", "/", status="200"))
    assert result.status is TestStatus.FAILED
    assert "it ended before it accepted a connection" in result.observed
    assert "Network is unreachable" in result.observed


def test_an_exported_module_starts_the_service(directory: Path, tmp_path: Path) -> None:
    command = ExportedCommand(COMMAND, str(directory), openapi="/openapi.json", port=8080)
    tested = ExportedSubject(SubjectKind.COMMAND, command=command)
    good = replace(case(to_request("GET", "/notes/7", status="404")), test_id="unknown")
    bad = replace(case(to_request("GET", "/notes", status="404")), test_id="listed")
    suite = suite_of([good, bad], tested)
    module = tmp_path / "test_notes.py"
    module.write_bytes(b"".join(render(suite, TestFormat.PYTEST, directory=str(tmp_path)).parts))
    assert "SUBJECT = checking.service(" in module.read_text()
    assert sorted(run_pytest(module).values()) == ["failed", "passed"]


def test_a_body_comes_back_as_it_was() -> None:
    headers = [{"name": "Accept", "value": "text/plain"}]
    test = case(
        to_request("POST", "/notes?a=1", headers=headers, body="{}", status="4XX", response="no"),
        to_request("GET", "/notes"),
    )
    assert body_from_proto(case_to_proto(test), ".test") == test.body


def _document_of(path: str) -> dict[str, Any]:
    operation = {"responses": {"200": {"description": ""}}}
    return {"openapi": "3.0.3", "paths": {path: {"get": operation}}}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"openapi: 3.1.0", "is not JSON"),
        (b'{"swagger": "2.0"}', "is not an OpenAPI document of version 3.0 or 3.1"),
        (b'{"openapi": "3.1.0", "paths": {}}', "has no operations"),
    ],
)
def test_a_document_that_cannot_be_read_is_rejected_with_the_reason(content: bytes, reason: str) -> None:
    with pytest.raises(InvalidArgumentError, match=reason):
        ServiceDocument(content, "api.json")


def test_a_missing_document_is_named(directory: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="no file api"):
        ServiceSubject("api.json", 8080, COMMAND, working_directory=tmp_path)
    with pytest.raises(InvalidArgumentError, match="does not publish /none"):
        ServiceSubject("/none", 8080, COMMAND, working_directory=directory, measured=False)


def test_schemas_of_version_3_0_and_the_base_path_are_read() -> None:
    nullable = {"type": "integer", "nullable": True, "minimum": 0, "exclusiveMinimum": True}
    media = {"application/json": {"schema": {"$ref": "#/components/schemas/Count"}}}
    document = {
        "openapi": "3.0.3",
        "servers": [{"url": "https://example.com/v2"}],
        "paths": {"/counts": {"get": {"responses": {"200": {"description": "", "content": media}}}}},
        "components": {"schemas": {"Count": nullable}},
    }
    read = ServiceDocument(json.dumps(document).encode(), "api.json")
    operation = read.find_operation("GET", "/v2/counts?a=1")
    assert operation is not None
    bodies = {"null": [], "1": [], "0": ["breaks the schema"], "x": ["not JSON"]}
    for body, breaches in bodies.items():
        response = {"status": 200, "type": "application/json; charset=utf-8", "body": body}
        found = [*read.iterate_breaches(operation, response)]
        assert [any(part in one for one in found) for part in breaches] == [True] * len(found)
    response = {"status": 500, "type": "", "body": ""}
    assert "is not documented (documented: 200)" in next(read.iterate_breaches(operation, response))


def test_a_run_that_is_measured_gives_the_same_result_as_one_that_is_not(
    directory: Path, subject: ServiceSubject
) -> None:
    test = case(to_request("POST", "/notes", body=NEW, status="201"))
    examined = evaluate_test(subject, test, 2)
    assert (examined.status, bool(examined.kills)) == (TestStatus.PASSED, True)
    assert evaluate_test(subject_of(directory, measured=False), test, 2).kills == frozenset()
