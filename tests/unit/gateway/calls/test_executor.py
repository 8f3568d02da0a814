"""Calls of a provider with scripted answers, failures and hangs.

Fallback: models are tried in order until one of them answers.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from peripety.core.concurrency import closing
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
from peripety.gateway.providers.provider import AnswerFinished
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import Budget, GenerateRequest
from peripety.gateway.types.response import (
    Completed,
    Completion,
    FallingBack,
    GatewayEvent,
    StopReason,
    TextDelta,
    Usage,
    collect_completion,
)
from support.gateway.fake_gateway import ANSWER, SAID, WORDS, FakeProvider, ScriptedPart
from support.gateway.requests import asking, call_of
from support.servers.virtual_time import in_virtual_time

if TYPE_CHECKING:
    from peripety.core.call_context import Clock
    from peripety.gateway.providers.provider import Provider, ProviderCall


QUESTION = GenerateRequest(None, (ChatMessage.user("u"),), max_output_tokens=10)
DOWN = UnavailableError("x", code="PROVIDER_FAILED")
LIMITED = ResourceExhaustedError("x", code="PROVIDER_RATE_LIMITED", retry_after=20)
CUT = UnavailableError("x", code="STREAM_TRUNCATED")
TIMED_OUT = UnavailableError("x", code="PROVIDER_TIMEOUT")
NO_CREDIT = ResourceExhaustedError("x", code="PROVIDER_QUOTA_EXHAUSTED")
BUSY = UnavailableError("x", code="PROVIDER_BUSY")
WRONG = InvalidArgumentError("x", code="PROVIDER_REFUSED_REQUEST")
WRONG_KEY = FailedPreconditionError("x", code="PROVIDER_REFUSED_KEY")


class ExecutorSetting:
    """Call executor with a scripted provider and a virtual clock."""

    def __init__(self, clock: Clock, *scripts: tuple[ScriptedPart, ...], **config: Any) -> None:
        self.clock = clock
        self.provider = FakeProvider(*scripts)
        self.caller = CallExecutor(Config(**config), clock, Random(7))

    async def ask(self, request: GenerateRequest = QUESTION) -> Completion:
        return await collect_completion(
            self.caller.stream(self.provider, call_of(request, request.model or "m")),
        )

    async def outcome(self, request: GenerateRequest = QUESTION) -> str:
        try:
            return (await self.ask(request)).text
        except PeripetyError as error:
            return error.code


def test_an_answer_is_passed_on_as_it_comes_and_completed() -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(clock, ANSWER)
        events = [event async for event in setting.caller.stream(setting.provider, call_of(QUESTION))]
        end = Completion(
            ChatMessage.assistant("ab"),
            None,
            Usage(5, 2),
            StopReason.END,
            "m-1",
            "generic",
            calls=1,
        )
        assert events == [*WORDS, Completed(end)]

    in_virtual_time(scene)


@pytest.mark.parametrize(
    ("model", "usage", "cost", "savings"),
    [
        ("claude-opus-5-5", Usage(1000, 100, 500), 4_100 * 10**6, 1_900 * 10**6),
        ("claude-opus-5-5", Usage(), None, None),
        ("unheard-of", Usage(1000, 100), None, None),
    ],
    ids=["known", "not reported", "without a price"],
)
def test_an_answer_says_what_it_cost_if_that_is_known(
    model: str,
    usage: Usage,
    cost: int | None,
    savings: int | None,
) -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(clock, (DOWN,), (AnswerFinished(SAID, StopReason.END, usage, model),))
        call = call_of(QUESTION, model, "anthropic" if cost or not usage.input_tokens else "generic")
        completion = await collect_completion(setting.caller.stream(setting.provider, call))
        # 500 fresh at $4 a million, 500 read at $0.2, 100 written at $20.
        assert (completion.cost, completion.cache_savings) == (cost, savings)

    in_virtual_time(scene)


@pytest.mark.parametrize("failure", [DOWN, LIMITED, CUT, BUSY], ids=lambda error: error.code)
def test_what_may_pass_is_asked_again(failure: PeripetyError) -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(clock, (failure,), (failure,), ANSWER)
        completion = await setting.ask()
        assert (completion.text, completion.calls, setting.provider.requests) == ("ab", 3, 3)
        assert clock.now() >= 2 * (failure.retry_after or 0)

    in_virtual_time(scene)


@pytest.mark.parametrize(
    "failure",
    [NO_CREDIT, WRONG, WRONG_KEY, TIMED_OUT, DeadlineError("x")],
    ids=lambda error: error.code,
)
def test_what_will_not_pass_is_asked_once(failure: PeripetyError) -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(clock, (failure,), ANSWER)
        assert await setting.outcome() == failure.code
        assert (setting.provider.requests, clock.now()) == (1, 0)

    in_virtual_time(scene)


@pytest.mark.parametrize("failure", [DOWN, LIMITED, CUT], ids=lambda error: error.code)
def test_after_the_first_token_nothing_is_asked_again(failure: PeripetyError) -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(clock, (TextDelta("a"), failure), ANSWER)
        events = []
        with pytest.raises(type(failure)):
            events += [event async for event in setting.caller.stream(setting.provider, call_of(QUESTION))]
        assert setting.provider.requests == 1

    in_virtual_time(scene)


def test_nobody_sleeps_past_the_deadline() -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(clock, (LIMITED,), ANSWER)
        with pytest.raises(ResourceExhaustedError) as caught:
            await setting.ask()
        assert caught.value.retry_after == 20
        assert (setting.provider.requests, clock.now()) == (1, 0)

    in_virtual_time(scene, patience=20)


def test_an_outage_opens_the_breaker_and_costs_hardly_more_requests_than_callers() -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(clock, (DOWN,))
        outcomes = [await setting.outcome() for _ in range(100)]
        assert outcomes[-1] == "PROVIDER_CIRCUIT_OPEN"
        assert setting.provider.requests == 5

    in_virtual_time(scene)


@pytest.mark.parametrize("gap", [0.0, 0.1, 5.0, 70.0])
def test_a_long_outage_costs_at_most_a_tenth_more_requests_than_callers(gap: float) -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(clock, (0.3, DOWN))

        async def caller(number: int) -> None:
            await clock.sleep(number * gap)
            await setting.outcome()

        await asyncio.gather(*[caller(number) for number in range(400)])
        assert setting.provider.requests <= 1.1 * 400

    in_virtual_time(scene)


def test_limits_that_are_refused_all_the_time_are_not_asked_about_all_the_time() -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(clock, (ResourceExhaustedError("x", code="PROVIDER_RATE_LIMITED"),))
        for _ in range(1000):
            await setting.outcome()
        assert 1000 < setting.provider.requests <= 1110

    in_virtual_time(scene)


@pytest.mark.parametrize("failure", [WRONG, WRONG_KEY, NO_CREDIT, BUSY], ids=lambda error: error.code)
def test_what_is_not_the_providers_fault_opens_nothing(failure: PeripetyError) -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(clock, (failure,))
        for _ in range(50):
            assert await setting.outcome() == failure.code
        setting.provider.scripts = [ANSWER]
        assert await setting.outcome() == "ab"

    in_virtual_time(scene)


def test_streams_that_break_after_they_began_open_the_breaker() -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(clock, (TextDelta("a"), CUT))
        outcomes = [await setting.outcome() for _ in range(6)]
        assert outcomes == ["STREAM_TRUNCATED"] * 5 + ["PROVIDER_CIRCUIT_OPEN"]

    in_virtual_time(scene)


def test_callers_who_leave_open_nothing_and_leave_nothing_behind() -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(
            clock, (TextDelta("a"), 1e6), limits={"generic": ProviderLimits(concurrency=1)}
        )
        for _ in range(20):
            async with closing(setting.caller.stream(setting.provider, call_of(QUESTION))) as events:
                assert await anext(events) == TextDelta("a")
            task = asyncio.create_task(setting.ask())
            await clock.sleep(1)
            task.cancel()
            await asyncio.wait([task])
        setting.provider.scripts = [ANSWER]
        assert await setting.outcome() == "ab"

    in_virtual_time(scene)


def test_once_the_provider_works_again_so_do_calls() -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(
            clock, (DOWN,), breaker_failures=2, breaker_open_seconds=10, breaker_successes=2
        )
        assert [await setting.outcome() for _ in range(2)] == ["PROVIDER_FAILED", "PROVIDER_CIRCUIT_OPEN"]
        setting.provider.scripts = [(1.0, *ANSWER)]
        await clock.sleep(10)
        trial = await asyncio.gather(*[setting.outcome() for _ in range(5)])
        assert sorted(trial) == ["PROVIDER_CIRCUIT_OPEN"] * 3 + ["ab"] * 2
        assert await asyncio.gather(*[setting.outcome() for _ in range(5)]) == ["ab"] * 5

    in_virtual_time(scene)


def test_while_the_breaker_is_open_nobody_waits_for_limits() -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(
            clock,
            (DOWN,),
            breaker_failures=1,
            limits={"generic": ProviderLimits(requests_per_minute=1)},
        )
        assert await setting.outcome() == "PROVIDER_FAILED"
        assert await setting.outcome() == "PROVIDER_CIRCUIT_OPEN"
        assert clock.now() == 0

    in_virtual_time(scene)


def test_a_repeated_call_counts_towards_the_limits_each_time() -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(
            clock, (DOWN,), ANSWER, limits={"generic": ProviderLimits(requests_per_minute=1)}
        )
        assert (await setting.ask()).calls == 2
        assert clock.now() >= 60

    in_virtual_time(scene)


@pytest.mark.parametrize(
    ("script", "seconds"),
    [(ANSWER, 0), ((WRONG,), 0), ((*WORDS, AnswerFinished(SAID, StopReason.END, Usage(), "m")), 60)],
)
def test_tokens_are_settled_by_what_is_known_of_their_use(
    script: tuple[ScriptedPart, ...], seconds: int
) -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(
            clock,
            script,
            ANSWER,
            limits={"generic": ProviderLimits(output_tokens_per_minute=12)},
        )
        await setting.outcome()
        await setting.outcome()
        assert clock.now() == pytest.approx(seconds, abs=0.2)

    in_virtual_time(scene)


def model(name: str | None) -> GenerateRequest:
    return GenerateRequest(None, QUESTION.messages, model=name, max_output_tokens=10)


@pytest.mark.parametrize("name", [None, "m", "m-2026-01-31", "m-20260131", "m-latest"])
def test_the_snapshots_of_a_model_share_its_limits(name: str | None) -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(clock, ANSWER, limits={"generic/m": ProviderLimits(requests_per_minute=1)})
        await setting.outcome(model("m"))
        await setting.outcome(model(name))
        assert clock.now() >= 60

    in_virtual_time(scene)


def test_models_have_limits_of_their_own_however_many_there_are() -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(clock, ANSWER, limits={"generic": ProviderLimits(requests_per_minute=1)})
        await asyncio.gather(*[setting.outcome(model(f"m{number}")) for number in range(256)])
        assert clock.now() == 0
        await asyncio.gather(*[setting.outcome(model(f"m{number}")) for number in range(256, 260)])
        assert clock.now() >= 180

    in_virtual_time(scene)


def test_a_model_that_the_configuration_names_keeps_its_limits_however_many_others_were_asked_for() -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(clock, ANSWER, limits={"generic/m": ProviderLimits(requests_per_minute=1)})
        for number in range(300):
            await setting.outcome(model(f"x{number}"))
        await setting.outcome(model("m"))
        await setting.outcome(model("m"))
        assert clock.now() >= 60

    in_virtual_time(scene)


def test_limits_of_a_snapshot_are_those_of_its_class() -> None:
    async def scene(clock: Clock) -> None:
        setting = ExecutorSetting(
            clock, ANSWER, limits={"generic/m-latest": ProviderLimits(requests_per_minute=1)}
        )
        await setting.outcome(model("m-latest"))
        await setting.outcome(model("m"))
        assert clock.now() >= 60

    in_virtual_time(scene)


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


class FallbackSetting:
    """Providers a, b, ... of which each plays a script; one that is not there is not set up."""

    def __init__(self, clock: Clock, scripts: dict[str, tuple[ScriptedPart, ...]], **config: Any) -> None:
        self.providers = {name: FakeProvider(script, name=name) for name, script in scripts.items()}
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
        setting = FallbackSetting(clock, {"a": (failure,), "b": ANSWER})
        told, *deltas, last = await setting.ask("a/m", "b/n")
        assert told == FallingBack("a/m", "b/n", failure)
        assert deltas == [*WORDS]
        assert completed([last]) == ("b", sum(setting.requests))
        assert clock.now() < 2  # the fallback model is used without the wait of 20 seconds

    in_virtual_time(scene)


@pytest.mark.parametrize("failure", NOWHERE, ids=lambda error: error.code)
def test_what_would_fail_anywhere_is_asked_of_one_model(failure: PeripetyError) -> None:
    async def scene(clock: Clock) -> None:
        setting = FallbackSetting(clock, {"a": (failure,), "b": ANSWER})
        with pytest.raises(type(failure)) as caught:
            await setting.ask("a/m", "b/m")
        assert caught.value.code == failure.code
        assert setting.requests == [1, 0]

    in_virtual_time(scene)


def test_after_the_first_token_there_is_no_other_model() -> None:
    async def scene(clock: Clock) -> None:
        setting = FallbackSetting(clock, {"a": (TextDelta("a"), DOWN), "b": ANSWER})
        with pytest.raises(UnavailableError):
            await setting.ask("a/m", "b/m")
        assert setting.requests == [1, 0]

    in_virtual_time(scene)


def test_models_are_tried_in_their_order_and_those_that_are_not_set_up_are_passed_over() -> None:
    async def scene(clock: Clock) -> None:
        setting = FallbackSetting(clock, {"b": (TIMED_OUT,), "d": ANSWER, "e": ANSWER})
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
        setting = FallbackSetting(clock, {"a": (TIMED_OUT,), "c": (NOWHERE[0],), "d": ANSWER})
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
        setting = FallbackSetting(clock, {"a": (TIMED_OUT,), "b": ANSWER}, breaker_failures=2)
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
        setting = FallbackSetting(clock, {"openai": ANSWER, "gemini": ANSWER}, limits=limits)
        answers = [completed(await setting.ask("openai/m", "gemini/m"))[0] for _ in range(3)]
        assert answers == ["openai", "gemini", "gemini"]
        assert 60 <= clock.now() <= 61

    in_virtual_time(scene)


def test_the_repair_is_for_the_model_that_answered() -> None:
    async def scene(clock: Clock) -> None:
        setting = FallbackSetting(clock, {"a": (TIMED_OUT,), "b": ANSWER})
        request = asking(model="a/m", fallback_models=("b/m",))
        candidates = setting.candidates(request)
        first = [event async for event in candidates.stream(request)]
        again = [event async for event in candidates.stream(request)]
        assert (completed(first), completed(again)) == (("b", 2), ("b", 1))
        assert setting.requests == [1, 2]

    in_virtual_time(scene)


def test_budgets_span_all_models() -> None:
    async def scene(clock: Clock) -> None:
        setting = FallbackSetting(clock, {"a": (TIMED_OUT,), "b": (TIMED_OUT,), "c": ANSWER})
        with pytest.raises(UnavailableError) as caught:
            await setting.ask("a/m", "b/m", "c/m", budget=Budget(max_calls=2))
        assert caught.value.code == "PROVIDER_TIMEOUT"
        assert caught.value.details["fallback_2"] == "c/m: BUDGET_EXHAUSTED"
        assert setting.requests == [1, 1, 0]

    in_virtual_time(scene)


@pytest.mark.parametrize("at_once", [True, False])
def test_in_an_outage_of_all_models_each_gets_hardly_more_requests_than_there_are(at_once: bool) -> None:
    async def scene(clock: Clock) -> None:
        setting = FallbackSetting(clock, {"a": (0.3, DOWN), "b": (0.3, DOWN)})

        async def caller(number: int) -> None:
            await clock.sleep(0 if at_once else number * 5.0)
            with pytest.raises(UnavailableError):
                await setting.ask("a/m", "b/m")

        await asyncio.gather(*[caller(number) for number in range(400)])
        assert max(setting.requests) <= 1.1 * 400

    in_virtual_time(scene)
