"""Request handler of the scripted LLM: from an HTTP request to an answer in the format of its provider.

Control endpoints let a test in another process inspect and control the simulator.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from peripety.core.logging_setup import describe_error
from peripety.errors import (
    ErrorKind,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PeripetyError,
)
from peripety.llmsim.determinism import SeededRng
from peripety.llmsim.script.files import script_from_document
from peripety.llmsim.server import routing
from peripety.llmsim.server.connection import ClientConnection
from peripety.llmsim.types import ApiError, ApiErrorKind
from peripety.llmsim.wire.base import HttpCall, HttpDocument, WireOperation, compact_json, parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from aiohttp import web

    from peripety.llmsim.script_engine import Exchange
    from peripety.llmsim.server.routing import Router, RouteTarget
    from peripety.llmsim.simulator import Simulator
    from peripety.llmsim.wire.base import Wire


PREFIX = "/_simulator/"

_COUNT_DIGITS = 15
_TABLES = ("conversations", "cache", "limits", "bills")
_STATUSES = {
    ErrorKind.INVALID_ARGUMENT: 400,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.FAILED_PRECONDITION: 409,
}


class ControlApi:
    """Handler of `/_simulator/`.

    Args:
        simulator: the simulator.
        reload: reads the script file again; None if the script was not read from a file.
    """

    def __init__(self, simulator: Simulator, reload: Callable[[], None] | None = None) -> None:
        self._simulator = simulator
        self._reload = reload
        self._endpoints: dict[str, Callable[[Mapping[str, Any]], Any]] = {
            "GET health": lambda _: {"status": "ok"},
            "GET calls": self._list_calls,
            "GET state": lambda _: self._state(),
            "POST reset": lambda _: simulator.reset(),
            "POST clock": self._advance_clock,
            "POST fail": self._inject_fault,
            "POST reload": lambda _: self._reload_script(),
        }

    def handle(self, method: str, path: str, query: Mapping[str, str], body: bytes) -> HttpDocument:
        """Execute a request; errors become documents."""
        try:
            name = f"{method} {path.removeprefix(PREFIX)}"
            endpoint = self._endpoints.get(name)
            if endpoint is None:
                raise NotFoundError(
                    f"endpoint {name} does not exist; use one of {', '.join(self._endpoints)}",
                )
            return HttpDocument(200, compact_json(endpoint({**query, **_parse_settings(body)}) or {}))
        except PeripetyError as error:
            return error_to_document(error)

    def _list_calls(self, settings: Mapping[str, Any]) -> Any:
        """Return all calls, those after a number, or the last ones of them."""
        calls = self._simulator.captured.after(_parse_count(settings, "after", 0))
        last = _parse_count(settings, "last", len(calls))
        return {"calls": [call.to_json() for call in calls[len(calls) - min(last, len(calls)) :]]}

    def _state(self) -> Any:
        return {
            "now": self._simulator.now(),
            "entries": {name: len(self._simulator.objects(name)) for name in _TABLES},
            "bills": [asdict(account) for account in self._simulator.accounts],
        }

    def _advance_clock(self, settings: Mapping[str, Any]) -> Any:
        seconds = settings.get("advance")
        if not isinstance(seconds, int | float) or isinstance(seconds, bool) or len(settings) != 1:
            raise InvalidArgumentError('The clock is moved by {"advance": SECONDS}')
        return {"now": self._simulator.advance(seconds)}

    def _inject_fault(self, settings: Mapping[str, Any]) -> None:
        """Inject a fault, given as in a script file; `times` is the number of occurrences."""
        (failure,) = script_from_document({"failures": [settings]}, name="the request").failures
        self._simulator.inject(failure)

    def _reload_script(self) -> None:
        if self._reload is None:
            raise FailedPreconditionError("the script was not read from a file")
        self._reload()


def error_to_document(error: PeripetyError) -> HttpDocument:
    """Return an error as a document."""
    status = _STATUSES.get(error.kind, 500)
    return HttpDocument(status, compact_json({"error": {"code": error.code, "message": str(error)}}))


def _parse_count(settings: Mapping[str, Any], name: str, default: int) -> int:
    text = str(settings.get(name, default))
    if not text.isdecimal() or len(text) > _COUNT_DIGITS:
        raise InvalidArgumentError(f"{name} must be a number from 0: {text[:20]}")
    return int(text)


def _parse_settings(body: bytes) -> Mapping[str, Any]:
    try:
        settings = parse_json(body) if body else {}
    except ValueError as error:
        raise InvalidArgumentError(f"body is not JSON: {error}") from None
    if not isinstance(settings, dict):
        raise InvalidArgumentError("body is not a JSON object")
    return settings


_log = logging.getLogger(__name__)


class SimulatorApp:
    """Request handler. Errors of a request never end the server.

    Args:
        simulator: decides the answers.
        router: the APIs.
        control: the control endpoints, which belong to no provider.
    """

    def __init__(self, simulator: Simulator, router: Router, control: ControlApi) -> None:
        self._simulator = simulator
        self._router = router
        self._control = control

    async def handle(self, request: web.BaseRequest) -> bool:
        """Answer a request; return True if its connection stays open."""
        connection = ClientConnection(request)
        path = request.rel_url.raw_path
        try:
            if path.startswith(PREFIX):
                await self._handle_control(request, path, connection)
            else:
                await self._handle_api(request, path, connection)
        except ConnectionError:
            connection.keep_alive = False  # the client has disconnected
        return connection.keep_alive

    async def _handle_control(
        self,
        request: web.BaseRequest,
        path: str,
        connection: ClientConnection,
    ) -> None:
        try:
            body = await connection.read_body()
            answer = self._control.handle(request.method, path, request.rel_url.query, body)
        except ApiError as error:
            answer = error_to_document(InvalidArgumentError(error.message))
        await connection.deliver(routing.delivery_from_document(answer, {}))

    async def _handle_api(self, request: web.BaseRequest, path: str, connection: ClientConnection) -> None:
        headers = {name.lower(): _printable_header(value) for name, value in request.headers.items()}
        targets = self._router.targets_at(path)
        wire = (
            self._router.select_target(targets, headers).wire
            if targets
            else self._router.guess_wire(path, headers)
        )
        body = b""
        try:
            body = await connection.read_body()
            target = self._select_target(targets, request.method, headers, body)
            wire = target.wire
            call = HttpCall(target.route, headers, {**request.rel_url.query, **target.params}, body)
            if target.route.operation is WireOperation.GENERATE:
                await self._deliver_exchange(wire, self._begin_exchange(wire, call), connection)
            else:
                with self._simulator.transaction():
                    answer = wire.handle_other(call, self._simulator)
                common = wire.headers(self._request_id(path, body), None, self._simulator.now())
                await connection.deliver(routing.delivery_from_document(answer, common))
        except ApiError as error:
            await self._deliver_error(wire, error, self._request_id(path, body), connection)
        except ConnectionError:
            raise
        except Exception as defect:  # noqa: BLE001 - whatever it is, it is told as the provider's
            _log.error("request failed", extra={"api": wire.api.value, **describe_error(defect)})
            failed = ApiError(ApiErrorKind.SERVER, "Internal error of the simulator; see its log")
            await self._deliver_error(wire, failed, self._request_id(path, body), connection)

    def _select_target(
        self,
        targets: Sequence[RouteTarget],
        method: str,
        headers: Mapping[str, str],
        body: bytes,
    ) -> RouteTarget:
        if not targets:
            raise ApiError(ApiErrorKind.NOT_FOUND, "This path does not exist")
        fitting = [target for target in targets if target.route.method == method]
        if not fitting:
            allowed = ", ".join(sorted({target.route.method for target in targets}))
            raise ApiError(
                ApiErrorKind.METHOD_NOT_ALLOWED,
                f"Method {method} is not allowed for this path; use {allowed}",
            )
        return self._router.select_target(fitting, headers, body)

    def _begin_exchange(self, wire: Wire, call: HttpCall) -> Exchange:
        try:
            return self._simulator.begin(wire.parse_request(call, self._simulator))
        except ApiError as error:
            self._simulator.capture_rejected(wire.api, error)
            raise

    async def _deliver_exchange(self, wire: Wire, exchange: Exchange, connection: ClientConnection) -> None:
        request, reply = exchange.request, exchange.reply
        complete = False
        try:
            if reply is not None:
                self._simulator.store_objects(wire.objects_to_store(request, reply))
            delivery = routing.delivery_from_exchange(wire, exchange, self._simulator.now())
            await connection.deliver(delivery, exchange.on_started)
            complete = True
        finally:
            if complete:
                exchange.on_finished(() if reply is None else wire.answer_blocks(request, reply))
            else:
                exchange.on_abandoned()

    async def _deliver_error(
        self,
        wire: Wire,
        error: ApiError,
        request_id: str,
        connection: ClientConnection,
    ) -> None:
        if connection.used:
            connection.keep_alive = False
        else:
            await connection.deliver(
                routing.delivery_from_error(wire, error, request_id, self._simulator.now()),
            )

    def _request_id(self, path: str, body: bytes) -> str:
        """Return a deterministic id for a request outside of a conversation."""
        asked = hashlib.sha256(path.encode("utf-8", "surrogateescape") + body).hexdigest()
        return SeededRng(self._simulator.script.seed, asked, 0).id("request")


def _printable_header(value: str) -> str:
    """Return a header value without invalid bytes."""
    return value if value.isascii() else value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
