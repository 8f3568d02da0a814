"""Runs of generated tests, with a scripted model, a journal in memory, and a subject of numbered parts."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from peripety.core.mutation import Mutant, MutantOutcome
from peripety.errors import Finding
from peripety.gateway.token_estimate import estimate_prompt_tokens
from peripety.gateway.types.message import ChatMessage, ChatRole, ToolCall
from peripety.gateway.types.response import (
    Completed,
    Completion,
    StopReason,
    TextDelta,
    ToolCallDelta,
    Usage,
    collect_completion,
)
from peripety.testgen.events import DuplicateDropped, GenerationFailed, ReflectionCompleted, TestAdded
from peripety.testgen.events import GenerationCompleted as RunCompleted
from peripety.testgen.prompts.stream_parser import GENERATE_TEST_TOOL
from peripety.testgen.run.budget import BudgetAccount
from peripety.testgen.run.runner import GenerationRunner
from peripety.testgen.run.state import GenerationState
from peripety.testgen.subjects.subject import RunResult, SubjectKind, SubjectTarget
from peripety.testgen.types import (
    Category,
    DraftTest,
    TaskContext,
    TestCase,
    TestGenConfig,
    TestGenOrder,
    TestStatus,
    categories_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, Sequence

    from peripety.core.concurrency import Executor
    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import GatewayEvent
    from peripety.testgen.events import GenerationEvent, GenerationStats
    from peripety.testgen.subjects.subject import Subject


E = TypeVar("E")
R = TypeVar("R")

CONTENT = {"text": "all is there", "nothing_missing": True, "recommendations": []}
WANTING = {"text": "something is missing", "nothing_missing": False, "recommendations": ["try nothing"]}
GOOD = {"text": "well done", "score": 9, "gaps": [], "recommendations": []}
POOR = {"text": "not yet", "score": 4, "gaps": ["nothing at all"], "recommendations": ["try nothing"]}


class Cut(str):
    """The end of an answer that reaches its length limit."""

    __slots__ = ()


@dataclass(frozen=True)
class Paused:
    """A time in which a model says nothing, in seconds."""

    seconds: float


@dataclass(frozen=True)
class Question:
    """What a model was asked."""

    request: GenerateRequest
    said: dict[str, Any]

    @property
    def kind(self) -> str:
        return str(self.said["question"])

    @property
    def category(self) -> str | None:
        return self.said.get("category")

    @property
    def place(self) -> tuple[str | None, int]:
        """The category and the round that tests are asked for."""
        return self.category, self.said["round"]


@dataclass
class Author:
    """Answers each question by a function.

    To a question for tests that gives a list: tests, as objects or as the texts of calls, pauses, and at its
    end perhaps an error or a `Cut`; to any other an object, or an error.

    It uses what its answers are long, and never more than it may.

    Attributes:
        takes_tools: whether it calls tools; else it is asked for lists.
        waits: whether it waits for the results of its calls, to go on then.
        given: the tests that it has written.
    """

    answer: Callable[[Question], Any]
    takes_tools: bool = True
    waits: bool = False
    given: list[Any] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    running: int = 0
    most_running: int = 0

    async def generate(self, request: GenerateRequest) -> Completion:
        return await collect_completion(self.stream(request))

    async def stream(self, request: GenerateRequest) -> AsyncGenerator[GatewayEvent, None]:
        question = Question(request, json.loads(request.messages[0].text))
        self.questions.append(question)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(0)
            async for event in self._say(question, self.answer(question)):
                yield event
        finally:
            self.running -= 1

    async def _say(self, question: Question, answer: Any) -> AsyncGenerator[GatewayEvent, None]:
        if isinstance(answer, Exception):
            raise answer
        if question.kind != "tests":
            text = json.dumps(answer)
            yield TextDelta(text)
            yield Completed(_completion(question.request, text, (), StopReason.END, answer))
            return
        calls: list[ToolCall] = []
        written: list[str] = []
        stop = StopReason.TOOL_USE if self.waits and self.takes_tools else StopReason.END
        room = _most(question.request) * 3
        for item in answer:
            if isinstance(item, Exception):
                raise item
            if isinstance(item, Paused):
                await asyncio.sleep(item.seconds)
                continue
            text = item if isinstance(item, str) else json.dumps(item)
            room -= len(text) + 8
            if isinstance(item, Cut) or room < 0:
                stop = StopReason.LENGTH
                break
            if self.takes_tools and question.request.tools:
                self.given.append(item)
                calls.append(ToolCall(f"call_{len(calls)}", GENERATE_TEST_TOOL, text))
                yield ToolCallDelta(calls[-1].call_id, text, GENERATE_TEST_TOOL)
            elif not question.request.tools:
                self.given.append(item)
                written.append(text)
                yield TextDelta(("[" if len(written) == 1 else ",") + text)
        text = f"[{','.join(written)}]" if written else ""
        yield Completed(_completion(question.request, text, tuple(calls), stop, None))

    def of(self, kind: str) -> list[Question]:
        """The questions of a kind."""
        return [question for question in self.questions if question.kind == kind]


def _completion(
    request: GenerateRequest,
    text: str,
    calls: tuple[ToolCall, ...],
    stop: StopReason,
    value: Any,
) -> Completion:
    message = ChatMessage(ChatRole.ASSISTANT, (*ChatMessage.assistant(text).parts, *calls))
    written = len(text) + sum(len(call.arguments) + 8 for call in calls)
    usage = Usage(estimate_prompt_tokens(request) * 3 // 4, min(-(-written // 3), _most(request)))
    return Completion(message, value, usage, stop, "scripted", "fake", cost=usage.output_tokens)


def _most(request: GenerateRequest) -> int:
    """Tokens that an answer may have; each costs one."""
    caps = (request.max_output_tokens, request.budget.max_cost if request.budget else None)
    return min((cap for cap in caps if cap is not None), default=10**9)


class DeadError(BaseException):
    """The end of a process: nobody handles it."""


class LostError(Exception):
    """Somebody else works on the run."""


@dataclass
class Book:
    """Keeps a run in memory.

    Attributes:
        dies_after: after so many transactions its process ends; None for never.
        fails_at: the transaction that fails; None for none.
        takes: seconds that a transaction takes.
    """

    events: list[GenerationEvent] = field(default_factory=list)
    account: BudgetAccount = field(default_factory=BudgetAccount)
    accounts: list[BudgetAccount] = field(default_factory=list)
    transactions: int = 0
    dies_after: int | None = None
    fails_at: int | None = None
    error: Exception = field(default_factory=LostError)
    takes: float = 0.0

    async def record(self, events: Sequence[GenerationEvent], account: BudgetAccount) -> None:
        if self.transactions == self.dies_after:
            raise DeadError
        if self.transactions == self.fails_at:
            raise self.error
        if self.takes:
            await asyncio.sleep(self.takes)
        self.transactions += 1
        self.events += events
        self.account = account
        self.accounts.append(account)

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def last(self) -> GenerationEvent:
        return self.events[-1]

    @property
    def stats(self) -> GenerationStats:
        assert isinstance(self.last, RunCompleted | GenerationFailed)
        return self.last.stats

    @property
    def stopped_by(self) -> str:
        assert self.stats.stopped_by is not None
        return self.stats.stopped_by.value

    @property
    def state(self) -> GenerationState:
        return GenerationState.fold(self.events)

    @property
    def suite(self) -> list[TestCase]:
        """The tests that are kept."""
        return [*self.state.tests.values()]

    @property
    def made(self) -> list[TestCase]:
        """All tests that models made, dropped ones too."""
        tests = {
            event.test.test_id: event.test
            for event in self.events
            if isinstance(event, TestAdded | DuplicateDropped)
        }
        return [test for test in tests.values() if not test.is_combinatorial]

    @property
    def reflections(self) -> list[ReflectionCompleted]:
        return self.of(ReflectionCompleted)


class Inline:
    """Does all work where it is asked for; running a test takes some time of the event loop's clock."""

    threads: int | None = 1

    def __init__(self, takes: float = 0.0) -> None:
        self._takes = takes

    async def run(self, work: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        if self._takes and work.__name__ == "_evaluate":
            await asyncio.sleep(self._takes)
        return work(*args, **kwargs)


class NumberedSubject:
    """Something of numbered parts, each with one mistake that a test of that part notices.

    The body of a test names the parts that it is about, and whether it holds.
    """

    kind = SubjectKind.SCENARIO
    context = TaskContext.CUSTOM
    material: Mapping[str, Any] = {"means": "parts with numbers"}
    body_schema: Mapping[str, Any] = {"type": "object"}

    def __init__(self, parts: int, floor: Iterable[int] = ()) -> None:
        self._parts = [*range(parts)]
        self._floor = [*floor]
        self.ran: list[str] = []

    @property
    def targets(self) -> Sequence[SubjectTarget]:
        return [SubjectTarget("part", f"/{part}", f"reach part {part}") for part in self._parts]

    @property
    def mutants(self) -> Sequence[Mutant]:
        return [
            Mutant(f"m{part}", "spoil", f"/{part}", b"1", b"2", MutantOutcome.SURVIVED)
            for part in self._parts
        ]

    def problems(self, body: Mapping[str, Any]) -> Sequence[Finding]:
        return () if "parts" in body else (Finding("NO_PARTS", "/parts", "it is about nothing."),)

    def soundness(self, test: TestCase) -> Sequence[Finding]:
        return () if test.body else (Finding("STUB", "", "it is about nothing."),)

    def same_input(self, body: Mapping[str, Any]) -> Any:
        return body["parts"]

    def run(self, test: TestCase) -> RunResult:
        assert test.body is not None
        self.ran.append(test.test_id)
        status = TestStatus.PASSED if test.body.get("holds", True) else TestStatus.FAILED
        covered = frozenset(f"part:/{part}" for part in test.body["parts"])
        return RunResult(status, f"parts {test.body['parts']}", str(test.body), (), covered)

    def kills(self, test: TestCase, among: Collection[str]) -> frozenset[str]:
        assert test.body is not None
        return frozenset(f"m{part}" for part in test.body["parts"]) & {*among}

    def equivalent(self, among: Collection[str]) -> frozenset[str]:
        return frozenset({"none"} & {*among})

    def baseline_tests(self) -> Iterable[DraftTest]:
        for part in self._floor:
            yield DraftTest(
                f"part_{part}",
                f"part {part} of the floor",
                body={"parts": [part]},
                category="alpha",
            )


def about(*parts: int, holds: bool = True, **more: Any) -> dict[str, Any]:
    """A test of some parts, as a model writes it."""
    return written(f"parts {parts}", body={"parts": [*parts], "holds": holds}, **more)


_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")


def written(given: str, expected: str | None = "as it should", **more: Any) -> dict[str, Any]:
    """A test, as a model writes it."""
    return {"id": "a", "input": given, "expected_output": expected, "confidence": 0.9, **more}


def some(question: Question, count: int | None = None) -> list[dict[str, Any]]:
    """As many new tests as a question asks for at least, other ones for each question."""
    category, number = question.place
    count = question.said["at_least"] if count is None else count
    named = {} if category else {"category": "alpha"}
    return [written(f"{category or 'any'} {number} {word}", **named) for word in _WORDS[:count]]


def order(*names: str, **config: Any) -> TestGenOrder:
    """A run with categories, and limits that it does not meet unless they are given."""
    categories = categories_of(TaskContext.CUSTOM, [Category(name) for name in names or ("alpha", "beta")])
    caps = {name: config.pop(name) for name in ("budget", "environment") if name in config}
    config = {"max_total_tokens": 10_000_000, "max_total_seconds": 100_000.0, "min_total_tests": 0} | config
    return TestGenOrder(
        "make it so",
        context=TaskContext.CUSTOM,
        categories=categories,
        config=TestGenConfig(**config),
        **caps,
    )


def always(tests: Any = some, reflection: Any = CONTENT, assessment: Any = GOOD) -> Author:
    """An author who says the same to each kind of question."""

    def answer(question: Question) -> Any:
        said = {"tests": tests, "reflection": reflection, "assessment": assessment}[question.kind]
        return said(question) if callable(said) else said

    return Author(answer)


async def ran(
    author: Author,
    what: TestGenOrder,
    subject: Subject | None = None,
    *,
    book: Book | None = None,
    worker: Executor | None = None,
) -> Book:
    """Work on a run, from wherever its book says that it is."""
    book = Book() if book is None else book
    runner = GenerationRunner(
        "run",
        author,
        what,
        subject,
        worker or Inline(),
        book,
        events=[*book.events],
        account=book.account,
    )
    await runner.run()
    return book
