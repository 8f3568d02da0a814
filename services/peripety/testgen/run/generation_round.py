"""Generation round: tests are parsed from the response stream and recorded one by one.

Every model call passes `ModelCaller`, within the limits of the run: reserve, record, call, settle.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from peripety.core.concurrency import closing, run_in_thread_if_large, shield_until_done
from peripety.errors import PeripetyError
from peripety.gateway.budgets.order_budget import usage_of_error
from peripety.gateway.token_estimate import estimate_prompt_tokens
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import CacheConfig, GenerateRequest, ReasoningEffort
from peripety.gateway.types.response import UsageTotal
from peripety.testgen.events import DuplicateDropped, TestAdded
from peripety.testgen.prompts.stream_parser import TestForm, UnreadablePart, continuation, stream_tests
from peripety.testgen.prompts.user_messages import requested_counts
from peripety.testgen.run.budget import LimitReachedError
from peripety.testgen.types import DraftTest, RunProfile, TestCase

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from peripety.gateway.types.response import Completion, ModelGateway
    from peripety.testgen.evaluation.duplicates import Duplicates
    from peripety.testgen.run.budget import BudgetReservation, RunBudget
    from peripety.testgen.run.state import GenerationRound, GenerationState
    from peripety.testgen.subjects.subject import Subject
    from peripety.testgen.types import TestGenOrder


T = TypeVar("T")

_TOKEN_ALLOWANCE = 256
"""Allowance for the tokens that tools or a schema add to a prompt."""

_EXPECTED_REUSE = 8
_TEMPERATURE = 0.3

_UNKNOWN_USAGE = UsageTotal(calls=1, cost=None, cache_savings=None)
"""The usage of a response that did not arrive completely."""


class ModelCall:
    """A model call in progress.

    Attributes:
        request: the request with its budget.
        completion: the response, set by the code that consumes the stream.
    """

    def __init__(self, request: GenerateRequest) -> None:
        self.request = request
        self.completion: Completion | None = None


class ModelCaller:
    """Client for the model calls of a run, with budget accounting.

    Args:
        order: determines the model.
        system: the system text of all calls.
        budget: the limits.
        thought_tokens: the allowance of the model for thoughts before an answer.
    """

    def __init__(
        self,
        order: TestGenOrder,
        system: str,
        budget: RunBudget,
        thought_tokens: int = 0,
    ) -> None:
        self._thought_tokens = thought_tokens
        self._model = order.model
        self._system = system
        self._budget = budget

    def request(self, text: str) -> GenerateRequest:
        """Return a request without limits."""
        cache = CacheConfig(expected_reuse=_EXPECTED_REUSE)
        message = ChatMessage.user(text)
        return GenerateRequest(
            self._system,
            (message,),
            model=self._model,
            temperature=_TEMPERATURE,
            cache=cache,
            reasoning_effort=ReasoningEffort.MEDIUM,
        )

    def reserve(
        self,
        request: GenerateRequest,
        output_tokens: int,
        max_responses: int = 1,
    ) -> BudgetReservation:
        """Reserve budget for a call.

        Args:
            request: the request with everything that may be sent.
            output_tokens: the output token limit of a response, without thoughts.
            max_responses: the number of responses, including repairs.

        Raises:
            LimitReachedError: the call could exceed a limit.
        """
        return self._budget.reserve(
            estimate_prompt_tokens(request) + _TOKEN_ALLOWANCE,
            output_tokens + self._thought_tokens,
            max_responses,
        )

    async def within_time(self, events: AsyncIterator[T]) -> AsyncIterator[T]:
        """Yield a stream within the time limit of model calls; the consumer is never interrupted.

        Raises:
            TimeoutError: the time limit is reached.
        """
        while True:
            async with asyncio.timeout(self._budget.seconds_for_calls):
                try:
                    event = await anext(events)
                except StopAsyncIteration:
                    return
            yield event

    @asynccontextmanager
    async def call(
        self,
        request: GenerateRequest,
        reservation: BudgetReservation,
    ) -> AsyncIterator[ModelCall]:
        """Call the model within a reservation, and settle it at the end in any case.

        Args:
            request: the request.
            reservation: the reservation.

        Raises:
            LimitReachedError: a limit was reached during the call; a `TimeoutError` counts as the time limit.
            PeripetyError: the call failed for another reason.
        """
        call = ModelCall(
            replace(request, max_output_tokens=reservation.output_tokens, budget=reservation.budget),
        )
        try:
            yield call
        except TimeoutError:
            self._budget.settle(reservation, _UNKNOWN_USAGE)
            raise self._budget.time_limit_error from None
        except PeripetyError as error:
            self._budget.settle(reservation, usage_of_error(error))
            limit = self._budget.limit_from_error(error)
            if limit is not None:
                raise LimitReachedError(limit) from error
            raise
        self._budget.settle(
            reservation,
            _UNKNOWN_USAGE if call.completion is None else UsageTotal.from_completion(call.completion),
        )


_ROUND_OUTPUT_TOKENS = 4_096
_TEST_TOKENS = 300
"""Tokens of a long test; a large round may have as many for each."""

_MAX_ROUND_RESPONSES = 5
"""Maximum number of responses in one round, for models that write one test per response."""


class SeenTests:
    """The tests of a run for duplicate detection, with a lock for concurrent rounds.

    Recording a test waits for this lock, so it does not cover running tests.

    Args:
        duplicates: the duplicate detector.
        tests: the existing tests.
    """

    def __init__(self, duplicates: Duplicates, tests: Sequence[TestCase]) -> None:
        self._duplicates = duplicates
        self._size = 0
        self._lock = asyncio.Lock()
        for test in tests:
            duplicates.add(test)
            self._size += len(test.input)

    async def add(self, test: TestCase) -> TestAdded | DuplicateDropped:
        """Add a test; return whether it is new, as an event."""
        async with self._lock:
            self._size += len(test.input)
            return await run_in_thread_if_large(lambda: self._add(test), self._size)

    def _add(self, test: TestCase) -> TestAdded | DuplicateDropped:
        found = self._duplicates.find(test)
        if found is not None:
            return DuplicateDropped(test, *found)
        self._duplicates.add(test)
        return TestAdded(test)


class RoundWriter:
    """One round in progress.

    Args:
        round_: the round.
        before: the state before the round.
        recorded: its tests from before an interruption; they are recognized when they come again.
        request: the request.
        subject: the subject of tests; None for text only.
        seen_tests: the tests of the run.
        record: records events.
        by_list: True to request a list from the start.

    Attributes:
        unreadable: the reasons for response parts that could not be parsed.
        by_list: True if the model writes lists, because it does not call tools.
    """

    def __init__(
        self,
        round_: GenerationRound,
        before: GenerationState,
        recorded: Sequence[TestCase],
        request: GenerateRequest,
        subject: Subject | None,
        seen_tests: SeenTests,
        record: Callable[..., Awaitable[None]],
        *,
        by_list: bool = False,
    ) -> None:
        self.round = round_
        self.unreadable: list[str] = []
        self.by_list = by_list
        self._before = before
        self._recorded = [*recorded]
        self._recorded_count = len(recorded)
        self._parsed_count = 0
        self._request = request
        self._most = requested_counts(before, round_)[1]
        self._subject = subject
        self._body_schema = None if subject is None else subject.body_schema
        self._seen_tests = seen_tests
        self._record = record

    def reserve(self, caller: ModelCaller) -> BudgetReservation:
        """Reserve budget for the next call; raises the errors of `ModelCaller.reserve`."""
        form = self._make_form()
        return caller.reserve(
            replace(self._request, tools=(form.tool,), schema=form.schema),
            max(_ROUND_OUTPUT_TOKENS, self._most * _TEST_TOKENS),
        )

    async def run(
        self,
        gateway: ModelGateway,
        caller: ModelCaller,
        reservation: BudgetReservation,
        least: int,
    ) -> None:
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
        for number in range(_MAX_ROUND_RESPONSES):
            if number:
                reservation = self.reserve(caller)
                await self._record()
            completion = await self._run_call(gateway, caller, reservation)
            if self._parsed_count >= least:
                return
            further = continuation(self._request, completion)
            if further is not None:
                self._request = further
            elif not self._parsed_count and not self.by_list:
                self.by_list = True
            else:
                return

    async def _run_call(
        self,
        gateway: ModelGateway,
        caller: ModelCaller,
        reservation: BudgetReservation,
    ) -> Completion:
        async with (
            caller.call(self._request, reservation) as call,
            closing(stream_tests(gateway, call.request, self._make_form())) as arrivals,
        ):
            async for arrival in caller.within_time(arrivals):
                match arrival:
                    case DraftTest():
                        await shield_until_done(self._add_draft(arrival))
                    case UnreadablePart(reason):
                        self.unreadable.append(reason)
                    case _:
                        call.completion = arrival
        assert call.completion is not None  # noqa: S101 - the last arrival
        return call.completion

    async def _add_draft(self, draft: DraftTest) -> None:
        self._parsed_count += 1
        test = self._to_test_case(draft)
        again = next((one for one in self._recorded if replace(test, test_id=one.test_id) == one), None)
        if again is not None:
            self._recorded.remove(again)
            return
        event = await self._seen_tests.add(test)
        if isinstance(event, DuplicateDropped):
            same = next((one for one in self._recorded if one.test_id == event.of), None)
            if same is not None:
                self._recorded.remove(same)
                return
        self._recorded_count += 1
        await self._record(event)

    def _to_test_case(self, draft: DraftTest) -> TestCase:
        category, number = self.round
        is_direct = self._before.order.config.profile is RunProfile.DIRECT
        over_all = f"{'direct' if is_direct else 'refinement'}{number}"
        name = over_all if category is None else f"{category}_{number}"
        return TestCase(
            test_id=f"{name}_{self._recorded_count + 1}",
            category=self._category_of(draft) if category is None else category,
            input=draft.input,
            expected_output=draft.expected_output,
            reasoning=draft.reasoning,
            confidence=draft.confidence,
            body=None if self._body_schema is None else draft.body,
            round=number,
            is_global=category is None,
            replaces=draft.replaces if draft.replaces in self._before.tests else "",
            source=_find_source(draft.source, self._before.order.description, self._subject),
            name=draft.name,
        )

    def _category_of(self, draft: DraftTest) -> str:
        """Return the category that a test names, or else the one with the fewest tests."""
        names = [category.name for category in self._before.order.categories]
        if draft.category in names:
            return draft.category
        return min(names, key=lambda name: len(self._before.tests_of_category(name)))

    def _make_form(self) -> TestForm:
        categories = self._before.order.categories if self.round.category is None else None
        return TestForm(self._body_schema, categories, by_list=self.by_list, most=self._most)


_MIN_QUOTED_CHARACTERS = 12


def _find_source(quoted: str, task: str, subject: Subject | None) -> str:
    """Return a quotation with its place; empty if it is in no text that the author has been given."""
    words = " ".join(quoted.split())
    if len(words) < _MIN_QUOTED_CHARACTERS:
        return ""
    if words in " ".join(task.split()):
        return f"task: {words}"
    texts = () if subject is None else subject.material.get("sources", ())
    named = (one["file"] for one in texts if words in " ".join(one["text"].split()))
    return next((f"{file}: {words}" for file in named), "")
