"""Descriptions that ask for no risk: they get some, and are told how much."""

from __future__ import annotations

from peripety import sim
from peripety.errors import Severity
from peripety.scenarios.certificates.certifying import certificate_of
from peripety.scenarios.certificates.model import CertificateOptions
from peripety.scenarios.writing.risk import risk_kept
from support.scenarios import WORKERS, chance, document, program

RISKLESS = "A day on which nothing can go wrong."


async def test_a_description_with_something_at_stake_is_left_alone() -> None:
    assert (
        await risk_kept("We lose it all if anything goes wrong.", document(chance(0.4)), None, WORKERS) == ()
    )


async def test_what_was_asked_for_and_how_often_it_is_lost_are_told() -> None:
    wanted = chance(0.4)
    (found,) = await risk_kept(RISKLESS, document(wanted), None, WORKERS)
    played = program(wanted).dry_run(runs=256)
    assert (found.code, found.severity) == ("RISK_KEPT", Severity.WARNING)
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
    assert found.message.endswith("something is at stake all the same")
