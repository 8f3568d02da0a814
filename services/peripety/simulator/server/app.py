"""Request handler: from an HTTP request to an answer in the format of its provider."""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING

from peripety.errors import InvalidArgumentError
from peripety.logs import outline
from peripety.simulator.chance import Chance
from peripety.simulator.model import ApiError, ErrorKind
from peripety.simulator.server import replies
from peripety.simulator.server.connection import Connection
from peripety.simulator.server.control import PREFIX, refusal
from peripety.simulator.wire.base import Call, Operation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aiohttp import web

    from peripety.simulator.exchange import Exchange
    from peripety.simulator.server.control import Control
    from peripety.simulator.server.routing import Router, Target
    from peripety.simulator.simulator import Simulator
    from peripety.simulator.wire.base import Wire

__all__ = ["App"]

_log = logging.getLogger(__name__)


class App:
    """Request handler. Errors of a request never end the server.

    Args:
        simulator: decides the answers.
        router: the APIs.
        control: the control endpoints, which belong to no provider.
    """

    def __init__(self, simulator: Simulator, router: Router, control: Control) -> None:
        self._simulator = simulator
        self._router = router
        self._control = control

    async def handle(self, request: web.BaseRequest) -> bool:
        """Answer a request; return True if its connection stays open."""
        connection = Connection(request)
        path = request.rel_url.raw_path
        try:
            if path.startswith(PREFIX):
                await self._steer(request, path, connection)
            else:
                await self._answer(request, path, connection)
        except ConnectionError:
            connection.kept = False  # the client has disconnected
        return connection.kept

    async def _steer(self, request: web.BaseRequest, path: str, connection: Connection) -> None:
        try:
            answer = self._control.answer(request.method, path, await connection.body())
        except ApiError as error:
            answer = refusal(InvalidArgumentError(error.message))
        await connection.deliver(replies.of_document(answer, {}))

    async def _answer(self, request: web.BaseRequest, path: str, connection: Connection) -> None:
        headers = {name.lower(): _readable(value) for name, value in request.headers.items()}
        targets = self._router.at(path)
        wire = self._router.choose(targets, headers).wire if targets else self._router.guess(path, headers)
        body = b""
        try:
            body = await connection.body()
            target = self._target(targets, request.method, headers, body)
            wire = target.wire
            call = Call(target.route, headers, {**request.rel_url.query, **target.params}, body)
            if target.route.operation is Operation.GENERATE:
                await self._perform(wire, self._begin(wire, call), connection)
            else:
                with self._simulator.step():
                    answer = wire.other(call, self._simulator)
                common = wire.headers(self._id(path, body), None, self._simulator.now())
                await connection.deliver(replies.of_document(answer, common))
        except ApiError as error:
            await self._refuse(wire, error, self._id(path, body), connection)
        except ConnectionError:
            raise
        except Exception as defect:  # noqa: BLE001 - whatever it is, it is told as the provider's
            _log.error("request failed", extra={"api": wire.api.value, **outline(defect)})
            failed = ApiError(ErrorKind.SERVER, "Internal error of the simulator; see its log")
            await self._refuse(wire, failed, self._id(path, body), connection)

    def _target(
        self, targets: Sequence[Target], method: str, headers: Mapping[str, str], body: bytes
    ) -> Target:
        if not targets:
            raise ApiError(ErrorKind.NOT_FOUND, "This path does not exist")
        fitting = [target for target in targets if target.route.method == method]
        if not fitting:
            allowed = ", ".join(sorted({target.route.method for target in targets}))
            raise ApiError(
                ErrorKind.METHOD_NOT_ALLOWED, f"Method {method} is not allowed for this path; use {allowed}"
            )
        return self._router.choose(fitting, headers, body)

    def _begin(self, wire: Wire, call: Call) -> Exchange:
        try:
            return self._simulator.begin(wire.request(call, self._simulator))
        except ApiError as error:
            self._simulator.refuse(wire.api, error)
            raise

    async def _perform(self, wire: Wire, exchange: Exchange, connection: Connection) -> None:
        request, reply = exchange.request, exchange.reply
        complete = False
        try:
            if reply is not None:
                self._simulator.remember(wire.stored(request, reply))
            delivery = replies.of_exchange(wire, exchange, self._simulator.now())
            await connection.deliver(delivery, exchange.started)
            complete = True
        finally:
            if complete:
                exchange.finished(() if reply is None else wire.repeated(request, reply))
            else:
                exchange.abandoned()

    async def _refuse(self, wire: Wire, error: ApiError, request_id: str, connection: Connection) -> None:
        if connection.used:
            connection.kept = False
        else:
            await connection.deliver(replies.of_error(wire, error, request_id, self._simulator.now()))

    def _id(self, path: str, body: bytes) -> str:
        """Return a deterministic id for a request outside of a conversation."""
        asked = hashlib.sha256(path.encode("utf-8", "surrogateescape") + body).hexdigest()
        return Chance(self._simulator.scenario.seed, asked, 0).id("request")


def _readable(value: str) -> str:
    """Return a header value without invalid bytes."""
    return value if value.isascii() else value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
