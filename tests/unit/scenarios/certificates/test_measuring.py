"""How many runs it takes, and that nothing else decides it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peripety.core import call_context
from peripety.engine import PERSONAS
from peripety.errors import InvalidArgumentError, ResourceExhaustedError
from peripety.scenario.certificate.statistics import max_runs_of, sample_persona
from peripety.scenario.certificate.types import MAX_RUNS, CertificateOptions, Rate
from peripety.scenario.dry_run import simulation as pieces
from peripety.scenario.dry_run.rate_interval import rate_interval
from peripety.scenario.validation import validate_certificate_options
from support.engine.specs import chance, program
from support.scenario.batches import WORKERS, contest

if TYPE_CHECKING:
    from peripety.engine import DryRunReport, Persona, Program


LOOKS = (256, 512, 1024, 2048, 4096, 8192, 9604)
FULL = CertificateOptions()


async def measured(
    rules: Program,
    persona: Persona = "idle",
    options: CertificateOptions = FULL,
) -> list[DryRunReport]:
    return [report async for report in sample_persona(rules, persona, options, {}, WORKERS)]


@pytest.mark.parametrize("rate", [0.06, 0.25, 0.5, 0.95])
async def test_runs_stop_at_the_first_look_that_shows_enough(rate: float) -> None:
    report = (await measured(program(chance(rate))))[-1]
    whole = program(chance(rate)).dry_run(runs=report.runs, persona="idle")
    assert (report.runs, report.lost, report.turns) == (whole.runs, whole.lost, whole.turns)
    looked = [look for look in LOOKS if look <= report.runs]
    assert looked[-1] == report.runs
    widths = []
    for look in looked:
        low, high = rate_interval(program(chance(rate)).dry_run(runs=look, persona="idle").lost, look)
        widths.append((high - low) / 2)
    assert widths[-1] <= 0.01
    assert all(width > 0.01 for width in widths[:-1])


@pytest.mark.parametrize("lost", range(0, MAX_RUNS + 1, 97))
def test_the_last_look_is_enough_for_any_rate(lost: int) -> None:
    for total, half_width in ((MAX_RUNS, 0.01), (600, 0.04)):
        low, high = rate_interval(lost * total // MAX_RUNS, total)
        assert (high - low) / 2 <= half_width


async def test_no_more_runs_are_played_than_are_allowed() -> None:
    reports = await measured(program(chance(0.5)), options=CertificateOptions(max_runs=300))
    assert reports[-1].runs == 300
    assert {report.runs for report in reports} >= {256, 300}


def test_who_searches_plays_fewer_runs() -> None:
    assert {persona: max_runs_of(persona, FULL) for persona in PERSONAS} == {
        "idle": 9604,
        "random": 9604,
        "greedy": 9604,
        "cautious": 9604,
        "planner": 600,
        "saboteur": 9604,
    }
    assert max_runs_of("planner", CertificateOptions(max_runs=64)) == 64


async def test_pieces_show_in_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    options = CertificateOptions(max_runs=300)
    whole = (await measured(program(contest()), "random", options))[-1]
    # A run to a piece, however long each happens to take.
    monkeypatch.setattr(pieces, "_PIECE_SECONDS", 1e-9)
    monkeypatch.setattr(pieces, "_GROWTH", 1)
    reports = await measured(program(contest()), "random", options)
    assert len(reports) == options.max_runs
    assert reports[-1] == whole


async def test_runs_are_counted_in_detail() -> None:
    rules = program(contest())
    options = CertificateOptions(max_runs=64)
    (*_, report) = [r async for r in sample_persona(rules, "random", options, {"state.a": 2.0}, WORKERS)]
    assert report == rules.dry_run(runs=64, detail=True, watch={"state.a": 2.0})
    assert report.detail is not None
    assert set(report.detail.moves) == {"state.a"}


async def test_who_takes_too_long_is_named() -> None:
    call_context.begin_call(request_id=None, timeout=0.0)
    with pytest.raises(ResourceExhaustedError, match="the greedy persona") as caught:
        await measured(program(contest()), "greedy")
    assert caught.value.code == "DRY_RUN_TOO_SLOW"


@pytest.mark.parametrize("options", [{"max_runs": 63}, {"max_runs": 9605}, {"seed": -1}, {"horizon": 0}])
def test_options_out_of_range_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        validate_certificate_options(CertificateOptions(**options), "here")  # type: ignore[arg-type]
    assert [violation.field for violation in caught.value.violations] == [f"here.{next(iter(options))}"]


def test_figures_have_six_decimals() -> None:
    assert Rate.from_count(1, 3) == Rate(1, 3, 0.333333, 0.061492, 0.79234)
    assert Rate.from_count(0, 64).low == 0
    assert Rate.from_count(64, 64).high == 1
