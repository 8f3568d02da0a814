"""Requests as plain as can be: one connection each, no retries, nothing followed."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

JSON = {"content-type": "application/json"}


@dataclass(frozen=True)
class Response:
    """What came back."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.raw)


def send(
    url: str,
    method: str,
    path: str,
    body: Any = None,
    headers: dict[str, str] | None = None,
) -> Response:
    """Send a request; a body that is not bytes is sent as JSON."""
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    with closing(HTTPConnection(url.removeprefix("http://"), timeout=60)) as connection:
        connection.request(method, path, data, {**JSON, **(headers or {})})
        response = connection.getresponse()
        received = {name.lower(): value for name, value in response.getheaders()}
        return Response(response.status, received, response.read())


def prompt(text: str, **more: Any) -> dict[str, Any]:
    """The body of a request for a chat completion."""
    return {"model": "gpt-6", "messages": [{"role": "user", "content": text}], **more}
