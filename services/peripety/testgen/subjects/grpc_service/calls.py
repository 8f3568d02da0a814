"""Calls of a gRPC service, which `exchange` loads inside of the sandbox: reflection, and requests as JSON.

It runs in the interpreter of the program, so it finds grpcio and protobuf there, in any of their versions.
Reflection needs grpcio-reflection, and runs in the interpreter of Peripety only.
"""

from __future__ import annotations

import base64
import importlib
import json
import time
from itertools import islice
from typing import Any

_MAX_MESSAGES = 100
"""Limit of the messages of a response that is a stream."""

_STREAM_SECONDS = 2.0
"""Time to wait for the end of a stream of responses, which may have none."""

_IGNORED_SERVICES = ("grpc.reflection.", "grpc.health.", "grpc.channelz.", "grpc.admin.")
_FLOAT_TYPES = {1, 2}
_SMALL_INTEGERS = {5, 15, 17}
_LARGE_INTEGERS = {3, 16, 18}
_SMALL_NATURALS = {7, 13}
_LARGE_NATURALS = {4, 6}
_BOOL, _STRING, _BYTES, _ENUM = 8, 9, 12, 14
_REPEATED = 3
_WELL_KNOWN: dict[str, dict[str, Any]] = {
    "Timestamp": {"type": "string", "format": "date-time"},
    "Duration": {"type": "string", "pattern": r"^\d{1,9}s$", "example": "1s"},
    "FieldMask": {"type": "string", "enum": ["", "no_such_field"]},
    "Empty": {"type": "object"},
    "Any": {"type": "object", "maxProperties": 0},
    "Struct": {"type": "object"},
    "Value": {"enum": ["a", 1, True, None]},
    "ListValue": {"type": "array", "items": {"type": "string"}},
    "BoolValue": {"type": "boolean"},
    "StringValue": {"type": "string"},
    "BytesValue": {"type": "string", "format": "byte"},
    "DoubleValue": {"type": "number"},
    "FloatValue": {"type": "number"},
    "Int32Value": {"type": "integer", "example": 1},
    "Int64Value": {"type": "integer", "example": 1},
    "UInt32Value": {"type": "integer", "minimum": 0, "example": 1},
    "UInt64Value": {"type": "integer", "minimum": 0, "example": 1},
}


