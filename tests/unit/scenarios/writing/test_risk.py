"""Descriptions that ask for no risk: they get some, and are told how much."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from peripety import engine
from peripety.core.config import Config, ProviderName
from peripety.errors import Severity, get_remedy
from peripety.gateway.calls.executor import CallExecutor
from peripety.gateway.local_gateway import LocalModelGateway
from peripety.gateway.providers.registry import ProviderRegistry
from peripety.scenario.certificate.certifier import build_certificate
from peripety.scenario.certificate.types import CertificateOptions
from peripety.scenario.generation import evaluation
from peripety.scenario.generation.evaluation import find_retained_risk
from peripety.scenario.generation.loop import ScenarioGenerator
from peripety.scenario.types import GenerationOrder, SpecGenerated, ValidationLevel
from support.engine.specs import as_bytes, chance, program
from support.scenario.batches import WORKERS
from support.scenario.generation import ANSWERS
from support.session.sessions import ScriptedGateway

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.gateway.types.response import ModelGateway


RISKLESS = "A day on which nothing can go wrong."


async def test_a_description_with_something_at_stake_is_left_alone() -> None:
    assert (
        await find_retained_risk(
            "We lose it all if anything goes wrong.",
            as_bytes(chance(0.4)),
            None,
            WORKERS,
        )
        == ()
    )


async def test_what_was_asked_for_and_how_often_it_is_lost_are_told() -> None:
    wanted = chance(0.4)
    (found,) = await find_retained_risk(RISKLESS, as_bytes(wanted), None, WORKERS)
    played = program(wanted).dry_run(runs=256)
    assert (found.code, found.severity) == ("RISK_RETAINED", Severity.WARNING)
    assert found.path == "/negativity_budget/min_fail_rate"
    assert "'nothing can go wrong'" in found.message
    assert f"the random persona loses {played.fail_rate:.1%} of 256 runs" in found.message
    assert found.remedy


async def test_the_rate_is_that_of_the_certificate_where_there_is_one() -> None:
    certificate = await build_certificate(program(chance(0.4)), CertificateOptions(max_runs=64), WORKERS)
    (found,) = await find_retained_risk(RISKLESS, as_bytes(chance(0.9)), certificate, WORKERS)
    (lost,) = (report.lost for report in certificate.personas if report.persona == "random")
    assert f"loses {lost.value:.1%} of {lost.total} runs" in found.message


async def test_what_cannot_be_played_is_told_without_a_rate() -> None:
    (found,) = await find_retained_risk(RISKLESS, engine.canonicalize({"spec_version": "1.0"}), None, WORKERS)
    assert found.message.endswith("but the scenario has some")


async def test_what_takes_long_to_play_is_told_without_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "_MAX_SECONDS", 0.0)
    (found,) = await find_retained_risk(RISKLESS, as_bytes(chance(0.4)), None, WORKERS)
    assert found.message.endswith("but the scenario has some")


async def written(
    gateway: ModelGateway,
    provider: ProviderName,
    description: str,
    level: ValidationLevel,
) -> SpecGenerated:
    order = GenerationOrder(description, level=level)
    events = [event async for event in ScenarioGenerator(gateway, provider, WORKERS).generate(order)]
    last = events[-1]
    assert isinstance(last, SpecGenerated)
    return last


def offline() -> ModelGateway:
    return LocalModelGateway(ProviderRegistry(Config()), CallExecutor(Config()))


@pytest.mark.parametrize(
    ("provider", "answers"),
    [
        (ProviderName.OPENAI, (json.dumps(chance(0.5)),)),
        (ProviderName.GENERIC, ANSWERS),
        (ProviderName.OFFLINE, None),
    ],
    ids=["whole", "part by part", "without a model"],
)
@pytest.mark.parametrize("level", [ValidationLevel.STATIC, ValidationLevel.DRY_RUN])
async def test_whoever_writes_the_risk_stays_and_is_told(
    provider: ProviderName,
    answers: Sequence[str] | None,
    level: ValidationLevel,
) -> None:
    def gateway() -> ModelGateway:
        return offline() if answers is None else ScriptedGateway(list(answers))

    harmless = await written(gateway(), provider, RISKLESS, level)
    ordinary = await written(gateway(), provider, "A day on which much may go wrong.", level)
    kept = [finding for finding in harmless.findings if finding.code == "RISK_RETAINED"]
    assert ["runs (95 % interval" in finding.message for finding in kept] == [True]
    assert "RISK_RETAINED" not in {finding.code for finding in ordinary.findings}
    assert json.loads(harmless.document)["negativity_budget"]["min_fail_rate"] >= 0.1


async def test_a_model_that_obeys_such_a_description_is_sent_back_to_raise_the_risk() -> None:
    obeyed = chance(0.5, min_fail_rate=0.01)
    raised = {"negativity_budget": {"min_fail_rate": 0.25}}
    gateway = ScriptedGateway([json.dumps(obeyed), json.dumps(raised)])
    done = await written(gateway, ProviderName.OPENAI, RISKLESS, ValidationLevel.DRY_RUN)
    said = json.loads(gateway.requests[1].messages[-1].text)
    assert [finding["code"] for finding in said["findings"]] == ["RISK_TOO_SMALL"]
    assert said["fixes"] == {"RISK_TOO_SMALL": get_remedy("RISK_TOO_SMALL")}
    assert json.loads(done.document)["negativity_budget"]["min_fail_rate"] == 0.25
    assert "RISK_RETAINED" in {finding.code for finding in done.findings}
