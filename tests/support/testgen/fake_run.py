"""Test generation runs with a scripted model and a journal in memory."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from peripety.api.policy.v1 import policy_pb2 as policy
from peripety.api.testgen.v1 import testgen_pb2 as pb
from peripety.api.testgen.v1.testgen_pb2_grpc import TestGenServiceStub
from peripety.core.mutation_testing import Mutant, MutantOutcome
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
)
from peripety.llmsim.script.types import ScriptedCall, ScriptResponse
from peripety.rpc.channel import open_channel
from peripety.server.app import serve_registered
from peripety.testgen.events import DuplicateDropped, GenerationFailed, ReflectionCompleted, TestAdded
from peripety.testgen.events import GenerationCompleted as RunCompleted
from peripety.testgen.prompts.stream_parser import GENERATE_TEST_TOOL
from peripety.testgen.run.budget import BudgetAccount
from peripety.testgen.run.runner import GenerationRunner
from peripety.testgen.run.state import GenerationState
from peripety.testgen.setup import register_service_with
from peripety.testgen.subjects.subject import NO_LINES, RunResult, SubjectKind, SubjectTarget
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
from support.engine.policies import policy_document, rule
from support.gateway.fake_gateway import FakeGateway
from support.servers.apps import new_id

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterator,
        Callable,
        Collection,
        Iterable,
        Mapping,
        Sequence,
    )

    from peripety.api.testgen.v1.testgen_pb2_grpc import TestGenServiceAsyncStub
    from peripety.core.config import Config
    from peripety.engine.executor import Executor
    from peripety.gateway.models.model_data import ModelData
    from peripety.gateway.types.request import GenerateRequest
    from peripety.gateway.types.response import GatewayEvent, ModelGateway
    from peripety.llmsim.script.types import Pace
    from peripety.llmsim.types import SimRequest
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
    """Pause of a model without output, in seconds."""

    seconds: float


@dataclass(frozen=True)
class Question:
    """Prompt sent to a model."""

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
        """Category and round that tests are requested for."""
        return self.category, self.said["round"]


class Author(FakeGateway):
    """Model that answers each prompt about tests by a function.

    For a prompt for tests, the function returns a list of tests and pauses, optionally followed by an error
    or a `Cut`. A test is an object or the text of a call. For any other prompt, it returns an object or an
    error.

    The token usage is the length of the answers, limited by the cap of the request.

    Attributes:
        takes_tools: True if it calls tools; otherwise lists are requested.
        waits: True if it waits for the results of its calls before it continues.
        given: the tests that it has written.
        questions: the prompts so far.
    """

    def __init__(
        self, answer: Callable[[Question], Any], *, takes_tools: bool = True, waits: bool = False
    ) -> None:
        super().__init__(validates=False)
        self.answer = answer
        self.takes_tools = takes_tools
        self.waits = waits
        self.given: list[Any] = []
        self.questions: list[Question] = []

    async def respond(self, request: GenerateRequest) -> AsyncGenerator[GatewayEvent, None]:
        question = Question(request, json.loads(request.messages[0].text))
        self.questions.append(question)
        await asyncio.sleep(0)
        async for event in self._say(question, self.answer(question)):
            yield event

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

    def of_kind(self, kind: str) -> list[Question]:
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
    """Simulated end of a process; never handled."""


class LostError(Exception):
    """Another worker holds the run."""


@dataclass
class Book:
    """In-memory record of a run.

    Attributes:
        dies_after: number of transactions after which the process ends; None for never.
        fails_at: index of the transaction that fails; None for none.
        takes: duration of a transaction in seconds.
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
        """Tests retained in the suite."""
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
    """Executor that does all work inline; running a test takes time of the event loop's clock."""

    threads: int | None = 1

    def __init__(self, takes: float = 0.0) -> None:
        self._takes = takes

    def remaining_seconds(self) -> None:
        """No deadline."""

    async def run(self, work: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        if self._takes and work.__name__ == "_evaluate":
            await asyncio.sleep(self._takes)
        return work(*args, **kwargs)


class NumberedSubject:
    """Something of numbered parts, each with one mistake that a test of that part notices.

    The body of a test names the parts that it is about, and whether it holds.
    """

    kind = SubjectKind.SCENARIO
    is_fenced = None
    context = TaskContext.CUSTOM
    material: Mapping[str, Any] = {"means": "parts with numbers"}
    body_schema: Mapping[str, Any] = {"type": "object"}
    unmeasured_lines = NO_LINES
    changed_since = ""
    unmutated = ""

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

    def excerpts(self, paths: Sequence[str]) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 - has none
        return ()

    def further_mutants(self, known: int, count: int) -> Sequence[Mutant]:  # noqa: ARG002 - has none
        return ()

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
    """Return the minimum number of new tests that a prompt requests, different for each prompt."""
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
    """Return an author with a fixed answer for each kind of prompt."""

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
    model: ModelData | None = None,
) -> Book:
    """Run test generation, starting from the state recorded in the book."""
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
        model=model,
    )
    await runner.run()
    return book


