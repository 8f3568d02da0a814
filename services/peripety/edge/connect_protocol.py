"""The Connect protocol: calls of generated clients over HTTP/1.1, without gRPC's trailers.

A unary call is one POST of a message, as `application/proto` or `application/json`. A stream is a sequence of
envelopes: one byte of flags, four bytes of length, the message. The last envelope has the flag 2 and holds
    the
status. JSON is the standard form of protobuf here, as generated clients expect. The protocol is specified at
https://connectrpc.com/docs/protocol.
"""

from __future__ import annotations

import base64
import json
import struct
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from fastapi.responses import Response
from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from starlette.responses import StreamingResponse

from peripety.edge.calls import STREAM_SECONDS, RpcCaller, RpcMethod
from peripety.edge.problems import STATUSES
from peripety.errors import (
    DeadlineError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    PeripetyError,
    UnsupportedError,
    hide_internal_error,
)
from peripety.rpc.status import STATUS, to_status_message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_END_OF_STREAM = 2
_COMPRESSED = 1
_ENVELOPE = struct.Struct(">BI")
_MAX_TIMEOUT_DIGITS = 10
_STREAMS = {"application/connect+proto": False, "application/connect+json": True}
_UNARY = {"application/proto": False, "application/json": True}


class ConnectRoutes:
    """Handler of `/{package.Service}/{Method}`.

    Args:
        caller: calls the services.
    """

    def __init__(self, caller: RpcCaller) -> None:
        self._caller = caller
        self.router = APIRouter(include_in_schema=False)
        self.router.add_api_route("/{service}/{name}", self.call, methods=["POST"])

    async def call(self, service: str, name: str, request: Request) -> Response:
        """Answer a call; an error is a JSON document with a code of Connect."""
        method = self._caller.methods.get(f"/{service}/{name}")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            if method is None:
                raise NotFoundError(
                    "this path does not exist; /docs lists all of them", code="METHOD_NOT_FOUND"
                )
            if kind in _STREAMS:
                return await self._call_stream(method, request, is_json=_STREAMS[kind], kind=kind)
            return await self._call_unary(method, request, is_json=_UNARY[kind], kind=kind)
        except PeripetyError as error:
            document = _error_document(error)
            return Response(json.dumps(document), STATUSES[error.kind], media_type="application/json")

    async def _call_unary(self, method: RpcMethod, request: Request, *, is_json: bool, kind: str) -> Response:
        if method.takes_stream or method.returns_stream:
            raise UnsupportedError(f"{method.name} is a stream; send application/connect+proto or +json")
        message = _decode(method, await request.body(), is_json=is_json)
        response = await self._caller.call(method, message, seconds=_timeout(request))
        return Response(_encode(response, is_json=is_json), media_type=kind)

    async def _call_stream(
        self, method: RpcMethod, request: Request, *, is_json: bool, kind: str
    ) -> Response:
        messages = [_decode(method, data, is_json=is_json) for data in _split_envelopes(await request.body())]
        if not method.takes_stream and len(messages) != 1:
            raise InvalidArgumentError(f"{method.name} takes exactly one message")
        argument = messages if method.takes_stream else messages[0]
        seconds = _timeout(request)
        return StreamingResponse(self._responses(method, argument, seconds, is_json=is_json), media_type=kind)

    async def _responses(
        self, method: RpcMethod, argument: Any, seconds: float | None, *, is_json: bool
    ) -> AsyncIterator[bytes]:
        end: dict[str, Any] = {}
        try:
            if method.returns_stream:
                stream = self._caller.stream(method, argument, seconds=seconds or STREAM_SECONDS)
                async for response in stream:
                    yield _envelop(0, _encode(response, is_json=is_json))
            else:
                response = await self._caller.call(method, argument, seconds=seconds)
                yield _envelop(0, _encode(response, is_json=is_json))
        except Exception as error:  # noqa: BLE001 - the border: the status is the last envelope
            end = {"error": _error_document(error)}
        yield _envelop(_END_OF_STREAM, json.dumps(end).encode())


def _timeout(request: Request) -> float | None:
    """Return the requested deadline in seconds."""
    text = request.headers.get("connect-timeout-ms", "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_TIMEOUT_DIGITS):
        raise InvalidArgumentError("connect-timeout-ms must be at most 10 digits")
    if int(text) == 0:
        raise DeadlineError("the deadline is over before the call")
    return int(text) / 1000


def _decode(method: RpcMethod, data: bytes, *, is_json: bool) -> Message:
    try:
        if is_json:
            return json_format.Parse(data or b"{}", method.request())
        return method.request.FromString(data)
    except (DecodeError, json_format.ParseError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(
            f"request of {method.name} cannot be decoded: {error}"[:500], code="UNDECODABLE_REQUEST"
        ) from None


def _encode(message: Message, *, is_json: bool) -> bytes:
    if is_json:
        return json_format.MessageToJson(message, indent=None, ensure_ascii=False).encode()
    return message.SerializeToString()


def _split_envelopes(body: bytes) -> list[bytes]:
    messages, position = [], 0
    while position < len(body):
        if len(body) - position < _ENVELOPE.size:
            raise InvalidArgumentError("body ends within an envelope", code="UNDECODABLE_REQUEST")
        flags, length = _ENVELOPE.unpack_from(body, position)
        position += _ENVELOPE.size
        if flags & _COMPRESSED:
            raise UnsupportedError("compressed envelopes are not accepted")
        if len(body) - position < length:
            raise InvalidArgumentError("body ends within an envelope", code="UNDECODABLE_REQUEST")
        messages.append(body[position : position + length])
        position += length
    return messages


def _envelop(flags: int, data: bytes) -> bytes:
    return _ENVELOPE.pack(flags, len(data)) + data


def _error_document(error: Exception) -> dict[str, Any]:
    """Return an error in the form of Connect, with the same details as over gRPC."""
    public = hide_internal_error(error, "the x-request-id of the response")
    details = [
        {
            "type": detail.type_url.rpartition("/")[2],
            "value": base64.b64encode(detail.value).decode().rstrip("="),
        }
        for detail in to_status_message(public).details
    ]
    code = STATUS.get(public.kind, STATUS[InternalError.kind]).name.lower()
    return {"code": code, "message": public.message, "details": details}
