"""HTTP service as a subject: tests are requests in order, and what the responses must be.

A command starts the service, behind the fence of commands and with a network of its own. Each response must
be one that the OpenAPI document describes. A Python service is measured like a command, by the lines and
mutants that its requests reach; each service by its operations and their documented responses.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import tempfile
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety.errors import Finding, InvalidArgumentError
from peripety.testgen.subjects.command.python_program import ProgramInput
from peripety.testgen.subjects.command.sandbox import installation_paths
from peripety.testgen.subjects.command.subject import CommandSubject
from peripety.testgen.subjects.grpc_service import calls
from peripety.testgen.subjects.http_service import exchange
from peripety.testgen.subjects.http_service.baseline_tests import ServiceTests
from peripety.testgen.subjects.http_service.document import METHODS, Operation, ServiceDocument, to_request
from peripety.testgen.subjects.subject import BodySchema, SubjectTarget
from peripety.testgen.types import TestCase

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.testgen.subjects.command.sandbox import ProcessOutput
    from peripety.testgen.types import DraftTest


FIRST_START_SECONDS = 60.0
"""Time limit of the start that reads the description of a service, when its files may not be cached."""

_MAX_REQUESTS = 20
_MAX_REQUEST_BYTES = 64 * 1024
_MAX_DOCUMENT_CHARACTERS = 60 * 1024
_MAX_OBSERVED_BYTES = 4 * 1024
_MAX_SHOWN_BODY = 1_000
_TEXT, _TEXT_OR_NULL = {"type": "string"}, {"type": ["string", "null"]}
_REQUEST_PROPERTIES: Mapping[str, Any] = {
    "method": {"type": "string", "enum": [method.upper() for method in METHODS]},
    "path": {
        **_TEXT,
        "description": "Path and query, percent-encoded. {$response.1.body#/id} stands for a part of the body"
        " of the first response, here and in the body.",
    },
    "headers": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"name": _TEXT, "value": _TEXT},
            "required": ["name", "value"],
            "additionalProperties": False,
        },
        "description": "Headers; usually empty. A body is JSON unless a header names its type.",
    },
    "body": {**_TEXT_OR_NULL, "description": "The body as text; null for none."},
    "status": {
        **_TEXT_OR_NULL,
        "description": "The required status, such as 404, or 4XX for any of them; null for a documented one.",
    },
    "response": {
        **_TEXT_OR_NULL,
        "description": "The required body as text. Of a JSON object, the response may have more members."
        " {$response.1.body} stands for the body of the first response. null for any.",
    },
}


def body_schema_of(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of the body of a test: requests with some properties, all of them required."""
    item = {
        "type": "object",
        "properties": request,
        "required": [*request],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "description": "Requests to a service that has just been started, in order.",
        "properties": {"requests": {"type": "array", "items": item}},
        "required": ["requests"],
        "additionalProperties": False,
    }


_BODY_SCHEMA = body_schema_of(_REQUEST_PROPERTIES)
_BODY_FORM = BodySchema(_BODY_SCHEMA)
_EXPECTED_OUTPUT_TEXT = "null; the expectations are `status` and `response` of each request"


