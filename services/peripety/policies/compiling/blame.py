"""What of a judgement stands. A model's word never makes a scenario expect `allow` that did not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from peripety.errors import Finding, Severity
from peripety.policies.model import (
    Blame,
    Expectation,
    Judgement,
    ScenarioCorrection,
    ScenarioSource,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peripety.policies.model import ScenarioResult, TestScenario

__all__ = ["Attribution", "Ruling", "ruling"]


@dataclass(frozen=True, slots=True)
class Attribution:
    """What a judge says about one scenario that failed.

    Attributes:
        description: the scenario.
        blame: who is to blame.
        reasoning: why.
        corrected: what the scenario should expect, in the judge's opinion; None when it does not say.
    """

    description: str
    blame: Blame
    reasoning: str
    corrected: Expectation | None = None


@dataclass(frozen=True, slots=True)
class Ruling:
    """What follows from a judgement.

    Attributes:
        judgements: what was said of each failure, and whether it was put aside; in the order of failures.
        corrections: the expectations that are put right.
        problems: the scenarios, corrections made, that the rules still have to meet.
        contested: those of them that should expect less in the judge's opinion, with that opinion.
        warnings: what a person should know.
    """

    judgements: tuple[Judgement, ...] = ()
    corrections: tuple[ScenarioCorrection, ...] = ()
    problems: tuple[TestScenario, ...] = ()
    contested: tuple[tuple[TestScenario, Attribution], ...] = ()
    warnings: tuple[Finding, ...] = ()


def ruling(failures: Iterable[ScenarioResult], attributions: Iterable[Attribution]) -> Ruling:
    """Say what of a judge's words stands.

    - Blame on a rule stands.
    - Blame on a handwritten scenario is put aside, with a warning: the rules have to meet it.
    - A correction stands when the scenario expected `allow`, or when it does not expect it afterwards.
      Any other is put aside, and the rules have to meet the scenario as it is.
    - A failure that nobody is blamed for, or that stays one once it is corrected, is a problem of the rules.

    What is said of scenarios that did not fail is not heard; of two words about one scenario, the first is.

    Args:
        failures: the scenarios that failed.
        attributions: what the judge says.
    """
    said: dict[str, Attribution] = {}
    for attribution in attributions:
        said.setdefault(attribution.description, attribution)
    judgements: list[Judgement] = []
    corrections: list[ScenarioCorrection] = []
    problems: list[TestScenario] = []
    contested: list[tuple[TestScenario, Attribution]] = []
    warnings: list[Finding] = []
    for failure in failures:
        scenario = failure.scenario
        word = said.get(scenario.description)
        if word is None:
            problems.append(scenario)
            continue
        correction = _correction(scenario, word)
        overruled = word.blame is not Blame.RULE and correction is None
        judgements.append(Judgement(scenario.description, word.blame, word.reasoning, overruled))
        if correction is not None:
            corrections.append(correction)
            scenario = replace(
                scenario,
                expected_decision=correction.corrected_decision,
                reasoning=correction.corrected_reasoning,
            )
        if overruled:
            contested.append((scenario, word))
            if scenario.source is ScenarioSource.HANDWRITTEN:
                warnings.append(_stands(scenario, word))
        if not scenario.expected_decision.is_met_by(failure.actual.decision):
            problems.append(scenario)
    return Ruling(tuple(judgements), tuple(corrections), tuple(problems), tuple(contested), tuple(warnings))


def _correction(scenario: TestScenario, word: Attribution) -> ScenarioCorrection | None:
    """The correction that stands; None when nothing is to be corrected, or must not be."""
    expected, right = scenario.expected_decision, word.corrected
    if word.blame is Blame.RULE or scenario.source is ScenarioSource.HANDWRITTEN:
        return None
    if right is None or right is expected or right is Expectation.ALLOW:
        return None
    return ScenarioCorrection(scenario.description, expected, right, word.reasoning)


def _stands(scenario: TestScenario, word: Attribution) -> Finding:
    message = (
        f'the judge blames the handwritten scenario "{scenario.description}", which stands: {word.reasoning}'
    )
    return Finding("HANDWRITTEN_BLAMED", "", message, Severity.WARNING)
