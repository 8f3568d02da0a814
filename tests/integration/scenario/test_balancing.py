"""BalanceScenario over a real loopback connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from peripety import engine as engine_api
from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub
from peripety.errors import AlreadyExistsError, InvalidArgumentError
from peripety.rpc.channel import open_channel
from peripety.server.app import serve
from support.engine.specs import as_bytes, chance, siege
from support.servers.apps import config_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceAsyncStub


@pytest.fixture
async def stub(tmp_path: Path) -> AsyncIterator[ScenarioServiceAsyncStub]:
    async with (
        serve(config_for(tmp_path), services={"gateway", "scenarios"}) as app,
        open_channel(app.address) as channel,
    ):
        yield ScenarioServiceStub(channel)


def request(least: float = 0.6, most: float = 0.7, **fields: Any) -> pb.BalanceScenarioRequest:
    target = pb.TargetBand(min_fail_rate=least, max_fail_rate=most)
    given: dict[str, Any] = {"request_id": str(uuid4()), "spec": as_bytes(siege()), "target": target}
    return pb.BalanceScenarioRequest(**given | {"dry_run": pb.DryRunOptions(max_runs=2_000)} | fields)


async def all_of(responses: Any) -> list[pb.BalanceScenarioResponse]:
    return [response async for response in responses]


async def test_a_specification_comes_back_balanced_with_what_moved(stub: ScenarioServiceAsyncStub) -> None:
    *steps, last = await all_of(stub.BalanceScenario(request()))
    balanced = last.balanced
    assert all(step.WhichOneof("event") == "progress" for step in steps)
    assert [step.sequence for step in (*steps, last)] == list(range(1, len(steps) + 2))
    assert balanced.before.fail_rate < 0.6 <= balanced.after.fail_rate <= 0.7
    (edit,) = balanced.edits
    assert edit.before != edit.after
    assert "%)" in edit.summary
    assert engine_api.compile(balanced.spec).document == balanced.spec


async def test_nothing_is_stored(stub: ScenarioServiceAsyncStub) -> None:
    await all_of(stub.BalanceScenario(request()))
    assert not (await stub.ListScenarios(pb.ListScenariosRequest())).scenarios


async def test_what_is_out_of_reach_is_a_result(stub: ScenarioServiceAsyncStub) -> None:
    last = (await all_of(stub.BalanceScenario(request(0.9, 0.95, spec=as_bytes(chance(0.2))))))[-1]
    assert [finding.code for finding in last.rejected.findings.findings] == ["BALANCE_OUT_OF_REACH"]
    assert last.rejected.closest.fail_rate > 0.2


async def test_every_persona_may_play(stub: ScenarioServiceAsyncStub) -> None:
    options = pb.DryRunOptions(persona=engine.PERSONA_CAUTIOUS, max_runs=64)
    last = (await all_of(stub.BalanceScenario(request(0.0, 1.0, dry_run=options))))[-1]
    assert last.balanced.after.persona == engine.PERSONA_CAUTIOUS


async def test_a_request_that_is_sent_again_repeats_its_answer(stub: ScenarioServiceAsyncStub) -> None:
    asked = request()
    first = await all_of(stub.BalanceScenario(asked))
    assert await all_of(stub.BalanceScenario(asked)) == first
    asked.after_sequence = first[-2].sequence
    assert await all_of(stub.BalanceScenario(asked)) == first[-1:]
    asked.target.max_fail_rate = 0.8
    with pytest.raises(AlreadyExistsError):
        await all_of(stub.BalanceScenario(asked))


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"target": None}, "target"),
        ({"target": pb.TargetBand(min_fail_rate=0.5, max_fail_rate=0.4)}, "target.max_fail_rate"),
        ({"spec": b""}, "spec"),
        ({"dry_run": pb.DryRunOptions(max_runs=63)}, "dry_run.max_runs"),
        ({"request_id": "x"}, "request_id"),
    ],
)
async def test_a_request_that_is_wrong_names_its_field(
    stub: ScenarioServiceAsyncStub,
    wrong: dict[str, Any],
    field: str,
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await all_of(stub.BalanceScenario(request(**wrong)))
    assert [violation.field for violation in caught.value.violations] == [field]
