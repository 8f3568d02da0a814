"""How deep a document is judged, and what refuses it there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety import context, sim
from peripety.errors import Finding, ResourceExhaustedError, Severity
from peripety.scenarios.model import Level, NumbersMoved, Progress, Stage
from peripety.scenarios.runs import MOST_SECONDS, too_slow
from peripety.scenarios.trial import Trial
from peripety.scenarios.writing import judging
from peripety.scenarios.writing.judging import Depth, Judge, Judgement, insisted_on
from support.scenarios import WORKERS, chance, siege
from support.specs import spec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

PLAYED = chance(0.5)
UNWINNABLE = {**PLAYED, "win_conditions": [{"id": "won", "when": {">": [{"var": "state.a"}, 99]}}]}


async def judged(
    document: dict[str, Any], level: Level, *, insisted: Collection[str] = ()
) -> tuple[Judgement, list[Progress | NumbersMoved]]:
    """What a judge says, and what happens until then."""
    judge = Judge(level, WORKERS, insisted=insisted)
    judgement = await judge.check(document)
    if judgement.errors:
        return judgement, []
    steps = [step async for step in judge.play(judgement)]
    assert isinstance(steps[-1], Judgement)
    return steps[-1], [step for step in steps if not isinstance(step, Judgement)]


def codes(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.code for finding in findings]


@pytest.mark.parametrize(
    ("document", "level", "depth", "errors"),
    [
        ({}, Level.CERTIFICATE, Depth.FORM, ["MISSING_KEY"]),
        (spec(state={}), Level.CERTIFICATE, Depth.RULES, ["UNKNOWN_PATH"]),
        (spec(state={}), Level.SCHEMA, Depth.RULES, []),
        (UNWINNABLE, Level.STATIC, Depth.RULES, []),
        (UNWINNABLE, Level.DRY_RUN, Depth.PROOFS, ["UNREACHABLE_WIN"]),
        (chance(0.2, min_fail_rate=0.9), Level.DRY_RUN, Depth.GATE, ["TOO_EASY", "REPAIR_OUT_OF_REACH"]),
        (PLAYED, Level.DRY_RUN, Depth.GATE, []),
    ],
)
async def test_each_depth_is_looked_into_when_nothing_is_wrong_before_it(
    document: dict[str, Any], level: Level, depth: Depth, errors: list[str]
) -> None:
    judgement, _ = await judged(document, level)
    assert judgement.depth is depth
    assert sorted(set(codes(judgement.errors))) == sorted(errors)


async def test_a_certificate_is_the_last_depth_and_choices_have_to_matter() -> None:
    judgement, steps = await judged(PLAYED, Level.CERTIFICATE)
    assert judgement.depth is Depth.CERTIFICATE
    assert judgement.certificate is not None
    assert judgement.dry_run is not None
    assert codes(judgement.errors) == ["CHOICES_DO_NOT_MATTER"]
    assert {f.severity for f in judgement.certificate.findings if f.code in codes(judgement.errors)} == {
        Severity.WARNING
    }
    fractions = [step.fraction for step in steps if isinstance(step, Progress)]
    assert fractions == sorted(fractions)
    assert len(judgement.findings) == len(set(judgement.findings))


async def test_a_budget_that_lets_nearly_everybody_off_is_not_obeyed() -> None:
    document = chance(0.5, min_fail_rate=0.05)
    judgement, _ = await judged(document, Level.STATIC)
    assert [(f.code, f.path) for f in judgement.errors] == [
        ("RISK_TOO_SMALL", "/negativity_budget/min_fail_rate")
    ]
    assert (await judged(document, Level.SCHEMA))[0].errors == ()


async def test_what_an_accepted_document_has_does_not_refuse_what_is_made_of_it() -> None:
    document = chance(0.5, min_fail_rate=0.05)
    warned = Finding("CHOICES_DO_NOT_MATTER", "/actions", "", Severity.WARNING)
    insisted = insisted_on(document, (warned,))
    assert insisted == {"RISK_TOO_SMALL", "CHOICES_DO_NOT_MATTER"}
    assert (await judged(document, Level.CERTIFICATE, insisted=insisted))[0].errors == ()
    assert insisted_on(PLAYED, ()) == frozenset()


async def test_numbers_that_put_a_budget_right_are_in_the_document_that_passed() -> None:
    judgement, steps = await judged(siege(min_fail_rate=0.65), Level.DRY_RUN)
    (moved,) = [step for step in steps if isinstance(step, NumbersMoved)]
    assert judgement.errors == ()
    assert judgement.edits == moved.edits != ()
    assert judgement.document != siege(min_fail_rate=0.65)
    assert sim.canonical(judgement.document) == judgement.canonical


async def test_numbers_that_did_not_help_stay_as_they_were_written() -> None:
    narrow = siege(min_fail_rate=0.595, max_fail_rate=0.596)
    judgement, _ = await judged(narrow, Level.DRY_RUN)
    assert judgement.errors
    assert judgement.document == narrow
    assert judgement.canonical == sim.canonical(narrow)
    assert judgement.edits == ()


async def too_long(*_: Any) -> AsyncIterator[Progress]:
    yield Progress(Stage.DRY_RUNNING, "playing", 0.5)
    raise too_slow()


async def test_rules_that_nobody_can_play_in_time_are_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "certify", too_long)
    judgement, _ = await judged(PLAYED, Level.CERTIFICATE)
    assert (judgement.depth, codes(judgement.errors)) == (Depth.CERTIFICATE, ["DRY_RUN_TOO_SLOW"])
    assert not judgement.has_looked_for("DEAD_ACTION")
    monkeypatch.setattr(Trial, "events", too_long)
    judgement, _ = await judged(PLAYED, Level.DRY_RUN)
    assert (judgement.depth, codes(judgement.errors)) == (Depth.GATE, ["DRY_RUN_TOO_SLOW"])
    assert all(error.remedy for error in judgement.errors)


async def test_a_caller_who_does_not_wait_for_more_runs_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Trial, "events", too_long)
    with pytest.raises(ResourceExhaustedError):
        async with context.bounded(MOST_SECONDS):
            await judged(PLAYED, Level.DRY_RUN)