VALUES = ("one", "two", "three", "four", "five", "six")
SUBJECT = pb.Subject(
    policy=policy.PolicySource(
        document=policy_document(
            rules=[
                rule(f"r_{value}", then, logic={"==": [{"var": "arguments.a"}, value]})
                for value, then in zip(VALUES, ("allow", "escalate", "allow") * 2, strict=True)
            ],
        ),
    ),
)


class Script:
    """Answers questions of runs of tests.

    Args:
        pace: how answers arrive.
    """

    def __init__(self, pace: Pace | None = None) -> None:
        self._pace = pace

    def __call__(self, request: SimRequest) -> ScriptResponse:
        return replace(self._answer(json.loads(request.messages[0].text)), pace=self._pace)

    def _answer(self, asked: dict[str, Any]) -> ScriptResponse:
        if asked["question"] == "tests":
            calls = [ScriptedCall("generate_test", test) for test in _tests(asked)]
            return ScriptResponse("Here they are.", tool_calls=tuple(calls))
        if asked["question"] == "reflection":
            said = {"text": "Some may be missing.", "nothing_missing": False, "recommendations": ["the next"]}
        else:
            said = {"text": "It will do.", "score": 7, "gaps": ["the rest"], "recommendations": ["the rest"]}
        return ScriptResponse(json.dumps(said))


def _tests(asked: dict[str, Any]) -> list[dict[str, Any]]:
    category, number = asked.get("category") or "all", asked["round"]
    first = sum(map(ord, category)) + number
    written = []
    for step in range(3):
        value = VALUES[(first + step) % len(VALUES)]
        expected = "allow" if step else "escalate"
        body = {
            "server_name": "s",
            "tool_name": "t",
            "arguments": {"a": value},
            "roles": [f"{category}{number}"],
            "expected": expected,
        }
        test = {"id": f"t{step}", "input": f"{category} {number}: {value}", "expected_output": expected}
        more = {"reasoning": "because", "confidence": 0.9, "body": json.dumps(body)}
        named = {} if asked.get("category") else {"category": "existence"}
        written.append({**test, **more, **named})
    return written


def suite_of(events: Sequence[pb.TestGenEvent]) -> list[tuple[str, ...]]:
    """Return the retained tests of a run with their verdicts, without their ids."""
    tests: dict[str, pb.GeneratedTest] = {}
    verdicts: dict[str, pb.TestVerdict] = {}
    for event in events:
        match event.WhichOneof("event"):
            case "test":
                tests[event.test.test_id] = event.test
            case "duplicate":
                tests.pop(event.duplicate.test.test_id, None)
            case "test_ran":
                verdicts[event.test_ran.test_id] = event.test_ran.verdict
    return [
        (test.category, str(test.round), test.input, str(test.policy), str(verdicts.get(name)))
        for name, test in tests.items()
    ]


