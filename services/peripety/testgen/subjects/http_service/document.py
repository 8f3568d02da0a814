"""OpenAPI document of an HTTP service: its operations, and what it requires of a response.

Versions 3.0 and 3.1, as JSON. Schemas of version 3.0 are written in the form of JSON Schema 2020-12, which
version 3.1 uses.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from peripety.engine.schema_validation import parse_pointer, validate_against_schema
from peripety.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
DEFAULT_PORT = 8000
JSON_TYPE = "application/json"
_PARAMETER = re.compile(r"\{([^{}]+)\}")
_MAX_OPERATIONS = 200
_MAX_FINDINGS = 3


@dataclass(frozen=True)
class OperationParameter:
    """A parameter of an operation.

    Attributes:
        name: its name.
        place: `path`, `query` or `header`.
        schema: its schema, with the components of the document.
        is_required: True if a request needs it.
        pointer: its place in the document.
    """

    name: str
    place: str
    schema: Mapping[str, Any]
    is_required: bool
    pointer: str


@dataclass(frozen=True)
class Operation:
    """An operation of a service.

    Attributes:
        method: in capitals.
        path: the template of its path, without the base path.
        pointer: its place in the document.
        parameters: its parameters in paths, queries and headers.
        body: the schema of its JSON body; None without one.
        is_body_required: True if a request needs a body.
        responses: by status, such as `200`, `4XX` or `default`: the schemas by type of content.
        examples: bodies of requests and responses: status, request (None without one), response.
        has_other_body: True if its body is not JSON.
    """

    method: str
    path: str
    pointer: str
    parameters: tuple[OperationParameter, ...] = ()
    body: Mapping[str, Any] | None = None
    is_body_required: bool = False
    responses: Mapping[str, Mapping[str, Mapping[str, Any] | None]] = field(default_factory=dict)
    examples: tuple[tuple[str, Any, Any], ...] = ()
    has_other_body: bool = False

    @property
    def name(self) -> str:
        """The method and the path."""
        return f"{self.method} {self.path}"

    def find_response(self, status: int) -> str | None:
        """Return the documented status that a response has; None for an undocumented one."""
        candidates = (str(status), f"{status // 100}XX", "default")
        return next((one for one in candidates if one in self.responses), None)

    def cites(self, pointer: str = "") -> str:
        """Return a place of the operation, for readers."""
        return f"{self.name}{' ' if pointer else ''}{pointer}"


def to_request(method: str, path: str, **members: Any) -> dict[str, Any]:
    """Return a request of a body, with its members `headers`, `body`, `status` and `response`."""
    request: dict[str, Any] = {
        "method": method,
        "path": path,
        "headers": [],
        "body": None,
        "status": None,
        "response": None,
    }
    return {**request, **members}


class ServiceDocument:
    """The document of a service.

    Args:
        content: the document.
        name: its name, for readers.

    Raises:
        InvalidArgumentError: it is not an OpenAPI document that can be read.

    Attributes:
        name: its name.
        document: the document as it is.
        operations: its operations, in its order.
    """

    def __init__(self, content: bytes, name: str) -> None:
        try:
            document = json.loads(content)
        except ValueError:
            raise _error(f"{name} is not JSON; convert it, such as from YAML") from None
        version = str(document.get("openapi", "")) if isinstance(document, dict) else ""
        if not version.startswith("3."):
            raise _error(f"{name} is not an OpenAPI document of version 3.0 or 3.1")
        self.name = name
        self.document: Mapping[str, Any] = document
        self._schemas = _modernize(document.get("components") or {})
        servers = document.get("servers") or [{"url": "/"}]
        self._base = urlsplit(str(servers[0].get("url", "/"))).path.rstrip("/")
        self.operations = (*self._iterate_operations(),)[:_MAX_OPERATIONS]
        if not self.operations:
            raise _error(f"{name} has no operations")
        self._patterns = [
            (_pattern_of(one.path), one)
            for one in sorted(self.operations, key=lambda one: one.path.count("{"))
        ]

    def path_of(self, path: str) -> str:
        """Return the path of a request from a path of the document."""
        return self._base + path

    def find_operation(self, method: str, path: str) -> Operation | None:
        """Return the operation of a request; None for an undocumented one."""
        plain = path.partition("?")[0].removeprefix(self._base)
        for pattern, operation in self._patterns:
            if operation.method == method.upper() and pattern.fullmatch(plain):
                return operation
        return None

    def iterate_breaches(self, operation: Operation, response: Mapping[str, Any]) -> Iterator[str]:
        """Yield what a response does against the document.

        Args:
            operation: the operation that has answered.
            response: `status`, `type` and `body`.
        """
        status = response["status"]
        documented = operation.find_response(status)
        if documented is None:
            known = ", ".join(operation.responses) or "none"
            yield f"{operation.name} answers {status}, which is not documented (documented: {known})"
            return
        contents = operation.responses[documented]
        if not contents:
            return
        kind = response["type"].partition(";")[0].strip().lower()
        if kind not in contents and not any(_is_range(one, kind) for one in contents):
            told = kind or "no type"
            yield f"{operation.name} answers {status} with {told}; documented: {', '.join(contents)}"
            return
        schema = contents.get(kind)
        if schema is None or not _is_json(kind):
            return
        try:
            value = json.loads(response["body"])
        except ValueError:
            yield f"{operation.name} answers {status} with a body that is not JSON"
            return
        for found in validate_against_schema(schema, value)[:_MAX_FINDINGS]:
            place = found.path or "/"
            yield f"{operation.name} answers {status}; its body breaks the schema at {place}: {found.message}"

    def _iterate_operations(self) -> Iterator[Operation]:
        for path, item in (self.document.get("paths") or {}).items():
            shared = self._resolve(item)
            for method in METHODS:
                if isinstance(shared.get(method), dict):
                    yield self._read_operation(path, method, shared)

    def _read_operation(self, path: str, method: str, item: Mapping[str, Any]) -> Operation:
        written = item[method]
        pointer = f"/paths/{path.replace('~', '~0').replace('/', '~1')}/{method}"
        parameters: dict[tuple[str, str], OperationParameter] = {}
        for index, part in enumerate([*item.get("parameters", ()), *written.get("parameters", ())]):
            own = self._resolve(part)
            place, name = str(own.get("in")), str(own.get("name"))
            if place in {"path", "query", "header"}:
                schema = self.complete(own.get("schema") or {})
                if "example" in own:
                    schema["example"] = own["example"]
                is_required = bool(own.get("required")) or place == "path"
                where = f"/parameters/{index}"
                parameters[place, name] = OperationParameter(name, place, schema, is_required, where)
        body = self._resolve(written.get("requestBody") or {})
        contents = body.get("content") or {}
        kind = next((one for one in contents if _is_json(one)), None)
        body_schema = None if kind is None else self.complete(contents[kind].get("schema") or {})
        responses = {
            # YAML allows numbers as keys.
            str(status).upper().replace("DEFAULT", "default"): self._read_contents(self._resolve(response))
            for status, response in (written.get("responses") or {}).items()
        }
        return Operation(
            method.upper(),
            path,
            pointer,
            (*parameters.values(),),
            body_schema,
            bool(body.get("required")),
            responses,
            (*self._iterate_examples(contents.get(kind) or {}, written.get("responses") or {}),),
            bool(contents) and kind is None,
        )

    def _read_contents(self, response: Mapping[str, Any]) -> dict[str, Mapping[str, Any] | None]:
        contents: dict[str, Mapping[str, Any] | None] = {}
        for kind, media in (response.get("content") or {}).items():
            schema = self.complete(media["schema"]) if media.get("schema") else None
            contents[kind.partition(";")[0].strip().lower()] = schema
        return contents

    def _iterate_examples(
        self,
        request: Mapping[str, Any],
        responses: Mapping[str, Any],
    ) -> Iterator[tuple[str, Any, Any]]:
        """Yield the examples of responses with the example of the request of the same name."""
        given = _examples_of(request)
        for status, response in responses.items():
            for kind, media in (self._resolve(response).get("content") or {}).items():
                for name, value in _examples_of(media).items() if _is_json(kind) else ():
                    if name in given or (len(given) <= 1 and not name):
                        yield str(status), given.get(name, next(iter(given.values()), None)), value

    def complete(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return a schema with the components that it refers to."""
        own = _modernize(schema)
        return {**own, "components": self._schemas} if "$ref" in json.dumps(own) else {**own}

    def _resolve(self, part: Any) -> Mapping[str, Any]:
        while isinstance(part, dict) and isinstance(part.get("$ref"), str):
            found: Any = self.document
            for key in parse_pointer(part["$ref"].removeprefix("#")):
                found = found.get(key) if isinstance(found, dict) else None
            part = found
        return part if isinstance(part, dict) else {}


