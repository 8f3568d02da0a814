"""Fault attribution: whether a rule or a test scenario is wrong when the two disagree.

Why there is a judge at all. A run has two sources of truth, written by models from the same text: the rules
and the test scenarios. A failing scenario shows a contradiction, not its cause. Repairing the rules until
every scenario passes would let one wrong scenario corrupt the policy; dropping scenarios that fail would hide
wrong rules. So a third model call, the judge, attributes each failure to the rule, the scenario or both.

Why its answer is not simply applied. The judge is a model as well, and a policy is a security boundary. A
wrong or manipulated attribution must not be able to widen the policy. `ruling` therefore applies an
attribution only in the safe direction. It is a pure function without a model call, so its decisions can be
audited and repeated.

Invariants.

- A scenario that did not expect `allow` never expects it because of a judge. Such corrections are rejected.
  Any other correction of a scenario that a model wrote is applied.
- A handwritten scenario is never changed. Blame on it is rejected and reported as a warning, because its
  author may have to look at it.
- Each failure that remains after the corrections is a problem of the rules, whether it was attributed or not.
  A silent judge therefore cannot make a failure disappear.
- Attributions of passing scenarios are ignored. The first attribution per scenario wins, so that later probe
  rounds cannot overrule earlier ones.
- All attributions of failures are recorded in the audit log, rejected ones too. If the run fails in the end,
  the rejected ones are part of the findings, so that a person can decide.

Alternatives. Letting the repair of the rules decide would make it a judge in its own case. Several judges
with a majority vote multiply the cost, and models from the same family share their errors.
"""

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
    """The attribution of one failed scenario by a judge.

    Attributes:
        description: the scenario.
        blame: the party at fault.
        reasoning: the reason.
        corrected: the expectation that the judge considers correct; None if it gives none.
    """

    description: str
    blame: Blame
    reasoning: str
    corrected: Expectation | None = None


@dataclass(frozen=True, slots=True)
class Ruling:
    """The result of resolving the attributions of a judge.

    Attributes:
        judgements: each attribution, and whether it was rejected; in the order of failures.
        corrections: the corrected expectations.
        problems: the scenarios, after corrections, that the rules still have to meet.
        contested: the scenarios among them whose correction was rejected, with the attribution.
        warnings: findings for the author of the policy.
    """

    judgements: tuple[Judgement, ...] = ()
    corrections: tuple[ScenarioCorrection, ...] = ()
    problems: tuple[TestScenario, ...] = ()
    contested: tuple[tuple[TestScenario, Attribution], ...] = ()
    warnings: tuple[Finding, ...] = ()


def ruling(failures: Iterable[ScenarioResult], attributions: Iterable[Attribution]) -> Ruling:
    """Resolve the fault attributions of a judge.

    - Blame on a rule is accepted.
    - Blame on a handwritten scenario is rejected with a warning; the rules have to meet the scenario.
    - A correction is accepted if the new expectation is not `allow`; any other is rejected, and the rules
      have to meet the scenario unchanged.
    - A failure without an attribution, or one that still fails after its correction, is a problem of the
      rules.

    Ignores attributions of passing scenarios. The first attribution per scenario wins.

    Args:
        failures: the scenarios that failed.
        attributions: the attributions.
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
    """Return the accepted correction, or None if there is nothing to correct or it must not be."""
    expected, right = scenario.expected_decision, word.corrected
    if word.blame is Blame.RULE or scenario.source is ScenarioSource.HANDWRITTEN:
        return None
    if right is None or right is expected or right is Expectation.ALLOW:
        return None
    return ScenarioCorrection(scenario.description, expected, right, word.reasoning)


def _stands(scenario: TestScenario, word: Attribution) -> Finding:
    message = (
        f'the judge blames the handwritten scenario "{scenario.description}", not changed: {word.reasoning}'
    )
    return Finding("HANDWRITTEN_BLAMED", "", message, Severity.WARNING)
