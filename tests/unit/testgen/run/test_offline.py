"""Whole runs without a model: they end by themselves, and no test of them is wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from peripety import engine
from peripety.core.config import Config
from peripety.gateway.calls.executor import CallExecutor
from peripety.gateway.local_gateway import LocalModelGateway
from peripety.gateway.providers.registry import ProviderRegistry
from peripety.testgen.run.runner import GenerationRunner
from peripety.testgen.subjects.command.subject import CommandSubject
from peripety.testgen.subjects.policy import PolicySubject
from peripety.testgen.subjects.scenario.subject import ScenarioSubject
from peripety.testgen.types import TaskContext, TestGenConfig, TestGenOrder, TestStatus, categories_of
from support.engine.policies import policy_document, rule, tool
from support.testgen.fake_run import Book, Inline

if TYPE_CHECKING:
    from peripety.testgen.subjects.subject import Subject


EXAMPLE = Path(__file__).parents[4] / "examples" / "scenario.json"
PROGRAM = """\
import sys

if len(sys.argv) < 3:
    sys.exit(2)
print(sum(map(int, sys.argv[1:])))
"""


async def run(description: str, context: TaskContext, subject: Subject | None = None) -> Book:
    """Run test generation with the offline model."""
    config = TestGenConfig(combinatorial_floor=False, max_total_seconds=10_000.0)
    order = TestGenOrder(description, context=context, categories=categories_of(context), config=config)
    book = Book()
    gateway = LocalModelGateway(ProviderRegistry(Config()), CallExecutor(Config()))
    await GenerationRunner("run", gateway, order, subject, Inline(), book).run()
    return book


def statuses(book: Book) -> set[TestStatus]:
    return {verdict.examined.status for verdict in book.state.verdicts.values()}


@pytest.mark.slow(reason="measures hundreds of mutants")
async def test_tests_of_a_scenario_reach_all_of_it_and_notice_nearly_every_mistake() -> None:
    book = await run("Test it.", TaskContext.SCENARIO, ScenarioSubject(engine.compile(EXAMPLE.read_bytes())))
    assert statuses(book) == {TestStatus.PASSED}
    quality = book.state.quality
    assert quality is not None
    assert all(coverage.covered == coverage.reachable for coverage in quality.coverage)
    assert quality.mutation is not None
    assert quality.mutation.killed > 0.9 * (quality.mutation.killed + quality.mutation.survived)
    assert book.stopped_by in {"expected_gain", "satisfied"}


async def test_tests_of_a_policy_notice_every_mistake() -> None:
    rules = [
        rule("small", "allow", tools=["write"], logic={"<": [{"var": "arguments.size"}, 5]}),
        rule("asked", "escalate", tools=["write"], roles=["editor"]),
    ]
    document = policy_document(tools=[tool("write", "files"), tool("list", "files")], rules=rules)
    book = await run("Test it.", TaskContext.POLICY, PolicySubject(engine.compile_policy(document)))
    assert statuses(book) == {TestStatus.PASSED}
    quality = book.state.quality
    assert quality is not None
    assert quality.mutation is not None
    assert quality.mutation.survived == 0
    assert {coverage.kind for coverage in quality.coverage if not coverage.uncovered} >= {"rule"}


@pytest.mark.slow(reason="starts the program for each test")
async def test_tests_of_a_command_are_those_that_its_description_states(tmp_path: Path) -> None:
    (tmp_path / "add.py").write_text(PROGRAM)
    subject = CommandSubject([sys.executable, "-S", "add.py"], tmp_path)
    task = "`add.py 2 3` prints 5. `add.py 2 -2` prints 0. Without arguments it exits with 2."
    book = await run(task, TaskContext.BENCHMARK, subject)
    assert statuses(book) == {TestStatus.PASSED}
    assert {"5", None} <= {test.expected_output for test in book.suite} <= {"5", "0", None}


async def test_tests_in_words_end_when_no_sentence_is_left() -> None:
    book = await run("A name has at most 20 letters. It must never be empty.", TaskContext.PROMPT)
    assert len(book.suite) >= 4
    assert book.state.total_rounds < 10
    given = [json.dumps([test.input, test.category]) for test in book.suite]
    assert len(given) == len({*given})


async def test_what_states_nothing_ends_after_one_round_of_each_kind() -> None:
    book = await run("Make it nice.", TaskContext.PROMPT)
    assert not book.suite
    assert book.stopped_by == "rounds_used"
    assert book.state.total_rounds == len(categories_of(TaskContext.PROMPT)) + 1
