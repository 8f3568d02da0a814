"""gRPC service as a subject: tests are requests as JSON, and what the statuses and responses must be.

A command starts the service, as an HTTP service is started, and server reflection describes its methods. A
status of errors of the server, such as `UNKNOWN` for an exception, fails each test that does not require it.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from peripety.errors import Finding, InvalidArgumentError
from peripety.testgen.subjects.command.sandbox import ProcessOutput
from peripety.testgen.subjects.command.subject import EnvironmentRedactor
from peripety.testgen.subjects.grpc_service import calls
from peripety.testgen.subjects.grpc_service.baseline_tests import GrpcTests
from peripety.testgen.subjects.http_service import exchange
from peripety.testgen.subjects.http_service.document import Operation, ServiceDocument
from peripety.testgen.subjects.http_service.subject import (
    FIRST_START_SECONDS,
    ServiceSubject,
    body_schema_of,
    result_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from peripety.testgen.types import DraftTest


SERVER_ERRORS = frozenset({"UNKNOWN", "INTERNAL", "DATA_LOSS"})
"""The statuses of errors of a server, after https://grpc.io/docs/guides/status-codes."""

_STATUSES = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE"),
    *("UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
)
_LIBRARIES = {"google", "grpc"}
_MIN_MEMORY_BYTES = 2 * 1024**3
"""The least limit of memory, which is address space: the threads of gRPC reserve much, and use little."""

_TEXT, _TEXT_OR_NULL = {"type": "string"}, {"type": ["string", "null"]}
_REQUEST_PROPERTIES: Mapping[str, Any] = {
    "method": {**_TEXT, "enum": ["POST"]},
    "path": {**_TEXT, "description": "The path of the method, such as /package.Service/Method."},
    "headers": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"name": _TEXT, "value": _TEXT},
            "required": ["name", "value"],
            "additionalProperties": False,
        },
        "description": "Metadata; usually empty.",
    },
    "body": {
        **_TEXT_OR_NULL,
        "description": "The message as JSON; of a stream of requests, a list. {$response.1.body#/id} stands"
        " for a part of the first response, here and in the metadata.",
    },
    "status": {
        **_TEXT_OR_NULL,
        "enum": [*_STATUSES, None],
        "description": "The required status; null for any.",
    },
    "response": {
        **_TEXT_OR_NULL,
        "description": "The required response as JSON, which may have more members; of a stream, a list. Of"
        " an error, its details as text. null for any.",
    },
}


@dataclass(frozen=True)
class GrpcMethod(Operation):
    """A method of a service.

    Attributes:
        response: the JSON Schema of its response.
        is_safe: True if its descriptor states that it has no side effects.
    """

    response: Mapping[str, Any] = field(default_factory=dict)
    is_safe: bool = False

    @property
    def name(self) -> str:
        """The full name of its service, and its own."""
        return self.path.removeprefix("/")

    def find_response(self, status: Any) -> str | None:
        """Return `OK` for a success; None for an error, which no descriptor has."""
        return "OK" if status == "OK" else None


class GrpcDocument(ServiceDocument):
    """The methods of a service.

    Args:
        methods: the methods, as `GrpcCalls.describe` returns them.
    """

    def __init__(self, methods: Sequence[Mapping[str, Any]]) -> None:
        self.name = "reflection"
        self.document = {
            "methods": [{name: one[name] for name in ("path", "request", "response")} for one in methods]
        }
        self.operations = tuple(
            GrpcMethod(
                "POST",
                one["path"],
                one["path"],
                body=one["request"],
                is_body_required=True,
                responses={"OK": {}},
                response=one["response"],
                is_safe=one["is_safe"],
            )
            for one in methods
        )

    def path_of(self, path: str) -> str:
        """Return the path of a request, which is the one of its method."""
        return path

    def find_operation(self, method: str, path: str) -> Operation | None:  # noqa: ARG002 - all are POST
        """Return the method of a path; None for an unknown one."""
        return next((one for one in self.operations if one.path == path), None)

    def iterate_breaches(self, operation: Operation, response: Mapping[str, Any]) -> Iterator[str]:
        """Yield a message for an error of the server."""
        if response["status"] in SERVER_ERRORS:
            details = response["body"][:200]
            yield f"{operation.name} answers {response['status']}, an error of the server: {details}"