def kinds(events: Sequence[pb.TestGenEvent]) -> list[str]:
    """Return the kind of each event."""
    return [str(event.WhichOneof("event")) for event in events]


@dataclass
class TestRuns:
    """Calls of one client; streams are gathered until they end."""

    __test__ = False

    stub: TestGenServiceAsyncStub

    @classmethod
    @asynccontextmanager
    async def connected(cls, address: str) -> AsyncIterator[Self]:
        """Connect to a server."""
        async with open_channel(address) as channel:
            yield cls(TestGenServiceStub(channel))

    async def generate(self, **fields: Any) -> list[pb.TestGenEvent]:
        """All events of a new run."""
        request = pb.GenerateTestsRequest(
            **{"request_id": new_id(), "task_description": "make it so", **fields},
        )
        return [response.event async for response in self.stub.GenerateTests(request)]

    async def resume(self, run_id: str, after: int = 0) -> list[pb.TestGenEvent]:
        """All events of a run after one."""
        request = pb.ResumeTestsRequest(run_id=run_id, after_sequence=after)
        return [response.event async for response in self.stub.ResumeTests(request)]

    async def run(self, **fields: Any) -> list[pb.RunTestsResponse]:
        """All that running tests shows."""
        request = pb.RunTestsRequest(**{"request_id": new_id(), **fields})
        return [response async for response in self.stub.RunTests(request)]

    async def get(self, run_id: str) -> pb.TestRun:
        """A run as it is stored."""
        return (await self.stub.GetTestRun(pb.GetTestRunRequest(run_id=run_id))).run

    async def page(self, **fields: Any) -> pb.ListTestRunsResponse:
        """A page of runs."""
        return await self.stub.ListTestRuns(pb.ListTestRunsRequest(**fields))

    async def cancel(self, run_id: str, request_id: str | None = None) -> pb.TestRun:
        """Stop a run."""
        request = pb.CancelTestRunRequest(request_id=request_id or new_id(), run_id=run_id)
        return (await self.stub.CancelTestRun(request)).run

    async def delete(self, run_id: str, request_id: str | None = None) -> None:
        """Delete a run."""
        await self.stub.DeleteTestRun(
            pb.DeleteTestRunRequest(request_id=request_id or new_id(), run_id=run_id),
        )

    async def export(self, run_id: str, to: pb.TestFormat.ValueType, **fields: Any) -> list[bytes]:
        """The parts of a file."""
        request = pb.ExportTestsRequest(run_id=run_id, format=to, **fields)
        parts = [part async for part in self.stub.ExportTests(request)]
        assert [part.sequence for part in parts] == [*range(1, len(parts) + 1)]
        return [part.chunk for part in parts]


@asynccontextmanager
async def serving_runs(config: Config, gateway: ModelGateway) -> AsyncIterator[TestRuns]:
    """Serve runs alone, whose questions this gateway answers, and connect."""
    bind = partial(register_service_with, gateway=gateway)
    async with serve_registered(config, [bind]) as app, TestRuns.connected(app.address) as client:
        yield client


_HIGH = 10
_MISTAKES: dict[str, Callable[[int, int], int]] = {
    "difference": lambda one, other: min(one - other, _HIGH),
    "unbounded": lambda one, other: one + other,
    "bound_less": lambda one, other: min(one + other, _HIGH - 1),
    "bound_more": lambda one, other: min(one + other, _HIGH + 1),
    "one_more": lambda one, other: min(one + other + 1, _HIGH),
    "always_zero": lambda _one, _other: 0,
    "turned": lambda one, other: min(other + one, _HIGH),
}


