"""Rule graphs over a real loopback connection: of documents, and of stored scenarios."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from peripety.api.common.v1 import engine_pb2 as engine
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceStub
from peripety.errors import InvalidArgumentError, NotFoundError
from peripety.rpc.channel import open_channel
from peripety.server.app import serve
from support.engine.specs import as_bytes, chance
from support.servers.apps import config_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from peripety.api.scenario.v1.scenario_pb2_grpc import ScenarioServiceAsyncStub


SPEC = as_bytes(chance(0.45))


@pytest.fixture
async def stub(tmp_path: Path) -> AsyncIterator[ScenarioServiceAsyncStub]:
    async with (
        serve(config_for(tmp_path), services={"gateway", "scenarios"}) as app,
        open_channel(app.address) as opened,
    ):
        yield ScenarioServiceStub(opened)


async def test_a_document_gives_its_rules_and_quantities(stub: ScenarioServiceAsyncStub) -> None:
    graph = await stub.InspectScenario(pb.InspectScenarioRequest(spec=SPEC))
    kinds = {node.node_id: node.kind for node in graph.nodes}
    assert kinds["/actions/0"] == pb.RULE_NODE_KIND_ACTION
    assert kinds["/loss_conditions/1"] == pb.RULE_NODE_KIND_LOSS
    assert {edge.from_node_id for edge in graph.edges} <= kinds.keys()
    assert {edge.to_node_id for edge in graph.edges} <= kinds.keys()
    assert not any(node.heat for node in graph.nodes)
    assert not graph.HasField("dry_run")


async def test_runs_give_heat(stub: ScenarioServiceAsyncStub) -> None:
    options = pb.DryRunOptions(persona=engine.PERSONA_GREEDY, max_runs=64)
    graph = await stub.InspectScenario(pb.InspectScenarioRequest(spec=SPEC, dry_run=options))
    heat = {node.node_id: node.heat for node in graph.nodes}
    assert (graph.dry_run.runs, graph.dry_run.persona) == (64, engine.PERSONA_GREEDY)
    assert graph.dry_run.lost == heat["/loss_conditions/0"] + heat["/loss_conditions/1"] > 0


async def test_a_stored_scenario_has_the_graph_of_its_document(stub: ScenarioServiceAsyncStub) -> None:
    request = pb.CompileScenarioRequest(request_id=str(uuid4()), spec=SPEC)
    stored = [event async for event in stub.CompileScenario(request)][-1].compiled
    options = pb.DryRunOptions()
    by_id = await stub.InspectScenario(
        pb.InspectScenarioRequest(scenario_id=stored.scenario_id, dry_run=options),
    )
    assert by_id == await stub.InspectScenario(pb.InspectScenarioRequest(spec=stored.spec, dry_run=options))


async def test_a_document_with_errors_is_refused(stub: ScenarioServiceAsyncStub) -> None:
    with pytest.raises(InvalidArgumentError, match="'spec_version' is missing"):
        await stub.InspectScenario(pb.InspectScenarioRequest(spec=b"{}"))


async def test_what_is_not_there_is_not_found(stub: ScenarioServiceAsyncStub) -> None:
    with pytest.raises(NotFoundError):
        await stub.InspectScenario(pb.InspectScenarioRequest(scenario_id="scn_0"))


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.InspectScenarioRequest(), "source"),
        (pb.InspectScenarioRequest(spec=b""), "spec"),
        (pb.InspectScenarioRequest(scenario_id=""), "scenario_id"),
        (pb.InspectScenarioRequest(spec=SPEC, dry_run=pb.DryRunOptions(max_runs=-1)), "dry_run.max_runs"),
    ],
)
async def test_what_cannot_be_inspected_names_its_field(
    stub: ScenarioServiceAsyncStub,
    request_: pb.InspectScenarioRequest,
    field: str,
) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await stub.InspectScenario(request_)
    assert [violation.field for violation in caught.value.violations] == [field]