class GrpcSubject(ServiceSubject):
    """A gRPC service.

    Args:
        port: the port at which the service accepts connections without TLS.
        argv: the command that starts the service.
        **options: as for a command.

    Raises:
        FailedPreconditionError: the machine supports no fence in which a service is reached.
        InvalidArgumentError: the service does not answer reflection, or as for a command.
    """

    body_schema: Mapping[str, Any] = body_schema_of(_REQUEST_PROPERTIES)
    _exchange_options = ("-I",)  # the client library is an installed package
    _status_pattern = re.compile("|".join(_STATUSES))
    _status_examples = "OK or NOT_FOUND"
    _descriptors = ""

    def __init__(self, port: int, argv: Sequence[str], **options: Any) -> None:
        memory = max(options.pop("memory_bytes", 0), _MIN_MEMORY_BYTES)
        super().__init__("", port, argv, memory_bytes=memory, **options)

    def _load_document(self, openapi: str) -> ServiceDocument:  # noqa: ARG002 - of an HTTP service
        output = self._exchange({"requests": []}, max(self._timeout, FIRST_START_SECONDS))
        told = result_of(output).get("service") or {}
        if not told.get("methods"):
            reason = self._format_output(output) or "it has no methods"
            raise InvalidArgumentError(
                f".subject.command.grpc: the service is not described by server reflection: {reason}",
                code="BAD_GRPC_SERVICE",
            )
        self._descriptors = told["descriptors"]
        return GrpcDocument(told["methods"])

    @cached_property
    def material(self) -> Mapping[str, Any]:
        """The methods with their messages, the calling convention, and the source if it is known."""
        material = {**super().material}
        document = material.pop("openapi")
        return {"grpc": document, **material}

    @property
    def unmeasured_lines(self) -> Mapping[str, int]:
        """The numbers of lines of imported packages that are not measured, without those of gRPC itself."""
        own = super().unmeasured_lines
        return {name: count for name, count in own.items() if name.partition("_")[0] not in _LIBRARIES}

    def baseline_tests(self) -> Iterator[DraftTest]:
        """Yield requests that follow from descriptors. Without a source, they expect current responses."""
        for draft in GrpcTests(self._document, self._meets, self._run_requests):
            if not self.changed_since or self._reaches_changes(draft.body or {}):
                yield draft

    def _job_of(self, body: Mapping[str, Any]) -> dict[str, Any]:
        own = {"script": calls.__file__, "descriptors": self._descriptors}
        return {**super()._job_of(body), "grpc": own}

    def _breaches(self, body: Mapping[str, Any], output: ProcessOutput) -> Iterator[Finding]:
        """Yield the errors of the server that the requests do not require."""
        requests = body.get("requests") or ()
        for finding in super()._breaches(body, output):
            index = int(finding.path.rpartition("/")[2])
            if requests[index].get("status") not in SERVER_ERRORS:
                yield finding

    def _has_status(self, wanted: str, status: str) -> bool:
        return wanted == status


class RunningGrpcService(GrpcSubject):
    """A gRPC service that is running already, for exported tests. It is not fenced, and its state remains.

    Args:
        address: its address, as `host:port`.
        timeout_seconds: the time limit of a test.

    Raises:
        InvalidArgumentError: the address is invalid, or the service does not answer reflection.
    """

    def __init__(self, address: str, timeout_seconds: float) -> None:
        self._host, _, port = address.rpartition(":")
        if not self._host or not port.isdecimal():
            raise InvalidArgumentError(f"is not host:port: {address[:200]}", code="BAD_GRPC_SERVICE")
        self._port = int(port)
        self._argv = ()
        self._timeout = timeout_seconds
        self._redactor = EnvironmentRedactor({})
        self._program = self._script = None
        self.changed_since = ""
        self._document = self._load_document("")

    def _exchange(self, body: Mapping[str, Any], seconds: float) -> ProcessOutput:
        until = time.monotonic() + seconds
        result = exchange.send_requests(self._job_of(body), self._host, until)
        return ProcessOutput(0, b"", b"", {exchange.RESULT: json.dumps(result).encode()})
