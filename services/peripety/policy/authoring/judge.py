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

- A scenario that did not expect `allow` never expects it because of a judge. Such corrections are rejected,
  and the author of the scenario has to name the sentence that forbids the call, or to withdraw the
  scenario. Any other correction of a scenario that a model wrote is applied.
- A handwritten scenario is never changed. Blame on it is rejected and reported as a warning, because its
  author may have to look at it.
- Each failure that remains after the corrections is a problem of the rules, whether it was attributed or
  not. A silent judge therefore cannot make a failure disappear.
- Attributions of passing scenarios are ignored. The first attribution per scenario wins, so that later
  probe rounds cannot overrule earlier ones.
- All attributions of failures are recorded in the audit log, rejected ones too. If the run fails in the
  end, the rejected ones are part of the findings, so that a person can decide.

There is one judge per batch of tools (`JudgePool`). Where scenarios fail, it attributes them. Once none
fails, it reviews the rules: it compares each sentence with the back-translation of its rules, and writes
probes, which are calls that show a difference.

Alternatives. Letting the repair of the rules decide would make it a judge in its own case. Several judges
with a majority vote multiply the cost, and models from the same family share their errors.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from peripety.core.concurrency import closing
from peripety.engine import compile_policy
from peripety.errors import Finding, Severity
from peripety.policy.authoring.prompts import (
    JUDGE_TASK,
    TaskConversation,
    authoring_system_text,
    parse_scenarios,
    prompt_material,
    rules_about,
    rules_to_documents,
    scenario_to_document,
    to_compact_json,
)
from peripety.policy.authoring.rule_author import make_document
from peripety.policy.authoring.run_context import (
    ENGINE_ACTOR,
    is_response_error,
    model_actor,
    run_concurrently,
)
from peripety.policy.authoring.scenario_merge import request_key
from peripety.policy.authoring.scenario_suite import evaluate_scenarios
from peripety.policy.authoring.sentence_report import normalize_words
from peripety.policy.events import ScenariosWritten
from peripety.policy.types import (
    CompilePhase,
    Expectation,
    FaultAttribution,
    Judgement,
    ScenarioCorrection,
    ScenarioOrigin,
)
from peripety.policy.verification.back_translation import translate_policy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

    from peripety.engine import Policy
    from peripety.gateway.types.response import ModelGateway
    from peripety.policy.authoring.rule_author import Rulebook
    from peripety.policy.authoring.run_context import RunContext, ToolBatch
    from peripety.policy.authoring.scenario_suite import ScenarioSuite
    from peripety.policy.events import CompileEvent
    from peripety.policy.types import AuditEntry, CompileOrder, ScenarioResult, TestScenario
    from peripety.policy.verification.back_translation import DecidedCall, RuleStatement

