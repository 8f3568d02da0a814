"""Capture log of the scripted LLM, followed over its control endpoint.

The scripted LLM is a server of its own, in this process or in another one. The gateway reads its log over
HTTP, as it sends its prompts, so both cases are the same.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp

from peripety.errors import FailedPreconditionError, ResourceExhaustedError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_POLL_SECONDS = 0.25
_TIMEOUT = aiohttp.ClientTimeout(total=10)
_DEFAULT_RECORDED, _MAX_RECORDED = 200, 1000
_MAX_READERS = 16


class ScriptedCallLog:
    """Reader of the capture log.

    Args:
        base_url: base URL of the scripted LLM; None if none is configured.
    """

    def __init__(self, base_url: str | None) -> None:
        self._base_url = base_url
        self._closing = asyncio.Event()
        self._readers = 0

    async def follow(self, after: int, max_recorded: int) -> AsyncIterator[dict[str, Any]]:
        """Yield the captured calls after a number as JSON values, recorded ones first.

        It ends when the server stops.

        Args:
            after: number of the last known call.
            max_recorded: maximum number of recorded calls, the latest ones; 0 for the default.

        Raises:
            FailedPreconditionError: no scripted LLM is configured (code PROVIDER_NOT_CONFIGURED).
            ResourceExhaustedError: too many readers follow the log.
            UnavailableError: the scripted LLM does not answer.
        """
        if self._base_url is None:
            raise FailedPreconditionError(
                "no scripted LLM is configured; set MODEL_PROVIDER=scripted and PERIPETY_SCRIPT, or"
                " SCRIPTED_API_BASE",
                code="PROVIDER_NOT_CONFIGURED",
            )
        if self._readers >= _MAX_READERS:
            raise ResourceExhaustedError(
                f"more than {_MAX_READERS} readers follow the capture log; close one"
            )
        url = f"{self._base_url.rstrip('/')}/_simulator/calls"
        query = {"after": str(after), "last": str(min(max_recorded or _DEFAULT_RECORDED, _MAX_RECORDED))}
        self._readers += 1
        try:
            async with aiohttp.ClientSession(timeout=_TIMEOUT) as http:
                while not self._closing.is_set():
                    for call in await _read_calls(http, url, query):
                        yield call
                        query = {"after": str(call["number"])}
                    await self._pause()
        finally:
            self._readers -= 1

    async def aclose(self) -> None:
        """End the streams of all readers."""
        self._closing.set()

    async def _pause(self) -> None:
        try:
            await asyncio.wait_for(self._closing.wait(), _POLL_SECONDS)
        except TimeoutError:
            return


async def _read_calls(http: aiohttp.ClientSession, url: str, query: dict[str, str]) -> list[dict[str, Any]]:
    try:
        async with http.get(url, params=query) as response:
            response.raise_for_status()
            calls: list[dict[str, Any]] = (await response.json(content_type=None))["calls"]
            return calls
    except (aiohttp.ClientError, TimeoutError, ValueError, KeyError) as error:
        raise UnavailableError(
            f"the scripted LLM does not answer ({type(error).__name__}); check SCRIPTED_API_BASE"
        ) from error
