"""Repair loop of rules: patches that are applied only if no passing scenario breaks."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety.errors import InvalidArgumentError, PeripetyError
from peripety.gateway.streams import following
from peripety.policies.analysis.differences import difference
from peripety.policies.compiling.batches import in_parallel
from peripety.policies.compiling.context import by_model, is_of_answer
from peripety.policies.compiling.document import Rulebook, Section
from peripety.policies.compiling.judge import failure_document
from peripety.policies.compiling.material import as_text
from peripety.policies.compiling.mender import Mender, Proposal
from peripety.policies.compiling.patches import Patched, patched
from peripety.policies.compiling.suite import fared
from peripety.policies.model import CompilePhase, Decision, Expectation, RulesWritten
from peripety.policies.rule_changes import rule_changes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from peripety.policies.compiling.context import Context
    from peripety.policies.compiling.rules import RuleAuthor
    from peripety.policies.compiling.suite import Suite
    from peripety.policies.model import CompileEvent, RulePatch, ScenarioResult, TestScenario
    from peripety.sim import Policy

__all__ = ["Repairs"]

_MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class _Standing:
    """Rules, with the results of all scenarios."""

    book: Rulebook
    policy: Policy
    results: tuple[ScenarioResult, ...]


class Repairs:
    """Repair loop of the rules of all batches, each in one conversation over all rounds.

    Args:
        context: the run.
        author: rewrites the rules of a batch if no patch can be applied.

    Attributes:
        opinions: reasons for leaving rules unchanged, by the description of the failing scenario.
    """

    def __init__(self, context: Context, author: RuleAuthor) -> None:
        self._context = context
        self._author = author
        self._menders: dict[int, Mender] = {}
        self.opinions: dict[str, str] = {}
        self.book: Rulebook
        self.policy: Policy

    @property
    def are_refused(self) -> bool:
        """Return True if a proposed change was rejected, and the reason goes into the next request."""
        return any(mender.refused for mender in self._menders.values())

    async def mend(
        self, book: Rulebook, policy: Policy, suite: Suite, problems: Iterable[TestScenario]
    ) -> AsyncIterator[CompileEvent]:
        """Request changes, and apply those after which more scenarios pass and no passing one fails.

        The rules are in `book` and `policy` afterwards.

        Raises:
            PeripetyError: as raised by `ModelGateway.stream`, except for invalid responses.
        """
        self.book, self.policy = book, policy
        results = await asyncio.to_thread(fared, policy, (*suite.scenarios, *suite.replaced))
        wanted = {scenario.description for scenario in problems}
        of_place: dict[int, list[ScenarioResult]] = defaultdict(list)
        for result in results:
            if not result.passed and result.scenario.description in wanted:
                of_place[book.place_of(result.scenario.request)].append(result)
        places = sorted(of_place)
        asked = [self._mender(place).propose(book.sections[place].rules, of_place[place]) for place in places]
        proposals: dict[int, Proposal | PeripetyError] = {}
        async with following(in_parallel(asked)) as answers:
            async for number, answer in answers:
                proposals[number] = answer
                message = f"changes of the rules for {book.sections[places[number]].batch.name}"
                share = len(proposals) / (len(places) + 1)
                yield self._context.progress(CompilePhase.REPAIRING, message, share)
        standing = _Standing(book, policy, results)
        for number, place in enumerate(places):
            changed = await self._changed(standing, place, proposals[number], of_place[place])
            if changed is None:
                continue
            standing, done, actor = changed
            for patch in done:
                yield self._context.note(actor, patch)
            self.book, self.policy = standing.book, standing.policy
            yield RulesWritten(standing.policy.document)

    def _mender(self, place: int) -> Mender:
        if place not in self._menders:
            context = self._context
            self._menders[place] = Mender(context.gateway, context.order, self.book.sections[place].batch)
        return self._menders[place]

    async def _changed(
        self,
        standing: _Standing,
        place: int,
        proposal: Proposal | PeripetyError,
        problems: Sequence[ScenarioResult],
    ) -> tuple[_Standing, tuple[RulePatch, ...], str] | None:
        """Return the rules after a patch, or after a rewrite if it cannot be applied; None for no change."""
        mender, section = self._menders[place], standing.book.sections[place]
        if isinstance(proposal, PeripetyError):
            if not is_of_answer(proposal):
                raise proposal
            why = proposal.message
        else:
            if not proposal.operations:
                self.opinions |= dict.fromkeys(
                    (problem.scenario.description for problem in problems), proposal.reasoning
                )
                return None
            try:
                done = _made(proposal, section, standing.book.first_of(place))
                after = await _standing_on(standing, place, done.rules)
            except InvalidArgumentError as error:
                why = error.message
            else:
                mender.refused = await _objection(standing, after, problems)
                if mender.refused:
                    return None
                return after, _on_record(done, section, after.book, place), by_model(proposal.model)
        mender.refused = f"the change could not be made: {why}"
        return await self._rewritten(standing, place, problems)

    async def _rewritten(
        self, standing: _Standing, place: int, problems: Sequence[ScenarioResult]
    ) -> tuple[_Standing, tuple[RulePatch, ...], str] | None:
        """Rewrite all rules of the batch, as a fallback."""
        section = standing.book.sections[place]
        try:
            other = await self._author.rewrite(section.batch, [*map(failure_document, problems)])
            after = await _standing_on(standing, place, other.section.rules)
        except PeripetyError as error:
            if not (is_of_answer(error) or isinstance(error, InvalidArgumentError)):
                raise
            return None
        if await _objection(standing, after, problems):
            return None
        rules = after.book.sections[place].rules
        first = standing.book.first_of(place)
        changes = rule_changes(section.rules, rules, "rewritten", first=first)
        return after, tuple(changes), by_model(other.model)


def _made(proposal: Proposal, section: Section, first: int) -> Patched:
    """Apply a patch to a section; its rules stay restricted to the tools of the section."""
    operations = [
        operation if operation.rule is None else operation.with_rule(_bound(section, operation.rule))
        for operation in proposal.operations
    ]
    return patched(section.rules, operations, reasoning=proposal.reasoning, first=first)


def _bound(section: Section, rule: Mapping[str, Any]) -> Mapping[str, Any]:
    return Section(section.batch, (rule,)).bound().rules[0]


def _on_record(done: Patched, section: Section, book: Rulebook, place: int) -> tuple[RulePatch, ...]:
    """Return the changes for the audit log, with the final ids if ids of other sections collided."""
    rules = book.sections[place].rules
    if [rule["id"] for rule in rules] == [rule["id"] for rule in done.rules]:
        return done.patches
    reasoning = done.patches[0].reasoning
    return tuple(rule_changes(section.rules, rules, reasoning, first=book.first_of(place)))


async def _standing_on(standing: _Standing, place: int, rules: Sequence[Mapping[str, Any]]) -> _Standing:
    """Return other rules, with the results of all scenarios.

    Raises:
        SpecError: the rules are invalid.
    """
    book = standing.book.with_rules(place, rules)
    policy = await asyncio.to_thread(book.policy)
    results = await asyncio.to_thread(fared, policy, [result.scenario for result in standing.results])
    return _Standing(book, policy, results)


async def _objection(standing: _Standing, after: _Standing, problems: Sequence[ScenarioResult]) -> str:
    """Return the reason to reject changed rules, or an empty text."""
    pairs = [*zip(standing.results, after.results, strict=True)]
    broken = [new.scenario.description for old, new in pairs if old.passed and not new.passed]
    if broken:
        named = "; ".join(broken[:_MOST_NAMED])
        return f"it was undone, as scenarios failed after it that had passed: {named}"
    if not any(new.passed and not old.passed for old, new in pairs):
        return "it was undone, as every scenario that had failed still did"
    if any(problem.scenario.expected_decision is Expectation.ALLOW for problem in problems):
        return ""
    # Requests without a scenario are affected as well. A stricter change must not allow any of them.
    differing = await asyncio.to_thread(difference, standing.policy, after.policy, max_examples=1)
    if any(change.after.decision is Decision.ALLOW for change in differing.changes):
        request = differing.changes[0].witness
        call = f"{request.server_name}/{request.tool_name} with {as_text(dict(request.arguments))}"
        return f"it was undone, as it newly allows a request that no scenario needs: {call}"
    return ""