class GrpcCalls:
    """Calls of the methods of a service.

    Args:
        address: its address.
        descriptors: its descriptors, a `FileDescriptorSet` in base64; empty to read them by reflection.

    Raises:
        OSError: the reflection does not answer.
        ValueError: the descriptors are not complete.
    """

    def __init__(self, address: str, descriptors: str) -> None:
        self._grpc = importlib.import_module("grpc")
        self._json = importlib.import_module("google.protobuf.json_format")
        # A proxy of the environment must not see the requests.
        options = [("grpc.enable_http_proxy", 0)]
        self._channel = self._grpc.insecure_channel(address, options=options)
        files = importlib.import_module("google.protobuf.descriptor_pb2")
        if descriptors:
            self._files = files.FileDescriptorSet.FromString(base64.b64decode(descriptors))
            self._names = [
                f"{one.package}.{own.name}".strip(".") for one in self._files.file for own in one.service
            ]
        else:
            self._names, self._files = self._reflect(files.FileDescriptorSet())
        pool = importlib.import_module("google.protobuf.descriptor_pool").DescriptorPool()
        try:
            for file in self._files.file:
                pool.Add(file)
            self._methods = {
                f"/{name}/{method.name}": (method, *self._streams(name, method.name))
                for name in self._names
                if not name.startswith(_IGNORED_SERVICES)
                for method in pool.FindServiceByName(name).methods
            }
        except (KeyError, TypeError) as error:
            raise ValueError(f"its descriptors are not complete: {error}") from None

    def describe(self) -> dict[str, Any]:
        """Return the methods with the schemas of their messages, and the descriptors in base64."""
        methods = []
        for path, (method, is_client_stream, is_server_stream) in self._methods.items():
            level = method.GetOptions().idempotency_level
            methods.append(
                {
                    "path": path,
                    "request": _whole_schema(method.input_type, is_stream=is_client_stream),
                    "response": _whole_schema(method.output_type, is_stream=is_server_stream),
                    "is_safe": level == 1,
                }
            )
        written = base64.b64encode(self._files.SerializeToString()).decode()
        return {"methods": methods, "descriptors": written}

    def send(
        self, path: str, body: str, headers: list[tuple[str, str]], until: float
    ) -> tuple[str, str, str]:
        """Send a request, and return the name of the status, the details, and the response as JSON.

        Raises:
            ValueError: the request is not JSON of the message of the method.
        """
        if path not in self._methods:
            # A method that is not known has no message, and the service answers the empty one.
            return self._call(path, [b""], (False, False), headers, until, bytes, len)
        method, *streams = self._methods[path]
        factory = importlib.import_module("google.protobuf.message_factory")
        given, told = (factory.GetMessageClass(one) for one in (method.input_type, method.output_type))
        value = json.loads(body or "{}")
        try:
            values = value if streams[0] and isinstance(value, list) else [value]
            requests = [self._json.ParseDict(one, given()) for one in values]
        except self._json.ParseError as error:
            raise ValueError(f"the request is not a {method.input_type.full_name}: {error}") from None
        return self._call(
            path, requests, (streams[0], streams[1]), headers, until, given.SerializeToString,
            lambda data: self._to_json(told.FromString(data)),
        )  # fmt: skip

    def _call(
        self,
        path: str,
        requests: list[Any],
        streams: tuple[bool, bool],
        headers: list[tuple[str, str]],
        until: float,
        serialize: Any,
        read: Any,
    ) -> tuple[str, str, str]:
        kinds = ["stream" if one else "unary" for one in streams]
        call = getattr(self._channel, "_".join(kinds))(path, serialize, read)
        left = max(until - time.monotonic(), 0.1)
        seconds = min(left, _STREAM_SECONDS) if streams[1] else left
        given = iter(requests) if streams[0] else requests[0]
        received: list[Any] = []
        try:
            answer = call(given, timeout=seconds, metadata=headers)
            if streams[1]:
                for message in islice(answer, _MAX_MESSAGES):
                    received.append(message)  # noqa: PERF402 - those before an error are needed
                answer.cancel()
            else:
                received.append(answer)
        except self._grpc.RpcError as error:
            if not (streams[1] and received and error.code() is self._grpc.StatusCode.DEADLINE_EXCEEDED):
                return error.code().name, error.details() or "", ""
        value = received if streams[1] else received[0]
        return "OK", "", json.dumps(value, ensure_ascii=False)

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()

    def _to_json(self, message: Any) -> Any:
        options: dict[str, Any] = {"preserving_proto_field_name": True}
        try:
            return self._json.MessageToDict(message, always_print_fields_with_no_presence=True, **options)
        except TypeError:  # before version 5 of protobuf
            return self._json.MessageToDict(message, including_default_value_fields=True, **options)

    def _streams(self, service: str, method: str) -> tuple[bool, bool]:
        for file in self._files.file:
            for one in file.service:
                if f"{file.package}.{one.name}".strip(".") == service:
                    for own in one.method:
                        if own.name == method:
                            return own.client_streaming, own.server_streaming
        return False, False

    def _reflect(self, files: Any) -> tuple[list[str], Any]:
        """Return the names of the services, and the files that describe them, imported ones first."""
        reflection = importlib.import_module("grpc_reflection.v1alpha.proto_reflection_descriptor_database")
        database = reflection.ProtoReflectionDescriptorDatabase(self._channel)
        seen: set[str] = set()

        def add(file: Any) -> None:
            if file.name in seen:
                return
            seen.add(file.name)
            for name in file.dependency:
                add(database.FindFileByName(name))
            files.file.append(file)

        try:
            names = [one for one in database.get_services() if not one.startswith(_IGNORED_SERVICES)]
            for name in names:
                add(database.FindFileContainingSymbol(name))
        except KeyError as error:
            raise OSError(f"its reflection has no file {error}") from None
        except self._grpc.RpcError as error:
            reason = f"{error.code().name}: {error.details()}"
            raise OSError(f"its reflection does not answer: {reason}") from None
        return names, files


