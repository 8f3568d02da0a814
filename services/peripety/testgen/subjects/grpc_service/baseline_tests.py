"""Baseline tests of a gRPC service, which follow from its descriptors.

Tests with a source require what gRPC and the names of standard methods require:

- A request of the right type never gets an error of the server, such as `UNKNOWN` for an exception.
- What a method has created can be read by its id, and what is deleted is gone (https://google.aip.dev/135).
- A second call of a method without side effects gives the same.

All other tests describe the current responses: to boundary values of each field, to requests without one of
their fields, and to unknown ids.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from peripety.testgen.subjects.http_service.baseline_tests import ServiceRequest, ServiceTests, round_robin
from peripety.testgen.subjects.schema_values import resolve_schema, valid_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from peripety.testgen.subjects.http_service.document import Operation, ServiceDocument
    from peripety.testgen.types import DraftTest


_MAX_TRIED = 16
_ERRORS = ("UNKNOWN", "INTERNAL", "DATA_LOSS")
_CREATING = re.compile(r"(?:Create|Add|Insert|Register|Start|New|Put)(\w+)")
_USING = re.compile(r"(Get|Read|Show|Delete|Update|Cancel|Stop)(\w+)")
_READING = {"Get", "Read", "Show"}
_DELETING = {"Delete"}
_ID_PATTERN = re.compile(r"id|name|key|(\w+)_(?:id|name|key)")
_UNKNOWN_IDS = ("no-such-id", "00000000-0000-4000-8000-000000000000")


class GrpcTests(ServiceTests):
    """The baseline tests of a gRPC service.

    The arguments are those of `ServiceTests`.
    """

    def __init__(
        self,
        document: ServiceDocument,
        meets: Callable[[DraftTest], bool],
        run: Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]],
    ) -> None:
        super().__init__(document, meets, run)
        self._about_created: dict[str, ServiceRequest | None] = {}
        self._responses: dict[str, Sequence[Mapping[str, Any]]] = {}

    def _sourced_tests(self, operation: Operation) -> Iterator[DraftTest]:
        created = self._request_of_created(operation)
        if created is not None:
            yield from self._tests_of_created(operation, created)
        usual = created or self._requests[operation.name]
        law = (
            "law: a request of the right type gets no error of the server (grpc.io/docs/guides/status-codes)"
        )
        tried = [*islice(self._boundary_requests(operation, usual), _MAX_TRIED)]
        sent = [one.to_request(self._document) for one in tried]
        responses = self._run({"requests": [*usual.setup, *sent]})[len(usual.setup) :]
        for request, response in zip(tried, responses, strict=False):
            # Requests without such an error have tests of their current responses.
            if response["status"] in _ERRORS:
                whole = (*request.setup, request.to_request(self._document))
                yield self._test("no_server_error", whole, law, "correctness", request)
                break
        if getattr(operation, "is_safe", False):
            first = usual.to_request(self._document)
            second = {**first, "response": f"{{$response.{len(usual.setup) + 1}.body}}"}
            law = (
                f"law: {operation.name} has no side effects, so a second call gives the same (its descriptor)"
            )
            yield self._test("gives_the_same", (*usual.setup, first, second), law, "correctness", usual)

    def _tests_of_created(self, operation: Operation, created: ServiceRequest) -> Iterator[DraftTest]:
        creating, own = _name_of(created.setup[0]["path"]), _name_of(operation.path)
        verb = _verb_of(operation)
        request = created.to_request(self._document, status="OK")
        if verb in _READING:
            law = f"law: what {creating} has created can be read by {own} (google.aip.dev/131)"
            yield self._test("created_can_be_read", (*created.setup, request), law, "integration", created)
        elif verb in _DELETING:
            read = next(
                (one for one in self._document.operations if _is_reader_of(one, operation)),
                None,
            )
            if read is None:
                return
            reading = self._request_of_created(read)
            if reading is not None:
                law = (
                    f"law: what {own} has deleted is gone, so {_name_of(read.path)} answers NOT_FOUND"
                    " (google.aip.dev/135)"
                )
                again = reading.to_request(self._document, status="NOT_FOUND")
                sent = (*created.setup, request, again)
                yield self._test("deleted_is_gone", sent, law, "integration", created)

    def _request_of_created(self, operation: Operation) -> ServiceRequest | None:
        """Return a request about what another method has created; None if no method creates it."""
        if operation.name not in self._about_created:
            self._about_created[operation.name] = self._find_created(operation)
        return self._about_created[operation.name]

    def _find_created(self, operation: Operation) -> ServiceRequest | None:
        request = self._requests[operation.name]
        found = _USING.fullmatch(_name_of(operation.path))
        if found is None or not isinstance(request.body, dict):
            return None
        for creating in self._document.operations:
            made = _CREATING.fullmatch(_name_of(creating.path))
            is_same = (
                made is not None and made[1] == found[2] and _service_of(creating) == _service_of(operation)
            )
            if not is_same:
                continue
            body = self._requests[creating.name]
            setup = body.to_request(self._document, status="OK")
            answer = self._responses.get(creating.name)
            if answer is None:
                answer = self._responses[creating.name] = self._run({"requests": [setup]})
            if not answer or answer[0]["status"] != "OK":
                return None
            pointers = _id_pointers(json.loads(answer[0]["body"]), found[2])
            for name in request.body:
                if _ID_PATTERN.fullmatch(name) and pointers:
                    pointer = next((one for one in pointers if one.endswith(f"/{name}")), pointers[0])
                    own = {**request.body, name: f"{{$response.1.body#{pointer}}}"}
                    return replace(request, body=own, setup=(setup,))
        return None

    def _is_success(self, status: Any) -> bool:
        return bool(status == "OK")

    def _boundary_requests(self, operation: Operation, usual: ServiceRequest) -> Iterator[ServiceRequest]:
        """Yield the usual request, those without a field, with an unknown id, and with a boundary value."""
        yield usual
        body = usual.body
        if not isinstance(body, dict):
            yield from (replace(usual, body=one) for one in valid_values(operation.body or {})[1:])
            return
        missing = (
            replace(usual, body={key: value for key, value in body.items() if key != name}) for name in body
        )
        unknown = (
            replace(usual, body={**body, name: text})
            for name, value in body.items()
            if isinstance(value, str) and _ID_PATTERN.fullmatch(name)
            for text in _UNKNOWN_IDS
        )
        schema = operation.body or {}
        boundary = (
            replace(usual, body={**body, name: value})
            for name, own in _iterate_fields(schema, body)
            for value in valid_values({**own, "$defs": schema.get("$defs", {})})[1:]
        )
        yield from round_robin([missing, unknown, boundary])


def _iterate_fields(
    schema: Mapping[str, Any], body: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the fields of a message with their schemas, without ids of what exists."""
    own = resolve_schema(schema, schema)
    for variant in own.get("anyOf") or [own]:
        for name, part in (variant.get("properties") or {}).items():
            is_reference = isinstance(body.get(name), str) and body[name].startswith("{$response")
            if name in body and not is_reference:
                yield name, part


