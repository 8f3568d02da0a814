"""Client of Peripety for Ren'Py, over the HTTP interface, with the standard library alone.

A session is a dictionary that is replaced after each turn and never changed. So Ren'Py restores the earlier
one when the player rolls back, and the next turn first rewinds the session on the server to it.

The network is read in threads, and Ren'Py draws frames until they have ended. Without Ren'Py, calls block.
"""

from __future__ import annotations

import http
import http.client
import json
import socket
import threading
import time
import uuid
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit

try:
    import renpy
except ImportError:
    renpy = None

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_T = TypeVar("_T")

_TRIES = 10
_FIRST_PAUSE, _LONGEST_PAUSE, _LONGEST_HINT = 0.1, 2.0, 30.0
_FRAME = 1 / 60
_LONGEST_SILENCE = 45.0
"""A server sends a heartbeat every 15 seconds, so a longer silence is a lost connection."""

_played: dict[tuple[str, int], tuple[str, str]] = {}
"""Request id and content of the turns of this process, by session and number. It is not rolled back."""


class PeripetyError(Exception):
    """A failed call.

    Attributes:
        code: the reason; empty for a lost connection.
        status: HTTP status; 0 for a lost connection.
        violations: invalid fields, each with `field` and `reason`.
        retry_after: seconds to wait before a repetition; None without a hint.
    """

    def __init__(self, status: int, problem: dict[str, Any]) -> None:
        super().__init__(problem.get("detail") or f"HTTP status {status}; check the address of the server")
        self.status = status
        self.code = problem.get("code", "")
        self.violations = problem.get("violations", [])
        self.retry_after = problem.get("retry_after")


