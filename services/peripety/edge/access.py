"""Access checks of a request, and the size limit of its body, before any handler sees it.

Every page that a user visits can send requests to a server on
loopback. Therefore the edge accepts a request only if

- its `Host` is a name of this server (a page whose name is rebound to 127.0.0.1 sends its own name),
- its `Origin`, if it has one, is the edge itself or configured,
- its body is JSON, which the browser of a page of another origin sends only after a preflight,
- it has the token, if one is configured.

The checks are one ASGI middleware and no dependencies of handlers, so they cover every new route.
"""

from __future__ import annotations

import hmac
import re
import uuid
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders

from peripety.core import call_context
from peripety.core.config import is_loopback, split_address
from peripety.edge.problems import problem_response
from peripety.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    PeripetyError,
    ResourceExhaustedError,
)
from peripety.rpc.channel import CALLER_KEY

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from peripety.core.config import Config

_BODY_METHODS = frozenset({"POST", "PUT", "PATCH"})
_MEDIA_TYPES = frozenset(
    {
        "application/json",
        "application/proto",
        "application/connect+json",
        "application/connect+proto",
    }
)
_LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_SAFE_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SECURITY_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' data:;"
        " connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
        " require-trusted-types-for 'script'; trusted-types 'none'"
    ),
}
_REQUEST_ID = "x-request-id"
_OPEN_FOLDERS = ("/static/", "/links/")
"""Paths that need no token: files of the page, and links, which have a token of their own."""


class AccessControl:
    """ASGI middleware that refuses requests which may not enter.

    Args:
        app: the application behind it.
        config: the settings.
        public_paths: paths that need no token: the page itself and its files.
    """

    def __init__(self, app: ASGIApp, config: Config, public_paths: tuple[str, ...] = ()) -> None:
        self._app = app
        host, _ = split_address(config.edge_listen)
        names = {name.lower() for name in config.edge_hosts}
        self._hosts = names | (_LOOPBACK_NAMES if is_loopback(host) else {host})
        self._origins = frozenset(config.edge_origins)
        self._token = config.edge_token.get_secret_value() if config.edge_token else ""
        self._max_bytes = config.max_message_bytes
        self._public_paths = public_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and pass it on with a request id and security headers."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = headers.get(_REQUEST_ID, "")
        if not _SAFE_REQUEST_ID.fullmatch(request_id):
            request_id = uuid.uuid4().hex
        # Metadata of a call is ASCII.
        caller = ",".join(headers.getlist(CALLER_KEY)).encode("ascii", "backslashreplace").decode()
        call_context.begin_call(request_id=request_id, timeout=None, caller=caller)
        refused = self._find_refusal(scope, headers)
        if refused is not None and scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008, "reason": refused[1].code})
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                response = MutableHeaders(scope=message)
                response[_REQUEST_ID] = request_id
                for name, value in _SECURITY_HEADERS.items():
                    response.setdefault(name, value)
                self._allow_origin(headers.get("origin"), response)
            await send(message)

        if refused is not None:
            status, error = refused
            await problem_response(error, status)(scope, receive, send_with_headers)
        elif scope["type"] == "http" and self._is_preflight(scope, headers):
            await self._answer_preflight(send_with_headers)
        else:
            await self._app(scope, self._limited(receive), send_with_headers)

    def _find_refusal(self, scope: Scope, headers: Headers) -> tuple[int, PeripetyError] | None:
        """Return the status and the error of a request that is refused; None if it may enter."""
        host = _host_name(headers.get("host", ""))
        if host not in self._hosts:
            return 421, InvalidArgumentError(
                f"host {host[:100]!r} is not a name of this server; add it to PERIPETY_EDGE_HOSTS",
                code="HOST_REFUSED",
            )
        if not self._is_origin_allowed(headers):
            return 403, FailedPreconditionError(
                "requests of this origin are not accepted; add it to PERIPETY_EDGE_ORIGINS",
                code="ORIGIN_REFUSED",
            )
        if not self._has_token(scope, headers):
            return 401, FailedPreconditionError(
                "a token is required; send it as `Authorization: Bearer TOKEN`", code="TOKEN_REQUIRED"
            )
        if scope["type"] == "http" and scope["method"] in _BODY_METHODS:
            return self._find_body_refusal(headers)
        return None

    def _find_body_refusal(self, headers: Headers) -> tuple[int, PeripetyError] | None:
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        length = headers.get("content-length", "0")
        has_body = length != "0" or "transfer-encoding" in headers
        # Without a body there is nothing to read, but a page of another origin could still cause an effect.
        if kind not in _MEDIA_TYPES and (has_body or kind):
            return 415, InvalidArgumentError(
                "body must be JSON; send `Content-Type: application/json`", code="MEDIA_TYPE_UNSUPPORTED"
            )
        if not kind:
            return 415, InvalidArgumentError(
                "a JSON body is required; send at least {}, with `Content-Type: application/json`",
                code="MEDIA_TYPE_UNSUPPORTED",
            )
        if length.isdecimal() and int(length) > self._max_bytes:
            return 413, _too_large(self._max_bytes)
        return None

    def _is_origin_allowed(self, headers: Headers) -> bool:
        origin = headers.get("origin")
        if origin is None or origin in self._origins:
            return True
        # The edge's own pages, whatever proxy adds TLS in front of it.
        return origin.lower().partition("://")[2] == headers.get("host", "").lower()

    def _has_token(self, scope: Scope, headers: Headers) -> bool:
        path = scope["path"]
        if not self._token or path in self._public_paths or path.startswith(_OPEN_FOLDERS):
            return True
        if scope["type"] == "http" and self._is_preflight(scope, headers):
            return True
        given = headers.get("authorization", "").removeprefix("Bearer ").encode()
        return hmac.compare_digest(given, self._token.encode())

    def _is_preflight(self, scope: Scope, headers: Headers) -> bool:
        return scope["method"] == "OPTIONS" and "access-control-request-method" in headers

    def _allow_origin(self, origin: str | None, response: MutableHeaders) -> None:
        if origin in self._origins and origin is not None:
            response["access-control-allow-origin"] = origin
            response["access-control-expose-headers"] = _REQUEST_ID
            response.add_vary_header("origin")

    async def _answer_preflight(self, send: Send) -> None:
        start: Message = {"type": "http.response.start", "status": 204, "headers": []}
        headers = MutableHeaders(scope=start)
        headers["access-control-allow-methods"] = "GET, POST, DELETE"
        headers["access-control-allow-headers"] = (
            "authorization, content-type, idempotency-key, last-event-id, prefer, x-request-id,"
            " connect-protocol-version, connect-timeout-ms"
        )
        headers["access-control-max-age"] = "600"
        await send(start)
        await send({"type": "http.response.body", "body": b""})

    def _limited(self, receive: Receive) -> Receive:
        """Return a receiver that fails when a body of unknown length is too large."""
        seen = 0

        async def limited() -> Message:
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > self._max_bytes:
                    raise _too_large(self._max_bytes)
            return message

        return limited


def _too_large(limit: int) -> ResourceExhaustedError:
    return ResourceExhaustedError(
        f"body is larger than the limit of {limit} bytes; send less", code="BODY_TOO_LARGE"
    )


def _host_name(host: str) -> str:
    """Return the name of a `Host` header in lower case, without its port and brackets."""
    try:
        return (urlsplit(f"//{host}").hostname or "") if "@" not in host else ""
    except ValueError:
        return ""