def _name_of(path: str) -> str:
    return path.rpartition("/")[2]


def _service_of(operation: Operation) -> str:
    return operation.path.rpartition("/")[0]


def _verb_of(operation: Operation) -> str:
    found = _USING.fullmatch(_name_of(operation.path))
    return "" if found is None else found[1]


def _is_reader_of(candidate: Operation, operation: Operation) -> bool:
    """Return True if a method reads what another one deletes."""
    one, other = _USING.fullmatch(_name_of(candidate.path)), _USING.fullmatch(_name_of(operation.path))
    is_same = one is not None and other is not None and one[2] == other[2] and one[1] in _READING
    return is_same and _service_of(candidate) == _service_of(operation)


def _id_pointers(value: Any, noun: str, path: str = "") -> list[str]:
    """Return the JSON Pointers of the ids in a response, those of the created object first."""
    if not isinstance(value, dict):
        return []
    own = [
        f"{path}/{name}"
        for name, part in value.items()
        if _ID_PATTERN.fullmatch(name) and isinstance(part, str) and part
    ]
    plain = noun.lower()
    own.sort(key=lambda one: not one.rpartition("/")[2].replace("_", "").startswith((plain, "id")))
    inner = (
        [] if path else [one for name, part in value.items() for one in _id_pointers(part, noun, f"/{name}")]
    )
    return [*own, *inner]
