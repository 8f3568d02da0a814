"""Evaluation levels of a document, and the errors of each level.

Descriptions that request a scenario without risk: a minimum risk is added and reported.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from peripety import engine
from peripety.certification.certificate import build_certificate
from peripety.certification.options import CertificateOptions
from peripety.certification.simulation import MAX_SECONDS, too_slow_error
from peripety.core import call_context
from peripety.core.config import Config, ProviderName
from peripety.errors import Finding, ResourceExhaustedError, Severity, get_remedy
from peripety.gateway.calls.executor import CallExecutor
from peripety.gateway.local_gateway import LocalModelGateway
from peripety.gateway.providers.registry import ProviderRegistry
from peripety.scenario.admission import GateWithRepair
from peripety.scenario.generation import evaluation
from peripety.scenario.generation.evaluation import (
    EvaluationDepth,
    SpecEvaluation,
    SpecEvaluator,
    find_retained_risk,
    tolerated_codes,
)
from peripety.scenario.generation.loop import ScenarioGenerator
from peripety.scenario.types import (
    GenerationOrder,
    NumbersAdjusted,
    Progress,
    ProgressStage,
    SpecGenerated,
    ValidationLevel,
)
from support.engine.specs import action, as_bytes, chance, program, siege, spec
from support.gateway.fake_gateway import FakeGateway
from support.scenario.batches import WORKERS
from support.scenario.generation import ANSWERS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Sequence

    from peripety.gateway.types.response import ModelGateway


PLAYED = chance(0.5)
UNWINNABLE = {**PLAYED, "win_conditions": [{"id": "won", "when": {">": [{"var": "state.a"}, 99]}}]}


async def judged(
    document: dict[str, Any],
    level: ValidationLevel,
    *,
    insisted: Collection[str] = (),
) -> tuple[SpecEvaluation, list[Progress | NumbersAdjusted]]:
    """Return the evaluation of a document, and the events before it."""
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


async def test_an_action_whose_changes_no_rule_reads_is_a_line_for_the_author() -> None:
    unread = action("hum", [{"op": "inc", "path": "state.unread", "value": 1}])
    document = {
        **PLAYED,
        "state": {**PLAYED["state"], "unread": 0},
        "actions": [*PLAYED["actions"], unread],
    }
    found, _ = await judged(document, ValidationLevel.DRY_RUN)
    assert found.figures[-1] == "no ending, event or other action reads what these actions change: 'hum'"


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


def test_an_amendment_may_leave_what_its_scenario_has() -> None:
    dealt = spec(
        spec_version="1.1",
        state={"a": 1, "hidden": {"k": 1}},
        deal=[{"id": "k", "path": "state.hidden.k", "values": [1, 2]}],
        actions=[action("act", preconditions={"==": [{"var": "state.hidden.k"}, 1]})],
    )
    assert tolerated_codes(dealt, ()) == {"DEAL_IN_PRECONDITION"}


async def test_a_new_document_is_refused_for_a_precondition_that_reads_a_deal() -> None:
    dealt = spec(
        spec_version="1.1",
        state={"a": 1, "hidden": {"k": 1}},
        deal=[{"id": "k", "path": "state.hidden.k", "values": [1, 2]}],
        actions=[action("act", preconditions={"==": [{"var": "state.hidden.k"}, 1]})],
    )
    judgement, _ = await judged(dealt, ValidationLevel.STATIC)
    assert codes(judgement.errors) == ["DEAL_IN_PRECONDITION"]
    insisted = tolerated_codes(dealt, ())
    assert (await judged(dealt, ValidationLevel.STATIC, insisted=insisted))[0].errors == ()


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
    language: str = "",
) -> SpecGenerated:
    order = GenerationOrder(description, level=level, language=language)
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
        return offline() if answers is None else FakeGateway(*answers)

    harmless = await written(gateway(), provider, RISKLESS, level)
    ordinary = await written(gateway(), provider, "A day on which much may go wrong.", level)
    kept = [finding for finding in harmless.findings if finding.code == "RISK_RETAINED"]
    assert ["runs (95% interval" in finding.message for finding in kept] == [True]
    assert "RISK_RETAINED" not in {finding.code for finding in ordinary.findings}
    assert json.loads(harmless.document)["negativity_budget"]["min_fail_rate"] >= 0.1


@pytest.mark.parametrize(
    ("provider", "language", "is_warned"),
    [
        (ProviderName.OFFLINE, "xx-YY", True),
        (ProviderName.OFFLINE, "DE-at", False),
        (ProviderName.OFFLINE, "", False),
        (ProviderName.OPENAI, "xx", False),
    ],
)
async def test_a_language_without_texts_is_replaced_openly(
    provider: ProviderName, language: str, is_warned: bool
) -> None:
    gateway = offline() if provider is ProviderName.OFFLINE else FakeGateway(json.dumps(chance(0.5)))
    done = await written(gateway, provider, "Words.", ValidationLevel.STATIC, language)
    found = [finding for finding in done.findings if finding.code == "LANGUAGE_REPLACED"]
    assert [
        f"'{language}' needs a model; rules write de, en, es, zh" in finding.message for finding in found
    ] == [True] * is_warned


async def test_a_model_that_obeys_such_a_description_is_sent_back_to_raise_the_risk() -> None:
    obeyed = chance(0.5, min_fail_rate=0.01)
    raised = {"negativity_budget": {"min_fail_rate": 0.25}}
    gateway = FakeGateway(json.dumps(obeyed), json.dumps(raised))
    done = await written(gateway, ProviderName.OPENAI, RISKLESS, ValidationLevel.DRY_RUN)
    said = json.loads(gateway.requests[1].messages[-1].text)
    assert [finding["code"] for finding in said["findings"]] == ["RISK_TOO_SMALL"]
    assert said["fixes"] == {"RISK_TOO_SMALL": get_remedy("RISK_TOO_SMALL")}
    assert json.loads(done.document)["negativity_budget"]["min_fail_rate"] == 0.25
    assert "RISK_RETAINED" in {finding.code for finding in done.findings}
