"""Cost, budgets, fallbacks and usage over gRPC, compared with the bills of the scripted LLM."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import grpc.aio
import pytest

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.gateway.v1 import gateway_pb2 as pb
from peripety.api.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from peripety.core.config import DailyBudget, ProviderName
from peripety.errors import InvalidArgumentError, PeripetyError, ResourceExhaustedError
from peripety.gateway.setup import register_service
from peripety.rpc.channel import open_channel
from peripety.rpc.status import from_rpc_error
from peripety.server.app import serve_registered
from support.llmsim.simulator import served
from support.servers.apps import config_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.llmsim.simulator import Served


ANSWERS = """
[[responses]]
pattern = { type = "contains", text = "an object" }
response = "{}"

[[responses]]
pattern = { type = "contains", text = "findings" }
response = '{"a": 1}'

[[responses]]
pattern = { type = "contains", text = "slow" }
response = { text = "ab cd", delay_ms = 5000 }

[[responses]]
pattern = { type = "any" }
response = "some words that are of no importance"
"""
REFUSES = """
[[responses]]
pattern = { type = "any" }
failure = { type = "auth_error", message = "no" }
"""
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
DAY = 86_400


def question(text: str = "u", schema: Any = None, **options: Any) -> pb.GenerateRequest:
    message = pb.ChatMessage(role=pb.CHAT_ROLE_USER, parts=[pb.ContentPart(text=text)])
    return pb.GenerateRequest(
        request_id=str(uuid4()),
        prompt=pb.Prompt(messages=[message]),
        options=pb.GenerationOptions(**options),
        schema=schema and pb.ResponseSchema(name="a", document=json.dumps(schema).encode()),
    )


class Gateway:
    """A client of the service."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = GatewayServiceStub(channel)

    async def events(self, request: pb.GenerateRequest) -> list[pb.GenerateResponse]:
        try:
            return [event async for event in self._stub.Generate(request)]
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None

    async def ask(self, *arguments: Any, **options: Any) -> pb.Completion:
        return (await self.events(question(*arguments, **options)))[-1].completed

    async def usage(self, **query: Any) -> list[pb.UsageRow]:
        try:
            return list((await self._stub.GetUsage(pb.GetUsageRequest(**query))).rows)
        except grpc.aio.AioRpcError as error:
            raise from_rpc_error(error) from None


@asynccontextmanager
async def serving(tmp_path: Path, model: Served, **settings: Any) -> AsyncIterator[Gateway]:
    config = config_for(
        tmp_path,
        **{
            "model_provider": ProviderName.OPENAI,
            "model_name": "gpt-4o",
            "openai_api_base": f"{model.url}/v1",
            "openai_api_key": "k",
            "limits": {"openai": {}},
            **settings,
        },
    )
    async with serve_registered(config, [register_service]) as app, open_channel(app.address) as channel:
        yield Gateway(channel)


def dollars(pico_units: int) -> common.Money:
    return common.Money(currency_code="USD", pico_units=pico_units)


async def billed(model: Served) -> int:
    """Return the total cost of all calls; the last bill may arrive a moment after its answer."""
    for _ in range(3000):
        accounts = model.simulator.accounts
        if sum(account.requests for account in accounts) == len(model.simulator.captured):
            break
        await asyncio.sleep(0.01)
    return sum(account.amount for account in accounts)


async def test_costs_are_those_of_the_provider_and_usage_adds_them_up(tmp_path: Path) -> None:
    with served(ANSWERS) as model:
        async with serving(tmp_path, model) as gateway:
            costs = [(await gateway.ask(f"u{n}" * 100)).cost for n in range(3)]
        async with serving(tmp_path, model) as gateway:
            costs.append((await gateway.ask()).cost)
            (row,) = await gateway.usage(
                group_by=[pb.USAGE_DIMENSION_PROVIDER, pb.USAGE_DIMENSION_MODEL, pb.USAGE_DIMENSION_DAY],
            )
            assert await gateway.usage(model="another", group_by=[pb.USAGE_DIMENSION_MODEL]) == []
        assert sum(cost.pico_units for cost in costs) == await billed(model) > 0
        assert row.usage.cost == dollars(await billed(model))
        assert (row.provider, row.model, row.usage.calls) == ("openai", "gpt-4o", 4)
        assert row.day.seconds % DAY == 0


async def test_answers_that_were_stored_are_hits_that_cost_nothing(tmp_path: Path) -> None:
    with served(ANSWERS) as model:
        async with serving(tmp_path, model) as gateway:
            answers = [await gateway.ask(response_cache=pb.RESPONSE_CACHE_MODE_USE) for _ in range(3)]
            (row,) = await gateway.usage()
    assert [answer.cost.pico_units > 0 for answer in answers] == [True, False, False]
    assert answers[-1].cost == dollars(0)
    assert (row.usage.calls, row.response_cache_hits) == (1, 2)


async def test_what_is_asked_of_usage_is_checked(tmp_path: Path) -> None:
    with served(ANSWERS) as model:
        async with serving(tmp_path, model) as gateway:
            for query in ({"group_by": [9]}, {"group_by": [0]}, {"page_token": "x"}, {"page_size": -1}):
                with pytest.raises(InvalidArgumentError, match=f"^{next(iter(query))}"):
                    await gateway.usage(**query)


