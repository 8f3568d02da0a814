"""Ways to have a model make tests for a task: all at once, as the first implementation did, and as we do."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from peripety.errors import PeripetyError
from peripety.gateway.types.message import ChatMessage
from peripety.gateway.types.request import GenerateRequest
from peripety.testgen.prompts.stream_parser import TestForm, parse_draft
from peripety.testgen.prompts.user_messages import (
    ASSESSMENT_SCHEMA,
    REFLECTION_SCHEMA,
    render_system_text,
    to_compact_json,
)
from peripety.testgen.types import DraftTest, TestCase
from support.testgen.fake_run import Author, ran
from support.testgen.graded_tests.models import GradedModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from peripety.gateway.types.response import Completion, GatewayEvent
    from peripety.testgen.types import TestGenOrder
    from support.testgen.graded_tests.models import Grade
    from support.testgen.graded_tests.tasks import Task


Json = dict[str, Any]

_SHOT_TOKENS = 8_192
_ROUND_TOKENS = 2_048
_LOOK_TOKENS = 1_024
_FEEDBACK = (
    "dropped",
    "survivors",
    "survivors_count",
    "uncovered",
    "uncovered_count",
    "not_met",
    "contradictions",
)


@dataclass(frozen=True)
class Made:
    """Result of one way to make tests.

    Attributes:
        tests: the tests in the result.
        calls: number of prompts.
        tokens: input and output tokens used.
        score: the model's own assessment, 1 to 10; None if it was not requested.
        stubs: bodies of tests that the model wrote without expectations.
    """

    tests: Sequence[TestCase]
    calls: int = 0
    tokens: int = 0
    score: int | None = None
    stubs: frozenset[str] = frozenset()


async def single_shot(task: Task, grade: Grade, order: TestGenOrder) -> Made:
    """One question for all tests. An answer counts as a whole, or not at all, and nothing of it is run."""
    asking = _Asking(task, grade, order)
    config = order.config
    told = {
        "question": "tests",
        "at_least": config.min_total_tests,
        "at_most": config.target_total_tests,
        "existing_tests": [],
    }
    try:
        tests = await asking.tests(told, None, _SHOT_TOKENS)
    except PeripetyError:
        tests = []
    return asking.made(tests)


async def original_loop(task: Task, grade: Grade, order: TestGenOrder) -> Made:
    """Run the first implementation, with its known mistakes.

    - A category is complete at its minimum number of tests.
    - The text of a reflection is ignored.
    - The refinement is one more round of one category, without the existing tests in the prompt.
    - Tests are neither run nor compared with each other.
    - A round in which the tokens run out is discarded.
    - An answer is accepted or rejected as a whole.
    """
    asking, config = _Asking(task, grade, order), order.config
    tests: list[TestCase] = []
    rounds = 0
    score: int | None = None
    try:
        for category in order.categories:
            of_category: list[TestCase] = []
            number = 0
            while (
                len(of_category) < config.min_tests_per_category
                and number < config.max_rounds_per_category
                and rounds < config.max_total_rounds
            ):
                number, rounds = number + 1, rounds + 1
                made = await asking.tests(_round(category.name, number, of_category), category.name)
                if asking.tokens > config.max_total_tokens:
                    break
                of_category += made
                if len(of_category) < config.min_tests_per_category:
                    told = {"question": "reflection", "category": category.name}
                    await asking.said(told | _existing(of_category), REFLECTION_SCHEMA)
            tests += of_category
        score = (await asking.said({"question": "assessment", **_existing(tests)}, ASSESSMENT_SCHEMA))[
            "score"
        ]
        if score < config.min_comprehensiveness_score:
            name = next((one.name for one in order.categories if one.name == "correctness"), None)
            name = name or order.categories[0].name
            tests += await asking.tests(_round(name, 1, []), name)
    except PeripetyError:
        pass  # earlier tests are retained
    return replace(asking.made(tests), score=score)


async def ours(task: Task, grade: Grade, order: TestGenOrder, *, has_feedback: bool = True) -> Made:
    """Run the current implementation.

    Args:
        task: the task under test.
        grade: the model.
        order: the order of the run.
        has_feedback: True if prompts contain measurements and earlier reflections.
    """
    model = GradedModel(task, grade)
    author = model.author if has_feedback else _Untold(model.author.answer)
    book = await ran(author, order, task.subject)
    verdicts = book.state.verdicts
    counting = [test for test in book.suite if test.test_id in verdicts and verdicts[test.test_id].counts]
    usage = book.account.spent.usage
    return Made(
        counting,
        len(author.questions),
        usage.input_tokens + usage.output_tokens,
        book.state.score,
        frozenset(model.stubs),
    )


def floor_alone(task: Task) -> Made:
    """The tests that follow from the schema, without a model."""
    return Made(
        [
            TestCase(draft.name, draft.category or "", draft.input, draft.expected_output, body=draft.body)
            for draft in task.subject.baseline_tests()
        ],
    )


class _Untold(Author):
    """Model whose prompts omit measurements and earlier reflections."""

    async def respond(self, request: GenerateRequest) -> AsyncGenerator[GatewayEvent, None]:
        first, *others = request.messages
        said = json.loads(first.text)
        for name in (*_FEEDBACK, "reflection", "measured"):
            said.pop(name, None)
        messages = (ChatMessage.user(to_compact_json(said)), *others)
        async for event in super().respond(replace(request, messages=messages)):
            yield event


class _Asking:
    """Client that requests lists of tests from a model, each as a whole."""

    def __init__(self, task: Task, grade: Grade, order: TestGenOrder) -> None:
        self._model = GradedModel(task, grade)
        self._author = self._model.author
        self._system = render_system_text(order, task.subject)
        self._form = TestForm(task.subject.body_schema, order.categories)
        self._number = 0
        self.tokens = 0

    def made(self, tests: Sequence[TestCase]) -> Made:
        calls = len(self._author.questions)
        return Made(tests, calls, self.tokens, stubs=frozenset(self._model.stubs))

    async def tests(self, told: Json, category: str | None, most: int = _ROUND_TOKENS) -> list[TestCase]:
        """Return the tests of one answer; an empty list if the answer is not a complete list of tests."""
        completion = await self._asked(told, self._form.schema, most)
        try:
            drafts = [parse_draft(value) for value in json.loads(completion.text)]
        except ValueError:
            return []
        return [self._case(draft, category) for draft in drafts if isinstance(draft, DraftTest)]

    async def said(self, told: Json, schema: Any) -> Json:
        """Return the model's answer about its tests."""
        value = (await self._asked(told, schema, _LOOK_TOKENS)).value
        assert isinstance(value, dict)
        return value

    async def _asked(self, told: Json, schema: Any, most: int) -> Completion:
        message = ChatMessage.user(to_compact_json(told))
        request = GenerateRequest(self._system, (message,), schema=schema, max_output_tokens=most)
        completion = await self._author.generate(request)
        self.tokens += completion.usage.input_tokens + completion.usage.output_tokens
        return completion

    def _case(self, draft: DraftTest, category: str | None) -> TestCase:
        self._number += 1
        return TestCase(
            f"t{self._number}",
            category or draft.category or "",
            draft.input,
            draft.expected_output,
            body=draft.body,
        )


def _round(category: str, number: int, tests: Sequence[TestCase]) -> Json:
    told = {"question": "tests", "category": category, "round": number, "at_least": 2, "at_most": 5}
    return told | _existing(tests)


def _existing(tests: Sequence[TestCase]) -> Json:
    return {"existing_tests": [f"[{test.test_id}] {test.category}: {test.input}" for test in tests]}
