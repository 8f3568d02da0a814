"""A round: tests are taken out of a model's answer one by one, told at once, and none of them is lost."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from peripety.gateway.streams import following
from peripety.tasks import aside, finish
from peripety.testgen.asking.arriving import arriving, going_on
from peripety.testgen.asking.reading import Unreadable
from peripety.testgen.asking.tools import TestForm
from peripety.testgen.events import DuplicateDropped, TestMade
from peripety.testgen.model import Draft, TestCase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from peripety.gateway.model import Completion, GenerateRequest, ModelGateway
    from peripety.testgen.loop.asking import Caller
    from peripety.testgen.loop.ledger import Reservation
    from peripety.testgen.loop.state import Round, RunState
    from peripety.testgen.measuring.duplicates import Duplicates
    from peripety.testgen.subjects.subject import Subject

__all__ = ["Known", "Writing"]

_OUTPUT_TOKENS = 4_096
_MOST_ANSWERS = 5
"""Answers of one round, of a model that writes one test in each."""


class Known:
    """The tests of a run so far, in which a new one is looked for by one round at a time.

    That holds up the telling of a test, so it waits for nobody who runs tests.

    Args:
        duplicates: knows when two tests are the same.
        tests: those that there are already.
    """

    def __init__(self, duplicates: Duplicates, tests: Sequence[TestCase]) -> None:
        self._duplicates = duplicates
        self._size = 0
        self._turn = asyncio.Lock()
        for test in tests:
            duplicates.add(test)
            self._size += len(test.input)

    async def taken_in(self, test: TestCase) -> TestMade | DuplicateDropped:
        """Remember a test; say whether it is new."""
        async with self._turn:
            self._size += len(test.input)
            return await aside(lambda: self._take_in(test), self._size)

    def _take_in(self, test: TestCase) -> TestMade | DuplicateDropped:
        found = self._duplicates.find(test)
        if found is not None:
            return DuplicateDropped(test, *found)
        self._duplicates.add(test)
        return TestMade(test)


class Writing:
    """One round under way.

    Args:
        this: the round.
        before: the run before it began.
        recorded: what it has made already, before it was broken off; it is recognized when it comes again.
        request: what is asked.
        subject: what tests are run on; None when they are text only.
        known: the tests of the run.
        record: writes down what happens.

    Attributes:
        unreadable: what could not be read of the answers, by the reason.
        by_list: whether the model writes lists, since it calls no tools.
    """

    def __init__(
        self,
        this: Round,
        before: RunState,
        recorded: Sequence[TestCase],
        request: GenerateRequest,
        subject: Subject | None,
        known: Known,
        record: Callable[..., Awaitable[None]],
    ) -> None:
        self.round = this
        self.unreadable: list[str] = []
        self.by_list = False
        self._before = before
        self._recorded = [*recorded]
        self._made = len(recorded)
        self._heard = 0
        self._request = request
        self._body_schema = None if subject is None else subject.body_schema
        self._known = known
        self._record = record

    def reserve(self, caller: Caller) -> Reservation:
        """Set aside what its next question may use; raises what `Caller.reserve` raises."""
        form = self._form()
        return caller.reserve(replace(self._request, tools=(form.tool,), schema=form.schema), _OUTPUT_TOKENS)

    async def ask(self, gateway: ModelGateway, caller: Caller, reservation: Reservation, least: int) -> None:
        """Ask until there are enough tests, or the model writes no more.

        Args:
            gateway: answers.
            caller: keeps account.
            reservation: what was set aside for the first question.
            least: how many tests are enough not to ask again.

        Raises:
            LimitReachedError: a limit was met; the tests that came are kept.
            PeripetyError: the question failed; the tests that came are kept.
        """
        for number in range(_MOST_ANSWERS):
            if number:
                reservation = self.reserve(caller)
                await self._record()
            completion = await self._ask_once(gateway, caller, reservation)
            if self._heard >= least:
                return
            further = going_on(self._request, completion)
            if further is not None:
                self._request = further
            elif not self._heard and not self.by_list:
                self.by_list = True
            else:
                return

    async def _ask_once(self, gateway: ModelGateway, caller: Caller, reservation: Reservation) -> Completion:
        async with (
            caller.calling(self._request, reservation) as call,
            following(arriving(gateway, call.request, self._form())) as arrivals,
        ):
            async for arrival in caller.in_time(arrivals):
                match arrival:
                    case Draft():
                        await finish(self._take(arrival))
                    case Unreadable(reason):
                        self.unreadable.append(reason)
                    case _:
                        call.completion = arrival
        assert call.completion is not None  # noqa: S101 - the last arrival
        return call.completion

    async def _take(self, draft: Draft) -> None:
        self._heard += 1
        test = self._case(draft)
        again = next((one for one in self._recorded if replace(test, test_id=one.test_id) == one), None)
        if again is not None:
            self._recorded.remove(again)
            return
        event = await self._known.taken_in(test)
        if isinstance(event, DuplicateDropped):
            same = next((one for one in self._recorded if one.test_id == event.of), None)
            if same is not None:
                self._recorded.remove(same)
                return
        self._made += 1
        await self._record(event)

    def _case(self, draft: Draft) -> TestCase:
        category, number = self.round
        name = f"refinement{number}" if category is None else f"{category}_{number}"
        return TestCase(
            test_id=f"{name}_{self._made + 1}",
            category=self._category(draft) if category is None else category,
            input=draft.input,
            expected_output=draft.expected_output,
            reasoning=draft.reasoning,
            confidence=draft.confidence,
            body=None if self._body_schema is None else draft.body,
            round=number,
            is_global=category is None,
        )

    def _category(self, draft: Draft) -> str:
        """The category that a test names; where it names none, the one that has the fewest."""
        names = [category.name for category in self._before.order.categories]
        if draft.category in names:
            return draft.category
        return min(names, key=lambda name: len(self._before.of_category(name)))

    def _form(self) -> TestForm:
        categories = self._before.order.categories if self.round.category is None else None
        return TestForm(self._body_schema, categories, by_list=self.by_list)
