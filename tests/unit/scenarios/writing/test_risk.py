"""Descriptions that ask for no risk: they get some, and are told how much."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from peripety import sim
from peripety.config import Config, ProviderName
from peripety.errors import Severity
from peripety.gateway.calling import Caller
from peripety.gateway.gateway import LocalModelGateway
from peripety.gateway.providers.registry import Providers
from peripety.remedies import remedy_of
from peripety.scenarios.certificates.certifying import certificate_of
from peripety.scenarios.certificates.model import CertificateOptions
from peripety.scenarios.model import Completed, GenerationOrder, Level
from peripety.scenarios.writing import risk
from peripety.scenarios.writing.generator import Generator
from peripety.scenarios.writing.risk import risk_kept
from support.scenarios import WORKERS, chance, document, program
from support.sessions import ScriptedGateway
from support.stepwise import ANSWERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.gateway.model import ModelGateway

RISKLESS = "A day on which nothing can go wrong."


async def test_a_description_with_something_at_stake_is_left_alone() -> None:
    assert (
        await risk_kept("We lose it all if anything goes wrong.", document(chance(0.4)), None, WORKERS) == ()
    )


async def test_what_was_asked_for_and_how_often_it_is_lost_are_told() -> None:
    wanted = chance(0.4)
    (found,) = await risk_kept(RISKLESS, document(wanted), None, WORKERS)
    played = program(wanted).dry_run(runs=256)
    assert (found.code, found.severity) == ("RISK_RETAINED", Severity.WARNING)
    assert found.path == "/negativity_budget/min_fail_rate"
    assert "'nothing can go wrong'" in found.message
    assert f"the random persona loses {played.fail_rate:.1%} of 256 runs" in found.message
    assert found.remedy


async def test_the_rate_is_that_of_the_certificate_where_there_is_one() -> None:
    certificate = await certificate_of(program(chance(0.4)), CertificateOptions(max_runs=64), WORKERS)
    (found,) = await risk_kept(RISKLESS, document(chance(0.9)), certificate, WORKERS)
    (lost,) = (report.lost for report in certificate.personas if report.persona == "random")
    assert f"loses {lost.value:.1%} of {lost.total} runs" in found.message


async def test_what_cannot_be_played_is_told_without_a_rate() -> None:
    (found,) = await risk_kept(RISKLESS, sim.canonical({"spec_version": "1.0"}), None, WORKERS)
    assert found.message.endswith("but the scenario has some")


async def test_what_takes_long_to_play_is_told_without_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(risk, "_MOST_SECONDS", 0.0)
    (found,) = await risk_kept(RISKLESS, document(chance(0.4)), None, WORKERS)
    assert found.message.endswith("but the scenario has some")


async def written(gateway: ModelGateway, provider: ProviderName, description: str, level: Level) -> Completed:
    order = GenerationOrder(description, level=level)
    events = [event async for event in Generator(gateway, provider, WORKERS).generate(order)]
    last = events[-1]
    assert isinstance(last, Completed)
    return last


def offline() -> ModelGateway:
    return LocalModelGateway(Providers(Config()), Caller(Config()))


@pytest.mark.parametrize(
    ("provider", "answers"),
    [
        (ProviderName.OPENAI, (json.dumps(chance(0.5)),)),
        (ProviderName.GENERIC, ANSWERS),
        (ProviderName.OFFLINE, None),
    ],
    ids=["whole", "part by part", "without a model"],
)
@pytest.mark.parametrize("level", [Level.STATIC, Level.DRY_RUN])
async def test_whoever_writes_the_risk_stays_and_is_told(
    provider: ProviderName, answers: Sequence[str] | None, level: Level
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
    done = await written(gateway, ProviderName.OPENAI, RISKLESS, Level.DRY_RUN)
    said = json.loads(gateway.requests[1].messages[-1].text)
    assert [finding["code"] for finding in said["findings"]] == ["RISK_TOO_SMALL"]
    assert said["fixes"] == {"RISK_TOO_SMALL": remedy_of("RISK_TOO_SMALL")}
    assert json.loads(done.document)["negativity_budget"]["min_fail_rate"] == 0.25
    assert "RISK_RETAINED" in {finding.code for finding in done.findings}
