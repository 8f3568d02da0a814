"""Rule repair: a model patches rules so that they meet failed scenarios.

Patches are applied in order and atomically, and only if no passing scenario breaks.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety.core.concurrency import closing
from peripety.engine.policies.types import Decision
from peripety.errors import InvalidArgumentError, PeripetyError
from peripety.policy.analysis.differences import find_differences
from peripety.policy.authoring.judge import describe_failure
from peripety.policy.authoring.prompts import (
    PATCHES_TASK,
    TaskConversation,
    authoring_system_text,
    prompt_material,
    rules_about,
    rules_to_documents,
    to_compact_json,
)
from peripety.policy.authoring.rule_author import Rulebook, RuleSection
from peripety.policy.authoring.run_context import is_response_error, model_actor, run_concurrently
from peripety.policy.authoring.scenario_suite import evaluate_scenarios
from peripety.policy.events import RulesWritten
from peripety.policy.rule_paths import diff_rules
from peripety.policy.types import CompilePhase, Expectation, RulePatch, RulePatchKind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from peripety.engine import Policy
    from peripety.gateway.types.response import ModelGateway
    from peripety.policy.authoring.rule_author import RuleAuthor
    from peripety.policy.authoring.run_context import RunContext, ToolBatch
    from peripety.policy.authoring.scenario_suite import ScenarioSuite
    from peripety.policy.events import CompileEvent
    from peripety.policy.types import CompileOrder, ScenarioResult, TestScenario


_PATCH_UNFIT_CODE = "PATCH_UNFIT"


@dataclass(frozen=True, slots=True)
class PatchOperation:
    """One operation of a patch.

    Attributes:
        kind: update, add or delete.
        rule_id: the rule.
        rule: the new rule; None for a deletion.
        after: the rule after which to add it; None for the front.
    """

    kind: RulePatchKind
    rule_id: str
    rule: Mapping[str, Any] | None = None
    after: str | None = None

    def with_rule(self, rule: Mapping[str, Any]) -> PatchOperation:
        """Return a copy with another rule."""
        return replace(self, rule=rule)


@dataclass(frozen=True, slots=True)
class PatchedRules:
    """Rules after a patch.

    Attributes:
        rules: the rules, in order.
        patches: the changes, in the order in which they were made.
    """

    rules: tuple[Mapping[str, Any], ...]
    patches: tuple[RulePatch, ...]


def parse_operations(value: Mapping[str, Any]) -> tuple[PatchOperation, ...]:
    """Parse the operations of a response that is valid against its schema."""
    return tuple(
        PatchOperation(RulePatchKind(one["op"]), one["rule_id"], one.get("rule"), one.get("after"))
        for one in value["operations"]
    )


def apply_patches(
    rules: Sequence[Mapping[str, Any]],
    operations: Sequence[PatchOperation],
    *,
    reasoning: str = "",
    first: int = 0,
) -> PatchedRules:
    """Apply operations in order.

    Args:
        rules: the rules before.
        operations: the operations.
        reasoning: the reason, for the audit log.
        first: index in the document of the first of the rules.

    Raises:
        InvalidArgumentError: an operation cannot be applied (code PATCH_UNFIT): it names an unknown rule,
            adds an existing one, lacks its rule, or changes the id of a rule. Nothing is changed.
    """
    now = [*rules]
    done: list[RulePatch] = []
    for operation in operations:
        at = _operation_index(now, operation)
        before = None if operation.kind is RulePatchKind.ADD else now[at]
        match operation.kind:
            case RulePatchKind.ADD:
                now.insert(at, _required_rule(operation))
            case RulePatchKind.UPDATE:
                now[at] = _required_rule(operation)
            case RulePatchKind.DELETE:
                del now[at]
        after = None if operation.kind is RulePatchKind.DELETE else now[at]
        done.append(RulePatch(operation.kind, operation.rule_id, before, after, first + at, reasoning))
    return PatchedRules(tuple(now), tuple(done))


def _operation_index(rules: Sequence[Mapping[str, Any]], operation: PatchOperation) -> int:
    """Return the index that an operation refers to."""
    places = {rule["id"]: place for place, rule in enumerate(rules)}
    if operation.kind is not RulePatchKind.ADD:
        return _existing_index(places, operation.rule_id)
    if operation.rule_id in places:
        raise _patch_error(f"rule {operation.rule_id} exists already; update it, or choose another id")
    return 0 if operation.after is None else _existing_index(places, operation.after) + 1


def _existing_index(places: Mapping[str, int], rule_id: str) -> int:
    if rule_id not in places:
        raise _patch_error(f"rule {rule_id} does not exist; use one of {', '.join(places) or 'none'}")
    return places[rule_id]


def _required_rule(operation: PatchOperation) -> Mapping[str, Any]:
    rule = operation.rule
    if rule is None:
        raise _patch_error(f"the rule of {operation.kind.value} {operation.rule_id} is missing")
    if rule["id"] != operation.rule_id:
        raise _patch_error(f"{operation.kind.value} {operation.rule_id} has a rule with the id {rule['id']}")
    return rule


def _patch_error(message: str) -> InvalidArgumentError:
    return InvalidArgumentError(message, code=_PATCH_UNFIT_CODE)


@dataclass(frozen=True, slots=True)
class PatchProposal:
    """A patch that a model proposes.

    Attributes:
        operations: the operations, in order; empty if the model considers the rules correct.
        reasoning: the reason.
        model: the model, as `provider/model`.
    """

    operations: tuple[PatchOperation, ...]
    reasoning: str
    model: str


class RuleRepairer:
    """Repairer of the rules of one batch, in one conversation over all rounds.

    Args:
        gateway: the model gateway.
        order: the written policy.
        batch: the tools.

    Attributes:
        rejection: why the last patch was rejected; sent with the next request.
    """

    def __init__(self, gateway: ModelGateway, order: CompileOrder, batch: ToolBatch) -> None:
        system = authoring_system_text(prompt_material(order, batch.tools))
        self._conversation = TaskConversation(gateway, PATCHES_TASK, system, batch.tools, order.model)
        self.rejection = ""

    async def propose(
        self,
        rules: Sequence[Mapping[str, Any]],
        problems: Iterable[ScenarioResult],
    ) -> PatchProposal:
        """Request a patch.

        Args:
            rules: the current rules of the batch; those about other tools are only named.
            problems: the scenarios that they have to meet and do not.

        Raises:
            PeripetyError: as raised by `ModelGateway.stream`.
        """
        known = [*problems]
        question: dict[str, Any] = {
            "order": [rule["id"] for rule in rules],
            "rules": rules_to_documents(rules_about(rules, known)),
            "failed": [*map(describe_failure, known)],
        }
        if self.rejection:
            question["refused"] = self.rejection
        completion = await self._conversation.send(to_compact_json(question))
        self.rejection = ""
        value = completion.value or {"operations": (), "reasoning": ""}
        return PatchProposal(
            parse_operations(value),
            value["reasoning"],
            f"{completion.provider}/{completion.model}",
        )


_MAX_LISTED_SCENARIOS = 10


@dataclass(frozen=True, slots=True)
class _EvaluatedRules:
    """Rules, with the results of all scenarios."""

    rulebook: Rulebook
    policy: Policy
    results: tuple[ScenarioResult, ...]


class RuleRepairLoop:
    """Repair loop of the rules of all batches, each in one conversation over all rounds.

    Args:
        context: the run.
        author: rewrites the rules of a batch if no patch can be applied.

    Attributes:
        no_change_reasons: reasons for leaving rules unchanged, by the description of the failing scenario.
        left_failing: the scenarios that still fail after a proposal that could be applied, or made no change.
    """

    def __init__(self, context: RunContext, author: RuleAuthor) -> None:
        self._context = context
        self._author = author
        self._repairers: dict[int, RuleRepairer] = {}
        self.no_change_reasons: dict[str, str] = {}
        self.left_failing: set[str] = set()
        self.rulebook: Rulebook
        self.policy: Policy

    @property
    def has_rejections(self) -> bool:
        """Return True if a proposed change was rejected, and the reason goes into the next request."""
        return any(mender.rejection for mender in self._repairers.values())

    async def repair(
        self,
        rulebook: Rulebook,
        policy: Policy,
        suite: ScenarioSuite,
        problems: Iterable[TestScenario],
    ) -> AsyncIterator[CompileEvent]:
        """Request changes, and apply those after which more scenarios pass and no passing one fails.

        The rules are in `book` and `policy` afterwards.

        Raises:
            PeripetyError: as raised by `ModelGateway.stream`, except for invalid responses.
        """
        self.rulebook, self.policy = rulebook, policy
        results = await asyncio.to_thread(evaluate_scenarios, policy, (*suite.scenarios, *suite.replaced))
        wanted = {scenario.description for scenario in problems}
        of_place: dict[int, list[ScenarioResult]] = defaultdict(list)
        for result in results:
            if not result.passed and result.scenario.description in wanted:
                of_place[rulebook.section_index(result.scenario.request)].append(result)
        places = sorted(of_place)
        asked = [
            self._repairer_for(place).propose(rulebook.sections[place].rules, of_place[place])
            for place in places
        ]
        proposals: dict[int, PatchProposal | PeripetyError] = {}
        async with closing(run_concurrently(asked)) as answers:
            async for number, answer in answers:
                proposals[number] = answer
                message = f"changes of the rules for {rulebook.sections[places[number]].batch.name}"
                share = len(proposals) / (len(places) + 1)
                yield self._context.make_progress(CompilePhase.REPAIRING, message, share)
        standing = _EvaluatedRules(rulebook, policy, results)
        for number, place in enumerate(places):
            changed = await self._try_patch(standing, place, proposals[number], of_place[place])
            if changed is None:
                continue
            standing, done, actor = changed
            for patch in done:
                yield self._context.record_decision(actor, patch)
            self.rulebook, self.policy = standing.rulebook, standing.policy
            yield RulesWritten(standing.policy.document)

    def _repairer_for(self, place: int) -> RuleRepairer:
        if place not in self._repairers:
            context = self._context
            self._repairers[place] = RuleRepairer(
                context.gateway,
                context.order,
                self.rulebook.sections[place].batch,
            )
        return self._repairers[place]

    async def _try_patch(
        self,
        standing: _EvaluatedRules,
        place: int,
        proposal: PatchProposal | PeripetyError,
        problems: Sequence[ScenarioResult],
    ) -> tuple[_EvaluatedRules, tuple[RulePatch, ...], str] | None:
        """Return the rules after a patch, or after a rewrite if it cannot be applied; None for no change."""
        mender, section = self._repairers[place], standing.rulebook.sections[place]
        if isinstance(proposal, PeripetyError):
            if not is_response_error(proposal):
                raise proposal
            why = proposal.message
        else:
            if not proposal.operations:
                wanted = [problem.scenario.description for problem in problems]
                self.no_change_reasons |= dict.fromkeys(wanted, proposal.reasoning)
                self.left_failing.update(wanted)
                return None
            try:
                done = _apply_proposal(proposal, section, standing.rulebook.first_rule_index(place))
                after = await _evaluate_rules(standing, place, done.rules)
            except InvalidArgumentError as error:
                why = error.message
            else:
                mender.rejection = await _rejection_reason(standing, after, problems)
                if mender.rejection:
                    return None
                self.left_failing.update(
                    result.scenario.description for result in after.results if not result.passed
                )
                return (
                    after,
                    _audit_patches(done, section, after.rulebook, place),
                    model_actor(proposal.model),
                )
        mender.rejection = f"the change could not be made: {why}"
        return await self._try_rewrite(standing, place, problems)

    async def _try_rewrite(
        self,
        standing: _EvaluatedRules,
        place: int,
        problems: Sequence[ScenarioResult],
    ) -> tuple[_EvaluatedRules, tuple[RulePatch, ...], str] | None:
        """Rewrite all rules of the batch, as a fallback."""
        section = standing.rulebook.sections[place]
        try:
            other = await self._author.rewrite(section.batch, [*map(describe_failure, problems)])
            after = await _evaluate_rules(standing, place, other.section.rules)
        except PeripetyError as error:
            if not (is_response_error(error) or isinstance(error, InvalidArgumentError)):
                raise
            return None
        if await _rejection_reason(standing, after, problems):
            return None
        rules = after.rulebook.sections[place].rules
        first = standing.rulebook.first_rule_index(place)
        changes = diff_rules(section.rules, rules, "rewritten", first=first)
        return after, tuple(changes), model_actor(other.model)


def _apply_proposal(proposal: PatchProposal, section: RuleSection, first: int) -> PatchedRules:
    """Apply a patch to a section; its rules stay restricted to the tools of the section."""
    operations = [
        operation if operation.rule is None else operation.with_rule(_restrict_rule(section, operation.rule))
        for operation in proposal.operations
    ]
    return apply_patches(section.rules, operations, reasoning=proposal.reasoning, first=first)


def _restrict_rule(section: RuleSection, rule: Mapping[str, Any]) -> Mapping[str, Any]:
    return RuleSection(section.batch, (rule,)).restrict_to_batch().rules[0]


def _audit_patches(
    done: PatchedRules,
    section: RuleSection,
    book: Rulebook,
    place: int,
) -> tuple[RulePatch, ...]:
    """Return the changes for the audit log, with the final ids if ids of other sections collided."""
    rules = book.sections[place].rules
    if [rule["id"] for rule in rules] == [rule["id"] for rule in done.rules]:
        return done.patches
    reasoning = done.patches[0].reasoning
    return tuple(diff_rules(section.rules, rules, reasoning, first=book.first_rule_index(place)))


async def _evaluate_rules(
    standing: _EvaluatedRules,
    place: int,
    rules: Sequence[Mapping[str, Any]],
) -> _EvaluatedRules:
    """Return other rules, with the results of all scenarios.

    Raises:
        SpecError: the rules are invalid.
    """
    book = standing.rulebook.with_rules(place, rules)
    policy = await asyncio.to_thread(book.compile_policy)
    results = await asyncio.to_thread(
        evaluate_scenarios,
        policy,
        [result.scenario for result in standing.results],
    )
    return _EvaluatedRules(book, policy, results)


async def _opened_part(standing: _EvaluatedRules, after: _EvaluatedRules) -> str:
    """Return the reason to reject a change that opens what a part that no rule expresses has closed."""
    closing = {rule_id: part for part in standing.rulebook.unexpressed for rule_id in part.rule_ids}
    if not closing:
        return ""
    kept = {rule["id"]: rule for rule in after.policy.rules}
    for rule in standing.policy.rules:
        part = closing.get(rule["id"])
        if part is not None and kept.get(rule["id"]) != rule:
            return f'it was rolled back: rule {rule["id"]} covers "{part.part}", which no rule can see'
    differing = await asyncio.to_thread(find_differences, standing.policy, after.policy)
    for change in differing.changes:
        part = closing.get(change.before.rule_id)
        if part is not None and change.after.decision is Decision.ALLOW:
            return (
                f'it was undone, as it allows a call although "{part.part}" is something that no rule can see'
            )
    return ""


async def _rejection_reason(
    standing: _EvaluatedRules,
    after: _EvaluatedRules,
    problems: Sequence[ScenarioResult],
) -> str:
    """Return the reason to reject changed rules, or an empty text."""
    opened = await _opened_part(standing, after)
    if opened:
        return opened
    pairs = [*zip(standing.results, after.results, strict=True)]
    broken = [new.scenario.description for old, new in pairs if old.passed and not new.passed]
    if broken:
        named = "; ".join(broken[:_MAX_LISTED_SCENARIOS])
        return f"it was undone, as scenarios failed after it that had passed: {named}"
    if not any(new.passed and not old.passed for old, new in pairs):
        return "it was undone, as every scenario that had failed still did"
    if any(problem.scenario.expected_decision is Expectation.ALLOW for problem in problems):
        return ""
    # Requests without a scenario are affected as well. A stricter change must not allow any of them.
    differing = await asyncio.to_thread(find_differences, standing.policy, after.policy, max_examples=1)
    if any(change.after.decision is Decision.ALLOW for change in differing.changes):
        request = differing.changes[0].witness
        call = f"{request.server_name}/{request.tool_name} with {to_compact_json(dict(request.arguments))}"
        return f"it was undone, as it newly allows a request that no scenario needs: {call}"
    return ""
