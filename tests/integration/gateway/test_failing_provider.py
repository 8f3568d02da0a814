"""The gateway in front of the scripted LLM, which fails in every way it knows."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core import call_context
from peripety.core.call_context import Clock
from peripety.core.config import Config, ProviderLimits, ProviderName
from peripety.engine.patterns.syntax import Pattern
from peripety.errors import PeripetyError, ResourceExhaustedError
from peripety.gateway.calls.executor import CallExecutor
from peripety.gateway.calls.retry import backoff_delay
from peripety.gateway.local_gateway import LocalModelGateway
from peripety.gateway.providers.registry import ProviderRegistry
from peripety.gateway.remote import RemoteModelGateway
from peripety.gateway.setup import register_service
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import GenerateRequest
from peripety.gateway.types.response import Completed, TextDelta
from peripety.llmsim.faults.kinds import KINDS
from peripety.llmsim.script.types import (
    ClockMode,
    CountScope,
    Fault,
    Pace,
    Script,
    ScriptResponse,
    ScriptRule,
)
from peripety.rpc.channel import open_channel
from peripety.server.app import serve_registered
from support.llmsim.simulator import served
from support.servers.apps import config_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.llmsim.simulator import Served


QUESTION = GenerateRequest(None, (ChatMessage.user("u"),))
TEXT = "one two three four five"


def failing(kind: str, times: int | None = None, pace: Pace | None = None, **settings: Any) -> Script:
    """Fails so often, by the clock on the wall, and answers from then on."""
    failure = Fault(kind, {**KINDS[kind].default_settings, **settings}, times)
    rule = ScriptRule(Pattern(), ScriptResponse(TEXT, pace=pace), failure)
    return Script((rule,), clock=ClockMode.REAL, counts=CountScope.SHARED)


def settings_for(server: Served, **config: Any) -> dict[str, Any]:
    return {
        "model_provider": ProviderName.GENERIC,
        "openai_api_base": f"{server.url}/v1",
        "openai_api_key": "k",
        "model_name": "m",
        **config,
    }


@dataclass
class Setting:
    """A gateway whose sleeps before retries are faked, and records of its calls."""

    server: Served
    gateway: LocalModelGateway
    pauses: list[float]
    texts: list[str] = field(default_factory=list)

    @property
    def requests(self) -> int:
        return len(self.server.simulator.captured)

    async def ask(self) -> str:
        """Return the code of the error, or nothing."""
        try:
            async for event in self.gateway.stream(QUESTION):
                if isinstance(event, TextDelta):
                    self.texts.append(event.text)
        except PeripetyError as error:
            return error.code
        assert isinstance(event, Completed)
        assert event.completion.text == TEXT
        return ""


@asynccontextmanager
async def facing(scenario: Script, **config: Any) -> AsyncIterator[Setting]:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    with served(scenario) as server:
        settings = Config(**settings_for(server, **config))
        providers = ProviderRegistry(settings)
        gateway = LocalModelGateway(providers, CallExecutor(settings, Clock(sleep=sleep), Random(7)))
        try:
            yield Setting(server, gateway, pauses)
        finally:
            await providers.aclose()


@pytest.mark.parametrize("form", ["seconds", "date", "milliseconds"])
@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "unavailable"])
async def test_a_provider_that_says_when_to_come_back_is_asked_again_then(kind: str, form: str) -> None:
    async with facing(failing(kind, times=1, retry_after=2, form=form)) as setting:
        begun = time.time()
        assert await setting.ask() == ""
        passed = time.time() - begun
        assert setting.requests == 2
        # A date is rounded up to whole seconds, and is read a little later than written.
        earliest, latest = (2 - passed, 3) if form == "date" else (2, 2)
        first, last = (backoff_delay(1, seconds, Random(7)) for seconds in (earliest, latest))
        (pause,) = setting.pauses
        assert first is not None
        assert last is not None
        assert first <= pause <= last


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("overloaded", {}),
        ("server_error", {}),
        ("timeout", {}),
        ("conflict", {}),
        ("html_error", {}),
        ("network_unreachable", {}),
        ("connection_reset", {}),
        ("malformed_json", {}),
        ("error_in_200", {"error": "overloaded"}),
        ("error_in_200", {"error": "rate_limit"}),
    ],
)
async def test_what_passes_before_the_first_token_is_not_seen_by_the_caller(
    kind: str,
    settings: dict[str, Any],
) -> None:
    async with facing(failing(kind, times=2, **settings)) as setting:
        assert await setting.ask() == ""
        assert "".join(setting.texts) == TEXT
        assert setting.requests == 3


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("out_of_credits", "PROVIDER_QUOTA_EXHAUSTED"),
        ("auth_error", "PROVIDER_REFUSED_KEY"),
        ("permission_denied", "PROVIDER_REFUSED_KEY"),
        ("not_found", "MODEL_NOT_FOUND"),
        ("invalid_request", "PROVIDER_REFUSED_REQUEST"),
        ("too_large", "PROVIDER_REFUSED_REQUEST"),
    ],
)
async def test_what_does_not_pass_is_asked_once_and_never_opens_the_breaker(kind: str, code: str) -> None:
    async with facing(failing(kind)) as setting:
        assert [await setting.ask() for _ in range(8)] == [code] * 8
        assert (setting.requests, setting.pauses) == (8, [])


@pytest.mark.parametrize(
    ("kind", "settings", "code"),
    [
        ("stream_cut", {"after_chunks": 3}, "STREAM_TRUNCATED"),
        ("reset_at_token", {"token": 2}, "STREAM_TRUNCATED"),
        ("partial_response", {}, "STREAM_TRUNCATED"),
        ("error_in_stream", {"after_chunks": 3, "error": "overloaded"}, "PROVIDER_FAILED"),
        ("error_in_stream", {"after_chunks": 3, "error": "rate_limit"}, "PROVIDER_RATE_LIMITED"),
    ],
)
async def test_after_the_first_token_nothing_is_asked_again(
    kind: str,
    settings: dict[str, Any],
    code: str,
) -> None:
    # Data that arrives together with its failure is not released.
    async with facing(failing(kind, times=1, pace=Pace(tokens_per_second=25), **settings)) as setting:
        assert await setting.ask() == code
        assert setting.texts
        assert (setting.requests, setting.pauses) == (1, [])


async def test_a_provider_that_hangs_costs_the_caller_its_time_and_no_second_request() -> None:
    async with facing(failing("hang")) as setting:
        call_context.begin_call(request_id=None, timeout=1.5)
        assert await setting.ask() == "DEADLINE_EXCEEDED"
        assert setting.requests == 1


async def test_a_provider_that_hangs_is_given_up_when_the_configuration_says_so() -> None:
    async with facing(failing("hang"), provider_first_event_seconds=0.5) as setting:
        assert await setting.ask() == "PROVIDER_TIMEOUT"
        assert setting.requests == 1


@pytest.mark.parametrize("together", [1, 20])
@pytest.mark.parametrize("kind", ["server_error", "network_unreachable"])
async def test_an_outage_costs_at_most_a_tenth_more_requests_than_callers(kind: str, together: int) -> None:
    async with facing(failing(kind)) as setting:
        for _ in range(100 // together):
            await asyncio.gather(*[setting.ask() for _ in range(together)])
        assert setting.requests == 5 if together == 1 else 5 <= setting.requests <= 110
        assert await setting.ask() == "PROVIDER_CIRCUIT_OPEN"


async def test_over_grpc_an_answer_says_how_many_requests_it_took(tmp_path: Path) -> None:
    with served(failing("overloaded", times=1)) as server:
        config = config_for(tmp_path, **settings_for(server))
        async with serve_registered(config, [register_service]) as app, open_channel(app.address) as channel:
            assert (await RemoteModelGateway(channel).generate(QUESTION)).calls == 2


async def test_over_grpc_a_limit_that_is_used_up_says_when_to_come_back(tmp_path: Path) -> None:
    limits = {"generic": ProviderLimits(requests_per_minute=1)}
    with served(Script(default_response=ScriptResponse(TEXT))) as server:
        config = config_for(tmp_path, **settings_for(server, limits=limits, default_deadline_seconds=20))
        async with serve_registered(config, [register_service]) as app, open_channel(app.address) as channel:
            call_context.begin_call(request_id=None, timeout=20)
            gateway = RemoteModelGateway(channel)
            begun = time.monotonic()
            await gateway.generate(QUESTION)
            with pytest.raises(ResourceExhaustedError) as caught:
                await gateway.generate(QUESTION)
        assert caught.value.code == "LIMIT_REACHED"
        assert caught.value.retry_after is not None
        # A minute after the first call, rounded up to a slot of the limiter.
        assert 60 - (time.monotonic() - begun) <= caught.value.retry_after <= 60 + 0.1
        assert len(server.simulator.captured) == 1
