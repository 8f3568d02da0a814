"""Each test is stored and reported as soon as its JSON is complete, before the end of its round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peripety.testgen.events import TestAdded
from support.servers.virtual_time import in_virtual_time
from support.testgen.fake_run import Author, Book, Inline, Paused, Question, always, order, ran, some

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peripety.testgen.events import GenerationEvent
    from peripety.testgen.run.budget import BudgetAccount


class Clocked(Book):
    """Book that records the time of each added test."""

    def __init__(self, clock: Any) -> None:
        super().__init__()
        self._clock = clock
        self.moments: list[float] = []

    async def record(self, events: Sequence[GenerationEvent], account: BudgetAccount) -> None:
        await super().record(events, account)
        self.moments += [self._clock.now() for event in events if isinstance(event, TestAdded)]


def with_pauses(question: Question) -> list[Any]:
    return [part for test in some(question) for part in (Paused(7.0), test)]


def moments(author: Author, **config: Any) -> list[float]:
    async def scene(clock: Any) -> list[float]:
        book = Clocked(clock)
        await ran(author, order("alpha", "beta", **config), book=book, worker=Inline())
        return book.moments

    return in_virtual_time(scene)


def test_each_test_is_told_while_the_model_writes_the_next_one() -> None:
    told = moments(always(with_pauses))
    assert [round(moment) for moment in told] == [7, 14, 21, 28, 35, 42]


def test_tests_of_categories_at_the_same_time_are_told_as_they_come() -> None:
    told = moments(always(with_pauses), parallel_categories=True)
    assert [round(moment) for moment in told] == [7, 7, 14, 14, 21, 21]


async def test_every_test_is_a_transaction_of_its_own() -> None:
    book = Book()
    sizes: list[int] = []
    record = book.record

    async def counted(events: Sequence[GenerationEvent], account: BudgetAccount) -> None:
        sizes.append(sum(isinstance(event, TestAdded) for event in events))
        await record(events, account)

    book.record = counted  # type: ignore[method-assign]
    await ran(always(), order("alpha", "beta"), book=book)
    assert [size for size in sizes if size] == [1] * 6