CONTESTED_CODE = "EXPECTATION_CONTESTED"
"""The code of a scenario about which only a person can decide."""


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
        doubts: what it doubts and no call can show, in its words.
        probes: scenarios that test what it doubts.
        model: the model, as `provider/model`.
    """

    satisfied: bool
    attributions: tuple[JudgeAttribution, ...]
    doubts: tuple[str, ...]
    probes: tuple[TestScenario, ...]
    model: str

    def open_doubts(self) -> tuple[str, ...]:
        """Return the doubts that no probe answers; an empty text stands for one without words."""
        return self.doubts or (() if self.satisfied or self.probes or self.attributions else ("",))


@dataclass(slots=True)
class JudgeCase:
    """The input of a judge.

    Attributes:
        results: the results of the scenarios of a batch.
        sentences: the sentences with the back-translation of their rules; empty without a review.
    """

    results: list[ScenarioResult] = field(default_factory=list)
    sentences: list[dict[str, Any]] = field(default_factory=list)


class Judge:
    """Judge of the scenarios of one batch, in one conversation over all rounds.

    Args:
        gateway: the model gateway.
        order: the written policy.
        batch: the tools.
    """

    def __init__(self, gateway: ModelGateway, order: CompileOrder, batch: ToolBatch) -> None:
        system = authoring_system_text(prompt_material(order, batch.tools))
        self._conversation = TaskConversation(gateway, JUDGE_TASK, system, batch.tools, order.model)
        self._told: set[str] = set()

    async def judge(
        self,
        rules: Sequence[Mapping[str, Any]],
        case: JudgeCase,
        probes: int,
    ) -> JudgeAnswer:
        """Request fault attributions, or a review of the rules.

        A question about failures has the rules and the passed scenarios of the same tools. A review has the
        sentences whose rules are new.

        Args:
            rules: the current rules of the batch.
            case: the results of its scenarios, and for a review its sentences.
            probes: the maximum number of probes; further ones are ignored.

        Raises:
            PeripetyError: as raised by `ModelGateway.stream`.
        """
        known = case.results
        failures = [result for result in known if not result.passed]
        question: dict[str, Any] = {"order": [rule["id"] for rule in rules]}
        if case.sentences:
            question["sentences"] = [one for one in case.sentences if _sentence_key(one) not in self._told]
        else:
            called = {result.scenario.request.tool_name for result in failures}
            question["rules"] = rules_to_documents(rules_about(rules, failures))
            question["passed"] = [
                _summarize_result(result)
                for result in known
                if result.passed and result.scenario.request.tool_name in called
            ]
        question["failed"] = [*map(describe_failure, failures)]
        question["probes"] = probes
        completion = await self._conversation.send(to_compact_json(question))
        self._told.update(map(_sentence_key, case.sentences))
        value = completion.value or {"satisfied": False, "attributions": (), "probes": ()}
        failed = {result.scenario.description for result in failures}
        return JudgeAnswer(
            value["satisfied"],
            tuple(
                _parse_attribution(told) for told in value["attributions"] if told["description"] in failed
            ),
            tuple(value.get("doubts", ())),
            parse_scenarios(value["probes"][:probes], ScenarioOrigin.PROBE),
            f"{completion.provider}/{completion.model}",
        )


def _sentence_key(told: Mapping[str, Any]) -> str:
    """Return the sentence and the English of its rules; the calls depend on other sentences, too."""
    return to_compact_json([told["sentence"], [[rule["id"], rule["english"]] for rule in told["rules"]]])


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
        probes: the probes of the last round that were not added, as hints for the scenario authors.
        contested: rejected corrections of all rounds, by the description of the scenario.
        doubts: the doubts of each batch that no probe answers, as of the last response about it.
    """

    def __init__(self, context: RunContext, suite: ScenarioSuite) -> None:
        self._context = context
        self._suite = suite
        self._judges: dict[int, Judge] = {}
        self._answers: tuple[JudgeAnswer, ...] = ()
        self._new_results: tuple[ScenarioResult, ...] = ()
        self.attribution_result = AttributionResult()
        self.doubts: dict[int, tuple[str, ...]] = {}
        self.contested: dict[str, JudgeAttribution] = {}
        self.probes: tuple[TestScenario, ...] = ()

    async def evaluate(
        self,
        rulebook: Rulebook,
        policy: Policy,
        results: Iterable[ScenarioResult],
        places: Iterable[int],
        *,
        is_review: bool,
    ) -> AsyncIterator[CompileEvent]:
        """Request attributions or reviews, run the probes of a review, and resolve the attributions.

        A probe that fails is a problem of the rules, without another attribution.

        Args:
            rulebook: the rules.
            policy: the same, compiled.
            results: the results of all scenarios.
            places: the sections to judge.
            is_review: True to request a review of the rules; then no scenario of the sections fails.

        Raises:
            PeripetyError: as raised by `ModelGateway.stream`, except for invalid responses.
        """
        probes = self._context.order.limits.probes if is_review else 0
        asked = {place: JudgeCase() for place in places}
        for result in results:
            place = rulebook.section_index(result.scenario.request)
            if place in asked:
                asked[place].results.append(result)
        if is_review:
            for place, case in asked.items():
                order = self._context.order
                case.sentences = await asyncio.to_thread(_translate_section, order, rulebook, place)
        failures = [result for case in asked.values() for result in case.results if not result.passed]
        async with closing(self._ask_judges(rulebook, asked, probes)) as steps:
            async for step in steps:
                yield step
        words: dict[str, _SourcedAttribution] = {}
        for opinion in self._answers:
            for attribution in opinion.attributions:
                words.setdefault(attribution.description, _SourcedAttribution(attribution, opinion.model))
        self.probes = ()
        async with closing(self._run_probes(policy, probes)) as steps:
            async for step in steps:
                yield step
        failures += [result for result in self._new_results if not result.passed]
        for entry in self._resolve(failures, words):
            yield entry

    async def _ask_judges(
        self,
        book: Rulebook,
        cases: Mapping[int, JudgeCase],
        probes: int,
    ) -> AsyncIterator[CompileEvent]:
        """Send the cases to the judges of their batches."""
        places = [*cases]
        asked = [
            self._judge_for(place, book).judge(book.sections[place].rules, case, probes)
            for place, case in cases.items()
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
        self.doubts |= {places[number]: opinion.open_doubts() for number, opinion in heard.items()}

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
        self._new_results = ()
        for result in results:
            scenario = result.scenario
            if result.passed or scenario.expected_decision is not Expectation.ALLOW:
                self._new_results += (result,)
                continue
            self.probes += (scenario,)
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


def _translate_section(order: CompileOrder, book: Rulebook, place: int) -> list[dict[str, Any]]:
    """Return the sentences that the rules of a section implement, and those that no rule implements."""
    section = book.sections[place]
    policy = compile_policy(make_document(order, section.batch.tools, section.rules, invariants=[]))
    principles = (rule.get("principle", "") for one in book.sections for rule in one.rules)
    implemented = {*map(normalize_words, principles)}
    return [
        {
            "sentence": statement.sentence,
            "rules": [
                {
                    "id": rule.rule_id,
                    "english": rule.text,
                    **_describe_border(rule),
                }
                for rule in statement.rules
            ],
        }
        for statement in translate_policy(policy, order.constitution)
        if statement.rules or normalize_words(statement.sentence) not in implemented
    ]


def _describe_border(rule: RuleStatement) -> dict[str, str]:
    """Return a call that a rule decides, and the nearest one of the same tool that it does not decide."""
    border = {}
    if rule.decided is not None:
        border["this"] = _describe_call(rule.decided)
        if rule.nearest is not None and rule.nearest.request.tool_name == rule.decided.request.tool_name:
            border["not_this"] = _describe_call(rule.nearest)
    return border


def _describe_call(call: DecidedCall) -> str:
    request, decided = call.request, call.decision
    roles = f" as {', '.join(request.roles)}" if request.roles else ""
    arguments = to_compact_json(dict(request.arguments))
    by = decided.rule_id or "no rule"
    return f"{request.tool_name} {arguments}{roles}: {decided.decision.value} by {by}"


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
        CONTESTED_CODE,
        "",
        f"{told}; the judge considers {right} correct: {word.reasoning}{kept}. A model must not decide this:"
        " write the request as a handwritten scenario, or change the written policy",
    )