async def test_the_budget_of_a_day_holds_over_a_restart(tmp_path: Path) -> None:
    daily = DailyBudget(max_calls=3)
    with served(ANSWERS) as model:
        for calls in (2, 1):
            async with serving(tmp_path, model, daily_budget=daily) as gateway:
                for _ in range(calls):
                    await gateway.ask()
        async with serving(tmp_path, model, daily_budget=daily) as gateway:
            with pytest.raises(ResourceExhaustedError, match="budget of the day exhausted") as caught:
                await gateway.ask()
    assert caught.value.code == "BUDGET_EXHAUSTED"
    assert 0 < (caught.value.retry_after or 0) <= DAY


async def test_gateways_that_share_a_redis_server_share_the_budget_of_the_day(
    tmp_path: Path,
    redis_url: str,
) -> None:
    settings: dict[str, Any] = {"daily_budget": DailyBudget(max_calls=3), "redis_url": redis_url}
    (tmp_path / "b").mkdir()
    with served(ANSWERS) as model:
        async with serving(tmp_path, model, **settings) as a, serving(tmp_path / "b", model, **settings) as b:
            ends = await asyncio.gather(*[gateway.ask() for gateway in (a, b) * 4], return_exceptions=True)
    assert sum(isinstance(end, ResourceExhaustedError) for end in ends) == 5
    assert len(model.simulator.captured) == 3


async def test_many_at_once_spend_nearly_all_of_the_money_and_never_more(tmp_path: Path) -> None:
    daily = DailyBudget.model_validate({"max_cost_dollars": 1})
    with served(ANSWERS) as model:
        async with serving(tmp_path, model, daily_budget=daily) as gateway:

            async def spend_all() -> None:
                while True:
                    await gateway.ask("word " * 5_000, max_output_tokens=300)

            ends = await asyncio.gather(*[spend_all() for _ in range(8)], return_exceptions=True)
        assert all(isinstance(end, ResourceExhaustedError) for end in ends)
        assert 0.95 * 10**12 <= await billed(model) <= 10**12


async def test_a_budget_spans_the_repair(tmp_path: Path) -> None:
    with served(ANSWERS) as model:
        async with serving(tmp_path, model) as gateway:
            repaired = await gateway.ask("an object", SCHEMA)
            assert (repaired.repaired, repaired.calls, repaired.cost) == (
                True,
                2,
                dollars(await billed(model)),
            )
            with pytest.raises(ResourceExhaustedError, match="1 of 1 calls used"):
                await gateway.ask("an object", SCHEMA, budget=common.Budget(max_calls=1))
            calls = len(model.simulator.captured)
            with pytest.raises(ResourceExhaustedError, match="dollars used"):
                await gateway.ask("an object", SCHEMA, budget=common.Budget(max_cost=dollars(10**6)))
            assert len(model.simulator.captured) == calls == 3


async def test_a_budget_of_time_ends_the_request(tmp_path: Path) -> None:
    budget = common.Budget()
    budget.max_time.FromMilliseconds(50)
    with served(ANSWERS) as model:
        async with serving(tmp_path, model) as gateway:
            with pytest.raises(ResourceExhaustedError, match=r"limit of 0\.05 seconds") as caught:
                await gateway.ask("slow", budget=budget)
    assert caught.value.code == "BUDGET_EXHAUSTED"


async def test_another_model_answers_when_the_first_one_does_not(tmp_path: Path) -> None:
    with served(REFUSES) as closed, served(ANSWERS) as model:
        settings = {"anthropic_api_base": closed.url, "anthropic_api_key": "k"}
        async with serving(tmp_path, model, **settings) as gateway:
            request = question(model="claude-opus-5-5", fallback_models=["openai/gpt-4o"])
            told, *_, last = await gateway.events(request)
            assert told.fallback_started.from_model == "anthropic/claude-opus-5-5"
            assert told.fallback_started.to_model == "openai/gpt-4o"
            assert told.fallback_started.cause.reason == "PROVIDER_REFUSED_KEY"
            assert (last.completed.provider, last.completed.calls) == ("openai", 2)
            assert last.completed.cost == dollars(await billed(model))
            rows = await gateway.usage(group_by=[pb.USAGE_DIMENSION_PROVIDER])
    assert [(row.provider, row.usage.calls) for row in rows] == [("anthropic", 1), ("openai", 1)]
    assert rows[0].usage.cost == dollars(0)


async def test_a_model_that_is_not_set_up_keeps_no_other_from_answering_from_the_response_cache(
    tmp_path: Path,
) -> None:
    options = {"model": "gemini/g", "fallback_models": ["openai/gpt-4o"]}
    with served(ANSWERS) as model:
        async with serving(tmp_path, model) as gateway:
            answers = [
                await gateway.ask(response_cache=pb.RESPONSE_CACHE_MODE_USE, **options) for _ in range(2)
            ]
    assert [answer.provider for answer in answers] == ["openai", "openai"]
    assert [answer.from_response_cache for answer in answers] == [False, True]


async def test_when_no_model_answers_the_first_failure_tells_of_the_others(tmp_path: Path) -> None:
    with served(REFUSES) as model:
        async with serving(tmp_path, model) as gateway:
            with pytest.raises(PeripetyError) as caught:
                await gateway.ask(fallback_models=["gemini/gemini-3-flash", "openai/gpt-4o-mini"])
    assert caught.value.code == "PROVIDER_REFUSED_KEY"
    assert caught.value.details["fallback_1"] == "gemini/gemini-3-flash: PROVIDER_NOT_CONFIGURED"
    assert caught.value.details["fallback_2"] == "openai/gpt-4o-mini: PROVIDER_REFUSED_KEY"
