"""How deep a document is judged, and what refuses it there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.core import call_context
from peripety.errors import Finding, ResourceExhaustedError, Severity
from peripety.scenario.dry_run.simulation import MAX_SECONDS, too_slow_error
from peripety.scenario.generation import evaluation
from peripety.scenario.generation.evaluation import (
    EvaluationDepth,
    SpecEvaluation,
    SpecEvaluator,
    tolerated_codes,
)
from peripety.scenario.registration import GateWithRepair
from peripety.scenario.types import NumbersAdjusted, Progress, ProgressStage, ValidationLevel
from support.engine.specs import chance, siege, spec
from support.scenario.batches import WORKERS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection


PLAYED = chance(0.5)
UNWINNABLE = {**PLAYED, "win_conditions": [{"id": "won", "when": {">": [{"var": "state.a"}, 99]}}]}


async def judged(
    document: dict[str, Any],
    level: ValidationLevel,
    *,
    insisted: Collection[str] = (),
) -> tuple[SpecEvaluation, list[Progress | NumbersAdjusted]]:
    """What a judge says, and what happens until then."""
    judge = SpecEvaluator(level, WORKERS, tolerated=insisted)
    judgement = await judge.evaluate_statically(document)
    if judgement.errors:
        return judgement, []
    steps = [step async for step in judge.evaluate_in_simulation(judgement)]
    assert isinstance(steps[-1], SpecEvaluation)
    return steps[-1], [step for step in steps if not isinstance(step, SpecEvaluation)]


def codes(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.code for finding in findings]


@pytest.mark.parametrize(
    ("document", "level", "depth", "errors"),
    [
        ({}, ValidationLevel.CERTIFICATE, EvaluationDepth.FORM, ["MISSING_KEY"]),
        (spec(state={}), ValidationLevel.CERTIFICATE, EvaluationDepth.RULES, ["UNKNOWN_PATH"]),
        (spec(state={}), ValidationLevel.SCHEMA, EvaluationDepth.RULES, []),
        (UNWINNABLE, ValidationLevel.STATIC, EvaluationDepth.RULES, []),
        (UNWINNABLE, ValidationLevel.DRY_RUN, EvaluationDepth.PROOFS, ["UNREACHABLE_WIN"]),
        (
            chance(0.2, min_fail_rate=0.9),
            ValidationLevel.DRY_RUN,
            EvaluationDepth.GATE,
            ["TOO_EASY", "REPAIR_OUT_OF_REACH"],
        ),
        (PLAYED, ValidationLevel.DRY_RUN, EvaluationDepth.GATE, []),
    ],
)
async def test_each_depth_is_looked_into_when_nothing_is_wrong_before_it(
    document: dict[str, Any],
    level: ValidationLevel,
    depth: EvaluationDepth,
    errors: list[str],
) -> None:
    judgement, _ = await judged(document, level)
    assert judgement.depth is depth
    assert sorted(set(codes(judgement.errors))) == sorted(errors)


async def test_a_certificate_is_the_last_depth_and_choices_have_to_matter() -> None:
    judgement, steps = await judged(PLAYED, ValidationLevel.CERTIFICATE)
    assert judgement.depth is EvaluationDepth.CERTIFICATE
    assert judgement.certificate is not None
    assert judgement.dry_run is not None
    assert codes(judgement.errors) == ["CHOICES_DO_NOT_MATTER"]
    assert {f.severity for f in judgement.certificate.findings if f.code in codes(judgement.errors)} == {
        Severity.WARNING,
    }
    fractions = [step.fraction for step in steps if isinstance(step, Progress)]
    assert fractions == sorted(fractions)
    assert len(judgement.findings) == len(set(judgement.findings))


async def test_a_budget_that_lets_nearly_everybody_off_is_not_obeyed() -> None:
    document = chance(0.5, min_fail_rate=0.05)
    judgement, _ = await judged(document, ValidationLevel.STATIC)
    assert [(f.code, f.path) for f in judgement.errors] == [
        ("RISK_TOO_SMALL", "/negativity_budget/min_fail_rate"),
    ]
    assert (await judged(document, ValidationLevel.SCHEMA))[0].errors == ()


async def test_what_an_accepted_document_has_does_not_refuse_what_is_made_of_it() -> None:
    document = chance(0.5, min_fail_rate=0.05)
    warned = Finding("CHOICES_DO_NOT_MATTER", "/actions", "", Severity.WARNING)
    insisted = tolerated_codes(document, (warned,))
    assert insisted == {"RISK_TOO_SMALL", "CHOICES_DO_NOT_MATTER"}
    assert (await judged(document, ValidationLevel.CERTIFICATE, insisted=insisted))[0].errors == ()
    assert tolerated_codes(PLAYED, ()) == frozenset()


async def test_numbers_that_put_a_budget_right_are_in_the_document_that_passed() -> None:
    judgement, steps = await judged(siege(min_fail_rate=0.65), ValidationLevel.DRY_RUN)
    (moved,) = [step for step in steps if isinstance(step, NumbersAdjusted)]
    assert judgement.errors == ()
    assert judgement.edits == moved.edits != ()
    assert judgement.document != siege(min_fail_rate=0.65)
    assert engine.canonicalize(judgement.document) == judgement.canonical


async def test_numbers_that_did_not_help_stay_as_they_were_written() -> None:
    narrow = siege(min_fail_rate=0.595, max_fail_rate=0.596)
    judgement, _ = await judged(narrow, ValidationLevel.DRY_RUN)
    assert judgement.errors
    assert judgement.document == narrow
    assert judgement.canonical == engine.canonicalize(narrow)
    assert judgement.edits == ()


async def too_long(*_: Any) -> AsyncIterator[Progress]:
    yield Progress(ProgressStage.DRY_RUNNING, "playing", 0.5)
    raise too_slow_error()


async def test_rules_that_nobody_can_play_in_time_are_what_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "certify", too_long)
    judgement, _ = await judged(PLAYED, ValidationLevel.CERTIFICATE)
    assert (judgement.depth, codes(judgement.errors)) == (EvaluationDepth.CERTIFICATE, ["DRY_RUN_TOO_SLOW"])
    assert not judgement.would_have_found("DEAD_ACTION")
    monkeypatch.setattr(GateWithRepair, "events", too_long)
    judgement, _ = await judged(PLAYED, ValidationLevel.DRY_RUN)
    assert (judgement.depth, codes(judgement.errors)) == (EvaluationDepth.GATE, ["DRY_RUN_TOO_SLOW"])
    assert all(error.remedy for error in judgement.errors)


async def test_a_caller_who_does_not_wait_for_more_runs_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GateWithRepair, "events", too_long)
    with pytest.raises(ResourceExhaustedError):
        async with call_context.timeout_at_deadline(MAX_SECONDS):
            await judged(PLAYED, ValidationLevel.DRY_RUN)