class Client:
    """Calls to one server. Frames are drawn while a call waits. A call is repeated after a lost connection.

    Args:
        url: address of the HTTP interface.
        token: bearer token; empty for none. Over plain http, use it on this machine only.
    """

    _socket: socket.socket | None = None

    def __init__(self, url: str = "http://127.0.0.1:50080", token: str = "") -> None:
        self.url = url
        self.token = token

    def __getstate__(self) -> dict[str, Any]:
        """Return what a saved game stores."""
        return {"url": self.url, "token": self.token}

    def compile(self, spec: str) -> str:
        """Validate and store a specification, a JSON text, and return the id of the scenario."""
        path = "/scenarios/" + quote(str(json.loads(spec)["id"]), safe="") + "/compile"
        return self.call("POST", path, json.loads(spec))["scenario_id"]

    def create(self, scenario_id: str, seed: int) -> dict[str, Any]:
        """Start a session, and return it. The seed determines every random event."""
        return self.call("POST", "/sessions", {"scenario_id": scenario_id, "seed": seed})

    def open(self, session_id: str) -> dict[str, Any]:
        """Return a session."""
        return self.call("GET", "/sessions/" + quote(session_id, safe=""))

    def play(
        self, session: dict[str, Any], action: str = "", text: str = "", **params: float | str
    ) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        """Play the next turn of a session, and yield its events as `(name, data, session)`.

        The session of the last event, `diff`, is the one after the turn; that of the others is the given one.
        Each event arrives once. If `accepted` arrives again, discard the earlier events of the turn.

        Raises:
            PeripetyError: nothing was applied.
        """
        actions = [{"action_id": action, "params": params}] if action else []
        content = {"actions": actions, "input": text, "expected_turn": session.get("turn", 0) + 1}
        request_id = self._prepare(session, json.dumps(content, sort_keys=True))
        path = "/sessions/" + quote(session["session_id"], safe="") + "/turns"
        for name, data in self._stream(path, {**content, "request_id": request_id}):
            if name == "diff":
                kept = {
                    key: data.get(key)
                    for key in ("turn", "status", "legal_actions", "state_hash", "chain_hash")
                }
                session = {key: value for key, value in session.items() if key != "state"} | kept
            yield name, data, session

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Return the answer of any route as JSON."""
        key = str(uuid.uuid4())
        failures = 0
        while True:
            try:
                with self._send(method, path, body, {"idempotency-key": key}) as response:
                    return json.loads(self._await(response.read))
            except (PeripetyError, OSError, ValueError, http.client.HTTPException) as error:
                failures += 1
                self._pause(error, failures)

    def _prepare(self, session: dict[str, Any], content: str) -> str:
        """Return the request id of a turn. If the player has rolled back, rewind the session on the server.

        The same turn again, such as after rolling back within its text, is answered from the record.
        """
        session_id, turn = session["session_id"], session.get("turn", 0)
        on_server = self.open(session_id).get("turn", 0)
        request_id, last = _played.get((session_id, turn), ("", ""))
        if on_server == turn + 1 and last == content:
            return request_id
        if on_server > turn:
            body = {
                "session_id": session_id,
                "turn": turn,
                "expected_turn": on_server,
                "request_id": str(uuid.uuid4()),
            }
            self.call("POST", "/rpc/SessionService/RewindSession", body)
        request_id = str(uuid.uuid4())
        _played[session_id, turn] = (request_id, content)
        return request_id

    def _stream(self, path: str, body: object) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the events of a turn, and continue behind the last one after a lost connection."""
        last_id, attempt, last = "", "", 0
        failures = 0
        while True:
            try:
                headers = {"accept": "text/event-stream", **({"last-event-id": last_id} if last_id else {})}
                with self._send("POST", path, body, headers) as response:
                    events = _events(response)
                    while event := self._await(next, events, None):
                        failures = 0
                        name, event_id, data = event
                        if name == "error":
                            raise PeripetyError(data["status"], data)  # noqa: TRY301 - a lost server is tried again
                        number, _, of = event_id.partition(".")
                        if of == attempt and int(number) <= last:
                            continue
                        last_id, attempt, last = event_id, of, int(number)
                        yield name, data
                        if name == "diff":
                            return
                raise ConnectionError("the stream ended before the turn")
            except (PeripetyError, OSError, ValueError, http.client.HTTPException) as error:
                failures += 1
                self._pause(error, failures)

    def _send(
        self, method: str, path: str, body: object, headers: dict[str, str]
    ) -> http.client.HTTPResponse:
        """Return the response to a request.

        Raises:
            PeripetyError: the server answered with an error.
        """
        address = urlsplit(self.url)
        kind = http.client.HTTPSConnection if address.scheme == "https" else http.client.HTTPConnection
        connection = kind(address.hostname, address.port, timeout=_LONGEST_SILENCE)
        headers = {**headers, "content-type": "application/json"}
        if self.token:
            headers["authorization"] = "Bearer " + self.token
        self._await(connection.connect)
        self._socket = connection.sock
        connection.request(method, path, None if body is None else json.dumps(body).encode(), headers)
        response = self._await(connection.getresponse)
        if response.status >= http.HTTPStatus.BAD_REQUEST:
            raise PeripetyError(response.status, json.loads(response.read()))
        return response

    def _pause(self, error: Exception, failures: int) -> None:
        """Wait before a repetition.

        Raises:
            PeripetyError: repeating does not help or has not helped.
        """
        hint = 0.0
        if isinstance(error, PeripetyError):
            hint = error.retry_after or 0.0
            is_busy = error.status == http.HTTPStatus.TOO_MANY_REQUESTS and 0 < hint <= _LONGEST_HINT
            if failures >= _TRIES or not (is_busy or error.status in (502, 503)):
                raise error
        elif failures >= _TRIES:
            raise PeripetyError(0, {"detail": f"connection lost: {error}; check the address"}) from error
        pause = max(min(hint, _LONGEST_HINT), min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (failures - 1)))
        self._await(time.sleep, pause)

    def _await(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Return the result of a function that waits, and draw frames meanwhile.

        If the player rolls back or leaves, the connection is closed.
        """
        if not _can_draw():
            return function(*arguments)
        result: Future[_T] = Future()

        def work() -> None:
            try:
                result.set_result(function(*arguments))
            except Exception as error:  # noqa: BLE001 - raised again by the caller
                result.set_exception(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            thread.join(_FRAME)
            while thread.is_alive():
                _draw_frame(thread)
        except BaseException:
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)
            raise
        return result.result()


def _can_draw() -> bool:
    """Return True in a script of Ren'Py, but not while it starts and not in the action of a screen."""
    if renpy is None:
        return False
    context = renpy.game.context()
    return not (context.init_phase or context.interacting)


def _draw_frame(thread: threading.Thread) -> None:
    if renpy.config.skipping == "fast":  # an interaction would end it
        thread.join(_FRAME)
    else:
        renpy.ui.pausebehavior(_FRAME)
        renpy.ui.interact(mouse="pause", type="pause")


def _events(response: http.client.HTTPResponse) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the complete events of a response as name, id and data."""
    fields = {}
    for line in response:
        text = line.decode().rstrip("\r\n")
        if not line.endswith(b"\n"):
            return
        if text:
            name, _, value = text.partition(": ")
            fields[name] = value
        elif "data" in fields:
            yield fields.get("event", ""), fields.get("id", ""), json.loads(fields["data"])
            fields = {}
