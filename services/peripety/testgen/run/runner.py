"""Runner of a test generation run, from any stored state to its end."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol, TypeVar

from peripety.core import logging_setup
from peripety.core.concurrency import closing, shield_until_done
from peripety.core.config import ProviderName
from peripety.core.runs.types import public_error
from peripety.errors import InternalError, PeripetyError, UnavailableError
from peripety.gateway.token_estimate import estimate_fixed_tokens
from peripety.testgen.evaluation.duplicates import Duplicates
from peripety.testgen.events import (
    GenerationCompleted,
    GenerationFailed,
    GenerationPhase,
    GenerationProgressed,
    GenerationStarted,
    GenerationStop,
    ReflectionAction,
    StepOutcome,
    TestAdded,
)
from peripety.testgen.prompts.user_messages import (
    SuiteGaps,
    assessment_message,
    reflection_message,
    render_system_text,
    requested_counts,
    round_message,
)
from peripety.testgen.run.budget import BudgetAccount, LimitReachedError, RunBudget
from peripety.testgen.run.generation_round import ModelCaller, RoundWriter, SeenTests
from peripety.testgen.run.reflection import ReflectionStep, RunEvaluation, reflection_event
from peripety.testgen.run.state import GenerationRound, GenerationState, allows_few_calls
from peripety.testgen.run.steps import (
    AddBaseline,
    AssessRun,
    EvaluateTests,
    FinishRun,
    ReflectOnCategories,
    RunRounds,
    is_idle,
    make_stats,
    needs_refinement,
    next_step,
)
from peripety.testgen.subjects.subject import SubjectKind
from peripety.testgen.types import REASONING_TOKENS, RunProfile

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine, Iterable, Sequence
    from typing import Any

    from peripety.engine.executor import Executor
    from peripety.gateway.models.model_data import ModelData
    from peripety.gateway.types.response import ModelGateway
    from peripety.testgen.events import GenerationEvent
    from peripety.testgen.run.budget import BudgetReservation
    from peripety.testgen.run.steps import NextStep
    from peripety.testgen.subjects.subject import Subject
    from peripety.testgen.types import TestGenOrder


class EventSink(Protocol):
    """Event sink that records events before they become visible."""

    async def record(self, events: Sequence[GenerationEvent], account: BudgetAccount) -> None:
        """Record events and the budget account in one transaction, and publish the events.

        Args:
            events: the events, in order; empty if only the account has changed.
            account: replaces the stored one.

        Raises:
            Exception: the work must stop, because another process owns the run now or the write failed. The
                runner does not handle it.
        """
        ...


T = TypeVar("T")

_WIDENING_SHARE = 0.05
"""Share of the time that is left, for measuring further mutants after a round."""

_log = logging.getLogger(__name__)


class GenerationRunner:
    """Runner of one run.

    Args:
        run_id: the id for logs.
        gateway: the model gateway.
        order: the input of the run.
        subject: the subject of tests; None for text only.
        worker: the worker pool that runs tests.
        sink: the event sink.
        events: all earlier events.
        account: the budget account of these.
        model: the data of the model; None if unknown.
    """

    def __init__(
        self,
        run_id: str,
        gateway: ModelGateway,
        order: TestGenOrder,
        subject: Subject | None,
        worker: Executor,
        sink: EventSink,
        *,
        events: Sequence[GenerationEvent] = (),
        account: BudgetAccount = BudgetAccount(),  # noqa: B008 - frozen
        model: ModelData | None = None,
    ) -> None:
        self._run_id = run_id
        self._gateway = gateway
        self._order = order
        self._subject = subject
        self._sink = sink
        self._events = [*events]
        system = render_system_text(order, subject)
        self._call_tokens = estimate_fixed_tokens(system, ())
        # Long sources are shown once, and later only the parts around gaps, so that more calls are possible.
        has_sources = subject is not None and "sources" in subject.material
        self._unshown: Subject | None = None
        if has_sources and allows_few_calls(self._call_tokens, order.config):
            self._unshown = subject
            system = render_system_text(order, subject, has_sources=False)
            self._call_tokens = estimate_fixed_tokens(system, ())
        self._state = GenerationState.fold(events, order, self._call_tokens)
        made = [event.test for event in events if isinstance(event, TestAdded)]
        self._seen_tests = SeenTests(Duplicates(subject), made)
        self._evaluation = None if subject is None else RunEvaluation(subject, worker, events)
        now = asyncio.get_running_loop().time
        # Without a model, rules write tests of scenarios and policies, and none of programs.
        is_program = subject is not None and subject.kind is SubjectKind.COMMAND
        self._is_authored = is_authored = not (
            is_program and model is not None and model.provider == ProviderName.OFFLINE.value
        )
        self._budget = RunBudget(
            order, account, now, is_measured=subject is not None, is_authored=is_authored
        )
        thought_tokens = 0 if model is None else model.thought_tokens
        self._caller = ModelCaller(order, system, self._budget, thought_tokens)
        # With tools, such a model would not reason about its tests.
        self._by_list = model is not None and model.stops_reasoning_for_tools
        # The default limits end a run early if a model spends most of its tokens on thoughts.
        is_short = order.config.profile is None and order.config.max_total_tokens < REASONING_TOKENS
        self._suggested_profile = RunProfile.REASONING if thought_tokens and is_short else None
        self._record_lock = asyncio.Lock()
        self._sink_failed = False
        self._limit: GenerationStop | None = None
        self._is_time_over = False
        self._last_error: PeripetyError | None = None

    async def run(self) -> None:
        """Work until the run has ended.

        After a cancellation, the run can be resumed from its recorded events.

        Raises:
            Exception: as raised by the event sink.
        """
        try:
            await self._run_steps()
        except Exception as error:  # catch-all: a failed run reports its error to its followers
            if self._sink_failed:
                raise
            await self._record_failure(public_error(error, self._run_id))

    async def _run_steps(self) -> None:
        if not self._events:
            is_fenced = None if self._subject is None else self._subject.is_fenced
            await self._record(GenerationStarted(self._order, is_fenced, self._suggested_profile))
        while self._state.ended is None:
            step = next_step(self._state, has_subject=self._subject is not None)
            if self._limit is not None and (self._is_time_over or not isinstance(step, EvaluateTests)):
                step = FinishRun(self._limit)
            try:
                await self._run_step(step)
            except LimitReachedError as reached:
                self._limit = reached.stopped_by
                await self._record(
                    *(
                        _round_ended(this, StepOutcome.DONE, "limit reached")
                        for this in self._state.active_rounds
                    ),
                )

    async def _run_step(self, step: NextStep) -> None:
        match step:
            case AddBaseline():
                await self._add_baseline_tests()
            case RunRounds(rounds):
                await self._run_rounds(rounds)
            case EvaluateTests():
                await self._evaluate_tests()
            case ReflectOnCategories(categories):
                await self._reflect(categories)
            case AssessRun():
                await self._reflect((None,))
            case FinishRun(GenerationStop.ERROR):
                reason = next(reversed(self._state.uncertainties), "no model call was possible")
                await self._record_failure(self._last_error or UnavailableError(reason))
            case FinishRun(stopped_by):
                await self._record(
                    GenerationCompleted(make_stats(self._state, self._budget.account, stopped_by)),
                )

    async def _add_baseline_tests(self) -> None:
        """Record and run the baseline tests that are not recorded yet, within their share of the time."""
        assert self._evaluation is not None  # noqa: S101 - only with a subject
        await self._within_time(self._run_baseline_tests(self._evaluation))
        count = sum(test.is_combinatorial for test in self._state.tests.values())
        status = f"{count} baseline tests added from the schema"
        await self._record(
            GenerationProgressed(GenerationPhase.CATEGORY_GENERATION, None, 0, status, StepOutcome.DONE),
        )

    async def _run_baseline_tests(self, evaluation: RunEvaluation) -> None:
        for test in self._state.not_run:  # recorded by an earlier version, which ran them later
            await self._record(*await evaluation.evaluate(test))
        async with closing(evaluation.baseline_tests(self._order.categories)) as tests:
            while (seconds := self._budget.seconds_for_baseline) > 0:
                try:
                    async with asyncio.timeout(seconds):
                        test = await anext(tests)
                except (TimeoutError, StopAsyncIteration):
                    return
                if test.test_id in self._state.tests:
                    continue
                event = await self._seen_tests.add(test)
                if isinstance(event, TestAdded):
                    await self._record(event, *await evaluation.evaluate(test))

    async def _run_rounds(self, rounds: Iterable[GenerationRound]) -> None:
        """Run the model calls of some rounds concurrently."""
        missing = await self._find_gaps()
        held: list[tuple[RoundWriter, BudgetReservation, int]] = []
        limit: LimitReachedError | None = None
        for this in rounds:
            # The prompt depends on the state before the round, also if the round is repeated.
            before = GenerationState.fold(
                self._events[: self._state.active_rounds.get(this, len(self._events))],
                self._order,
                self._call_tokens,
            )
            writing = RoundWriter(
                this,
                before,
                self._state.tests_by_round.get(this, ()),
                self._caller.request(round_message(before, this, missing, self._unshown)),
                self._subject,
                self._seen_tests,
                self._record,
                by_list=self._by_list,
            )
            try:
                held.append((writing, writing.reserve(self._caller), requested_counts(before, this)[0]))
            except LimitReachedError as reached:
                limit = reached
                break
        if not held and limit is not None:
            raise limit
        begun = [writing.round for writing, *_ in held if writing.round not in self._state.active_rounds]
        await self._record(*(_round_started(this) for this in begun))
        await self._run_concurrently([self._run_round(*one) for one in held])

    async def _run_round(self, writing: RoundWriter, reservation: BudgetReservation, least: int) -> None:
        """Complete one round.

        Raises:
            LimitReachedError: a limit was reached.
        """
        end, uncertainty, limit = StepOutcome.DONE, "", None
        try:
            await writing.run(self._gateway, self._caller, reservation, least)
        except LimitReachedError as reached:
            limit = reached
        except PeripetyError as error:
            uncertainty = self._note_failure(error, f"no tests {_category_phrase(writing.round.category)}")
            end = StepOutcome.FAILED
        if end is StepOutcome.DONE and writing.unreadable:
            uncertainty = (
                f"{len(writing.unreadable)} response parts "
                f"{_category_phrase(writing.round.category)} were not tests;"
                f" reason of the first one: {writing.unreadable[0]}."
            )
        made = len(self._state.tests_by_round.get(writing.round, ()))
        status = f"round {writing.round.number} {_category_phrase(writing.round.category)} added {made} tests"
        await self._record(_round_ended(writing.round, end, status, uncertainty))
        if limit is not None:
            raise limit

    async def _evaluate_tests(self) -> None:
        """Run the tests without results, within the time limit."""
        assert self._evaluation is not None  # noqa: S101 - only with a subject
        waiting = self._state.not_run
        if waiting:
            status = f"running {len(waiting)} tests"
            await self._record(GenerationProgressed(self._state.phase, self._state.category, 0, status))
        for test in waiting:
            await self._record(*await self._within_time(self._evaluation.evaluate(test)))
        if self._is_authored and self._limit is None:
            seconds = self._budget.seconds_left * _WIDENING_SHARE
            await self._record(
                *await self._within_time(self._evaluation.widen(seconds, is_idle=is_idle(self._state)))
            )
        await self._record(await self._within_time(self._evaluation.measure()))

    async def _reflect(self, categories: Iterable[str | None]) -> None:
        """Reflect on categories, or assess the whole run (None)."""
        missing, state = await self._find_gaps(), self._state
        held: list[tuple[ReflectionStep, BudgetReservation]] = []
        limit: LimitReachedError | None = None
        for category in categories:
            text = (
                assessment_message(state, missing)
                if category is None
                else reflection_message(state, category, missing, self._unshown)
            )
            looking = ReflectionStep.from_request(category, self._caller.request(text))
            try:
                held.append((looking, looking.reserve(self._caller)))
            except LimitReachedError as reached:
                limit = reached
                break
        if not held and limit is not None:
            raise limit
        await self._record(
            *(
                GenerationProgressed(_phase_of(one.category), one.category, 0, "searching for gaps")
                for one, _ in held
            ),
        )
        await self._run_concurrently([self._run_reflection(*one) for one in held])

    async def _run_reflection(self, looking: ReflectionStep, reservation: BudgetReservation) -> None:
        category = looking.category
        try:
            said = await looking.run(self._gateway, self._caller, reservation)
        except PeripetyError as error:
            what = "assessment of the whole run" if category is None else f"reflection on {category}"
            uncertainty = self._note_failure(error, f"no {what}")
            status = "gaps unknown"
            await self._record(
                GenerationProgressed(
                    _phase_of(category),
                    category,
                    0,
                    status,
                    StepOutcome.FAILED,
                    uncertainty,
                ),
            )
        else:
            await self._record(reflection_event(category, said, self._reflection_action(category, said)))

    def _reflection_action(self, category: str | None, answer: Any) -> ReflectionAction:
        """Return the consequence of a reflection."""
        if category is None:
            refined = needs_refinement(self._state, answer["score"])
            return ReflectionAction.ASSESSING if refined else ReflectionAction.COMPLETE
        tests = len(self._state.tests_of_category(category))
        is_content = answer["nothing_missing"] and tests >= self._order.config.min_tests_per_category
        return ReflectionAction.COMPLETE if is_content else ReflectionAction.REFINING

    async def _find_gaps(self) -> SuiteGaps:
        return (
            SuiteGaps() if self._evaluation is None else await self._within_time(self._evaluation.find_gaps())
        )

    async def _within_time(self, work: Awaitable[T]) -> T:
        """Do work without a model within the time limit; raise the time limit error after it."""
        try:
            async with asyncio.timeout(self._budget.seconds_left):
                return await work
        except TimeoutError:
            self._is_time_over = True
            raise self._budget.time_limit_error from None

    async def _run_concurrently(self, work: Iterable[Coroutine[Any, Any, None]]) -> None:
        """Run coroutines concurrently; one that reaches a limit does not cancel the others.

        Raises:
            LimitReachedError: one of them has reached a limit.
        """
        reached: list[LimitReachedError] = []

        async def until_limit(piece: Coroutine[Any, Any, None]) -> None:
            try:
                await piece
            except LimitReachedError as limit:
                reached.append(limit)

        try:
            async with asyncio.TaskGroup() as group:
                for piece in work:
                    group.create_task(until_limit(piece))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None
        if reached:
            raise reached[0]

    async def _record(self, *events: GenerationEvent) -> None:
        """Record events, shielded from cancellation."""
        await shield_until_done(self._record_in_order(events))

    async def _record_in_order(self, events: Sequence[GenerationEvent]) -> None:
        async with self._record_lock:
            try:
                await self._sink.record(events, self._budget.account)
            except Exception:
                self._sink_failed = True
                raise
            for event in events:
                self._state.apply(event)
            self._events += events

    def _note_failure(self, error: PeripetyError, consequence: str) -> str:
        """Return a doubt about the run due to a failed call; raise errors of the event sink."""
        if self._sink_failed:
            raise error
        if isinstance(error, InternalError):
            _log.error(
                "unexpected error in a question",
                extra={"run_id": self._run_id, **logging_setup.describe_error(error)},
            )
        self._last_error = error
        return f"{consequence}: {error.message.rstrip('.')}."

    async def _record_failure(self, error: PeripetyError) -> None:
        stats = make_stats(self._state, self._budget.account, GenerationStop.ERROR)
        await self._record(GenerationFailed(error, stats))


def _phase_of(category: str | None) -> GenerationPhase:
    return GenerationPhase.GLOBAL_REFINEMENT if category is None else GenerationPhase.CATEGORY_GENERATION


def _category_phrase(category: str | None) -> str:
    return "over all categories" if category is None else f"of {category}"


def _round_started(this: GenerationRound) -> GenerationProgressed:
    status = f"round {this.number} {_category_phrase(this.category)} begins"
    return GenerationProgressed(_phase_of(this.category), this.category, this.number, status)


def _round_ended(
    this: GenerationRound,
    end: StepOutcome,
    status: str,
    uncertainty: str = "",
) -> GenerationProgressed:
    return GenerationProgressed(
        _phase_of(this.category),
        this.category,
        this.number,
        status,
        end,
        uncertainty,
    )
