"""The tools of a stored scenario, over a real loopback connection."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING

import pytest

from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from peripety.server.app import serve
from support.engine.specs import action, as_bytes, chance
from support.servers.apps import Api, config_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


AMOUNT = {"amount": {"type": "integer", "minimum": 1, "maximum": 3}}
FIRST = action("a.b", params=AMOUNT) | {"name": "First"}
SCENARIO = as_bytes(chance(0.5) | {"actions": [FIRST, action("rest")]})


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with (
        serve(config_for(tmp_path), services={"gateway", "scenarios"}) as app,
        Api.connected(app.address) as connected,
    ):
        yield connected


async def stored(api: Api) -> pb.CompiledScenario:
    return (await api.compile(SCENARIO))[-1].compiled


async def test_actions_are_given_as_tools_with_those_of_the_engine_behind(api: Api) -> None:
    scenario = await stored(api)
    request = pb.GetScenarioToolsRequest(scenario_id=scenario.scenario_id)
    given = await api.scenarios.GetScenarioTools(request)
    assert given.spec_hash == scenario.spec_hash
    assert [(tool.action_id, tool.name) for tool in given.tools] == [
        ("a.b", "action:a.b"),
        ("rest", "action:rest"),
        ("", "query"),
        ("", "roll"),
    ]
    assert given.tools[0].description == "First."
    assert json.loads(given.tools[0].input_schema) == {
        "type": "object",
        "properties": AMOUNT,
        "required": ["amount"],
        "additionalProperties": False,
    }
    assert json.loads(given.tools[3].input_schema)["required"] == ["kind", "difficulty"]


@pytest.mark.parametrize("provider", ["anthropic", "openai", "gemini", "ollama"])
async def test_a_provider_gets_names_that_it_takes(api: Api, provider: str) -> None:
    scenario = await stored(api)
    request = pb.GetScenarioToolsRequest(
        scenario_id=scenario.scenario_id,
        spec_hash=scenario.spec_hash,
        provider=provider,
    )
    names = [tool.name for tool in (await api.scenarios.GetScenarioTools(request)).tools]
    assert names[2:] == ["query", "roll"]
    assert all(name.replace("_", "").replace("-", "").isalnum() for name in names)


async def test_names_of_parameters_that_a_provider_forbids_are_told_before_it_is_asked(api: Api) -> None:
    scenario = as_bytes(chance(0.5) | {"actions": [action("rest", params={"größe": {"type": "boolean"}})]})
    stored_id = (await api.compile(scenario))[-1].compiled.scenario_id
    asked = partial(pb.GetScenarioToolsRequest, scenario_id=stored_id)
    assert len((await api.scenarios.GetScenarioTools(asked(provider="openai"))).tools) == 3
    with pytest.raises(FailedPreconditionError, match="größe") as refused:
        await api.scenarios.GetScenarioTools(asked(provider="anthropic"))
    assert refused.value.code == "TOOLS_UNSUPPORTED"


async def test_what_there_is_not_is_told(api: Api) -> None:
    scenario_id = (await stored(api)).scenario_id
    for absent in (
        pb.GetScenarioToolsRequest(scenario_id="scn_0"),
        pb.GetScenarioToolsRequest(scenario_id=scenario_id, spec_hash="0" * 64),
    ):
        with pytest.raises(NotFoundError):
            await api.scenarios.GetScenarioTools(absent)
    for request, field in (
        (pb.GetScenarioToolsRequest(), "scenario_id"),
        (pb.GetScenarioToolsRequest(scenario_id=scenario_id, provider="nobody"), "provider"),
    ):
        with pytest.raises(InvalidArgumentError, match=field):
            await api.scenarios.GetScenarioTools(request)
