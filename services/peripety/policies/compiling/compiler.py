"""Policy compiler: the phases from a written policy to rules that pass their test scenarios."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import zip_longest
from threading import Event
from typing import TYPE_CHECKING, Any

from peripety.errors import Finding, PeripetyError, Severity, SpecError
from peripety.gateway.streams import following
from peripety.policies.compiling.artifacts import fingerprint
from peripety.policies.compiling.authors import Authors
from peripety.policies.compiling.batches import Batch, batches, in_parallel
from peripety.policies.compiling.checks import check_order
from peripety.policies.compiling.context import ENGINE, Context, GivenUpError, is_of_answer
from peripety.policies.compiling.document import Rulebook, document_of
from peripety.policies.compiling.finishing import finished
from peripety.policies.compiling.metering import BUDGET_USED_UP, MeteredGateway
from peripety.policies.compiling.panel import Panel
from peripety.policies.compiling.repairs import Repairs
from peripety.policies.compiling.rules import RuleAuthor
from peripety.policies.compiling.suite import Suite, fared
from peripety.policies.compiling.tracing import unfollowed
from peripety.policies.compiling.verdicts import not_met
from peripety.policies.model import (
    Compiled,
    CompilePhase,
    Failed,
    RulesWritten,
    ScenarioFeedback,
    ScenariosWritten,
    VerificationReport,
    Verified,
)
from peripety.sim import compile_policy

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Callable,
        Coroutine,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )
    from typing import TypeVar

    from peripety.gateway.model import ModelGateway
    from peripety.policies.compiling.artifacts import Artifacts
    from peripety.policies.compiling.authors import Contribution
    from peripety.policies.compiling.finishing import Finished
    from peripety.policies.model import (
        AuditEntry,
        CompileEvent,
        CompileOrder,
        DiscardedScenario,
        ScenarioResult,
        TestScenario,
    )
    from peripety.sim import Policy

    T = TypeVar("T")

__all__ = ["PolicyCompiler"]


class PolicyCompiler:
    """Compiler of written policies.

    Args:
        gateway: the model gateway.
        artifacts: the cache of model output per batch.
    """

    def __init__(self, gateway: ModelGateway, artifacts: Artifacts) -> None:
        self._gateway = gateway
        self._artifacts = artifacts

    def fingerprint(self, order: CompileOrder) -> str:
        """Return a digest of all inputs of an order, except for the default model."""
        return fingerprint(order)

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
        gateway = MeteredGateway(self._gateway, order.limits.budget)
        run = _Run(Context(order, gateway, self._artifacts))
        async with following(run.events()) as events:
            async for event in events:
                yield event


class _Run:
    """One order in progress."""

    def __init__(self, context: Context) -> None:
        order = context.order
        self._context = context
        self._order = order
        self._author = RuleAuthor(context.gateway, order, context.artifacts)
        self._authors = Authors(context)
        self._repairs = Repairs(context, self._author)
        foundation = compile_policy(document_of(order, order.tools, []))
        self._suite = Suite(foundation, order.tools, order.handwritten, context.warn)
        self._panel = Panel(context, self._suite)
        self._report: VerificationReport | None = None
        self._book: Rulebook
        self._policy: Policy | None = None

    async def events(self) -> AsyncIterator[CompileEvent]:
        """Yield all events of the run."""
        findings: tuple[Finding, ...] = ()
        try:
            async with following(self._phases()) as events:
                async for event in events:
                    yield event
        except GivenUpError as given_up:
            findings = given_up.findings
        except PeripetyError as error:
            if error.code != BUDGET_USED_UP:
                raise
            findings = (Finding(BUDGET_USED_UP, "", error.message),)
        if findings:
            yield self._failed(findings)

    def _failed(self, findings: tuple[Finding, ...]) -> Failed:
        return Failed(
            (*findings, *self._context.warnings),
            self._policy.document if self._policy else b"",
            self._suite.scenarios,
            self._report,
            tuple(self._context.audit),
            self._context.gateway.spent,
        )

    async def _phases(self) -> AsyncIterator[CompileEvent]:
        for phase in (self._write_rules, self._write_scenarios, self._rounds, self._measure):
            async with following(phase()) as events:
                async for event in events:
                    yield event

    # ---- write

    async def _write_rules(self) -> AsyncIterator[CompileEvent]:
        own = self._batches()
        written = _Pieces(own, self._author.write)
        async for name, share in written.done():
            yield self._context.progress(CompilePhase.RULES, f"rules for {name}", share)
        self._book = Rulebook(self._order, written.results())
        self._policy = await asyncio.to_thread(_compiled, self._book)
        yield RulesWritten(self._policy.document)

    async def _write_scenarios(self) -> AsyncIterator[CompileEvent]:
        written = _Pieces(self._batches(), self._authors.write)
        async for name, share in written.done():
            yield self._context.progress(CompilePhase.SCENARIOS, f"scenarios for {name}", share)
        self._authors.begun(written.results())
        if self._order.handwritten:
            yield ScenariosWritten(self._order.handwritten)
        contributions = self._authors.contributions
        found = await asyncio.to_thread(self._suite.sift, _scenarios_of(contributions))
        self._suite.take(found.kept)
        for contribution in contributions:
            yield ScenariosWritten(contribution.scenarios, contribution.turn)
        count = len(found.discarded)
        yield self._context.progress(CompilePhase.FILTERING, f"{count} scenarios cannot be run")
        for entry in self._discarded(found.discarded):
            yield entry

    def _batches(self) -> tuple[Batch, ...]:
        return batches(self._order.tools, self._order.limits.tools_per_batch)

    def _discarded(self, discarded: Iterable[DiscardedScenario]) -> Iterator[AuditEntry]:
        """Record discarded scenarios in the audit log, and as feedback for their authors."""
        thrown = tuple(discarded)
        self._authors.tell(ScenarioFeedback(discarded=thrown), ())
        for one in thrown:
            yield self._context.note(ENGINE, one)

    # ---- repair

    async def _rounds(self) -> AsyncIterator[CompileEvent]:
        """Verify, judge and repair, until every scenario passes or no change is left to try."""
        limits = self._order.limits
        judged = _Judged()
        for number in range(limits.repairs + 1):
            self._context.round = number
            results = await self._verified()
            yield self._verified_event(results)
            shown = [*self._to_judge(results, judged)]
            judged = _Judged(
                frozenset(result.scenario.description for result in results),
                tuple(section.rules for section in self._book.sections),
            )
            rounds = limits.probe_rounds if number == 0 else min(1, limits.probe_rounds)
            async with following(
                self._panel.hear(self._book, self._now, shown, rounds if limits.probes else 0)
            ) as events:
                async for event in events:
                    yield event
            ruling = self._panel.ruling
            self._suite.correct(ruling.corrections)
            self._authors.tell(self._found_out(), self._suite.scenarios)
            if number == limits.repairs or not (ruling.problems or self._authors.are_wanted):
                break
            before = (self._now.policy_hash, self._suite.scenarios)
            async with following(self._repair()) as events:
                async for event in events:
                    yield event
            is_stuck = before == (self._now.policy_hash, self._suite.scenarios)
            if is_stuck and not (ruling.corrections or self._repairs.are_refused):
                break
        results = await self._verified()
        failures = [result for result in results if not result.passed]
        if failures:
            yield self._verified_event(results)
            raise GivenUpError(not_met(failures, self._panel.contested, self._repairs.opinions))

    def _to_judge(self, results: Iterable[ScenarioResult], judged: _Judged) -> Iterator[ScenarioResult]:
        """Yield the results of batches with failures, new scenarios or changed rules."""
        known = [*results]
        place_of = self._book.place_of
        stirred = {
            place_of(result.scenario.request)
            for result in known
            if not result.passed or result.scenario.description not in judged.descriptions
        }
        before = zip_longest(self._book.sections, judged.rules)
        stirred |= {place for place, (section, rules) in enumerate(before) if section.rules != rules}
        is_asked = any(not result.passed for result in known) or self._order.limits.probes
        for result in known if is_asked else ():
            if place_of(result.scenario.request) in stirred:
                yield result

    def _found_out(self) -> ScenarioFeedback:
        """Return the feedback of the last judgement for the scenario authors.

        If corrected scenarios are to be replaced, those that still fail are left out: the rules have to meet
        them first.
        """
        ruling = self._panel.ruling
        failing = {scenario.description for scenario in ruling.problems}
        corrections = (
            correction
            for correction in ruling.corrections
            if not (self._order.replace_corrected and correction.scenario_description in failing)
        )
        return ScenarioFeedback(tuple(corrections), (), self._panel.probes)

    async def _repair(self) -> AsyncIterator[CompileEvent]:
        async with following(self._authors.replace()) as steps:
            async for step in steps:
                yield step
        for event in self._merged(self._authors.contributions):
            yield event
        mending = self._repairs.mend(self._book, self._now, self._suite, self._panel.ruling.problems)
        async with following(mending) as events:
            async for event in events:
                yield event
        self._book, self._policy = self._repairs.book, self._repairs.policy

    def _merged(self, contributions: Iterable[Contribution]) -> Iterator[CompileEvent]:
        answered = [*contributions]
        discarded = self._suite.replace(
            ScenarioFeedback(
                tuple(one for contribution in answered for one in contribution.feedback.corrections),
                tuple(one for contribution in answered for one in contribution.feedback.discarded),
            ),
            _scenarios_of(answered),
            replace_corrected=self._order.replace_corrected,
        )
        for contribution in answered:
            yield ScenariosWritten(contribution.scenarios, contribution.turn)
        yield from self._discarded(discarded)

    async def _verified(self) -> tuple[ScenarioResult, ...]:
        results = await asyncio.to_thread(fared, self._now, self._suite.scenarios)
        self._report = VerificationReport(results)
        return results

    def _verified_event(self, results: tuple[ScenarioResult, ...]) -> Verified:
        return Verified(self._context.round, VerificationReport(results))

    @property
    def _now(self) -> Policy:
        assert self._policy is not None  # noqa: S101 - rules are written first
        return self._policy

    # ---- measure

    async def _measure(self) -> AsyncIterator[CompileEvent]:
        yield self._context.progress(CompilePhase.MEASURING, "selecting the scenarios that add coverage")
        suite = await self._finished()
        for warning in suite.findings():
            self._context.warn(warning)
        if suite.directed:
            yield ScenariosWritten(suite.directed)
        for warning in unfollowed(self._order.constitution, self._now.rules):
            self._context.warn(warning)
        if any(self._panel.doubted.values()):
            message = "a judge is not satisfied, though every scenario passes"
            self._context.warn(Finding("POLICY_DOUBTED", "", message, Severity.WARNING))
        yield Compiled(
            self._now.document,
            suite.scenarios,
            suite.report,
            tuple(self._context.audit),
            self._context.gateway.spent,
            self._authors.turns,
            tuple(self._context.warnings),
        )

    async def _finished(self) -> Finished:
        """Return the final suite within the time limit; leaving the iteration stops the work."""
        order, gateway, is_left = self._order, self._context.gateway, Event()
        try:
            return await asyncio.to_thread(
                finished,
                self._now,
                self._suite.scenarios,
                directed=order.directed,
                mutation=order.mutation,
                is_late=lambda: is_left.is_set() or gateway.is_late,
            )
        finally:
            is_left.set()


@dataclass(frozen=True, slots=True)
class _Judged:
    """The previous input of the judges: descriptions of scenarios, and the rules of each batch."""

    descriptions: frozenset[str] = frozenset()
    rules: tuple[Sequence[Mapping[str, Any]], ...] = ()


class _Pieces:
    """Concurrent writing for many batches, with results in the order of the batches."""

    def __init__(
        self, own: tuple[Batch, ...], write: Callable[[Batch], Coroutine[Any, Any, tuple[T, ...]]]
    ) -> None:
        self._batches = own
        self._write = write
        self._written: dict[int, Any] = {}
        self._failed: dict[int, PeripetyError] = {}

    async def done(self) -> AsyncIterator[tuple[str, float]]:
        """Run the work, and yield each finished batch with the completed share."""
        async with following(in_parallel([self._write(batch) for batch in self._batches])) as pieces:
            async for number, piece in pieces:
                if isinstance(piece, PeripetyError):
                    self._failed[number] = piece
                else:
                    self._written[number] = piece
                share = (len(self._written) + len(self._failed)) / len(self._batches)
                yield self._batches[number].name, share

    def results(self) -> list[Any]:
        """Return the results in the order of the batches.

        Raises:
            GivenUpError: some batches failed; the findings name them.
            PeripetyError: all batches failed for a reason other than the response, or the budget is
                exhausted.
        """
        errors = [self._failed[number] for number in sorted(self._failed)]
        for error in errors:
            if error.code == BUDGET_USED_UP:
                raise error
        if errors and not self._written and not any(map(is_of_answer, errors)):
            raise errors[0]
        if errors:
            raise GivenUpError(
                tuple(
                    Finding(
                        "BATCH_FAILED", "", f"{self._batches[number].name}: {self._failed[number].message}"
                    )
                    for number in sorted(self._failed)
                )
            )
        return [piece for number in sorted(self._written) for piece in self._written[number]]


def _scenarios_of(contributions: Iterable[Contribution]) -> list[TestScenario]:
    return [scenario for contribution in contributions for scenario in contribution.scenarios]


def _compiled(book: Rulebook) -> Policy:
    try:
        return book.policy()
    except SpecError as error:
        findings = (Finding("RULES_INVALID", found.path, found.message) for found in error.findings)
        raise GivenUpError(tuple(findings)) from None
