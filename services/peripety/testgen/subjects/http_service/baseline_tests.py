"""Baseline tests of a service, which follow from its OpenAPI document.

Tests with a source require what the document or HTTP requires:

- Each request that the document allows gets a documented response.
- The documented example of a request gets the documented example of its response.
- A request that breaks a schema is rejected.
- What an operation has created can be read; what is deleted is gone.
- A second GET gives the same as the first one.

All other tests describe the current responses to requests at the boundaries of the schemas.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from peripety.testgen.subjects.http_service.document import to_request
from peripety.testgen.subjects.schema_values import invalid_values, resolve_schema, valid_values
from peripety.testgen.types import DraftTest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from peripety.testgen.subjects.http_service.document import Operation, OperationParameter, ServiceDocument


_MAX_OF_OPERATION = 8
_MAX_VIOLATIONS = 6
_SECONDS = 12.0
"""Time for running tests with a source, to find those that fail; the others follow them."""

_MAX_NAME_CHARACTERS = 50


@dataclass(frozen=True)
class ServiceRequest:
    """A request of an operation by its parts.

    Attributes:
        operation: the operation.
        values: values of parameters by place and name.
        body: the body; a text without one.
        setup: requests before it.
    """

    operation: Operation
    values: Mapping[tuple[str, str], Any]
    body: Any = None
    has_body: bool = False
    setup: tuple[Mapping[str, Any], ...] = ()

    def to_request(self, document: ServiceDocument, **members: Any) -> dict[str, Any]:
        """Return the request, with members such as `status`."""
        path = self.operation.path
        query, headers = [], []
        for (place, name), value in self.values.items():
            if place == "path":
                path = path.replace(f"{{{name}}}", _to_segment(value))
            elif place == "query":
                parts = value if isinstance(value, list) else [value]
                query += [(name, _to_text(part)) for part in parts]
            else:
                headers.append({"name": name, "value": _to_text(value)})
        path = document.path_of(path) + (f"?{urlencode(query)}" if query else "")
        body = json.dumps(self.body, ensure_ascii=False) if self.has_body else None
        return to_request(self.operation.method, path, headers=headers, body=body, **members)


def _to_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _to_segment(value: Any) -> str:
    text = _to_text(value)
    return text if text.startswith("{$response") else quote(text, safe="") or "%20"


class ServiceTests:
    """The baseline tests of a service.

    Args:
        document: its document.
        meets: runs a test; returns True if the service meets it.
        run: runs the requests of a body, and returns the responses.
    """

    def __init__(
        self,
        document: ServiceDocument,
        meets: Callable[[DraftTest], bool],
        run: Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]],
    ) -> None:
        self._document = document
        self._meets = meets
        self._run = run
        self._requests = {one.name: self._usual_request(one) for one in document.operations}

    def __iter__(self) -> Iterator[DraftTest]:
        """Yield all tests: with a source, those that fail first; then those of current responses."""
        met, left = [], iter(round_robin(map(self._sourced_tests, self._document.operations)))
        until = time.monotonic() + _SECONDS
        for test in left:
            if self._meets(test):
                met.append(test)
            else:
                yield test
            if time.monotonic() > until:
                break
        observed = round_robin(map(self._observed_tests, self._document.operations))
        rows = zip_longest(chain(met, left), observed)
        yield from (test for row in rows for test in row if test is not None)

    # requests

    def _usual_request(self, operation: Operation) -> ServiceRequest:
        """Return a request that the document allows, after one that creates what it is about."""
        values = {
            (one.place, one.name): own[0]
            for one in operation.parameters
            if one.is_required and (own := valid_values(one.schema))
        }
        bodies = [] if operation.body is None else valid_values(operation.body)
        return ServiceRequest(operation, values, bodies[0] if bodies else None, bool(bodies))

    def _request_of_created(self, operation: Operation) -> ServiceRequest | None:
        """Return a request about what another operation has created; None if no operation creates it."""
        request = self._requests[operation.name]
        head, separator, last = operation.path.partition("/{")
        parameter, _, _ = last.partition("}")
        creating = next(
            (one for one in self._document.operations if one.path == head and one.method == "POST"),
            None,
        )
        if not separator or creating is None:
            return None
        created = self._requests[creating.name]
        member = _id_member(creating, parameter)
        if member is None:
            return None
        success = next((status for status in creating.responses if status.startswith("2")), None)
        setup = created.to_request(self._document, status=success)
        values = {**request.values, ("path", parameter): f"{{$response.1.body#/{member}}}"}
        return replace(request, values=values, setup=(setup,))

    # tests with a source

    def _sourced_tests(self, operation: Operation) -> Iterator[DraftTest]:
        usual, created = self._requests[operation.name], self._request_of_created(operation)
        documented = ", ".join(operation.responses)
        citation = self._cite(operation, f"responses {documented}")
        if created is not None:
            yield from self._tests_of_created(operation, created)
        yield self._test("allowed", (usual.to_request(self._document),), citation, "correctness", usual)
        if operation.method == "GET":
            yield self._test_of_safety(operation, created or usual)
        yield from self._tests_of_examples(operation, created or usual)
        yield from islice(self._tests_of_violations(operation, created or usual), _MAX_VIOLATIONS)

    def _tests_of_created(self, operation: Operation, created: ServiceRequest) -> Iterator[DraftTest]:
        creating = self._document.find_operation(created.setup[0]["method"], created.setup[0]["path"])
        name = "" if creating is None else creating.name
        is_direct = operation.path.count("{") == 1 and operation.path.endswith("}")
        if operation.method == "GET" and is_direct:
            law = f"law: what {name} has created can be read by {operation.name}"
            request = created.to_request(self._document, status="2XX")
            yield self._test("created_can_be_read", (*created.setup, request), law, "integration", created)
        elif operation.method == "DELETE" and is_direct:
            reads = (one for one in self._document.operations if one.path == operation.path)
            read = next((one for one in reads if one.method == "GET"), None)
            if read is not None and "404" in read.responses:
                law = f"law: what {operation.name} has deleted is gone, so {read.name} answers 404"
                delete = created.to_request(self._document, status="2XX")
                again = to_request("GET", delete["path"], status="404")
                requests = (*created.setup, delete, again)
                yield self._test("deleted_is_gone", requests, law, "integration", created)
        else:
            citation = self._cite(operation, f"responses {', '.join(operation.responses)}")
            request = created.to_request(self._document)
            yield self._test("after_creation", (*created.setup, request), citation, "integration", created)

    def _test_of_safety(self, operation: Operation, usual: ServiceRequest) -> DraftTest:
        first = usual.to_request(self._document)
        second = {**first, "response": f"{{$response.{len(usual.setup) + 1}.body}}"}
        law = f"law: {operation.name} changes nothing, so a second one gives the same (RFC 9110, 9.2.1)"
        return self._test("gives_the_same", (*usual.setup, first, second), law, "correctness", usual)

    def _tests_of_examples(self, operation: Operation, usual: ServiceRequest) -> Iterator[DraftTest]:
        for status, given, answer in operation.examples:
            if given is None and operation.body is not None:
                continue
            if not status.startswith("2") or usual.setup:
                continue  # the state that the example is about is not known
            request = replace(usual, body=given, has_body=given is not None)
            citation = self._cite(operation, f"example of the response {status}")
            expected = json.dumps(answer, ensure_ascii=False)
            sent = request.to_request(self._document, status=status, response=expected)
            if operation.method != "GET" or not usual.values:
                yield self._test("example", (*usual.setup, sent), citation, "correctness", request)

    def _tests_of_violations(self, operation: Operation, usual: ServiceRequest) -> Iterator[DraftTest]:
        """Yield requests that break the document, which the service must reject."""
        if not any(status.startswith(("4", "default")) for status in operation.responses):
            return
        rows = [self._parameter_violations(one, usual) for one in operation.parameters]
        if operation.body is not None and operation.is_body_required:
            rows.append(self._body_violations(operation.body, usual))
        for pointer, request in round_robin(rows):
            citation = self._cite(operation, pointer)
            sent = request.to_request(self._document, status="4XX")
            yield self._test(f"rejects_{pointer}", (*request.setup, sent), citation, "boundary", request)

    def _parameter_violations(
        self, parameter: OperationParameter, usual: ServiceRequest
    ) -> Iterator[tuple[str, ServiceRequest]]:
        key = parameter.place, parameter.name
        pointer = f"{parameter.pointer} ({parameter.name})"
        if parameter.is_required and parameter.place != "path":
            values = {name: value for name, value in usual.values.items() if name != key}
            yield f"{pointer} is required", replace(usual, values=values)
        if parameter.place == "path":
            usual = self._requests[usual.operation.name]
        kind = resolve_schema(parameter.schema, parameter.schema).get("type")
        for keyword, value in invalid_values(parameter.schema):
            # Everything is a text in a path or a query.
            is_text = keyword == "/type" and kind in {"string", "array", "object"}
            if not is_text and not isinstance(value, dict | list) and value != "":
                yield f"{pointer}{keyword}", replace(usual, values={**usual.values, key: value})

    def _body_violations(
        self, schema: Mapping[str, Any], usual: ServiceRequest
    ) -> Iterator[tuple[str, ServiceRequest]]:
        for keyword, value in invalid_values(schema):
            yield f"/requestBody{keyword}", replace(usual, body=value, has_body=True)

    # tests of current responses

    def _observed_tests(self, operation: Operation) -> Iterator[DraftTest]:
        usual = self._request_of_created(operation) or self._requests[operation.name]
        for request in islice(self._boundary_requests(operation, usual), _MAX_OF_OPERATION):
            sent = [*map(dict, request.setup), request.to_request(self._document)]
            first, second = (self._run({"requests": sent}) for _ in range(2))
            if len(first) != len(sent) or len(second) != len(sent):
                continue
            for part, one, other in zip(sent, first, second, strict=True):
                part["status"] = str(one["status"])
                # A body that differs in each run, such as one with a time, is not expected.
                part["response"] = one["body"] if one["body"] and one["body"] == other["body"] else None
            category = "correctness" if self._is_success(first[-1]["status"]) else "boundary"
            yield self._test("answers", sent, "", category, request)

    def _is_success(self, status: Any) -> bool:
        return bool(status < 400)  # noqa: PLR2004 - errors of HTTP

    def _boundary_requests(self, operation: Operation, usual: ServiceRequest) -> Iterator[ServiceRequest]:
        """Yield the usual request, and those that differ from it in one value."""
        yield usual
        rows: list[Iterator[ServiceRequest]] = []
        for one in operation.parameters:
            key = one.place, one.name
            if one.place != "path" or not usual.setup:
                values = valid_values(one.schema)
                kept = values[1:] if one.is_required else values
                rows.append(replace(usual, values={**usual.values, key: value}) for value in kept)
        if operation.body is not None:
            bodies = valid_values(operation.body)[1:]
            rows.append(replace(usual, body=body, has_body=True) for body in bodies)
        yield from round_robin(rows)

    def _cite(self, operation: Operation, what: str) -> str:
        return f"{self._document.name}: {operation.name} {what}"

    def _test(
        self,
        name: str,
        requests: Sequence[Mapping[str, Any]],
        source: str,
        category: str,
        request: ServiceRequest,
    ) -> DraftTest:
        shown = "; ".join(
            " ".join(filter(None, (one["method"], one["path"], one["body"]))) for one in requests
        )
        return DraftTest(
            _to_name(f"{request.operation.name} {name}"),
            shown,
            None,
            "the service does what its source requires" if source else "describes the current responses",
            1.0,
            {"requests": [*requests]},
            category,
            source=source,
        )


def round_robin(rows: Iterable[Iterator[Any]]) -> Iterator[Any]:
    """Yield the first of each row, then the second ones."""
    return (one for row in zip_longest(*rows) for one in row if one is not None)


def _id_member(creating: Operation, parameter: str) -> str | None:
    """Return the member of a created object that its path names."""
    for status, contents in creating.responses.items():
        for schema in contents.values() if status.startswith("2") else ():
            members = resolve_schema(schema, schema).get("properties") or {} if schema else {}
            plain = parameter.lower().replace("_", "").replace("-", "")
            for name in members:
                if name.lower().replace("_", "").replace("-", "") == plain:
                    return str(name)
            if "id" in members and plain.endswith("id"):
                return "id"
    return None


def _to_name(text: str) -> str:
    words = "".join(letter if letter.isalnum() else " " for letter in text).split()
    return "_".join(words)[:_MAX_NAME_CHARACTERS].lower()
