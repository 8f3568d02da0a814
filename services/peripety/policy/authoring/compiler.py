"""Policy compiler: the phases from a written policy to rules that pass their test scenarios."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import TYPE_CHECKING, Any

from peripety.core.concurrency import closing
from peripety.engine import compile_policy
from peripety.errors import Finding, PeripetyError, Severity, SpecError
from peripety.policy.authoring.judge import JudgePool, describe_failures
from peripety.policy.authoring.rule_author import RuleAuthor, Rulebook, make_document
from peripety.policy.authoring.rule_repair import RuleRepairLoop
from peripety.policy.authoring.run_context import (
    ENGINE_ACTOR,
    BudgetedGateway,
    OrderBudgetError,
    RunContext,
    RunFailedError,
    ToolBatch,
    is_response_error,
    order_fingerprint,
    run_concurrently,
    split_batches,
)
from peripety.policy.authoring.scenario_authors import ScenarioAuthorPool
from peripety.policy.authoring.scenario_merge import WITHDRAWN_RULE
from peripety.policy.authoring.scenario_suite import (
    ScenarioSuite,
    evaluate_scenarios,
    finalize,
)
from peripety.policy.authoring.sentence_report import report_sentences
from peripety.policy.events import PolicyCompileFailed, RulesWritten, ScenariosVerified, ScenariosWritten
from peripety.policy.types import (
    CompilePhase,
    ContestedScenario,
    DiscardedScenario,
    PolicyCompiled,
    ScenarioFeedback,
    ScenarioOrigin,
    VerificationReport,
)
from peripety.policy.validation import check_order

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Callable,
        Collection,
        Coroutine,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )
    from typing import TypeVar

    from peripety.engine import Policy
    from peripety.gateway.types.response import ModelGateway
    from peripety.policy.authoring.run_context import ArtifactCache
    from peripety.policy.authoring.scenario_authors import AuthorContribution
    from peripety.policy.authoring.scenario_suite import FinalSuite
    from peripety.policy.events import CompileEvent
    from peripety.policy.types import (
        AuditEntry,
        CompileOrder,
        ScenarioResult,
        TestScenario,
    )

    T = TypeVar("T")


class PolicyCompiler:
    """Compiler of written policies.

    Args:
        gateway: the model gateway.
        artifacts: the cache of model output per batch.
    """

    def __init__(self, gateway: ModelGateway, artifacts: ArtifactCache) -> None:
        self._gateway = gateway
        self._artifacts = artifacts

    def fingerprint(self, order: CompileOrder) -> str:
        """Return a digest of all inputs of an order, except for the default model."""
        return order_fingerprint(order)

    async def compile(self, order: CompileOrder) -> AsyncIterator[CompileEvent]:
        """Write rules and scenarios, and repair both until they agree.

        Leaving the iteration early stops all work.

        Yields:
            Events, with `Compiled` or `Failed` as the last one.

        Raises:
            InvalidArgumentError: the order is invalid; the violations name its fields.
            PeripetyError: as raised by `ModelGateway.stream`, except for invalid responses and an exhausted
                budget.
        """
        await asyncio.to_thread(check_order, order)
        gateway = BudgetedGateway(self._gateway, order.limits.budget)
        run = _CompileRun(RunContext(order, gateway, self._artifacts))
        async with closing(run.events()) as events:
            async for event in events:
                yield event


class _CompileRun:
    """One order in progress."""

    def __init__(self, context: RunContext) -> None:
        order = context.order
        self._context = context
        self._order = order
        self._author = RuleAuthor(context.gateway, order, context.artifacts)
        self._authors = ScenarioAuthorPool(context)
        self._repair_loop = RuleRepairLoop(context, self._author)
        foundation = compile_policy(make_document(order, order.tools, []))
        self._suite = ScenarioSuite(foundation, order.tools, order.handwritten, context.add_warning)
        self._judges = JudgePool(context, self._suite)
        self._reviewed: dict[int, list[Sequence[Mapping[str, Any]]]] = {}
        self._questioned: set[str] = set()
        self._contested: tuple[Finding, ...] = ()
        self._set_aside: tuple[TestScenario, ...] = ()
        self._report: VerificationReport | None = None
        self._rulebook: Rulebook
        self._policy: Policy | None = None

    async def events(self) -> AsyncIterator[CompileEvent]:
        """Yield all events of the run."""
        findings: tuple[Finding, ...] = ()
        try:
            async with closing(self._phases()) as events:
                async for event in events:
                    yield event
        except RunFailedError as given_up:
            findings = given_up.findings
        except OrderBudgetError as error:
            findings = (Finding(error.code, "", error.message),)
        if findings:
            yield self._make_failed(findings)

    def _make_failed(self, findings: tuple[Finding, ...]) -> PolicyCompileFailed:
        return PolicyCompileFailed(
            (*findings, *self._context.warnings),
            self._policy.document if self._policy else b"",
            self._suite.scenarios,
            self._report,
            tuple(self._context.audit),
            self._context.gateway.usage,
        )

    async def _phases(self) -> AsyncIterator[CompileEvent]:
        for phase in (self._write_rules, self._write_scenarios, self._run_rounds, self._measure):
            async with closing(phase()) as events:
                async for event in events:
                    yield event

    # ---- write

    async def _write_rules(self) -> AsyncIterator[CompileEvent]:
        own = self._batches()
        written = _BatchWork(own, self._author.write)
        async for name, share in written.run():
            yield self._context.make_progress(CompilePhase.RULES, f"rules for {name}", share)
        self._rulebook = Rulebook(self._order, written.results())
        self._policy = await asyncio.to_thread(_compile_rulebook, self._rulebook)
        yield RulesWritten(self._policy.document)
        if not self._order.allow_partial:
            self._check_sentences()
        ids = {rule_id for part in self._rulebook.unexpressed for rule_id in part.rule_ids}
        closing = [rule for rule in self._policy.rules if rule["id"] in ids]
        if closing:
            document = make_document(self._order, self._order.tools, closing, invariants=[])
            self._suite.close(await asyncio.to_thread(compile_policy, document))

    def _check_sentences(self) -> None:
        """Check that the rules enforce every sentence to its last word.

        Raises:
            RunFailedError: some sentences are not enforced whole; the findings name them.
        """
        order = self._order
        rules = [*order.invariants, *self._current_policy.rules]
        unexpressed = self._rulebook.unexpressed
        found = report_sentences(order.constitution, rules, unexpressed, Severity.ERROR, order.tools)
        if found:
            raise RunFailedError(found)

    async def _write_scenarios(self) -> AsyncIterator[CompileEvent]:
        written = _BatchWork(self._batches(), self._authors.write)
        async for name, share in written.run():
            yield self._context.make_progress(CompilePhase.SCENARIOS, f"scenarios for {name}", share)
        self._authors.start_conversations(written.results())
        if self._order.handwritten:
            yield ScenariosWritten(self._order.handwritten)
        contributions = self._authors.contributions
        found = await asyncio.to_thread(self._suite.filter_new, _collect_scenarios(contributions))
        self._suite.add(found.accepted)
        for contribution in contributions:
            yield ScenariosWritten(contribution.scenarios, contribution.turn)
        count = len(found.discarded)
        yield self._context.make_progress(CompilePhase.FILTERING, f"{count} scenarios cannot be run")
        for entry in self._record_discarded(found.discarded):
            yield entry

    def _batches(self) -> tuple[ToolBatch, ...]:
        return split_batches(self._order.tools, self._order.limits.tools_per_batch)

    def _record_discarded(self, discarded: Iterable[DiscardedScenario]) -> Iterator[AuditEntry]:
        """Record discarded scenarios in the audit log, and as feedback for their authors."""
        thrown = tuple(discarded)
        self._authors.add_feedback(ScenarioFeedback(discarded=thrown), ())
        for one in thrown:
            yield self._context.record_decision(ENGINE_ACTOR, one)

    # ---- repair

    async def _run_rounds(self) -> AsyncIterator[CompileEvent]:
        """Verify, judge and repair, until every scenario passes or no change is left to try."""
        limits = self._order.limits
        for number in range(limits.repairs + 1):
            self._context.round = number
            results = await self._verify_suite()
            yield self._verified_event(results)
            settled = self._settled_descriptions()
            known = [result for result in results if result.scenario.description not in settled]
            place_of = self._rulebook.section_index
            tested = {place_of(result.scenario.request) for result in known}
            failing = {place_of(result.scenario.request) for result in known if not result.passed}
            judging = self._judges.evaluate(
                self._rulebook,
                self._current_policy,
                known,
                sorted(failing) or self._places_to_review(tested),
                is_review=not failing,
            )
            async with closing(judging) as events:
                async for event in events:
                    yield event
            ruling = self._judges.attribution_result
            self._suite.apply_corrections(ruling.corrections)
            self._authors.add_feedback(self._collect_feedback(), self._suite.scenarios)
            if number == limits.repairs or not (ruling.problems or self._authors.has_pending_turns):
                break
            before = (self._current_policy.policy_hash, self._suite.scenarios, settled)
            async with closing(self._run_repair()) as events:
                async for event in events:
                    yield event
            settled = self._settled_descriptions()
            is_stuck = before == (self._current_policy.policy_hash, self._suite.scenarios, settled)
            if is_stuck and not (ruling.corrections or self._repair_loop.has_rejections):
                break
        results = await self._verify_suite()
        failures = [result for result in results if not result.passed]
        if failures:
            yield self._verified_event(results)
            found = describe_failures(failures, self._judges.contested, self._repair_loop.no_change_reasons)
            if not self._settled_descriptions().issuperset(one.scenario.description for one in failures):
                raise RunFailedError(found)
            self._contested = found
            self._suite.remove(result.scenario for result in failures)
            self._set_aside = tuple(result.scenario for result in failures)

    def _settled_descriptions(self) -> frozenset[str]:
        """Return the contested scenarios that only a person can decide.

        Their authors do not withdraw them, and neither the judge nor the mender reads the policy as they do.
        """
        declined = self._repair_loop.left_failing
        return frozenset(
            scenario.description
            for scenario in self._suite.scenarios
            if scenario.source is not ScenarioOrigin.HANDWRITTEN
            and scenario.description in self._judges.contested
            and scenario.description in declined
        )

    def _places_to_review(self, tested: Collection[int]) -> list[int]:
        """Return the sections whose current rules were not reviewed, and count their reviews.

        A section without rules and scenarios decides nothing and is left out.
        """
        limits = self._order.limits
        places = []
        for place, section in enumerate(self._rulebook.sections) if limits.probes else ():
            earlier = self._reviewed.setdefault(place, [])
            is_empty = not section.rules and place not in tested
            if not is_empty and section.rules not in earlier and len(earlier) < limits.probe_rounds:
                earlier.append(section.rules)
                places.append(place)
        return places

    def _collect_feedback(self) -> ScenarioFeedback:
        """Return the feedback of the last judgement for the scenario authors.

        If corrected scenarios are to be replaced, those that still fail are left out: the rules have to meet
        them first.
        """
        ruling = self._judges.attribution_result
        failing = {scenario.description for scenario in ruling.problems}
        corrections = (
            correction
            for correction in ruling.corrections
            if not (self._order.replace_corrected and correction.scenario_description in failing)
        )
        contested = []
        for scenario, word in ruling.contested:
            is_new = scenario.description not in self._questioned
            if is_new and scenario.source is ScenarioOrigin.GENERATED:
                self._questioned.add(scenario.description)
                contested.append(ContestedScenario(scenario, word.reasoning))
        return ScenarioFeedback(tuple(corrections), (), self._judges.probes, tuple(contested))

    async def _run_repair(self) -> AsyncIterator[CompileEvent]:
        async with closing(self._authors.write_replacements()) as steps:
            async for step in steps:
                yield step
        for event in self._merge_contributions(self._authors.contributions):
            yield event
        withdrawn = self._authors.find_withdrawn()
        self._suite.remove(withdrawn)
        results = await asyncio.to_thread(evaluate_scenarios, self._current_policy, withdrawn)
        for result in results:
            discarded = DiscardedScenario(result.scenario, WITHDRAWN_RULE, result.actual.decision)
            yield self._context.record_decision(ENGINE_ACTOR, discarded)
        mending = self._repair_loop.repair(
            self._rulebook,
            self._current_policy,
            self._suite,
            self._judges.attribution_result.problems,
        )
        async with closing(mending) as events:
            async for event in events:
                yield event
        self._rulebook, self._policy = self._repair_loop.rulebook, self._repair_loop.policy

    def _merge_contributions(self, contributions: Iterable[AuthorContribution]) -> Iterator[CompileEvent]:
        answered = [*contributions]
        discarded = self._suite.replace(
            ScenarioFeedback(
                tuple(one for contribution in answered for one in contribution.feedback.corrections),
                tuple(one for contribution in answered for one in contribution.feedback.discarded),
            ),
            _collect_scenarios(answered),
            replace_corrected=self._order.replace_corrected,
        )
        for contribution in answered:
            yield ScenariosWritten(contribution.scenarios, contribution.turn)
        yield from self._record_discarded(discarded)

    async def _verify_suite(self) -> tuple[ScenarioResult, ...]:
        results = await asyncio.to_thread(evaluate_scenarios, self._current_policy, self._suite.scenarios)
        self._report = VerificationReport(results)
        return results

    def _verified_event(self, results: tuple[ScenarioResult, ...]) -> ScenariosVerified:
        return ScenariosVerified(self._context.round, VerificationReport(results))

    @property
    def _current_policy(self) -> Policy:
        assert self._policy is not None  # noqa: S101 - rules are written first
        return self._policy

    # ---- measure

    async def _measure(self) -> AsyncIterator[CompileEvent]:
        yield self._context.make_progress(CompilePhase.MEASURING, "selecting the scenarios that add coverage")
        suite = await self._finalize_suite()
        for warning in suite.findings():
            self._context.add_warning(warning)
        if suite.generated:
            yield ScenariosWritten(suite.generated)
        rules, unexpressed = self._current_policy.rules, self._rulebook.unexpressed
        order = self._order
        for warning in report_sentences(order.constitution, rules, unexpressed, tools=order.tools):
            self._context.add_warning(warning)
        for doubt in dict.fromkeys(doubt for told in self._judges.doubts.values() for doubt in told):
            message = "a judge is not satisfied, though every scenario passes"
            message = f"{message}: {doubt}" if doubt else message
            self._context.add_warning(Finding("POLICY_DOUBTED", "", message, Severity.WARNING))
        if self._contested:
            self._suite.scenarios, self._report = (*suite.scenarios, *self._set_aside), suite.report
            yield self._make_failed(self._contested)
            return
        yield PolicyCompiled(
            self._current_policy.document,
            suite.scenarios,
            suite.report,
            tuple(self._context.audit),
            self._context.gateway.usage,
            self._authors.turns,
            tuple(self._context.warnings),
        )

    async def _finalize_suite(self) -> FinalSuite:
        """Return the final suite within the time limit; leaving the iteration stops the work."""
        order, gateway, is_left = self._order, self._context.gateway, Event()
        try:
            return await asyncio.to_thread(
                finalize,
                self._current_policy,
                self._suite.scenarios,
                directed=order.directed,
                mutation=order.mutation,
                is_late=lambda: is_left.is_set() or gateway.is_time_over,
            )
        finally:
            is_left.set()


class _BatchWork:
    """Concurrent writing for many batches, with results in the order of the batches."""

    def __init__(
        self,
        batches: tuple[ToolBatch, ...],
        write: Callable[[ToolBatch], Coroutine[Any, Any, tuple[T, ...]]],
    ) -> None:
        self._batches = batches
        self._write = write
        self._results_by_batch: dict[int, Any] = {}
        self._errors_by_batch: dict[int, PeripetyError] = {}

    async def run(self) -> AsyncIterator[tuple[str, float]]:
        """Run the work, and yield each finished batch with the completed share."""
        async with closing(run_concurrently([self._write(batch) for batch in self._batches])) as pieces:
            async for number, piece in pieces:
                if isinstance(piece, PeripetyError):
                    self._errors_by_batch[number] = piece
                else:
                    self._results_by_batch[number] = piece
                share = (len(self._results_by_batch) + len(self._errors_by_batch)) / len(self._batches)
                yield self._batches[number].name, share

    def results(self) -> list[Any]:
        """Return the results in the order of the batches.

        Raises:
            RunFailedError: some batches failed; the findings name them.
            PeripetyError: all batches failed for a reason other than the response, or the budget is
                exhausted.
        """
        errors = [self._errors_by_batch[number] for number in sorted(self._errors_by_batch)]
        for error in errors:
            if isinstance(error, OrderBudgetError):
                raise error
        if errors and not self._results_by_batch and not any(map(is_response_error, errors)):
            raise errors[0]
        if errors:
            raise RunFailedError(
                tuple(
                    Finding(
                        "BATCH_FAILED",
                        "",
                        f"{self._batches[number].name}: {self._errors_by_batch[number].message}",
                    )
                    for number in sorted(self._errors_by_batch)
                ),
            )
        return [
            piece for number in sorted(self._results_by_batch) for piece in self._results_by_batch[number]
        ]


def _collect_scenarios(contributions: Iterable[AuthorContribution]) -> list[TestScenario]:
    return [scenario for contribution in contributions for scenario in contribution.scenarios]


def _compile_rulebook(book: Rulebook) -> Policy:
    try:
        return book.compile_policy()
    except SpecError as error:
        findings = (Finding("RULES_INVALID", found.path, found.message) for found in error.findings)
        raise RunFailedError(tuple(findings)) from None
