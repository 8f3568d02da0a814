"""Call interceptor: request id, admission control, deadline, error mapping, and one log line per call.

It is a single interceptor on purpose: each layer costs a sixth of the CPU time of a small call. Request
bytes are decoded in the interceptor and not by the gRPC library, which would return UNKNOWN with the text
of an exception.

`peripety.rpc.channel` has the options of the client.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import time
import uuid
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from peripety.core import call_context, logging_setup
from peripety.core.concurrency import closing
from peripety.core.validation import normalize_uuid
from peripety.errors import (
    InvalidArgumentError,
    ResourceExhaustedError,
    UnavailableError,
    UnsupportedError,
    hide_internal_error,
)
from peripety.rpc.channel import CALLER_KEY, KEEPALIVE, REQUEST_ID_KEY
from peripety.rpc.status import RpcStatus, to_status

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Container

    from peripety.core.config import Config


_Call: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

_log = logging.getLogger(__name__)

_SAFE_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

_UUID_FIELDS = ("request_id", "attempt_id")
"""Fields that hold a UUID of the client's own spelling."""

_FACTORIES: dict[tuple[bool, bool], Callable[..., Any]] = {
    (False, False): grpc.unary_unary_rpc_method_handler,
    (False, True): grpc.unary_stream_rpc_method_handler,
    (True, False): grpc.stream_unary_rpc_method_handler,
    (True, True): grpc.stream_stream_rpc_method_handler,
}


