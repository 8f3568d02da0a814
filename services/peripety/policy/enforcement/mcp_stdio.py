"""MCP over lines of pipes: a dispatcher for the sessions of the SDK, its pipes, and the server as a process.

The SDK's own dispatcher passes each message through memory streams and task groups. For a call that passes a
proxy these are about 20 iterations of the event loop, more time than everything else in the call. This
dispatcher reads and writes the pipes itself. The sessions of the SDK, which know the versions of the protocol
and validate messages, stay the same as over HTTP.

A message is parsed once, and sent on as a new line that is written from the parsed values. So a repeated key,
an escape or a separator cannot be read differently by the next reader.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import stat
import subprocess
import threading
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

import anyio
import mcp_types as types
from mcp import MCPError
from mcp.server.connection import Connection
from mcp.server.runner import ServerRunner
from mcp.shared.dispatcher import Dispatcher, as_request_id, coerce_request_id, run_notify_intercept
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.jsonrpc_dispatcher import (
    cancelled_request_id_from_params,
    handler_exception_to_error_data,
    progress_token_from_params,
)
from mcp.shared.transport_context import TransportContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from pydantic_core import from_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
    from pathlib import Path

    from mcp.server.lowlevel import Server
    from mcp.shared.dispatcher import CallOptions, OnNotify, OnNotifyIntercept, OnRequest, ProgressFnT


_log = logging.getLogger(__name__)
_MAX_LINE_BYTES = 1 << 26
_READ_BYTES = 1 << 16
_STOP_SECONDS = 2.0
_POLL_SECONDS = 0.01
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))


class LineWriter(Protocol):
    """Writer of one side, such as `asyncio.StreamWriter`."""

    def write(self, data: bytes, /) -> None:
        """Write, or buffer what the reader does not read yet."""

    async def drain(self) -> None:
        """Wait while the reader is slow.

        Raises:
            ConnectionError: the pipe is closed.
        """


@dataclass(slots=True)
class _Pending:
    """A request to the peer that waits for its answer."""

    answer: asyncio.Future[dict[str, Any]]
    on_progress: ProgressFnT | None


class _Exchange:
    """A request or a notification of the peer, as a handler of the SDK gets it."""

    transport = TransportContext(kind="stdio", can_send_request=True)
    message_metadata = None
    can_send_request = True

    def __init__(
        self, dispatcher: LineDispatcher, request_id: str | int | None, progress_token: str | int | None
    ) -> None:
        self._dispatcher = dispatcher
        self._progress_token = progress_token
        self.request_id = request_id

    @cached_property
    def cancel_requested(self) -> anyio.Event:
        return anyio.Event()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        return await self._dispatcher.send_raw_request(method, params, opts)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        await self._dispatcher.notify(method, params, opts)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self._progress_token is None:
            return
        values = {"progressToken": self._progress_token, "progress": progress} | {
            name: value for name, value in (("total", total), ("message", message)) if value is not None
        }
        await self._dispatcher.notify("notifications/progress", values)


class LineDispatcher(Dispatcher[TransportContext]):
    """JSON-RPC 2.0 with one message in a line.

    The ids of the two sides are independent: a request to the peer gets a number of this dispatcher, and the
    answer to a request of the peer gets the id that the peer chose.

    Args:
        reader: the lines of the peer. A longer line than its limit ends the connection.
        writer: receives the lines for the peer.
        inline_methods: methods whose requests are answered before the next line is read.
        reports_invalid: True to answer a line that is not a valid message with an error. Servers print other
            text to their output, so their client only logs it.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: LineWriter,
        *,
        inline_methods: frozenset[str] = frozenset(),
        reports_invalid: bool = False,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._inline_methods = inline_methods
        self._reports_invalid = reports_invalid
        self._is_open = False
        self._last_id = 0
        self._pending: dict[str | int, _Pending] = {}
        self._in_flight: dict[str | int, tuple[_Exchange, asyncio.Task[None]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Read until the peer closes; then cancel its requests, and fail the requests to it."""
        self._on_request = on_request
        self._on_notify = on_notify
        self._on_notify_intercept = on_notify_intercept
        self._is_open = True
        task_status.started()
        try:
            while line := await self._reader.readline():
                await self._read(line)
            await asyncio.sleep(0)  # the last lines get their answers, where nothing has to be waited for
        except (ValueError, ConnectionError) as error:
            _log.warning("the connection is closed: %s", error)
        finally:
            self._is_open = False
            for pending in self._pending.values():
                if not pending.answer.done():
                    pending.answer.set_exception(_closed())
            for task in self._tasks:
                task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_STOP_SECONDS)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request, and return its result.

        Raises:
            MCPError: the peer answered with an error or too late, or the connection is closed.
            ValueError: the parameters have no JSON form.
        """
        if not self._is_open:
            raise _closed()
        options = opts or {}
        self._last_id += 1
        request_id = self._last_id
        values = dict(params or {})
        on_progress = options.get("on_progress")
        if on_progress is not None:
            values["_meta"] = {**(values.get("_meta") or {}), "progressToken": request_id}
        message = {"jsonrpc": "2.0", "id": request_id, "method": method}
        answer = asyncio.get_running_loop().create_future()
        self._pending[request_id] = _Pending(answer, on_progress)
        try:
            self._writer.write(_encode(message | {"params": values} if values else message))
            await self._writer.drain()
            async with asyncio.timeout(options.get("timeout")):
                return cast("dict[str, Any]", await answer)
        except ConnectionError:
            raise _closed() from None
        except (TimeoutError, asyncio.CancelledError) as error:
            if options.get("cancel_on_abandon", True) and self._is_open:
                self._write_cancellation(request_id)
            if isinstance(error, TimeoutError):
                raise MCPError(types.REQUEST_TIMEOUT, f"no answer to {method} in time") from None
            raise
        finally:
            del self._pending[request_id]
            if answer.done() and not answer.cancelled():
                answer.exception()  # the caller may have stopped waiting, so this marks it as retrieved

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, _opts: CallOptions | None = None
    ) -> None:
        """Send a notification; do nothing if the connection is closed."""
        message = {"jsonrpc": "2.0", "method": method}
        await self._send(message if params is None else message | {"params": dict(params)})

    def _write_cancellation(self, request_id: int) -> None:
        params = {"requestId": request_id, "reason": "the caller does not wait any more"}
        self._writer.write(_encode({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))

    async def _send(self, message: dict[str, Any]) -> None:
        self._writer.write(_encode(message))
        with suppress(ConnectionError):
            await self._writer.drain()

    async def _read(self, line: bytes) -> None:
        """Dispatch one line."""
        try:
            message = from_json(line, allow_inf_nan=False)
        except ValueError as error:
            if line.strip():
                await self._refuse(types.PARSE_ERROR, f"not JSON: {error}")
            return
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            await self._refuse(types.INVALID_REQUEST, "not a JSON-RPC 2.0 message; batches are not supported")
            return
        method, params = message.get("method"), message.get("params")
        is_answer = "result" in message or "error" in message
        if is_answer and "method" not in message:
            self._read_answer(message)
        elif is_answer or not isinstance(method, str) or not (params is None or isinstance(params, dict)):
            await self._refuse(types.INVALID_REQUEST, "a method or its parameters are invalid")
        elif "id" not in message:
            self._read_notification(method, params)
        else:
            await self._read_request(as_request_id(message["id"]), method, params)

    async def _refuse(self, code: int, text: str, request_id: str | int | None = None) -> None:
        _log.warning("an invalid message is ignored: %s", text)
        if self._reports_invalid:
            error = {"code": code, "message": text}
            await self._send({"jsonrpc": "2.0", "id": request_id, "error": error})

    async def _read_request(
        self, request_id: str | int | None, method: str, params: dict[str, Any] | None
    ) -> None:
        if request_id is None:
            await self._refuse(types.INVALID_REQUEST, "an id must be a string or an integer")
            return
        if request_id in self._in_flight:
            await self._refuse(types.INVALID_REQUEST, "another request with this id is not answered yet")
            return
        exchange = _Exchange(self, request_id, progress_token_from_params(params))
        task = self._start(self._answer(request_id, exchange, method, params))
        self._in_flight[request_id] = exchange, task
        task.add_done_callback(lambda _: self._settle(request_id, exchange, task))
        if method in self._inline_methods:
            await asyncio.wait({task})

    async def _answer(
        self, request_id: str | int, exchange: _Exchange, method: str, params: dict[str, Any] | None
    ) -> None:
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request_id}
        try:
            line = _encode(answer | {"result": await self._on_request(exchange, method, params)})
        except Exception as error:  # noqa: BLE001 - the border: the peer gets an answer to each request
            data = handler_exception_to_error_data(error)
            if data is None:
                _log.exception("the handler of %s failed", method[:64])
                data = types.ErrorData(code=types.INTERNAL_ERROR, message="Internal error")
            line = _encode(answer | {"error": data.model_dump(mode="json", exclude_none=True)})
        # The peer may use the id again as soon as it has read the answer.
        del self._in_flight[request_id]
        self._writer.write(line)
        with suppress(ConnectionError):
            await self._writer.drain()

    def _settle(self, request_id: str | int, exchange: _Exchange, task: asyncio.Task[None]) -> None:
        """Remove a cancelled request; answer it unless the peer has cancelled it."""
        if self._in_flight.get(request_id, (None,))[0] is not exchange:
            return
        del self._in_flight[request_id]
        if task.cancelled() and not exchange.cancel_requested.is_set():
            error = {"code": types.CONNECTION_CLOSED, "message": "Connection closed"}
            self._writer.write(_encode({"jsonrpc": "2.0", "id": request_id, "error": error}))

    def _read_answer(self, message: dict[str, Any]) -> None:
        request_id = as_request_id(message.get("id"))
        pending = None if request_id is None else self._pending.get(coerce_request_id(request_id))
        if pending is None or pending.answer.done():
            _log.debug("an answer to no waiting request is ignored")
            return
        result, error = message.get("result"), message.get("error")
        if isinstance(result, dict) and "error" not in message:
            pending.answer.set_result(result)
            return
        try:
            data = types.ErrorData.model_validate(error)
        except ValidationError:
            data = types.ErrorData(code=types.INTERNAL_ERROR, message="the answer is invalid")
        pending.answer.set_exception(MCPError.from_error_data(data))

    def _read_notification(self, method: str, params: dict[str, Any] | None) -> None:
        if method == "notifications/cancelled":
            self._cancel(cancelled_request_id_from_params(params))
        elif method == "notifications/progress":
            self._read_progress(params or {})
        if not run_notify_intercept(self._on_notify_intercept, method, params):
            self._start(self._on_notify(_Exchange(self, None, None), method, params))

    def _cancel(self, request_id: str | int | None) -> None:
        if request_id is None:
            return
        # Some clients send a number as a string here.
        found = self._in_flight.get(request_id) or self._in_flight.get(coerce_request_id(request_id))
        if found is not None:
            exchange, task = found
            exchange.cancel_requested.set()
            task.cancel()

    def _read_progress(self, params: dict[str, Any]) -> None:
        token, progress = as_request_id(params.get("progressToken")), params.get("progress")
        pending = None if token is None else self._pending.get(coerce_request_id(token))
        if pending is None or pending.on_progress is None or not _is_number(progress):
            return
        total, text = params.get("total"), params.get("message")
        self._start(
            pending.on_progress(
                cast("float", progress),
                total if _is_number(total) else None,
                text if isinstance(text, str) else None,
            )
        )

    def _start(self, work: Coroutine[Any, Any, None] | Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a message was not handled", exc_info=error)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _closed() -> MCPError:
    return MCPError(types.CONNECTION_CLOSED, "Connection closed")


def _encode(message: dict[str, Any]) -> bytes:
    """Return a message as a line of ASCII.

    Raises:
        ValueError: a number is not finite.
    """
    return _ENCODER.encode(message).encode() + b"\n"


async def serve_lines(server: Server[Any], reader: asyncio.StreamReader, writer: LineWriter) -> None:
    """Serve one client until it closes, in the era of the protocol that its first request chooses.

    A request with the envelope of 2026-07-28 opens the era without a handshake, any other one that with it.
    Later requests of the other era are refused.
    """
    dispatcher = LineDispatcher(
        reader, writer, inline_methods=frozenset({"initialize"}), reports_invalid=True
    )
    runner = ServerRunner(server, Connection.for_loop(dispatcher), {})
    is_modern: bool | None = None

    async def answer(context: Any, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        nonlocal is_modern
        meta = (params or {}).get("_meta")
        is_handshake = method == "initialize"
        has_envelope = isinstance(meta, dict) and types.PROTOCOL_VERSION_META_KEY in meta
        if is_modern is None:
            is_modern = has_envelope and not is_handshake
        if not is_modern:
            if has_envelope and not is_handshake:
                raise MCPError(types.INVALID_REQUEST, "the connection was opened with the handshake")
            return await runner.on_request(context, method, params)
        if is_handshake:
            # The client whose first request was answered too late continues with one of these versions.
            details = types.UnsupportedProtocolVersionErrorData(
                supported=[*MODERN_PROTOCOL_VERSIONS], requested=str((params or {}).get("protocolVersion"))
            )
            raise MCPError(
                types.UNSUPPORTED_PROTOCOL_VERSION,
                "the connection was opened without the handshake",
                details.model_dump(mode="json"),
            )
        route = classify_inbound_request({"method": method, "params": params})
        if isinstance(route, InboundLadderRejection):
            raise MCPError(route.code, route.message, route.data)
        opened = Connection.from_envelope(
            route.protocol_version, route.client_info, route.client_capabilities
        )
        return await ServerRunner(server, opened, {}).on_request(context, method, params)

    await dispatcher.run(answer, runner.on_notify)


@asynccontextmanager
async def start_server(
    command: Sequence[str], directory: Path | None
) -> AsyncIterator[tuple[asyncio.StreamReader, LineWriter]]:
    """Start a server with the environment of this process, yield its output and input, and stop it.

    Raises:
        OSError: the command cannot be started.
    """
    process = subprocess.Popen(  # noqa: S603, ASYNC220 - the command of the caller; as asyncio starts it
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        cwd=directory,
        start_new_session=True,
    )
    async with _open_reader(process.stdout) as reader:
        try:
            async with _open_writer(process.stdin) as writer:
                yield reader, writer
        finally:  # while its output is still read
            with anyio.CancelScope(shield=True):
                await _stop(process)


async def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the process group of a server that does not exit after its input is closed."""
    if await _becomes_true(lambda: process.poll() is not None):
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        if await _becomes_true(lambda: process.poll() is not None and not _has_group(process.pid)):
            return
    _log.warning("the server is still running after it was killed: process %d", process.pid)


async def _becomes_true(condition: Callable[[], bool]) -> bool:
    """Wait a short time for a condition, and return it."""
    for _ in range(int(_STOP_SECONDS / _POLL_SECONDS)):
        if condition():
            return True
        await asyncio.sleep(_POLL_SECONDS)
    return condition()


def _has_group(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class _PipeWriter(asyncio.BaseProtocol):
    """Writer of a pipe; waits while its reader is slow."""

    def __init__(self) -> None:
        self._is_ready = asyncio.Event()
        self._is_closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self._transport.set_write_buffer_limits(0)
        self._is_ready.set()

    def pause_writing(self) -> None:
        self._is_ready.clear()

    def resume_writing(self) -> None:
        self._is_ready.set()

    def connection_lost(self, _error: Exception | None) -> None:
        self._is_closed = True
        self._is_ready.set()

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    async def drain(self) -> None:
        await self._is_ready.wait()
        if self._is_closed or self._transport.is_closing():
            raise BrokenPipeError


@asynccontextmanager
async def _open_reader(pipe: Any) -> AsyncIterator[asyncio.StreamReader]:
    reader = asyncio.StreamReader(limit=_MAX_LINE_BYTES)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    try:
        yield reader
    finally:
        transport.close()


@asynccontextmanager
async def _open_writer(pipe: Any) -> AsyncIterator[LineWriter]:
    transport, writer = await asyncio.get_running_loop().connect_write_pipe(_PipeWriter, pipe)
    try:
        yield writer
    finally:
        transport.close()


class _FileWriter:
    """Writer of a file or a terminal, which the event loop cannot watch."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._descriptor, data) :]

    async def drain(self) -> None:
        pass


@asynccontextmanager
async def open_pipes() -> AsyncIterator[tuple[asyncio.StreamReader, LineWriter]]:
    """Yield standard input and output.

    Meanwhile the process itself reads nothing from standard input, and its own output goes to standard error.
    """
    stdin, stdout, nothing = os.dup(0), os.dup(1), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    async with AsyncExitStack() as opened:
        opened.callback(os.close, stdout)
        if _is_pipe(stdin):  # otherwise the thread below may still read when the process ends
            opened.callback(os.close, stdin)
        opened.callback(os.dup2, stdout, 1)
        opened.callback(os.dup2, stdin, 0)
        if _is_pipe(stdin):
            reader = await opened.enter_async_context(_open_reader(os.fdopen(os.dup(stdin), "rb")))
        else:
            reader = asyncio.StreamReader(limit=_MAX_LINE_BYTES)
            loop = asyncio.get_running_loop()
            threading.Thread(target=_read_file, args=(stdin, reader, loop), daemon=True).start()
        writer: LineWriter = _FileWriter(stdout)
        if _is_pipe(stdout):
            writer = await opened.enter_async_context(_open_writer(os.fdopen(os.dup(stdout), "wb")))
        yield reader, writer


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _read_file(descriptor: int, reader: asyncio.StreamReader, loop: asyncio.AbstractEventLoop) -> None:
    """Pass a file to a reader, in a thread: a terminal would block the event loop."""
    with suppress(OSError, RuntimeError):  # the terminal or the loop is closed
        while data := os.read(descriptor, _READ_BYTES):
            loop.call_soon_threadsafe(reader.feed_data, data)
        loop.call_soon_threadsafe(reader.feed_eof)
