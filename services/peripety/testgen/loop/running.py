"""Runner of a test generation run, from any stored state to its end."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, TypeVar

from peripety import logs
from peripety.durable.failures import public_error
from peripety.errors import InternalError, PeripetyError, UnavailableError
from peripety.tasks import finish
from peripety.testgen.asking.material import system_text
from peripety.testgen.asking.questions import (
    Missing,
    assessment_question,
    how_many,
    reflection_question,
    round_question,
)
from peripety.testgen.events import (
    Completed,
    Failed,
    Phase,
    Progressed,
    ReflectionAction,
    Started,
    StepEnd,
    StoppedBy,
    TestMade,
)
from peripety.testgen.loop.asking import Caller
from peripety.testgen.loop.examining import Examination
from peripety.testgen.loop.ledger import Account, Ledger, LimitReachedError
from peripety.testgen.loop.looking import Looking, told
from peripety.testgen.loop.state import Round, RunState
from peripety.testgen.loop.stats import stats_of
from peripety.testgen.loop.steps import (
    Ask,
    Assess,
    Examine,
    Finish,
    MakeFloor,
    Reflect,
    is_refined,
    next_step,
)
from peripety.testgen.loop.writing import Known, Writing
from peripety.testgen.measuring.duplicates import Duplicates

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine, Iterable, Sequence
    from typing import Any

    from peripety.gateway.model import ModelGateway
    from peripety.testgen.events import RunEvent
    from peripety.testgen.loop.journal import Journal
    from peripety.testgen.loop.ledger import Reservation
    from peripety.testgen.loop.steps import Step
    from peripety.testgen.model import TestGenOrder
    from peripety.testgen.subjects.subject import Subject
    from peripety.workers import Worker

__all__ = ["Runner"]

T = TypeVar("T")

_TOLD_TOGETHER = 32
"""Number of baseline tests that are recorded in one transaction."""

_log = logging.getLogger(__name__)


class Runner:
    """Runner of one run.

    Args:
        run_id: the id for logs.
        gateway: the model gateway.
        order: the input of the run.
        subject: the subject of tests; None for text only.
        worker: the worker pool that runs tests.
        journal: the event sink.
        events: all earlier events.
        account: the budget account of these.
    """

    def __init__(
        self,
        run_id: str,
        gateway: ModelGateway,
        order: TestGenOrder,
        subject: Subject | None,
        worker: Worker,
        journal: Journal,
        *,
        events: Sequence[RunEvent] = (),
        account: Account = Account(),  # noqa: B008 - frozen
    ) -> None:
        self._run_id = run_id
        self._gateway = gateway
        self._order = order
        self._subject = subject
        self._journal = journal
        self._events = [*events]
        self._state = RunState.fold(events, order)
        made = [event.test for event in events if isinstance(event, TestMade)]
        self._known = Known(Duplicates(subject), made)
        self._examination = None if subject is None else Examination(subject, worker, events)
        now = asyncio.get_running_loop().time
        self._ledger = Ledger(order, account, now, is_measured=subject is not None)
        self._caller = Caller(order, system_text(order, subject), self._ledger)
        self._turn = asyncio.Lock()
        self._is_lost = False
        self._limit: StoppedBy | None = None
        self._is_time_over = False
        self._failure: PeripetyError | None = None

    async def go(self) -> None:
        """Work until the run has ended.

        After a cancellation, the run can be resumed from its recorded events.

        Raises:
            Exception: as raised by the event sink.
        """
        try:
            await self._work()
        except Exception as error:  # catch-all: a failed run reports its error to its followers
            if self._is_lost:
                raise
            await self._fail(public_error(error, self._run_id))

    async def _work(self) -> None:
        if not self._events:
            await self._record(Started(self._order))
        while self._state.ended is None:
            step = next_step(self._state, has_subject=self._subject is not None)
            if self._limit is not None and (self._is_time_over or not isinstance(step, Examine)):
                step = Finish(self._limit)
            try:
                await self._do(step)
            except LimitReachedError as reached:
                self._limit = reached.stopped_by
                await self._record(
                    *(_over(this, StepEnd.DONE, "limit reached") for this in self._state.under_way)
                )

    async def _do(self, step: Step) -> None:
        match step:
            case MakeFloor():
                await self._make_floor()
            case Ask(rounds):
                await self._ask(rounds)
            case Examine():
                await self._examine()
            case Reflect(categories):
                await self._look_back(categories)
            case Assess():
                await self._look_back((None,))
            case Finish(StoppedBy.ERROR):
                reason = next(reversed(self._state.uncertainties), "no model call was possible")
                await self._fail(self._failure or UnavailableError(reason))
            case Finish(stopped_by):
                await self._record(Completed(stats_of(self._state, self._ledger.account, stopped_by)))

    async def _make_floor(self) -> None:
        """Record the baseline tests that are not recorded yet."""
        assert self._examination is not None  # noqa: S101 - only with a subject
        tests = await self._in_time(self._examination.floor(self._order.categories))
        events = [await self._known.taken_in(test) for test in tests if test.test_id not in self._state.tests]
        made = [event for event in events if isinstance(event, TestMade)]
        for start in range(0, len(made), _TOLD_TOGETHER):
            await self._record(*made[start : start + _TOLD_TOGETHER])
        count = sum(test.is_combinatorial for test in self._state.tests.values())
        status = f"{count} baseline tests added from the schema"
        await self._record(Progressed(Phase.CATEGORY_GENERATION, None, 0, status, StepEnd.DONE))

    async def _ask(self, rounds: Iterable[Round]) -> None:
        """Run the model calls of some rounds concurrently."""
        missing = await self._missing()
        held: list[tuple[Writing, Reservation, int]] = []
        limit: LimitReachedError | None = None
        for this in rounds:
            # The prompt depends on the state before the round, also if the round is repeated.
            before = RunState.fold(
                self._events[: self._state.under_way.get(this, len(self._events))], self._order
            )
            writing = Writing(
                this,
                before,
                self._state.made.get(this, ()),
                self._caller.request(round_question(before, this, missing)),
                self._subject,
                self._known,
                self._record,
            )
            try:
                held.append((writing, writing.reserve(self._caller), how_many(before, this)[0]))
            except LimitReachedError as reached:
                limit = reached
                break
        if not held and limit is not None:
            raise limit
        begun = [writing.round for writing, *_ in held if writing.round not in self._state.under_way]
        await self._record(*(_begun(this) for this in begun))
        await self._together([self._write(*one) for one in held])

    async def _write(self, writing: Writing, reservation: Reservation, least: int) -> None:
        """Complete one round.

        Raises:
            LimitReachedError: a limit was reached.
        """
        end, uncertainty, limit = StepEnd.DONE, "", None
        try:
            await writing.ask(self._gateway, self._caller, reservation, least)
        except LimitReachedError as reached:
            limit = reached
        except PeripetyError as error:
            uncertainty = self._failed(error, f"no tests {_of(writing.round.category)}")
            end = StepEnd.FAILED
        if end is StepEnd.DONE and writing.unreadable:
            uncertainty = (
                f"{len(writing.unreadable)} response parts {_of(writing.round.category)} were not tests;"
                f" reason of the first one: {writing.unreadable[0]}."
            )
        made = len(self._state.made.get(writing.round, ()))
        status = f"round {writing.round.number} {_of(writing.round.category)} added {made} tests"
        await self._record(_over(writing.round, end, status, uncertainty))
        if limit is not None:
            raise limit

    async def _examine(self) -> None:
        """Run the tests without results, within the time limit."""
        assert self._examination is not None  # noqa: S101 - only with a subject
        waiting = self._state.not_run
        if waiting:
            status = f"running {len(waiting)} tests"
            await self._record(Progressed(self._state.phase, self._state.category, 0, status))
        for test in waiting:
            await self._record(*await self._in_time(self._examination.examined(test)))
        await self._record(await self._in_time(self._examination.measured()))

    async def _look_back(self, categories: Iterable[str | None]) -> None:
        """Reflect on categories, or assess the whole run (None)."""
        missing, state = await self._missing(), self._state
        held: list[tuple[Looking, Reservation]] = []
        limit: LimitReachedError | None = None
        for category in categories:
            text = (
                assessment_question(state, missing)
                if category is None
                else reflection_question(state, category, missing)
            )
            looking = Looking.back(category, self._caller.request(text))
            try:
                held.append((looking, looking.reserve(self._caller)))
            except LimitReachedError as reached:
                limit = reached
                break
        if not held and limit is not None:
            raise limit
        await self._record(
            *(Progressed(_phase(one.category), one.category, 0, "searching for gaps") for one, _ in held)
        )
        await self._together([self._look(*one) for one in held])

    async def _look(self, looking: Looking, reservation: Reservation) -> None:
        category = looking.category
        try:
            said = await looking.ask(self._gateway, self._caller, reservation)
        except PeripetyError as error:
            what = "assessment of the whole run" if category is None else f"reflection on {category}"
            uncertainty = self._failed(error, f"no {what}")
            status = "gaps unknown"
            await self._record(Progressed(_phase(category), category, 0, status, StepEnd.FAILED, uncertainty))
        else:
            await self._record(told(category, said, self._action(category, said)))

    def _action(self, category: str | None, said: Any) -> ReflectionAction:
        """Return the consequence of a reflection."""
        if category is None:
            refined = is_refined(self._state, said["score"])
            return ReflectionAction.ASSESSING if refined else ReflectionAction.COMPLETE
        tests = len(self._state.of_category(category))
        is_content = said["nothing_missing"] and tests >= self._order.config.min_tests_per_category
        return ReflectionAction.COMPLETE if is_content else ReflectionAction.REFINING

    async def _missing(self) -> Missing:
        return Missing() if self._examination is None else await self._in_time(self._examination.missing())

    async def _in_time(self, work: Awaitable[T]) -> T:
        """Do work without a model within the time limit; raise the time limit error after it."""
        try:
            async with asyncio.timeout(self._ledger.seconds_left):
                return await work
        except TimeoutError:
            self._is_time_over = True
            raise self._ledger.out_of_time from None

    async def _together(self, work: Iterable[Coroutine[Any, Any, None]]) -> None:
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

    async def _record(self, *events: RunEvent) -> None:
        """Record events, shielded from cancellation."""
        await finish(self._written_down(events))

    async def _written_down(self, events: Sequence[RunEvent]) -> None:
        async with self._turn:
            try:
                await self._journal.record(events, self._ledger.account)
            except Exception:
                self._is_lost = True
                raise
            for event in events:
                self._state.apply(event)
            self._events += events

    def _failed(self, error: PeripetyError, what: str) -> str:
        """Return a doubt about the run due to a failed call; raise errors of the event sink."""
        if self._is_lost:
            raise error
        if isinstance(error, InternalError):
            _log.error(
                "unexpected error in a question", extra={"run_id": self._run_id, **logs.outline(error)}
            )
        self._failure = error
        return f"{what}: {error.message.rstrip('.')}."

    async def _fail(self, error: PeripetyError) -> None:
        stats = stats_of(self._state, self._ledger.account, StoppedBy.ERROR)
        await self._record(Failed(error, stats))


def _phase(category: str | None) -> Phase:
    return Phase.GLOBAL_REFINEMENT if category is None else Phase.CATEGORY_GENERATION


def _of(category: str | None) -> str:
    return "over all categories" if category is None else f"of {category}"


def _begun(this: Round) -> Progressed:
    status = f"round {this.number} {_of(this.category)} begins"
    return Progressed(_phase(this.category), this.category, this.number, status)


def _over(this: Round, end: StepEnd, status: str, uncertainty: str = "") -> Progressed:
    return Progressed(_phase(this.category), this.category, this.number, status, end, uncertainty)
