"""Generation round: tests are parsed from the response stream and recorded one by one."""

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
"""Maximum number of responses in one round, for models that write one test per response."""


class Known:
    """The tests of a run for duplicate detection, with a lock for concurrent rounds.

    Recording a test waits for this lock, so it does not cover running tests.

    Args:
        duplicates: the duplicate detector.
        tests: the existing tests.
    """

    def __init__(self, duplicates: Duplicates, tests: Sequence[TestCase]) -> None:
        self._duplicates = duplicates
        self._size = 0
        self._turn = asyncio.Lock()
        for test in tests:
            duplicates.add(test)
            self._size += len(test.input)

    async def taken_in(self, test: TestCase) -> TestMade | DuplicateDropped:
        """Add a test; return whether it is new, as an event."""
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
    """One round in progress.

    Args:
        this: the round.
        before: the state before the round.
        recorded: its tests from before an interruption; they are recognized when they come again.
        request: the request.
        subject: the subject of tests; None for text only.
        known: the tests of the run.
        record: records events.

    Attributes:
        unreadable: the reasons for response parts that could not be parsed.
        by_list: True if the model writes lists, because it does not call tools.
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
        """Reserve budget for the next call; raises the errors of `Caller.reserve`."""
        form = self._form()
        return caller.reserve(replace(self._request, tools=(form.tool,), schema=form.schema), _OUTPUT_TOKENS)

    async def ask(self, gateway: ModelGateway, caller: Caller, reservation: Reservation, least: int) -> None:
        """Call the model until there are enough tests or it writes no more.

        Args:
            gateway: the model gateway.
            caller: the budgeted client.
            reservation: the reservation of the first call.
            least: the number of tests that is enough.

        Raises:
            LimitReachedError: a limit was reached; recorded tests remain.
            PeripetyError: the call failed; recorded tests remain.
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
        """Return the category that a test names, or else the one with the fewest tests."""
        names = [category.name for category in self._before.order.categories]
        if draft.category in names:
            return draft.category
        return min(names, key=lambda name: len(self._before.of_category(name)))

    def _form(self) -> TestForm:
        categories = self._before.order.categories if self.round.category is None else None
        return TestForm(self._body_schema, categories, by_list=self.by_list)
