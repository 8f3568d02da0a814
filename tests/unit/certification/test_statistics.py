"""Findings that refuse a certificate, and findings that are only informative.

Number of runs, and its independence of everything else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from peripety.certification import simulation as pieces
from peripety.certification.difficulty_gate import GateVerdict
from peripety.certification.options import (
    MAX_RUNS,
    USUAL_PERSONAS,
    CertificateOptions,
    validate_certificate_options,
)
from peripety.certification.rate_interval import rate_interval
from peripety.certification.statistics import (
    CertificateInputs,
    find_issues,
    max_runs_of,
    sample_persona,
)
from peripety.certification.types import ActionCount, CertificateVerdict, NamedCount, PersonaReport, Rate
from peripety.core import call_context
from peripety.engine import PERSONAS, Proof, RuleError
from peripety.errors import InvalidArgumentError, ResourceExhaustedError, Severity
from support.engine.specs import action, chance, event, program
from support.scenario.batches import FEWEST, WORKERS, certified, contest

if TYPE_CHECKING:
    from peripety.certification.types import Certificate
    from peripety.engine import DryRunReport, Persona, Program
    from peripety.errors import Finding


def codes(certificate: Certificate) -> set[str]:
    return {finding.code for finding in certificate.findings}


def the(code: str, found: tuple[Finding, ...]) -> Finding:
    (finding,) = [finding for finding in found if finding.code == code]
    return finding


async def test_a_fair_scenario_is_certified_without_findings() -> None:
    certificate = await certified(contest())
    assert certificate.findings == ()
    assert certificate.verdict is CertificateVerdict.CERTIFIED


@pytest.mark.parametrize(
    ("budget", "code"),
    [
        ({"min_fail_rate": 0.99}, "TOO_EASY"),
        ({"min_fail_rate": 0.1, "max_fail_rate": 0.3}, "TOO_HARD"),
    ],
)
async def test_a_missed_band_refuses(budget: dict[str, float], code: str) -> None:
    certificate = await certified(contest(negativity_budget={"max_positive_drift": 1, **budget}))
    assert certificate.verdict is CertificateVerdict.REFUSED
    assert the(code, certificate.findings).severity is Severity.ERROR


async def test_the_band_is_about_the_random_persona_whoever_plays() -> None:
    only_idle = replace(FEWEST, personas=("idle",))
    certificate = await certified(contest(negativity_budget={"min_fail_rate": 0.99}), only_idle)
    assert certificate.options.personas == ("idle", "random")
    assert "random persona" in the("TOO_EASY", certificate.findings).message


async def test_drift_away_from_losing_refuses() -> None:
    helped = contest(
        random_events=[
            event("blow", [{"op": "dec", "path": "state.a", "value": 9}], weight=0.1),
            event("balm", [{"op": "inc", "path": "state.a", "value": 5}]),
        ],
        negativity_budget={"min_fail_rate": 0.1, "max_positive_drift": 0.01},
    )
    certificate = await certified(helped)
    (drift,) = [drift for drift in certificate.drifts if drift.path == "state.a"]
    assert drift.per_turn > drift.limit == 0.01
    assert the("POSITIVE_DRIFT", certificate.findings).severity is Severity.ERROR
    assert certificate.verdict is CertificateVerdict.REFUSED


async def test_a_rule_that_fails_in_play_refuses_whoever_met_it() -> None:
    # The second action is chosen only by chance, and never by the idle persona.
    broken = contest(state={"a": 4, "b": 0, "c": 0, "list": [1]})
    broken["actions"].append(action("odd", [{"op": "pop", "path": "state.list"}] * 2))
    certificate = await certified(broken)
    found = the("EMPTY_ARRAY", certificate.findings)
    assert found.path.startswith("/actions/2/effects/1")
    assert certificate.verdict is CertificateVerdict.REFUSED


def test_a_rule_that_failed_only_in_the_runs_of_the_gate_refuses_as_well() -> None:
    rules = program(contest())
    fine = rules.dry_run(runs=64)
    broken = replace(fine, runs=128, errors=(RuleError("EMPTY_ARRAY", "/actions/0/effects/0", "nothing"),))
    found = find_issues(CertificateInputs(rules.spec, GateVerdict(broken, ()), [fine], everybody(), (), ()))
    assert the("EMPTY_ARRAY", found).message.endswith("it failed 1 times in 128 runs")


async def test_a_scenario_that_is_lost_before_it_is_played_is_told_of() -> None:
    lost = contest()
    lost["loss_conditions"][1]["when"] = {"<": [0, 1]}
    assert "LOST_AT_ONCE" in codes(await certified(lost))


def report(persona: Persona, **changes: Any) -> PersonaReport:
    """Figures in which nothing is the matter; `changes` replace some."""
    usual = PersonaReport(
        persona=persona,
        turns=600,
        lost=Rate.from_count(50 + 10 * USUAL_PERSONAS.index(persona), 100),
        won=Rate.from_count(0, 100),
        survived=Rate.from_count(0, 100),
        errored=0,
        losses=(NamedCount("gone", 25), NamedCount("flooded", 25)),
        wins=(NamedCount("full", 1),),
        loss_turns=(),
        actions=(ActionCount("shore", 300, 200), ActionCount("press", 300, 100)),
        events=(NamedCount("blow", 10), NamedCount("swell", 10)),
    )
    return replace(usual, **changes)


def found_in(
    *reports: PersonaReport,
    proofs: tuple[Proof, ...] = (),
    version: str = "1.0",
) -> tuple[Finding, ...]:
    rules = program(contest())
    gate = GateVerdict(rules.dry_run(runs=64), ())
    document = {**rules.spec, "spec_version": version}
    return find_issues(CertificateInputs(document, gate, [gate.report], reports, (), proofs))


def everybody(**changes: Any) -> list[PersonaReport]:
    won = {"won": Rate.from_count(1, 100)}
    return [report(persona, **{**won, **changes}) for persona in USUAL_PERSONAS]


def test_different_fates_are_no_finding() -> None:
    assert found_in(*everybody()) == ()


def test_a_goal_that_nobody_reached_is_a_warning_and_with_a_proof_an_error() -> None:
    unproved = found_in(*everybody(won=Rate.from_count(0, 100)))
    assert [(found.code, found.severity) for found in unproved] == [("NEVER_WON", Severity.WARNING)]
    claim = Proof("UNREACHABLE_WIN", "/win_conditions/0", "it is at most 3", Severity.ERROR)
    proved = found_in(*everybody(won=Rate.from_count(0, 100)), proofs=(claim,))
    assert {found.code for found in proved} == {"UNREACHABLE_WIN", "NEVER_WON"}
    assert {found.severity for found in proved} == {Severity.ERROR}


def test_what_ended_no_run_and_was_never_possible_is_named_by_its_place() -> None:
    never_seen = found_in(
        *everybody(
            losses=(NamedCount("gone", 50), NamedCount("flooded", 0)),
            actions=(ActionCount("shore", 300, 200), ActionCount("press", 0, 0)),
            events=(NamedCount("blow", 0), NamedCount("swell", 3)),
        ),
    )
    assert {(found.code, found.path, found.severity) for found in never_seen} == {
        ("LOSS_NEVER_MET", "/loss_conditions/1", Severity.WARNING),
        ("ACTION_NEVER_LEGAL", "/actions/1", Severity.WARNING),
        ("EVENT_NEVER_DRAWN", "/random_events/0", Severity.WARNING),
    }
    assert all("600" in found.message for found in never_seen)


def test_it_takes_only_one_persona_to_show_that_something_is_possible() -> None:
    quiet = {"actions": (ActionCount("shore", 300, 200), ActionCount("press", 0, 0))}
    *others, last = everybody(**quiet)
    assert "ACTION_NEVER_LEGAL" in {found.code for found in found_in(*others, last)}
    lively = replace(last, actions=(ActionCount("shore", 300, 200), ActionCount("press", 1, 0)))
    assert found_in(*others, lively) == ()


def test_what_is_proved_is_not_told_again_as_merely_unseen() -> None:
    claim = Proof("DEAD_EVENT", "/random_events/0", "its condition never holds")
    events = (NamedCount("blow", 0), NamedCount("swell", 3))
    assert [found.code for found in found_in(*everybody(events=events), proofs=(claim,))] == ["DEAD_EVENT"]


@pytest.mark.parametrize(
    ("legal", "taken", "dominates"),
    [(200, 180, True), (200, 179, False), (199, 199, False), (0, 0, False)],
)
def test_an_action_dominates_when_the_planner_takes_it_nine_times_of_ten_and_often_may(
    legal: int,
    taken: int,
    *,
    dominates: bool,
) -> None:
    uses = (ActionCount("shore", 300, 1), ActionCount("press", legal, taken))
    reports = [replace(r, actions=uses) if r.persona == "planner" else r for r in everybody()]
    found = [(finding.code, finding.path) for finding in found_in(*reports)]
    assert found == ([("DOMINANT_ACTION", "/actions/1")] if dominates else [])


def test_the_action_that_wins_is_not_dominant_from_version_1_1_on() -> None:
    uses = (ActionCount("shore", 300, 1), ActionCount("press", 240, 240))
    reports = [
        replace(r, actions=uses, won=Rate.from_count(240, 300)) if r.persona == "planner" else r
        for r in everybody()
    ]
    for version, expected in (("1.0", ["DOMINANT_ACTION"]), ("1.1", [])):
        assert [one.code for one in found_in(*reports, version=version)] == expected


def test_choices_do_not_matter_when_all_intervals_overlap() -> None:
    alike = everybody(lost=Rate.from_count(50, 100))
    assert [found.code for found in found_in(*alike)] == ["CHOICES_DO_NOT_MATTER"]
    one_differs = [replace(r, lost=Rate.from_count(90, 100)) if r.persona == "saboteur" else r for r in alike]
    assert found_in(*one_differs) == ()
    wins_differ = [replace(r, won=Rate.from_count(40, 100)) if r.persona == "planner" else r for r in alike]
    assert found_in(*wins_differ) == ()


def test_choices_are_not_judged_when_somebody_who_chooses_did_not_play() -> None:
    alike = everybody(lost=Rate.from_count(50, 100))
    assert found_in(*(report for report in alike if report.persona != "planner")) == ()


def test_errors_come_first() -> None:
    claims = (
        Proof("DEAD_ACTION", "/actions/0", "never"),
        Proof("CERTAIN_LOSS", "/loss_conditions/0", "by turn 3", Severity.ERROR),
    )
    assert [found.code for found in found_in(*everybody(), proofs=claims)] == ["CERTAIN_LOSS", "DEAD_ACTION"]


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
        "curious": 600,
        "par": 600,
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