def _error(reason: str) -> InvalidArgumentError:
    return InvalidArgumentError(f".subject.command.openapi: {reason}", code="BAD_OPENAPI_DOCUMENT")


def _pattern_of(path: str) -> re.Pattern[str]:
    """Return the expression of the requests of a path with parameters."""
    constants = _PARAMETER.split(path)[::2]
    return re.compile("[^/]+".join(map(re.escape, constants)))


def _is_json(kind: str) -> bool:
    name = kind.partition(";")[0].strip().lower()
    return name == JSON_TYPE or name.endswith("+json")


def _is_range(documented: str, kind: str) -> bool:
    """Return True if a documented type such as `text/*` contains a type."""
    return documented == "*/*" or (documented.endswith("/*") and kind.startswith(documented[:-1]))


def _examples_of(media: Mapping[str, Any]) -> dict[str, Any]:
    """Return the examples of a body by name; one without a name has an empty one."""
    named = {
        name: one["value"]
        for name, one in (media.get("examples") or {}).items()
        if isinstance(one, dict) and "value" in one
    }
    return {**({"": media["example"]} if "example" in media else {}), **named}


def _modernize(schema: Any) -> Any:
    """Return a schema of OpenAPI 3.0 in the form of JSON Schema."""
    if isinstance(schema, list):
        return [_modernize(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _modernize(part) for key, part in schema.items() if key not in {"nullable", "discriminator"}}
    if schema.get("nullable") is True and isinstance(schema.get("type"), str):
        made["type"] = [schema["type"], "null"]
    for name, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if made.get(name) is True and bound in made:
            made[name] = made.pop(bound)
        elif isinstance(made.get(name), bool):
            del made[name]
    return made
