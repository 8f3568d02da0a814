"""Benchmark of HTTP clients: cost of sending a request to a provider and reading its answer.

`make bench-http-clients`. All send to the same server, which needs a small part of the time, in turns; the
best of several rounds counts.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import AsyncIterable, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, TypeAlias

import aiohttp
import httpx
import httpx2
from httpx_aiohttp import AiohttpTransport
from httpx_aiohttp.httpx2 import AiohttpTransport as Aiohttp2Transport

from bench.instant import answering_at_once
from peripety.gateway.providers.http_transport import (
    ConnectionPool,
    HttpRequest,
    HttpTransport,
    StreamTimeouts,
    read_chunk,
)

CONNECTIONS = (1, 32, 128)
TOKENS = (1, 200)
SECONDS = 0.5
ROUNDS = 4
HEADERS = {"Authorization": "Bearer test", "Accept-Encoding": "identity", "Accept": "text/event-stream"}
_JSON_HEADERS = {**HEADERS, "Content-Type": "application/json"}

Ask: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[None]]


@dataclass(frozen=True)
class Figures:
    """Of one client under one load; times are in milliseconds."""

    per_second: float
    median: float
    slowest: float
    cpu: float


def main() -> None:
    """Measure and print."""
    with answering_at_once() as (_, port):
        asyncio.run(_compare(f"http://127.0.0.1:{port}/v1/chat/completions"))


async def _compare(url: str) -> None:
    async with AsyncExitStack() as opened:
        sides = await _sides(opened)
        for tokens in TOKENS:
            for connections in CONNECTIONS:
                best: dict[str, Figures] = {}
                for _ in range(ROUNDS):
                    for name, ask in sides.items():
                        new = await _measured(ask, url, connections, tokens)
                        best[name] = max(best.get(name, new), new, key=lambda figures: figures.per_second)
                _report(connections, tokens, best)


async def _sides(opened: AsyncExitStack) -> dict[str, Ask]:
    most = max(CONNECTIONS)
    limits = httpx.Limits(max_connections=most, max_keepalive_connections=most)
    limits2 = httpx2.Limits(max_connections=most, max_keepalive_connections=most)
    bare = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=most))
    await opened.enter_async_context(bare)
    clients: dict[str, httpx.AsyncClient | httpx2.AsyncClient] = {
        "httpx2, its own transport": httpx2.AsyncClient(limits=limits2, timeout=60),
        "httpx2 over httpx-aiohttp": httpx2.AsyncClient(
            transport=Aiohttp2Transport(limits=limits2),
            timeout=60,
        ),
        "httpx, its own transport": httpx.AsyncClient(limits=limits, timeout=60),
        "httpx over httpx-aiohttp": httpx.AsyncClient(transport=AiohttpTransport(limits=limits), timeout=60),
    }
    for client in clients.values():
        await opened.enter_async_context(client)
    pool = ConnectionPool()
    opened.push_async_callback(pool.aclose)
    ours = HttpTransport("test", StreamTimeouts())
    opened.push_async_callback(ours.aclose)
    return {
        "aiohttp": _asking_aiohttp(bare),
        **{name: _asking_client(client) for name, client in clients.items()},
        "our pool alone": _asking_pool(pool),
        "our transport, events read": _asking_transport(ours),
    }


def _asking_aiohttp(session: aiohttp.ClientSession) -> Ask:
    async def ask(url: str, body: dict[str, Any]) -> None:
        async with session.post(url, json=body, headers=HEADERS) as response:
            await _read(response.content.iter_any())

    return ask


def _asking_client(client: Any) -> Ask:
    async def ask(url: str, body: dict[str, Any]) -> None:
        async with client.stream("POST", url, json=body, headers=HEADERS) as response:
            await _read(response.aiter_bytes())

    return ask


def _asking_pool(pool: ConnectionPool) -> Ask:
    async def ask(url: str, body: dict[str, Any]) -> None:
        content = json.dumps(body, separators=(",", ":")).encode()
        response = await pool.send(HttpRequest("POST", url, _JSON_HEADERS, content))
        while await read_chunk(response):
            pass

    return ask


def _asking_transport(transport: HttpTransport) -> Ask:
    async def ask(url: str, body: dict[str, Any]) -> None:
        await _read(transport.stream_events(url, body, HEADERS, lambda *_: ValueError()))  # type: ignore[arg-type]

    return ask


async def _read(pieces: AsyncIterable[Any]) -> None:
    async for _ in pieces:
        pass


async def _measured(ask: Ask, url: str, connections: int, tokens: int) -> Figures:
    question = {"role": "user", "content": "u"}
    body = {"model": "m", "messages": [question], "stream": True, "max_tokens": tokens}
    await asyncio.gather(*(ask(url, body) for _ in range(connections)))
    waits: list[float] = []
    started, cpu = time.perf_counter(), time.process_time()
    ends = started + SECONDS

    async def keep_asking() -> None:
        while (now := time.perf_counter()) < ends:
            await ask(url, body)
            waits.append((time.perf_counter() - now) * 1e3)

    await asyncio.gather(*(keep_asking() for _ in range(connections)))
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    slowest = sorted(waits)[len(waits) * 99 // 100]
    return Figures(len(waits) / seconds, statistics.median(waits), slowest, cpu / len(waits) * 1e3)


def _report(connections: int, tokens: int, best: dict[str, Figures]) -> None:
    sys.stdout.write(f"\n{connections} connections, {tokens} tokens an answer\n")
    for name, figures in best.items():
        sys.stdout.write(
            f"  {name:<26} {figures.per_second:7,.0f} requests/s {figures.per_second * tokens:9,.0f} deltas/s"
            f"   p50 {figures.median:7.2f} ms   p99 {figures.slowest:7.2f} ms   CPU {figures.cpu:5.2f} ms\n",
        )


if __name__ == "__main__":
    main()
