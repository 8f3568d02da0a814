"""Models that are asked one after the other, until one of them answers."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.config import Config, ProviderLimits
from peripety.errors import (
    DeadlineError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PeripetyError,
    ResourceExhaustedError,
    UnavailableError,
)
from peripety.gateway.calls.executor import CallExecutor, FallbackChain
from peripety.gateway.types.request import Budget
from peripety.gateway.types.response import Completed, FallingBack, GatewayEvent, TextDelta
from support.gateway.fake_gateway import ANSWER, WORDS, ScriptedPart, ScriptedProvider
from support.gateway.requests import asking, call_of
from support.servers.virtual_time import in_virtual_time

if TYPE_CHECKING:
    from peripety.core.call_context import Clock
    from peripety.gateway.providers.provider import Provider, ProviderCall
    from peripety.gateway.types.request import GenerateRequest


DOWN = UnavailableError("x", code="PROVIDER_FAILED")
TIMED_OUT = UnavailableError("x", code="PROVIDER_TIMEOUT")
LIMITED = ResourceExhaustedError("x", code="PROVIDER_RATE_LIMITED", retry_after=20)
NOT_SET_UP = FailedPreconditionError("x", code="PROVIDER_NOT_CONFIGURED")
ELSEWHERE = [
    DOWN,
    TIMED_OUT,
    LIMITED,
    UnavailableError("x", code="PROVIDER_UNREACHABLE"),
    UnavailableError("x", code="STREAM_TRUNCATED"),
    ResourceExhaustedError("x", code="PROVIDER_QUOTA_EXHAUSTED"),
    FailedPreconditionError("x", code="PROVIDER_REFUSED_KEY"),
    FailedPreconditionError("x", code="PROVIDER_REDIRECTS"),
    NotFoundError("x", code="MODEL_NOT_FOUND"),
    InvalidArgumentError("x", code="CONTEXT_LENGTH_EXCEEDED"),
]
NOWHERE = [
    InvalidArgumentError("x", code="PROVIDER_REFUSED_REQUEST"),
    ResourceExhaustedError("x", code="BUDGET_EXHAUSTED"),
    DeadlineError("x"),
    UnavailableError("x", code="STORAGE_UNAVAILABLE"),
]


class Setting:
    """Providers a, b, ... of which each plays a script; one that is not there is not set up."""

    def __init__(self, clock: Clock, scripts: dict[str, tuple[ScriptedPart, ...]], **config: Any) -> None:
        self.providers = {name: ScriptedProvider(script, name=name) for name, script in scripts.items()}
        self.caller = CallExecutor(Config(**config), clock, Random(7))

    def select(self, request: GenerateRequest, model: str | None) -> tuple[Provider, ProviderCall]:
        name, _, rest = (model or "").partition("/")
        if name not in self.providers:
            raise FailedPreconditionError("x", code="PROVIDER_NOT_CONFIGURED")
        return self.providers[name], call_of(request, rest)

    def candidates(self, request: GenerateRequest) -> FallbackChain:
        return FallbackChain(request, self.select, self.caller, self.caller.open_budgets(request))

    async def ask(self, *models: str, **options: Any) -> list[GatewayEvent]:
        request = asking(model=models[0], fallback_models=models[1:], max_output_tokens=10, **options)
        return [event async for event in self.candidates(request).stream(request)]

    @property
    def requests(self) -> list[int]:
        return [provider.requests for provider in self.providers.values()]


def completed(events: list[GatewayEvent]) -> tuple[str, int]:
    last = events[-1]
    assert isinstance(last, Completed)
    return last.completion.provider, last.completion.calls


@pytest.mark.parametrize("failure", ELSEWHERE, ids=lambda error: error.code)
def test_what_another_may_not_fail_with_is_asked_of_another(failure: PeripetyError) -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(clock, {"a": (failure,), "b": ANSWER})
        told, *deltas, last = await setting.ask("a/m", "b/n")
        assert told == FallingBack("a/m", "b/n", failure)
        assert deltas == [*WORDS]
        assert completed([last]) == ("b", sum(setting.requests))
        assert clock.now() < 2  # nobody waits for 20 seconds while another model is there

    in_virtual_time(scene)


@pytest.mark.parametrize("failure", NOWHERE, ids=lambda error: error.code)
def test_what_would_fail_anywhere_is_asked_of_one_model(failure: PeripetyError) -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(clock, {"a": (failure,), "b": ANSWER})
        with pytest.raises(type(failure)) as caught:
            await setting.ask("a/m", "b/m")
        assert caught.value.code == failure.code
        assert setting.requests == [1, 0]

    in_virtual_time(scene)


def test_after_the_first_token_there_is_no_other_model() -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(clock, {"a": (TextDelta("a"), DOWN), "b": ANSWER})
        with pytest.raises(UnavailableError):
            await setting.ask("a/m", "b/m")
        assert setting.requests == [1, 0]

    in_virtual_time(scene)


def test_models_are_tried_in_their_order_and_those_that_are_not_set_up_are_passed_over() -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(clock, {"b": (TIMED_OUT,), "d": ANSWER, "e": ANSWER})
        events = await setting.ask("a/m", "b/m", "c/m", "d/m", "e/m")
        told = [(e.from_model, e.to_model, e.cause.code) for e in events if isinstance(e, FallingBack)]
        assert told == [
            ("a/m", "b/m", "PROVIDER_NOT_CONFIGURED"),
            ("c/m", "d/m", "PROVIDER_NOT_CONFIGURED"),
        ]
        assert completed(events) == ("d", 2)

    in_virtual_time(scene)


def test_when_all_fail_the_first_failure_says_what_the_others_were() -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(clock, {"a": (TIMED_OUT,), "c": (NOWHERE[0],), "d": ANSWER})
        with pytest.raises(UnavailableError) as caught:
            await setting.ask("a/m", "b/m", "c/m", "d/m")
        assert caught.value.details == {
            "fallback_1": "b/m: PROVIDER_NOT_CONFIGURED",
            "fallback_2": "c/m: PROVIDER_REFUSED_REQUEST",
        }
        assert setting.requests == [1, 1, 0]

    in_virtual_time(scene)


def test_a_model_whose_breaker_is_open_is_not_asked() -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(clock, {"a": (TIMED_OUT,), "b": ANSWER}, breaker_failures=2)
        for _ in range(10):
            assert completed(await setting.ask("a/m", "b/m"))[0] == "b"
        assert setting.requests == [2, 10]

    in_virtual_time(scene)


def test_limits_that_are_used_up_for_long_send_a_request_elsewhere_and_the_last_model_waits() -> None:
    async def scene(clock: Clock) -> None:
        limits = {
            "openai": ProviderLimits(requests_per_minute=1),
            "gemini": ProviderLimits(requests_per_minute=1),
        }
        setting = Setting(clock, {"openai": ANSWER, "gemini": ANSWER}, limits=limits)
        answers = [completed(await setting.ask("openai/m", "gemini/m"))[0] for _ in range(3)]
        assert answers == ["openai", "gemini", "gemini"]
        assert 60 <= clock.now() <= 61

    in_virtual_time(scene)


def test_the_repair_is_for_the_model_that_answered() -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(clock, {"a": (TIMED_OUT,), "b": ANSWER})
        request = asking(model="a/m", fallback_models=("b/m",))
        candidates = setting.candidates(request)
        first = [event async for event in candidates.stream(request)]
        again = [event async for event in candidates.stream(request)]
        assert (completed(first), completed(again)) == (("b", 2), ("b", 1))
        assert setting.requests == [1, 2]

    in_virtual_time(scene)


def test_budgets_span_all_models() -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(clock, {"a": (TIMED_OUT,), "b": (TIMED_OUT,), "c": ANSWER})
        with pytest.raises(UnavailableError) as caught:
            await setting.ask("a/m", "b/m", "c/m", budget=Budget(max_calls=2))
        assert caught.value.code == "PROVIDER_TIMEOUT"
        assert caught.value.details["fallback_2"] == "c/m: BUDGET_EXHAUSTED"
        assert setting.requests == [1, 1, 0]

    in_virtual_time(scene)


@pytest.mark.parametrize("at_once", [True, False])
def test_in_an_outage_of_all_models_each_gets_hardly_more_requests_than_there_are(at_once: bool) -> None:
    async def scene(clock: Clock) -> None:
        setting = Setting(clock, {"a": (0.3, DOWN), "b": (0.3, DOWN)})

        async def caller(number: int) -> None:
            await clock.sleep(0 if at_once else number * 5.0)
            with pytest.raises(UnavailableError):
                await setting.ask("a/m", "b/m")

        await asyncio.gather(*[caller(number) for number in range(400)])
        assert max(setting.requests) <= 1.1 * 400

    in_virtual_time(scene)
