"""Runs of tests under random limits, models and deaths: no limit is passed, and no test is lost."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from peripety.errors import ResourceExhaustedError, UnavailableError
from peripety.gateway.types.request import Budget
from peripety.testgen.events import (
    GenerationCompleted,
    GenerationFailed,
    GenerationProgressed,
    GenerationStop,
)
from support.examples import example_count
from support.servers.virtual_time import in_virtual_time
from support.testgen.fake_run import (
    Author,
    Book,
    Cut,
    DeadError,
    Inline,
    NumberedSubject,
    Paused,
    Question,
    about,
    order,
    ran,
    written,
)

if TYPE_CHECKING:
    from peripety.testgen.types import TestGenOrder


EXAMPLES = example_count(150)

_OFF = 10**9


@dataclass
class Schedule:
    """Random plan of a run: its order, its limits, and the behaviour of all components."""

    random: Random

    def __post_init__(self) -> None:
        random = self.random
        self.parts = random.choice((0, 0, 5, 40))
        names = ["alpha", "beta", "gamma", "delta"][: random.randint(1, 4)]
        self.what = order(
            *names,
            min_tests_per_category=random.randint(0, 4),
            target_tests_per_category=random.randint(1, 8),
            max_rounds_per_category=random.randint(1, 4),
            enable_global_refinement=random.random() < 0.8,
            max_global_refinement_rounds=random.randint(0, 3),
            min_total_tests=random.choice((0, 0, 10, 30)),
            target_total_tests=random.choice((5, 12, 30)),
            max_total_rounds=random.choice((1, 3, 17, 17)),
            max_total_tokens=random.choice((0, 3_000, 8_000, 20_000, 60_000, _OFF)),
            max_total_seconds=random.choice((0.5, 20.0, 90.0, 300.0, float(_OFF))),
            parallel_categories=random.random() < 0.5,
            combinatorial_floor=random.random() < 0.5,
            budget=self._budget(),
        )
        self.author = Author(self._answer, waits=random.random() < 0.3)
        self.author.takes_tools = random.random() < 0.8
        self.worker = Inline(random.choice((0.0, 0.0, 0.3, 5.0)))
        self.pace = random.choice((0.0, 0.5, 6.0))
        self.trouble = random.choice((0.0, 0.0, 0.1, 0.5))

    def subject(self) -> NumberedSubject | None:
        return NumberedSubject(self.parts, floor=range(2)) if self.parts else None

    def _budget(self) -> Budget:
        random = self.random
        if random.random() < 0.7:
            return Budget()
        return Budget(
            max_calls=random.choice((None, 1, 3, 9)),
            max_tokens=random.choice((None, None, 5_000, 30_000)),
            max_cost=random.choice((None, None, 10, 300, 3_000)),
            max_seconds=random.choice((None, None, 30.0)),
        )

    def _answer(self, question: Question) -> Any:
        random = self.random
        if random.random() < self.trouble:
            return self._error()
        if question.kind == "tests":
            parts = [part for _ in range(random.randint(0, 6)) for part in self._test()]
            end = random.random()
            return [*parts, *([self._error()] if end < self.trouble else [Cut()] if end > 0.9 else [])]
        said: dict[str, Any] = {"text": "so so", "recommendations": ["more"]}
        if question.kind == "reflection":
            return said | {"nothing_missing": random.random() < 0.4}
        return said | {"score": random.randint(1, 10), "gaps": []}

    def _test(self) -> list[Any]:
        random = self.random
        number = random.randrange(60)
        if self.parts:
            parts = random.sample(range(self.parts), random.randint(1, 3))
            test = about(*parts, holds=random.random() < 0.7, category="beta")
        else:
            test = written(f"given {number}", confidence=random.random(), category="alpha")
        if random.random() < 0.1:
            return ['{"input": nothing}', Paused(self.pace)]
        return [Paused(random.random() * self.pace), test]

    def _error(self) -> Exception:
        if self.random.random() < 0.5:
            return ResourceExhaustedError("slow down", code="PROVIDER_RATE_LIMITED", retry_after=1.0)
        return UnavailableError("it broke off", code="STREAM_TRUNCATED")


def least(*caps: float | None) -> float:
    return min(cap for cap in caps if cap is not None)


def check_limits(what: TestGenOrder, book: Book, author: Author) -> None:
    config, budget = what.config, what.budget
    for account in book.accounts:
        usage = account.spent.usage
        used = usage.input_tokens + usage.output_tokens
        assert used + account.reserved_tokens <= least(config.max_total_tokens, budget.max_tokens)
        assert account.worked_seconds <= least(config.max_total_seconds, budget.max_seconds) + 0.01
        assert account.spent.calls <= least(_OFF, budget.max_calls)
        assert (account.spent.cost or 0) <= least(_OFF, budget.max_cost)
    stats = book.stats
    assert stats.total_rounds <= config.max_total_rounds
    assert stats.global_rounds <= config.max_global_refinement_rounds
    assert all(rounds <= config.max_rounds_per_category for rounds in stats.category_rounds.values())
    assert stats.total_rounds == len([e for e in book.of(GenerationProgressed) if e.round and e.end is None])
    assert author.most_running <= (len(what.categories) if config.parallel_categories else 1)


def check_tests(book: Book) -> None:
    assert isinstance(book.last, GenerationCompleted | GenerationFailed)
    assert len(book.of(GenerationCompleted)) + len(book.of(GenerationFailed)) == 1
    made, kept = book.made, book.suite
    assert len({test.test_id for test in made}) == len(made)
    assert book.stats.total_tests == len(kept)
    assert len(made) + sum(test.is_combinatorial for test in kept) + sum(
        event.test.is_combinatorial for event in book.state.dropped
    ) == len(kept) + len(book.state.dropped)
    if book.state.verdicts and book.state.not_run:
        assert book.stats.stopped_by in {GenerationStop.MAX_TOTAL_TIME, GenerationStop.BUDGET}
        assert any("not run" in doubt for doubt in book.stats.uncertainties)


@given(seed=st.integers(0, 2**48))
@settings(max_examples=EXAMPLES, deadline=None)
def test_no_limit_is_passed_and_no_test_is_lost(seed: int) -> None:
    schedule = Schedule(Random(seed))

    async def scene(clock: Any) -> tuple[Book, float]:
        book = await ran(schedule.author, schedule.what, schedule.subject(), worker=schedule.worker)
        return book, clock.now()

    book, seconds = in_virtual_time(scene)
    config, budget = schedule.what.config, schedule.what.budget
    check_limits(schedule.what, book, schedule.author)
    check_tests(book)
    assert seconds <= least(config.max_total_seconds, budget.max_seconds) + 0.01
    written_down = [test.input for test in book.made]
    assert sorted(written_down) == sorted(
        test["input"] for test in schedule.author.given if isinstance(test, dict)
    )


@given(seed=st.integers(0, 2**48))
@settings(max_examples=EXAMPLES, deadline=None)
def test_dying_at_any_time_passes_no_limit_and_loses_no_test_that_was_written_down(seed: int) -> None:
    schedule = Schedule(Random(seed))
    random = Random(seed + 1)

    async def scene(_: Any) -> Book:
        book = Book()
        for _ in range(20):
            told = [*book.events]
            book.dies_after = book.transactions + random.randrange(1, 12)
            try:
                await ran(
                    schedule.author,
                    schedule.what,
                    schedule.subject(),
                    book=book,
                    worker=schedule.worker,
                )
            except DeadError:
                assert book.events[: len(told)] == told
                continue
            return book
        book.dies_after = None
        return await ran(schedule.author, schedule.what, schedule.subject(), book=book)

    book = in_virtual_time(scene)
    check_limits(schedule.what, book, schedule.author)
    check_tests(book)
