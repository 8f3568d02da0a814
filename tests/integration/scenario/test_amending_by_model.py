"""Models change stored scenarios, in the protocols of providers, over real connections."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.api.common.v1 import common_pb2 as common
from peripety.api.scenario.v1 import scenario_pb2 as pb
from peripety.engine.patterns.syntax import Pattern
from peripety.llmsim.script.types import Script, ScriptRule
from support.scenario.generation import LEVEL, ORIGINAL_PROVIDERS, as_answer, authoring, good_specs
from support.servers.apps import new_id

if TYPE_CHECKING:
    from pathlib import Path

    from support.gateway.providers import Spoken
    from support.scenario.generation import Author


GOOD = good_specs()[0]
EVENT = GOOD["random_events"][0]
MILDER = {"random_events": [{**EVENT, "weight": 0.05}]}
OUT_OF_BOUNDS = {"random_events": [{**EVENT, "weight": 3}]}
HOPELESS = {
    "loss_conditions": [
        {**condition, "when": {">=": [{"var": "turn"}, 1]}} for condition in GOOD["loss_conditions"]
    ],
}
each_provider = pytest.mark.parametrize("spoken", ORIGINAL_PROVIDERS, ids=str)
OPENAI = next(spoken for spoken in ORIGINAL_PROVIDERS if spoken.settings == "openai")


def saying(*answers: dict[str, Any]) -> Script:
    rules = [
        ScriptRule(Pattern(message_index=(at, at)), as_answer(answer)) for at, answer in enumerate(answers)
    ]
    return Script((*rules, ScriptRule(Pattern(), as_answer(answers[-1]))))


async def stored(author: Author) -> pb.CompiledScenario:
    """The good scenario as the latest version, certified where that takes seconds."""
    request = pb.CompileScenarioRequest(request_id=new_id(), spec=json.dumps(GOOD).encode())
    events = [event async for event in author.stub.CompileScenario(request)]
    scenario: pb.CompiledScenario = events[-1].compiled
    if LEVEL == pb.VALIDATION_LEVEL_CERTIFICATE:
        certify = pb.CertifyScenarioRequest(request_id=new_id(), scenario_id=scenario.scenario_id)
        certificate = [event async for event in author.stub.CertifyScenario(certify)][-1].certificate
        assert certificate.verdict == pb.CERTIFICATE_VERDICT_CERTIFIED
    return scenario


async def amended(author: Author, scenario_id: str, **fields: Any) -> list[pb.AmendScenarioResponse]:
    fields = {"request_id": new_id(), "instruction": "less of the first event"} | fields
    request = pb.AmendScenarioRequest(scenario_id=scenario_id, **fields)
    events = [event async for event in author.stub.AmendScenario(request)]
    return [event for event in events if not event.HasField("progress")]


@each_provider
async def test_a_part_is_changed_and_the_certificate_earned_again(tmp_path: Path, spoken: Spoken) -> None:
    async with authoring(tmp_path, spoken, saying(MILDER)) as author:
        scenario = await stored(author)
        events = await amended(author, scenario.scenario_id)
    assert [event.WhichOneof("event") for event in events] == ["proposed", "amended"]
    result = events[-1].amended
    (edit,) = result.edits
    assert edit.summary == f"event '{EVENT['id']}': weight {EVENT['weight']:g} → 0.05"
    assert engine.validate(result.scenario.spec) == []
    assert bool(result.scenario.certificate_hash) == (LEVEL == pb.VALIDATION_LEVEL_CERTIFICATE)
    assert result.usage.calls == len(author.model.requests) == 1
    assert result.usage == events[0].proposed.usage


async def test_what_is_wrong_goes_back_in_the_same_conversation(tmp_path: Path) -> None:
    async with authoring(tmp_path, OPENAI, saying(OUT_OF_BOUNDS, MILDER)) as author:
        scenario = await stored(author)
        events = await amended(author, scenario.scenario_id)
    assert [event.WhichOneof("event") for event in events] == ["proposed", "findings", "proposed", "amended"]
    assert [finding.code for finding in events[1].findings.findings] == ["OUT_OF_RANGE"]
    first, second = author.model.requests
    assert second.messages[: len(first.messages)] == first.messages
    assert events[2].proposed.usage.tokens.cache_read_tokens > 0


async def test_a_change_that_spoils_the_scenario_is_refused_within_its_answers(tmp_path: Path) -> None:
    async with authoring(tmp_path, OPENAI, saying(HOPELESS)) as author:
        scenario = await stored(author)
        events = await amended(author, scenario.scenario_id, max_attempts=2)
        read = pb.GetScenarioRequest(scenario_id=scenario.scenario_id)
        assert (await author.stub.GetScenario(read)).scenario.spec_hash == scenario.spec_hash
    refused = events[-1].rejected
    codes = {finding.code for finding in refused.findings.findings}
    assert {"CERTAIN_LOSS", "BUDGET_EXHAUSTED"} <= codes
    assert refused.usage.calls == len(author.model.requests) == 2


async def test_no_answer_is_asked_for_that_the_caps_do_not_allow(tmp_path: Path) -> None:
    async with authoring(tmp_path, OPENAI, saying(OUT_OF_BOUNDS)) as author:
        scenario = await stored(author)
        events = await amended(author, scenario.scenario_id, budget=common.Budget(max_tokens=10))
    assert [finding.code for finding in events[-1].rejected.findings.findings] == ["BUDGET_EXHAUSTED"]
    assert author.model.requests == []
