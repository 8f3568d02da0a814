"""Every RPC as HTTP and JSON: `POST /rpc/{service}/{method}`.

A request is the message as plain JSON (see `peripety.rpc.proto_json`), for a method that takes a stream a
list of messages. A method that returns one message answers with JSON, any other with server-sent events
whose last one is `done` or `error`.
"""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from google.protobuf.descriptor import FieldDescriptor

from peripety.edge.event_stream import (
    EventStreamResponse,
    ServerEvent,
    describe_stream,
    with_heartbeats,
)
from peripety.edge.problems import PROBLEMS
from peripety.errors import InvalidArgumentError, NotFoundError
from peripety.rpc.proto_json import enum_word, from_json, message_from_json, to_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from peripety.edge.calls import RpcCaller, RpcMethod


class RpcRoutes:
    """Handler of the route.

    Args:
        caller: calls the services.
    """

    def __init__(self, caller: RpcCaller) -> None:
        self._caller = caller
        self._methods = {
            f"{method.short_service}/{method.name}": method for method in caller.methods.values()
        }
        self.router = APIRouter(tags=["every call"])
        self.router.add_api_route(
            "/rpc/{service}/{method}",
            self.call,
            methods=["POST"],
            summary="Call any method of the contract",
            include_in_schema=False,
        )

    async def call(self, service: str, method: str, request: Request) -> Response:
        """Call a method."""
        found = self._methods.get(f"{service}/{method}")
        if found is None:
            raise NotFoundError(
                f"{service[:100]}/{method[:100]} is not a method; /docs lists all of them",
                code="METHOD_NOT_FOUND",
            )
        message = await read_message(found, request)
        if found.returns_stream:
            return EventStreamResponse(with_heartbeats(self._events(found, message)))
        return JSONResponse(to_json(await self._caller.call(found, message)))

    async def _events(self, method: RpcMethod, message: Any) -> AsyncIterator[ServerEvent]:
        async for response in self._caller.stream(method, message):
            sequence = getattr(response, "sequence", 0)
            yield ServerEvent.of("message", to_json(response), str(sequence) if sequence else "")
        yield ServerEvent.of("done", {})

    def describe(self) -> dict[str, Any]:
        """Return the OpenAPI description of all methods, as `paths` and the `schemas` they refer to."""
        schemas: dict[str, Any] = {}
        paths = {
            f"/rpc/{name}": {"post": describe_method(method, schemas)}
            for name, method in self._methods.items()
        }
        return {"paths": paths, "schemas": schemas}


def _parse_body(body: bytes) -> Any:
    try:
        return json.loads(body or b"{}")
    except ValueError as error:
        raise InvalidArgumentError(f"body is not JSON: {error}", code="NOT_JSON") from None


async def read_message(method: RpcMethod, request: Request) -> Any:
    """Return the message of a request to a method, or the list of its messages.

    A missing `request_id` is that of the header `idempotency-key`, else a new one.

    Raises:
        InvalidArgumentError: the body is not such a message.
    """
    value = _parse_body(await request.body())
    if method.takes_stream:
        return from_json(method.request, value, "body")
    fields = method.request.DESCRIPTOR.fields_by_name
    if isinstance(value, dict) and "request_id" in fields and not method.name.startswith(("Get", "List")):
        value.setdefault("request_id", request.headers.get("idempotency-key") or str(uuid.uuid4()))
    return message_from_json(method.request, value, "body")


_TYPES: dict[int, dict[str, Any]] = {
    FieldDescriptor.TYPE_STRING: {"type": "string"},
    FieldDescriptor.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.TYPE_DOUBLE: {"type": "number"},
    FieldDescriptor.TYPE_INT32: {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    FieldDescriptor.TYPE_INT64: {"type": "integer", "minimum": -(2**53) + 1, "maximum": 2**53 - 1},
    FieldDescriptor.TYPE_BYTES: {"description": "Any JSON value; bytes of files are base64."},
}
_SINGLE_VALUES: dict[str, dict[str, Any]] = {
    "google.protobuf.Timestamp": {"type": "string", "format": "date-time"},
    "google.protobuf.Duration": {"type": "string", "description": "Seconds, such as 90s."},
    "peripety.api.common.v1.ParamValue": {"type": ["number", "string", "boolean"]},
}


def describe_method(method: RpcMethod, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI description of a method, and add the schemas that it refers to."""
    request, response = (_reference(kind.DESCRIPTOR, schemas) for kind in (method.request, method.response))
    if method.returns_stream:
        success = describe_stream("Events `message`, each a response, then `done` or `error`.", response)
    else:
        success = {"description": "The response.", "content": {"application/json": {"schema": response}}}
    return {
        "tags": [method.short_service],
        "operationId": f"{method.short_service}_{method.name}",
        "summary": method.name,
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"type": "array", "items": request} if method.takes_stream else request,
                }
            },
        },
        "responses": {"200": success, **PROBLEMS},
    }


def _reference(descriptor: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return a reference to the schema of a message, which is added with the schemas it refers to."""
    name = descriptor.full_name.removeprefix("peripety.api.")
    if name not in schemas:
        schemas[name] = {"type": "object", "additionalProperties": False}
        schemas[name]["properties"] = {
            field.name: _describe_field(field, schemas) for field in descriptor.fields
        }
    return {"$ref": f"#/components/schemas/{name}"}


def _describe_field(field: FieldDescriptor, schemas: dict[str, Any]) -> dict[str, Any]:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        inner = field.message_type.fields_by_name["value"]
        return {"type": "object", "additionalProperties": _describe_value(inner, schemas)}
    value = _describe_value(field, schemas)
    return {"type": "array", "items": value} if field.is_repeated else value


def _describe_value(field: FieldDescriptor, schemas: dict[str, Any]) -> dict[str, Any]:
    if field.message_type is not None:
        single = _SINGLE_VALUES.get(field.message_type.full_name)
        return single or _reference(field.message_type, schemas)
    if field.enum_type is not None:
        return {"enum": [enum_word(field, value.number) for value in field.enum_type.values]}
    return _TYPES[field.type]