def _whole_schema(message: Any, *, is_stream: bool) -> dict[str, Any]:
    """Return the JSON Schema of a message, or of a list of messages, with the parts that it refers to."""
    parts: dict[str, Any] = {}
    own = _message_schema(message, parts)
    if is_stream:
        own = {"type": "array", "items": own, "minItems": 1}
    return {**own, "$defs": parts} if parts else own


def _message_schema(message: Any, parts: dict[str, Any]) -> dict[str, Any]:
    if message.full_name.startswith("google.protobuf.") and message.name in _WELL_KNOWN:
        return _WELL_KNOWN[message.name]
    if message.full_name not in parts:
        parts[message.full_name] = {}  # a message may contain itself
        parts[message.full_name] = _object_schema(message, parts)
    return {"$ref": f"#/$defs/{message.full_name}"}


def _object_schema(message: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object; with one variant for each member of a oneof."""
    choices = [one for one in message.oneofs if len(one.fields) > 1 or not one.name.startswith("_")]
    excluded = {field.name for one in choices for field in one.fields}
    shared = {
        field.name: _field_schema(field, parts) for field in message.fields if field.name not in excluded
    }
    first = {one.name: one.fields[0] for one in choices if one.fields}
    variants = []
    for one in choices:
        for field in one.fields:
            chosen = {**first, one.name: field}
            own = {other.name: _field_schema(other, parts) for other in chosen.values()}
            variants.append({"type": "object", "properties": {**shared, **own}})
    return {"anyOf": variants} if variants else {"type": "object", "properties": shared}


def _field_schema(field: Any, parts: dict[str, Any]) -> dict[str, Any]:
    is_repeated = getattr(field, "is_repeated", None)
    if is_repeated is None:  # before version 6 of protobuf
        is_repeated = field.label == _REPEATED
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        value = _value_schema(field.message_type.fields_by_name["value"], parts)
        key = "a" if field.message_type.fields_by_name["key"].type == _STRING else "1"
        return {"type": "object", "properties": {key: value}}
    own = _value_schema(field, parts)
    return {"type": "array", "items": own} if is_repeated else own


def _value_schema(field: Any, parts: dict[str, Any]) -> dict[str, Any]:
    kind = field.type
    limits = next(
        (limits for kinds, limits in _INTEGER_LIMITS if kind in kinds),
        None,
    )
    if field.message_type is not None:
        own = _message_schema(field.message_type, parts)
    elif limits is not None:
        own = {"type": "integer", "minimum": limits[0], "maximum": limits[1], "example": 1}
    elif kind in _FLOAT_TYPES:
        own = {"type": "number"}
    elif kind == _BOOL:
        own = {"type": "boolean"}
    elif kind == _ENUM:
        names = [one.name for one in field.enum_type.values]
        own = {"type": "string", "enum": [*names[1:], names[0]]}
    elif kind == _BYTES:
        own = {"type": "string", "format": "byte"}
    else:
        own = {"type": "string"}
    return own


_INTEGER_LIMITS = (
    (_SMALL_INTEGERS, (-(2**31), 2**31 - 1)),
    (_LARGE_INTEGERS, (-(2**63), 2**63 - 1)),
    (_SMALL_NATURALS, (0, 2**32 - 1)),
    (_LARGE_NATURALS, (0, 2**64 - 1)),
)