def toy_test(
    test_id: str,
    one: int,
    other: int,
    equals: int | None,
    *,
    below: int | None = None,
    given: str = "",
    **fields: Any,
) -> TestCase:
    """A test of the sum of two numbers."""
    body = {"one": one, "other": other, "equals": equals, "below": below}
    fields = {"category": "correctness", "body": body, **fields}
    return TestCase(test_id, input=given or f"{one} and {other}", **fields)


class ToySubject:
    """Toy subject: the smaller of a sum and ten.

    Args:
        flaky: True if each run has a different result.

    Attributes:
        compared: the mutants checked for equivalence, one list per call.
    """

    kind = SubjectKind.SCENARIO
    is_fenced = None
    context = TaskContext.PROMPT
    material: Mapping[str, Any] = {"means": "the smaller of a sum and ten"}
    body_schema: Mapping[str, Any] = {"type": "object"}
    unmeasured_lines = NO_LINES
    changed_since = ""
    unmutated = ""
    targets: Sequence[SubjectTarget] = (
        SubjectTarget("side", "/below", "a sum below the bound"),
        SubjectTarget("side", "/above", "a sum above the bound"),
        SubjectTarget("side", "/both", "a sum above and below the bound", is_reachable=False),
        SubjectTarget("sign", "/negative", "a negative sum"),
    )

    def __init__(self, *, flaky: bool = False) -> None:
        self.compared: list[list[str]] = []
        self._flaky = flaky
        self._runs = 0

    @property
    def mutants(self) -> Sequence[Mutant]:
        return [Mutant(name, name, "", None, None, MutantOutcome.SURVIVED) for name in _MISTAKES]

    def excerpts(self, paths: Sequence[str]) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 - has none
        return ()

    def further_mutants(self, known: int, count: int) -> Sequence[Mutant]:  # noqa: ARG002 - has none
        return ()

    def problems(self, body: Mapping[str, Any]) -> Sequence[Finding]:
        if isinstance(body.get("one"), int) and isinstance(body.get("other"), int):
            return ()
        return (Finding("NOT_A_NUMBER", "/one", "it is no number."),)

    def soundness(self, test: TestCase) -> Sequence[Finding]:
        body = test.body or {}
        if body.get("equals") is None and body.get("below") is None:
            return (Finding("STUB", "", "it expects nothing."),)
        return ()

    def same_input(self, body: Mapping[str, Any]) -> Any:
        return {"one": body["one"], "other": body["other"]}

    def run(self, test: TestCase) -> RunResult:
        assert test.body is not None
        self._runs += 1
        value = min(test.body["one"] + test.body["other"], _HIGH)
        wrong = _wrong(test.body, value)
        status = TestStatus.FAILED if wrong else TestStatus.PASSED
        side = "side:/above" if test.body["one"] + test.body["other"] > _HIGH else "side:/below"
        covered = {side, "sign:/negative"} if value < 0 else {side}
        trace = f"{value} {self._runs}" if self._flaky else str(value)
        findings = [Finding("EXPECTATION_NOT_MET", f"/{key}", f"it is {value}.") for key in wrong]
        return RunResult(status, str(value), trace, tuple(findings), frozenset(covered))

    def kills(self, test: TestCase, among: Collection[str]) -> frozenset[str]:
        body = test.body
        assert body is not None
        return frozenset(name for name in among if _wrong(body, _MISTAKES[name](body["one"], body["other"])))

    def equivalent(self, among: Collection[str]) -> frozenset[str]:
        self.compared.append([*among])
        return frozenset({"turned"} & {*among})

    def baseline_tests(self) -> Iterable[DraftTest]:
        for one in (0, _HIGH):
            body = {"one": one, "other": 0, "equals": one, "below": None}
            yield DraftTest(f"boundary_{one}", f"{one} and 0", body=body, category="boundary")


def _wrong(body: Mapping[str, Any], value: int) -> list[str]:
    equals, below = body.get("equals"), body.get("below")
    wrong = ["equals"] if equals is not None and equals != value else []
    return wrong + (["below"] if below is not None and value >= below else [])
