"""The HTTP edge in front of real services, with a client for it."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp

from peripety.edge.app import serve_edge
from peripety.server.app import serve
from support.servers.apps import config_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@dataclass(frozen=True)
class SseEvent:
    """One event of a stream as a client sees it."""

    name: str
    data: Any
    event_id: str


@dataclass
class EdgeClient:
    """Calls over HTTP."""

    url: str
    http: aiohttp.ClientSession
    services_address: str = ""

    async def post(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Return status and JSON of a POST."""
        async with self.http.post(self.url + path, json=body or {}, headers=headers) as response:
            return response.status, await response.json(content_type=None)

    async def get(self, path: str, **headers: str) -> tuple[int, Any]:
        """Return status and JSON of a GET."""
        async with self.http.get(self.url + path, headers=headers) as response:
            return response.status, await response.json(content_type=None)

    async def events(
        self, path: str, body: Any = None, *, method: str = "POST", **headers: str
    ) -> AsyncIterator[SseEvent]:
        """Iterate over the events of a stream."""
        content = None if method == "GET" else body or {}
        async with self.http.request(method, self.url + path, headers=headers, json=content) as response:
            assert response.status == 200, await response.text()
            assert response.headers["content-type"].startswith("text/event-stream")
            fields: dict[str, str] = {}
            async for line in response.content:
                text = line.decode().rstrip("\n")
                if text and not text.startswith(":"):
                    name, _, value = text.partition(": ")
                    fields[name] = value
                elif fields:
                    yield SseEvent(fields["event"], json.loads(fields["data"]), fields.get("id", ""))
                    fields = {}

    async def start_session(self, spec: dict[str, Any]) -> str:
        """Compile a specification, start a session of it, and return the id."""
        status, compiled = await self.post(f"/scenarios/{spec['id']}/compile", spec)
        assert status == 200, compiled
        status, session = await self.post("/sessions", {"scenario_id": compiled["scenario_id"]})
        assert status == 201, session
        return str(session["session_id"])


@asynccontextmanager
async def serving_edge(tmp_path: Path, **settings: Any) -> AsyncIterator[EdgeClient]:
    """Serve all services and the edge, and open a client."""
    config = config_for(tmp_path, **{"edge_listen": "127.0.0.1:0", **settings})
    async with (
        serve(config) as app,
        serve_edge(config, app.address) as url,
        aiohttp.ClientSession() as http,
    ):
        yield EdgeClient(url.rstrip("/"), http, app.address)
