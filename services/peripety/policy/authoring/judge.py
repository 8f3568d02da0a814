"""Fault attribution: a judge decides if a rule or a test scenario is wrong when the two disagree.

Why there is a judge at all. A run has two sources of truth, written by models from the same text: the rules
and the test scenarios. A failing scenario shows a contradiction, not its cause. Repairing the rules until
every scenario passes would let one wrong scenario corrupt the policy; dropping scenarios that fail would
hide wrong rules. So a third model call, the judge, attributes each failure to the rule, the scenario or
both.

Why its answer is not simply applied. The judge is a model as well, and a policy is a security boundary. A
wrong or manipulated attribution must not be able to widen the policy. `resolve_attributions` therefore
applies an attribution only in the safe direction. It is a pure function without a model call, so its
decisions can be audited and repeated.

Invariants.

- A scenario that did not expect `allow` never expects it because of a judge. Such corrections are rejected.
  Any other correction of a scenario that a model wrote is applied.
- A handwritten scenario is never changed. Blame on it is rejected and reported as a warning, because its
  author may have to look at it.
- Each failure that remains after the corrections is a problem of the rules, whether it was attributed or
  not. A silent judge therefore cannot make a failure disappear.
- Attributions of passing scenarios are ignored. The first attribution per scenario wins, so that later
  probe rounds cannot overrule earlier ones.
- All attributions of failures are recorded in the audit log, rejected ones too. If the run fails in the
  end, the rejected ones are part of the findings, so that a person can decide.

There is one judge per batch of tools (`JudgePool`). Judges also write probes: further test requests.

Alternatives. Letting the repair of the rules decide would make it a judge in its own case. Several judges
with a majority vote multiply the cost, and models from the same family share their errors.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from peripety.core.concurrency import closing
from peripety.errors import Finding, Severity
from peripety.gateway.types.request import ResponseSchema
from peripety.policy.authoring.prompts import (
    JUDGEMENT_SCHEMA_NAME,
    authoring_system_text,
    judgement_schema,
    parse_scenarios,
    prompt_material,
    scenario_to_document,
    start_conversation,
    to_compact_json,
)
from peripety.policy.authoring.run_context import (
    ENGINE_ACTOR,
    is_response_error,
    model_actor,
    run_concurrently,
)
from peripety.policy.authoring.scenario_merge import request_key
from peripety.policy.authoring.scenario_suite import evaluate_scenarios
from peripety.policy.events import ScenariosWritten
from peripety.policy.types import (
    CompilePhase,
    Expectation,
    FaultAttribution,
    Judgement,
    ScenarioCorrection,
    ScenarioOrigin,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

    from peripety.engine import Policy
    from peripety.gateway.types.response import ModelGateway
    from peripety.policy.authoring.rule_author import Rulebook
    from peripety.policy.authoring.run_context import RunContext, ToolBatch
    from peripety.policy.authoring.scenario_suite import ScenarioSuite
    from peripety.policy.events import CompileEvent
    from peripety.policy.types import AuditEntry, CompileOrder, ScenarioResult, TestScenario


@dataclass(frozen=True, slots=True)
class JudgeAttribution:
    """The attribution of one failed scenario by a judge.

    Attributes:
        description: the scenario.
        blame: the party at fault.
        reasoning: the reason.
        corrected_decision: the expectation that the judge considers correct; None if it gives none.
    """

    description: str
    blame: FaultAttribution
    reasoning: str
    corrected_decision: Expectation | None = None


@dataclass(frozen=True, slots=True)
class AttributionResult:
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
    contested: tuple[tuple[TestScenario, JudgeAttribution], ...] = ()
    warnings: tuple[Finding, ...] = ()


def resolve_attributions(
    failures: Iterable[ScenarioResult],
    attributions: Iterable[JudgeAttribution],
) -> AttributionResult:
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
    said: dict[str, JudgeAttribution] = {}
    for attribution in attributions:
        said.setdefault(attribution.description, attribution)
    judgements: list[Judgement] = []
    corrections: list[ScenarioCorrection] = []
    problems: list[TestScenario] = []
    contested: list[tuple[TestScenario, JudgeAttribution]] = []
    warnings: list[Finding] = []
    for failure in failures:
        scenario = failure.scenario
        word = said.get(scenario.description)
        if word is None:
            problems.append(scenario)
            continue
        correction = _accepted_correction(scenario, word)
        overruled = word.blame is not FaultAttribution.RULE and correction is None
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
            if scenario.source is ScenarioOrigin.HANDWRITTEN:
                warnings.append(_handwritten_warning(scenario, word))
        if not scenario.expected_decision.is_met_by(failure.actual.decision):
            problems.append(scenario)
    return AttributionResult(
        tuple(judgements),
        tuple(corrections),
        tuple(problems),
        tuple(contested),
        tuple(warnings),
    )


def _accepted_correction(scenario: TestScenario, attribution: JudgeAttribution) -> ScenarioCorrection | None:
    """Return the accepted correction, or None if there is nothing to correct or it must not be."""
    expected, right = scenario.expected_decision, attribution.corrected_decision
    if attribution.blame is FaultAttribution.RULE or scenario.source is ScenarioOrigin.HANDWRITTEN:
        return None
    if right is None or right is expected or right is Expectation.ALLOW:
        return None
    return ScenarioCorrection(scenario.description, expected, right, attribution.reasoning)


def _handwritten_warning(scenario: TestScenario, attribution: JudgeAttribution) -> Finding:
    message = (
        f'the judge blames the handwritten scenario "{scenario.description}", not '
        f"changed: {attribution.reasoning}"
    )
    return Finding("HANDWRITTEN_BLAMED", "", message, Severity.WARNING)


@dataclass(frozen=True, slots=True)
class JudgeAnswer:
    """The response of a judge.

    Attributes:
        satisfied: True if the judge has no doubts about the rules.
        attributions: fault attributions of the failed scenarios that it was shown.
        probes: scenarios that test what it doubts.
        model: the model, as `provider/model`.
    """

    satisfied: bool
    attributions: tuple[JudgeAttribution, ...]
    probes: tuple[TestScenario, ...]
    model: str


class Judge:
    """Judge of the scenarios of one batch, in one conversation over all rounds.

    Args:
        gateway: the model gateway.
        order: the written policy.
        batch: the tools.
    """

    def __init__(self, gateway: ModelGateway, order: CompileOrder, batch: ToolBatch) -> None:
        system = authoring_system_text("judge", prompt_material(order, batch.tools))
        self._conversation = start_conversation(gateway, system, order.model)
        self._schema = ResponseSchema(JUDGEMENT_SCHEMA_NAME, judgement_schema(batch.tools))
        self._rules: Sequence[Mapping[str, Any]] | None = None

    async def judge(
        self,
        rules: Sequence[Mapping[str, Any]],
        results: Iterable[ScenarioResult],
        probes: int,
    ) -> JudgeAnswer:
        """Show the results of scenarios and request fault attributions.

        Passed scenarios take one line each. The rules are included only if they changed.

        Args:
            rules: the current rules of the batch.
            results: the results of its scenarios.
            probes: the maximum number of probes; further ones are ignored.

        Raises:
            PeripetyError: as raised by `ModelGateway.stream`.
        """
        known = [*results]
        question: dict[str, Any] = {} if rules == self._rules else {"rules": [*rules]}
        question["passed"] = [_summarize_result(result) for result in known if result.passed]
        question["failed"] = [describe_failure(result) for result in known if not result.passed]
        question["probes"] = probes
        completion = await self._conversation.send(to_compact_json(question), schema=self._schema)
        self._rules = rules
        value = completion.value or {"satisfied": False, "attributions": (), "probes": ()}
        failed = {result.scenario.description for result in known if not result.passed}
        return JudgeAnswer(
            value["satisfied"],
            tuple(
                _parse_attribution(told) for told in value["attributions"] if told["description"] in failed
            ),
            parse_scenarios(value["probes"][:probes], ScenarioOrigin.PROBE),
            f"{completion.provider}/{completion.model}",
        )


def describe_failure(result: ScenarioResult) -> dict[str, Any]:
    """Return a failed scenario with the decision of the rules."""
    actual = result.actual
    decided = {"decision": actual.decision.value, "rule": actual.rule_id, "reasons": [*actual.reasons]}
    return {**scenario_to_document(result.scenario), "decided": decided}


def _summarize_result(result: ScenarioResult) -> str:
    decided = result.actual
    return f"{result.scenario.description}: {decided.decision.value} by {decided.rule_id or 'no rule'}"


def _parse_attribution(answer: Mapping[str, Any]) -> JudgeAttribution:
    right = answer.get("corrected_decision")
    return JudgeAttribution(
        answer["description"],
        FaultAttribution(answer["blame"]),
        answer["reasoning"],
        None if right is None else Expectation(right),
    )


class JudgePool:
    """Pool of judges, each with a conversation over all rounds.

    Args:
        context: the run.
        suite: its scenarios; probes are added to them.

    Attributes:
        attribution_result: the resolved attributions of the last round.
        probes: the probes of the last round, as examples for the scenario authors.
        contested: rejected corrections of all rounds, by the description of the scenario.
        doubts: whether the judge of a batch doubted the rules in its last response.
    """

    def __init__(self, context: RunContext, suite: ScenarioSuite) -> None:
        self._context = context
        self._suite = suite
        self._judges: dict[int, Judge] = {}
        self._answers: tuple[JudgeAnswer, ...] = ()
        self._new_results: tuple[ScenarioResult, ...] = ()
        self.attribution_result = AttributionResult()
        self.doubts: dict[int, bool] = {}
        self.contested: dict[str, JudgeAttribution] = {}
        self.probes: tuple[TestScenario, ...] = ()

    async def evaluate(
        self,
        rulebook: Rulebook,
        policy: Policy,
        results: Iterable[ScenarioResult],
        rounds: int,
    ) -> AsyncIterator[CompileEvent]:
        """Request attributions, run the probes of the judges in rounds, and resolve the attributions.

        Args:
            book: the rules.
            policy: the same, compiled.
            results: the scenarios to show; those of batches that are not judged now are left out.
            rounds: the maximum number of probe rounds.

        Raises:
            PeripetyError: as raised by `ModelGateway.stream`, except for invalid responses.
        """
        most = self._context.order.limits.probes
        shown = tuple(results)
        failures = [result for result in shown if not result.passed]
        words: dict[str, _SourcedAttribution] = {}
        self.probes = ()
        for number in range(max(rounds, 1)):
            probes = most if number < rounds else 0
            async with closing(self._ask_judges(rulebook, shown, probes)) as steps:
                async for step in steps:
                    yield step
            for opinion in self._answers:
                for attribution in opinion.attributions:
                    words.setdefault(attribution.description, _SourcedAttribution(attribution, opinion.model))
            async with closing(self._run_probes(policy, probes)) as steps:
                async for step in steps:
                    yield step
            shown = self._new_results
            if not shown:
                break
            failures += [result for result in shown if not result.passed]
        for entry in self._resolve(failures, words):
            yield entry

    async def _ask_judges(
        self,
        book: Rulebook,
        results: Sequence[ScenarioResult],
        probes: int,
    ) -> AsyncIterator[CompileEvent]:
        """Send the results to the judges of their batches."""
        of_place: dict[int, list[ScenarioResult]] = defaultdict(list)
        for result in results:
            of_place[book.section_index(result.scenario.request)].append(result)
        places = sorted(of_place)
        asked = [
            self._judge_for(place, book).judge(book.sections[place].rules, of_place[place], probes)
            for place in places
        ]
        heard: dict[int, JudgeAnswer] = {}
        async with closing(run_concurrently(asked)) as answers:
            async for number, answer in answers:
                name = book.sections[places[number]].batch.name
                if isinstance(answer, JudgeAnswer):
                    heard[number] = answer
                elif is_response_error(answer):
                    message = f"about {name}: {answer.message}"
                    self._context.add_warning(Finding("JUDGE_SILENT", "", message, Severity.WARNING))
                else:
                    raise answer
                share = len(heard) / len(places)
                yield self._context.make_progress(CompilePhase.JUDGING, f"{name} is judged", share)
        self._answers = tuple(heard[number] for number in sorted(heard))
        self.doubts |= {places[number]: not opinion.satisfied for number, opinion in heard.items()}

    def _judge_for(self, place: int, book: Rulebook) -> Judge:
        if place not in self._judges:
            context = self._context
            self._judges[place] = Judge(context.gateway, context.order, book.sections[place].batch)
        return self._judges[place]

    async def _run_probes(self, policy: Policy, most: int) -> AsyncIterator[CompileEvent]:
        """Add probes, alternating between the judges, and run them.

        A probe that expects `allow` where the rules do not is not added: the judge alone would widen the
        rules. It is a hint for the scenario author, who decides.
        """
        probes = [
            (probe, opinion.model)
            for each in zip_longest(*(opinion.probes for opinion in self._answers))
            for probe, opinion in zip(each, self._answers, strict=True)
            if probe is not None
        ][:most]
        models = {request_key(probe.request): model for probe, model in probes}
        found = self._suite.filter_new(probe for probe, _ in probes)
        for discarded in found.discarded:
            yield self._context.record_decision(ENGINE_ACTOR, discarded)
        results = await asyncio.to_thread(evaluate_scenarios, policy, found.accepted)
        self.probes += found.accepted
        self._new_results = ()
        for result in results:
            scenario = result.scenario
            if result.passed or scenario.expected_decision is not Expectation.ALLOW:
                self._new_results += (result,)
                continue
            judgement = Judgement(
                scenario.description,
                FaultAttribution.RULE,
                scenario.reasoning,
                overruled=True,
            )
            yield self._context.record_decision(model_actor(models[request_key(scenario.request)]), judgement)
        fresh = tuple(result.scenario for result in self._new_results)
        self._suite.add(fresh)
        if fresh:
            yield ScenariosWritten(fresh)

    def _resolve(
        self,
        failures: Iterable[ScenarioResult],
        words: Mapping[str, _SourcedAttribution],
    ) -> Iterator[AuditEntry]:
        """Resolve the attributions, and add them to the audit log."""
        self.attribution_result = resolve_attributions(
            failures,
            (word.attribution for word in words.values()),
        )
        for warning in self.attribution_result.warnings:
            self._context.add_warning(warning)
        self.contested |= {scenario.description: word for scenario, word in self.attribution_result.contested}
        for judgement in self.attribution_result.judgements:
            yield self._context.record_decision(
                model_actor(words[judgement.scenario_description].model),
                judgement,
            )
        for correction in self.attribution_result.corrections:
            yield self._context.record_decision(
                model_actor(words[correction.scenario_description].model),
                correction,
            )


@dataclass(frozen=True, slots=True)
class _SourcedAttribution:
    """An attribution, with the model that made it."""

    attribution: JudgeAttribution
    model: str


def describe_failures(
    failures: Iterable[ScenarioResult],
    contested: Mapping[str, JudgeAttribution],
    opinions: Mapping[str, str],
) -> tuple[Finding, ...]:
    """Return one finding for each scenario that the rules do not meet.

    Args:
        failures: the scenarios.
        contested: rejected corrections of a judge, by the description of the scenario.
        opinions: reasons for leaving rules unchanged, likewise.
    """
    return tuple(_failure_finding(failure, contested, opinions) for failure in failures)


def _failure_finding(
    failure: ScenarioResult,
    contested: Mapping[str, JudgeAttribution],
    opinions: Mapping[str, str],
) -> Finding:
    scenario, decided = failure.scenario, failure.actual
    by = f"rule {decided.rule_id}" if decided.rule_id else "no rule (the default is deny)"
    because = f" ({scenario.reasoning})" if scenario.reasoning else ""
    told = (
        f'"{scenario.description}" expects {scenario.expected_decision.value}{because}, '
        f"and {by} decides {decided.decision.value}"
    )
    word = contested.get(scenario.description)
    why = opinions.get(scenario.description)
    kept = f"; the rules were left as they are: {why}" if why else ""
    if word is None:
        return Finding("SCENARIO_NOT_MET", "", f"{told}{kept}")
    right = "something else" if word.corrected_decision is None else word.corrected_decision.value
    return Finding(
        "EXPECTATION_CONTESTED",
        "",
        f"{told}; the judge considers {right} correct: {word.reasoning}{kept}. A model must not decide this:"
        " write the request as a handwritten scenario, or change the written policy",
    )