class ServiceSubject(CommandSubject):
    """An HTTP service.

    Args:
        openapi: the OpenAPI document: a file of the directory, or, with a slash at its beginning, the path at
            which the service publishes it.
        port: the port at which the service accepts connections.
        argv: the command that starts the service.
        **options: as for a command.

    Raises:
        FailedPreconditionError: the machine supports no fence in which a service is reached.
        InvalidArgumentError: the document cannot be read, or as for a command.
    """

    body_schema: Mapping[str, Any] = _BODY_SCHEMA
    _is_service = True
    _exchange_options: tuple[str, ...] = ("-I", "-S")
    _status_pattern = re.compile(r"\d(?:\d\d|\dX|XX)", re.IGNORECASE)
    _status_examples = "404 or 4XX"

    def __init__(self, openapi: str, port: int, argv: Sequence[str], **options: Any) -> None:
        self._port = port
        paths = (*installation_paths(Path(sys.executable)), exchange.__file__, calls.__file__)
        super().__init__(argv, **{**options, "readable": [*options.get("readable", ()), *map(Path, paths)]})
        self._document = self._load_document(openapi)
        if self._program is not None:
            # The start is the same for all tests, and each mutant of it would be run with each of them.
            self._program.leave_out(self._input_of({}))

    def _load_document(self, openapi: str) -> ServiceDocument:
        return ServiceDocument(self._read_document(openapi), openapi)

    def _read_document(self, openapi: str) -> bytes:
        if openapi.startswith("/"):
            seconds = max(self._timeout, FIRST_START_SECONDS)
            output = self._exchange({"requests": [to_request("GET", openapi)]}, seconds)
            responses = self._responses_of(output)
            if responses and responses[0]["status"] == 200:  # noqa: PLR2004 - OK
                return bytes(responses[0]["body"].encode())
            shown = self._format_output(output)
            reason = f"the service does not publish {openapi}: {shown}"
        else:
            place = (self._directory or Path("/nonexistent")).resolve()
            path = (place / openapi).resolve()
            if path.is_relative_to(place) and path.is_file():
                return path.read_bytes()
            reason = f"the directory has no file {openapi}; name it relative to the directory"
        raise InvalidArgumentError(f".subject.command.openapi: {reason}", code="BAD_OPENAPI_DOCUMENT")

    @cached_property
    def material(self) -> Mapping[str, Any]:
        """The document, the calling convention, and the source if it is known."""
        document = json.dumps(self._document.document, ensure_ascii=False, separators=(",", ":"))
        material: dict[str, Any] = {
            "service": [*self._argv],
            "openapi": self._document.document
            if len(document) <= _MAX_DOCUMENT_CHARACTERS
            else document[:_MAX_DOCUMENT_CHARACTERS],
            "expected_output": _EXPECTED_OUTPUT_TEXT,
        }
        return material | ({} if self._program is None else self._source_material(self._program))

    @cached_property
    def targets(self) -> Sequence[SubjectTarget]:
        """The operations, their documented responses, and the lines of the measured files.

        Documented errors of the server are left out; so are operations if only changed lines are measured.
        """
        operations = () if self.changed_since else self._iterate_operation_targets()
        return (*operations, *super().targets)

    def _iterate_operation_targets(self) -> Iterator[SubjectTarget]:
        for operation in self._document.operations:
            told = f"send {operation.name}"
            yield SubjectTarget("operation", f"/{operation.name}", told)
            for status in operation.responses:
                if not status.startswith("5") and status != "default":
                    told = f"send {operation.name} so that the service answers {status}"
                    yield SubjectTarget("response", f"/{operation.name}/{status}", told)

    def problems(self, body: Mapping[str, Any]) -> Sequence[Finding]:
        """Return requests that cannot be sent."""
        return _BODY_FORM.validate_body(body) or [*self._request_problems(body)]

    def _request_problems(self, body: Mapping[str, Any]) -> Iterator[Finding]:
        requests = body.get("requests") or ()
        if not requests:
            yield Finding("BODY_INVALID", "/requests", "is empty; add a request")
        if len(requests) > _MAX_REQUESTS:
            yield Finding("TOO_MANY_REQUESTS", "/requests", f"has more than {_MAX_REQUESTS} requests")
        for index, request in enumerate(requests):
            place = f"/requests/{index}"
            path = str(request.get("path") or "")
            if str(request.get("method") or "").lower() not in METHODS:
                yield Finding("BODY_INVALID", f"{place}/method", "is not a method of HTTP")
            if not path.startswith("/") or not path.isascii() or any(sign.isspace() for sign in path):
                message = "is not a path in percent-encoding that begins with a slash"
                yield Finding("BODY_INVALID", f"{place}/path", message)
            if len(path) + len((request.get("body") or "").encode(errors="replace")) > _MAX_REQUEST_BYTES:
                yield Finding("BODY_INVALID", place, f"has more than {_MAX_REQUEST_BYTES} bytes")
            wanted = request.get("status")
            if wanted is not None and not self._status_pattern.fullmatch(wanted):
                message = f"is not a status such as {self._status_examples}"
                yield Finding("BODY_INVALID", f"{place}/status", message)

    def soundness(self, test: TestCase) -> Sequence[Finding]:
        """Return `STUB` for a test without a source that requires no status and no body."""
        requests = (test.body or {}).get("requests") or ()
        if test.source or any(one.get("status") or one.get("response") for one in requests):
            return ()
        return (Finding("STUB", "", "no expected status or response; add one of them"),)

    def same_input(self, body: Mapping[str, Any]) -> Any:
        """Return the requests without what they expect."""
        return [
            {name: value for name, value in request.items() if value and name not in {"status", "response"}}
            for request in body.get("requests") or ()
        ]

    def baseline_tests(self) -> Iterator[DraftTest]:
        """Yield requests that follow from the document; without a source, they expect current responses."""
        for draft in ServiceTests(self._document, self._meets, self._run_requests):
            if not self.changed_since or self._reaches_changes(draft.body or {}):
                yield draft

    def _meets(self, draft: DraftTest) -> bool:
        """Return True if the service meets a test."""
        test = TestCase("", "", "", body=draft.body, source=draft.source)
        return not any(self._unmet_expectations(test, self._run_command(test.body or {})))

    def _run_requests(self, body: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """Return the responses to the requests of a body."""
        return self._responses_of(self._run_command(body))

    # as of a command

    def _job_of(self, body: Mapping[str, Any]) -> dict[str, Any]:
        requests = [
            {"headers": [], "body": None, **{name: value for name, value in one.items() if value is not None}}
            for one in body.get("requests") or ()
        ]
        return {
            "script": exchange.__file__,
            "port": self._port,
            "seconds": self._timeout,
            "requests": requests,
        }

    def _input_of(self, body: Mapping[str, Any]) -> ProgramInput:
        return ProgramInput(exchange=json.dumps(self._job_of(body)), read_back=(exchange.RESULT,))

    def _run_command(self, body: Mapping[str, Any]) -> ProcessOutput:
        return self._exchange(body, self._timeout)

    def _exchange(self, body: Mapping[str, Any], seconds: float) -> ProcessOutput:
        """Start the service, and send it the requests of a body."""
        with tempfile.TemporaryFile(prefix="peripety-") as job:
            job.write(json.dumps({**self._job_of(body), "seconds": seconds}).encode())
            job.seek(0)
            options = self._exchange_options
            argv = (sys.executable, *options, exchange.__file__, str(job.fileno()), *self._argv)
            output = self._sandbox.run(
                argv,
                read_back=(exchange.RESULT,),
                descriptors=(job.fileno(),),
                timeout_seconds=seconds,
            )
        return self._redact(output)

    def _unmet_expectations(self, test: TestCase, output: ProcessOutput) -> Iterator[Finding]:
        body = test.body or {}
        told = result_of(output)
        responses = self._responses_of(output)
        bodies = [one["body"] for one in responses]
        requests = body.get("requests") or ()
        for index, (request, response) in enumerate(zip(requests, responses, strict=False)):
            place = f"/requests/{index}"
            wanted, status = request.get("status"), str(response["status"])
            if wanted is not None and not self._has_status(wanted, status):
                message = f"the status is {status}; expected {wanted}"
                yield Finding("EXPECTATION_NOT_MET", f"{place}/status", message)
            expected = request.get("response")
            if expected is not None and not _has_content(response["body"], expected, bodies):
                message = f"the body differs: {response['body'][:200]}"
                yield Finding("EXPECTATION_NOT_MET", f"{place}/response", message)
        yield from self._breaches(body, output)
        if len(responses) < len(requests):
            reason = told.get("error") or "the service ended"
            yield Finding("EXPECTATION_NOT_MET", f"/requests/{len(responses)}", f"no response: {reason}")

    def _has_status(self, wanted: str, status: str) -> bool:
        return all(sign in {"X", digit} for sign, digit in zip(wanted.upper(), status, strict=True))

    def _breaches(self, body: Mapping[str, Any], output: ProcessOutput) -> Iterator[Finding]:
        """Yield what the responses do against the document."""
        pairs = zip(body.get("requests") or (), self._responses_of(output), strict=False)
        for index, (request, response) in enumerate(pairs):
            operation = self._operation_of(request)
            if operation is not None:
                for message in self._document.iterate_breaches(operation, response):
                    yield Finding("DOCUMENT_VIOLATED", f"/requests/{index}", message)

    def _responses_of(self, output: ProcessOutput) -> Sequence[Mapping[str, Any]]:
        return [
            {**one, "body": self._redactor.redact(base64.b64decode(one["body"])).decode(errors="replace")}
            for one in result_of(output).get("responses", ())
        ]

    def _operation_of(self, request: Mapping[str, Any]) -> Operation | None:
        path = exchange.EXPRESSION.sub("0", str(request["path"]))
        return self._document.find_operation(str(request["method"]), path)

    def _format_output(self, output: ProcessOutput) -> str:
        lines = []
        for response in self._responses_of(output):
            shown = response["body"][:_MAX_SHOWN_BODY]
            lines.append(f"{response['status']} {response['type']} {shown}".rstrip())
        error = result_of(output).get("error", "the service did not answer in time")
        if error:
            complaints = output.stderr.decode(errors="replace").strip()[-_MAX_SHOWN_BODY:]
            lines.append(f"{error} {complaints}".rstrip())
        return "\n".join(lines).encode()[:_MAX_OBSERVED_BYTES].decode(errors="ignore")

    def _digest(self, test: TestCase, output: ProcessOutput) -> str:
        """Return a digest of the responses, of those with an expected body with their bodies."""
        parts = []
        pairs = zip((test.body or {}).get("requests") or (), self._responses_of(output), strict=False)
        for request, response in pairs:
            body = response["body"] if request.get("response") is not None else ""
            parts.append(f"{response['status']} {response['type']} {body}")
        return sha256("\n".join([*parts, str(result_of(output).get("error"))]).encode()).hexdigest()

    def _covered_targets(self, body: Mapping[str, Any], output: ProcessOutput) -> frozenset[str]:
        covered = set(super()._covered_targets(body, output))
        for request, response in zip(body.get("requests") or (), self._responses_of(output), strict=False):
            operation = self._operation_of(request)
            if operation is not None:
                covered.add(f"operation:/{operation.name}")
                documented = operation.find_response(response["status"])
                covered.add(f"response:/{operation.name}/{documented}")
        return frozenset(covered & {target.target_id for target in self.targets})


def result_of(output: ProcessOutput) -> Mapping[str, Any]:
    """Return the result of an exchange."""
    written = output.files.get(exchange.RESULT)
    try:
        return dict(json.loads(written)) if written else {}
    except ValueError:
        return {}


def _has_content(body: str, wanted: str, bodies: list[str]) -> bool:
    """Return True if a body has a content: of JSON, all members and elements; else the same text."""
    try:
        wanted = exchange.resolve_expressions(wanted, bodies)
    except ValueError:
        return False
    try:
        return _contains(json.loads(body), json.loads(wanted))
    except ValueError:
        return body.rstrip() == wanted.rstrip()


def _contains(value: Any, wanted: Any) -> bool:
    if isinstance(value, dict) and isinstance(wanted, dict):
        return all(key in value and _contains(value[key], part) for key, part in wanted.items())
    if isinstance(value, list) and isinstance(wanted, list):
        return len(value) == len(wanted) and all(map(_contains, value, wanted))
    return bool(value == wanted) and isinstance(value, bool) is isinstance(wanted, bool)
