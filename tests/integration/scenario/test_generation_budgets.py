"""Caps on writing a specification, over real connections, beside the books of a scripted model."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from google.protobuf.duration_pb2 import Duration

from peripety.api.common.v1 import common_pb2 as common
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub
from peripety.core.config import ProviderName
from peripety.llmsim.script.files import ScriptBuilder
from peripety.rpc.channel import open_channel
from peripety.server.app import serve
from support.engine.specs import chance
from support.llmsim.simulator import served
from support.servers.apps import config_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceAsyncStub
    from support.llmsim.simulator import Served


WRONG = json.dumps({**chance(0.5), "actions": [{"id": "wait", "power": 1}]})


@asynccontextmanager
async def stubborn(tmp_path: Path, **answer: Any) -> AsyncIterator[tuple[ScenarioServiceAsyncStub, Served]]:
    """The services in front of a model whose every answer is wrong."""
    with served(ScriptBuilder().default_response({"text": WRONG, **answer}).build()) as model:
        config = config_for(
            tmp_path,
            model_provider=ProviderName.OPENAI,
            model_name="gpt-4o",
            openai_api_base=f"{model.url}/v1",
            openai_api_key="k",
            anthropic_api_base=model.url,
            anthropic_api_key="k",
            deepseek_api_base=model.url,
            deepseek_api_key="k",
        )
        async with (
            serve(config, services={"gateway", "scenarios"}) as app,
            open_channel(app.address) as channel,
        ):
            yield ScenarioServiceStub(channel), model


def ordered(budget: common.Budget, model: str = "") -> pb.GenerateScenarioRequest:
    return pb.GenerateScenarioRequest(
        request_id=str(uuid4()),
        description="alpha wanes",
        level=pb.VALIDATION_LEVEL_STATIC,
        model=model,
        max_attempts=3,
        budget=budget,
    )


async def rejected(
    stub: ScenarioServiceAsyncStub,
    budget: common.Budget,
) -> pb.GenerateScenarioResponse.Rejected:
    *_, last = [event async for event in stub.GenerateScenario(ordered(budget))]
    assert last.HasField("rejected"), last
    assert "BUDGET_EXHAUSTED" in {finding.code for finding in last.rejected.findings.findings}
    return last.rejected


async def billed(model: Served) -> int:
    """Return the total cost of all calls; the last bill may arrive a moment after its answer."""
    for _ in range(3000):
        accounts = model.simulator.accounts
        if sum(account.requests for account in accounts) == len(model.simulator.captured):
            break
        await asyncio.sleep(0.01)
    return sum(account.amount for account in accounts)


def dollars(pico_units: int) -> common.Money:
    return common.Money(currency_code="USD", pico_units=pico_units)


@pytest.mark.parametrize(
    "model_name",
    ["anthropic/claude-opus-5-5", "deepseek/deepseek-flash", "openai/gpt-6.2-sol"],
)
async def test_what_was_said_before_is_read_from_the_cache_with_the_schema(
    tmp_path: Path,
    model_name: str,
) -> None:
    async with stubborn(tmp_path) as (stub, _):
        request = ordered(common.Budget(), model=model_name)
        events = [event async for event in stub.GenerateScenario(request)]
    answers = [event.draft if event.HasField("draft") else event.repaired for event in events]
    used = [answer.usage.tokens for answer in answers if answer.attempt]
    assert len(used) == 3
    for before, after in pairwise(used):
        # All that was there before: only the answer to it and the next question are new.
        assert after.cache_read_tokens > 0.9 * before.input_tokens


async def test_what_an_order_cost_is_what_the_provider_bills(tmp_path: Path) -> None:
    async with stubborn(tmp_path) as (stub, model):
        usage = (await rejected(stub, common.Budget())).usage
        assert usage.cost == dollars(await billed(model))
    assert usage.calls == 3
    assert usage.cost.pico_units > 0


@pytest.mark.parametrize(
    "budget",
    [common.Budget(max_cost=dollars(10**9)), common.Budget(max_tokens=1_000)],
    ids=["money", "tokens"],
)
async def test_nothing_is_asked_where_the_first_answer_might_pass_a_cap(
    tmp_path: Path,
    budget: common.Budget,
) -> None:
    async with stubborn(tmp_path) as (stub, model):
        usage = (await rejected(stub, budget)).usage
        assert len(model.simulator.captured) == 0
    assert (usage.calls, usage.cost.pico_units) == (0, 0)


async def test_time_ends_an_answer_that_is_under_way(tmp_path: Path) -> None:
    async with stubborn(tmp_path, delay_ms=60_000) as (stub, _):
        refused = await rejected(stub, common.Budget(max_time=Duration(nanos=300_000_000)))
    (finding,) = refused.findings.findings
    assert "time limit of 0.3 s exceeded" in finding.message
    # The cost of the answer is unknown, and not reported as zero.
    assert (refused.usage.calls, refused.usage.HasField("cost")) == (1, False)