@dataclass(frozen=True, slots=True)
class _Method:
    """A registered method of a service."""

    name: str
    handler: Any

    @property
    def is_infrastructure(self) -> bool:
        """True for health and reflection: never rejected, no deadline, ended first when the server stops."""
        return self.name.startswith("/grpc.")

    @property
    def behavior(self) -> Callable[..., Any]:
        h = self.handler
        behavior: Callable[..., Any] = h.unary_unary or h.unary_stream or h.stream_unary or h.stream_stream
        return behavior

    def decode_request(self, raw: Any) -> Any:
        """Return the decoded request, or the stream of decoded requests."""
        return self._decode_stream(raw) if self.handler.request_streaming else self._decode_message(raw)

    async def _decode_stream(self, stream: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        async for raw in stream:
            yield self._decode_message(raw)

    def _decode_message(self, raw: bytes) -> Any:
        try:
            return (
                _normalized(self.handler.request_deserializer(raw))
                if self.handler.request_deserializer
                else raw
            )
        except DecodeError:
            raise InvalidArgumentError(
                f"request of {self.name} cannot be decoded; send the message declared in its .proto file",
                code="UNDECODABLE_REQUEST",
            ) from None

    def encode_response(self, max_bytes: int, message: Any) -> bytes:
        """Return the bytes of a response, or raise an error if it exceeds the size limit.

        A handler may return bytes: a message for many clients is then encoded once.
        """
        serializer = None if isinstance(message, bytes) else self.handler.response_serializer
        data: bytes = serializer(message) if serializer else message
        if len(data) > max_bytes:
            raise ResourceExhaustedError(
                f"response has {len(data)} bytes, more than the limit of {max_bytes};"
                " request less, or use pages",
                code="REPLY_TOO_LARGE",
            )
        return data


def _normalized(request: Any) -> Any:
    """Return a request with its UUIDs in lower case.

    Clients may send either case. This runs before anything compares or hashes the request, so a retry in the
    other case is the same request.
    """
    for name in _UUID_FIELDS:
        if text := getattr(request, name, ""):
            canonical = normalize_uuid(text)
            if canonical != text:
                setattr(request, name, canonical)
    return request


class CallInterceptor(grpc.aio.ServerInterceptor):
    """Server interceptor that wraps every handler once and caches the wrapped handler.

    Args:
        config: the settings.
        endless: full names of the methods without a default deadline.
    """

    def __init__(self, config: Config, endless: Container[str] = ()) -> None:
        self._config = config
        self._endless = endless
        self._active_calls = 0
        self._is_stopping = False
        self._infrastructure_timeouts: set[asyncio.Timeout] = set()
        self._wrapped: dict[str, _Handler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[_Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Return the wrapped handler of the called method, or None if the method is not served."""
        name = handler_call_details.method
        if name not in self._wrapped:
            handler = await continuation(handler_call_details)
            if handler is None:
                return None
            self._wrapped[name] = self._wrap(_Method(name, handler))
        return self._wrapped[name]

    def reject_new_calls(self) -> None:
        """Reject new calls, and end health and reflection streams, which would delay the shutdown."""
        self._is_stopping = True
        now = asyncio.get_running_loop().time()
        for watch in self._infrastructure_timeouts:
            watch.reschedule(now)

    def _wrap(self, method: _Method) -> _Handler:
        encode = partial(method.encode_response, self._config.max_message_bytes)

        async def reply(raw: Any, call: _Call) -> bytes:
            async with self._call_scope(method, call):
                return encode(await method.behavior(method.decode_request(raw), call))

        async def stream(raw: Any, call: _Call) -> None:
            async with self._call_scope(method, call):
                # Headers at once: some clients return a stream only when its headers arrive.
                await call.send_initial_metadata(())
                replies = method.behavior(method.decode_request(raw), call)
                await (replies if inspect.isawaitable(replies) else _write_responses(call, replies))

        streams = (method.handler.request_streaming, method.handler.response_streaming)
        behavior, serializer = (stream, encode) if method.handler.response_streaming else (reply, None)
        wrapped: _Handler = _FACTORIES[streams](behavior, response_serializer=serializer)
        return wrapped

    @asynccontextmanager
    async def _call_scope(self, method: _Method, call: _Call) -> AsyncIterator[None]:
        request_id = _request_id(call)
        call.set_trailing_metadata(((REQUEST_ID_KEY, request_id),))
        call_context.begin_call(
            request_id=request_id,
            timeout=call.time_remaining(),
            caller=_caller_name(call),
        )
        started, code = time.perf_counter(), None
        try:
            async with self._infrastructure_scope() if method.is_infrastructure else self._admission(method):
                yield
            code = grpc.StatusCode.OK
        except grpc.aio.BaseError:
            # Raised by gRPC itself: the handler aborted the call, or the connection is lost. No status can be
            # sent.
            raise
        except Exception as error:  # noqa: BLE001 - the border: only our own errors leave the process
            end = _to_rpc_status(_translate_unimplemented(error, method, call), request_id)
            code = end.code
            await call.abort(code, end.message, ((REQUEST_ID_KEY, request_id), *end.trailers))
        finally:
            _log_call(method, code or _interruption_code(call), started)

    @asynccontextmanager
    async def _admission(self, method: _Method) -> AsyncIterator[None]:
        """Admit a call if a slot is free, and set a default deadline if the caller set none."""
        if self._is_stopping:
            raise _stopping_error()
        if self._active_calls >= self._config.max_concurrent_calls:
            raise ResourceExhaustedError(
                f"server has {self._active_calls} concurrent calls, its limit; retry after a second",
                code="TOO_MANY_CALLS",
                retry_after=1.0,
            )
        self._active_calls += 1
        try:
            # A deadline of the caller is enforced by the gRPC library, which cancels the call.
            missing = call_context.call_deadline() is None and method.name not in self._endless
            async with (
                call_context.timeout_at_deadline(self._config.default_deadline_seconds)
                if missing
                else nullcontext()
            ):
                yield
        finally:
            self._active_calls -= 1

    @asynccontextmanager
    async def _infrastructure_scope(self) -> AsyncIterator[None]:
        watch = asyncio.timeout(None)
        try:
            async with watch:
                self._infrastructure_timeouts.add(watch)
                yield
        except TimeoutError:
            if not watch.expired():
                raise
            raise _stopping_error() from None
        finally:
            self._infrastructure_timeouts.discard(watch)


async def _write_responses(call: _Call, replies: AsyncGenerator[Any, None]) -> None:
    # Written by this coroutine and not by gRPC: a cancellation then closes the generator at once, in its own
    # task.
    async with closing(replies):
        async for message in replies:
            await call.write(message)


def _stopping_error() -> UnavailableError:
    return UnavailableError("server is stopping; connect again", code="SERVER_SHUTTING_DOWN")


def _request_id(call: _Call) -> str:
    """Return the caller's request id if it is safe in logs and headers, else a new one."""
    for key, value in call.invocation_metadata() or ():
        if key == REQUEST_ID_KEY and isinstance(value, str) and _SAFE_REQUEST_ID.fullmatch(value):
            return value
    return uuid.uuid4().hex


def _caller_name(call: _Call) -> str:
    """Return the name of the caller.

    Several values are joined: a name that a client adds to that of the proxy never equals another caller's.
    """
    return ",".join(str(value) for key, value in call.invocation_metadata() or () if key == CALLER_KEY)


def _to_rpc_status(error: Exception, request_id: str) -> RpcStatus:
    public = hide_internal_error(error, f"request id {request_id}", {"request_id": request_id})
    if public is not error:
        _log.error("unexpected error", extra=logging_setup.describe_error(error))
    return to_status(public)


def _translate_unimplemented(error: Exception, method: _Method, call: _Call) -> Exception:
    """Convert the error of a method that is not implemented; only generated servicers set this code."""
    if call.code() is grpc.StatusCode.UNIMPLEMENTED:
        return UnsupportedError(f"{method.name} is not implemented in this version of the server")
    return error


def _interruption_code(call: _Call) -> grpc.StatusCode:
    """Return the status code of a call that neither returned nor failed with an error of ours."""
    out_of_time = call_context.remaining() == 0
    return call.code() or (grpc.StatusCode.DEADLINE_EXCEEDED if out_of_time else grpc.StatusCode.CANCELLED)


def _log_call(method: _Method, code: grpc.StatusCode, started: float) -> None:
    level = logging.DEBUG if method.is_infrastructure else logging.INFO
    ms = round((time.perf_counter() - started) * 1000, 2)
    _log.log(level, "call", extra={"method": method.name, "code": code.name, "ms": ms})


METADATA_BYTES = 16_384


def server_options(config: Config) -> list[tuple[str, Any]]:
    """Return the channel arguments of every server."""
    return [
        *KEEPALIVE,
        (
            "grpc.http2.min_ping_interval_without_data_ms",
            20_000,
        ),  # shorter than the keepalive of the clients, or gRPC closes their connections
        ("grpc.max_receive_message_length", config.max_message_bytes),  # messages are held in memory
        ("grpc.max_send_message_length", config.max_message_bytes),
        ("grpc.max_concurrent_streams", 128),  # per connection: no client can use every slot
        (
            "grpc.http2.bdp_probe",
            0,
        ),  # with the next option: 142 KiB instead of 4 MiB buffered for a client that only sends
        ("grpc.http2.lookahead_bytes", 65_536),
        (
            "grpc.max_connection_age_ms",
            1_800_000,
        ),  # on reconnect, clients resolve names again and find new replicas
        ("grpc.max_connection_age_grace_ms", _grace_ms(config)),  # running calls may end after that age
        ("grpc.max_metadata_size", METADATA_BYTES),  # both limits, or requests between them fail at random
        ("grpc.absolute_max_metadata_size", METADATA_BYTES),
        ("grpc.so_reuseport", 0),  # a second server on the port is an error, not a worker
    ]


def _grace_ms(config: Config) -> int:
    longest = max(config.default_deadline_seconds, config.drain_seconds)
    return int(longest * 1000)
