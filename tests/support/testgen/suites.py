"""Suites to export, and random model answers with tests."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from peripety import engine
from peripety.testgen.export.suite import ExportedCommand, ExportedOutcome, ExportedSubject, ExportedSuite
from peripety.testgen.subjects.subject import SubjectKind
from peripety.testgen.types import TaskContext, TestCase, TestGenOrder, TestStatus, categories_of
from support.engine.policies import policy_document, rule, tool
from support.engine.specs import action, document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from random import Random


_TEXTS = (
    "a",
    'says "b"',
    "back\\slash",
    "{not [an] object}",
    "é\u2028\u00a0ß",
    "\U0001f600\U0001f3fd",
    "\ud7ff\ue000",
    "line\nbreak\ttab",
    "]}",
    "",
    "null",
)
_PROSE = ("", "Here they are:\n", "First [sic] a word, then {some} more.\n```json\n", "\ufeff\n\n")


@dataclass(frozen=True)
class WrittenTests:
    """Tests in a text.

    Attributes:
        text: the text.
        values: the tests that are whole in it.
        ends: for each of them, how long the text is up to its last bracket.
    """

    text: str
    values: tuple[dict[str, Any], ...]
    ends: tuple[int, ...]


def random_test(random: Random) -> dict[str, Any]:
    """A test that a model might write."""
    value: dict[str, Any] = {
        "id": f"t{random.randrange(100)}",
        "input": _text(random) + "x",
        "expected_output": random.choice((None, _text(random))),
        "reasoning": _text(random),
        "confidence": random.choice((0, 1, 0.25, 0.9)),
    }
    if random.random() < 0.5:
        value["body"] = {
            "steps": [{_text(random) or "k": [_text(random), random.randrange(-5, 5), None, True]}],
            "nested": {"deep": {"er": [[], {}, [{}]]}},
        }
    return value


def as_json(random: Random, value: Any) -> str:
    """A value in one of the ways in which it can be written."""
    indent = random.choice((None, None, 1, 4))
    return json.dumps(value, ensure_ascii=random.random() < 0.5, indent=indent)


def written_tests(random: Random, values: list[dict[str, Any]], *, whole: int | None = None) -> WrittenTests:
    """A list of tests, with prose around it.

    Args:
        random: decides about spaces, escapes and prose.
        values: the tests.
        whole: how many of them are whole, when the answer was cut off behind them; None for all.
    """
    kept = values if whole is None else values[:whole]
    text = random.choice(_PROSE) + random.choice(('{"tests": [', '{ "tests" :\n[ ', "[", "[\n  "))
    is_object = "{" in text[-16:] and "tests" in text[-16:]
    ends = []
    for number, value in enumerate(kept):
        text += (", " if number else "") + as_json(random, value)
        ends.append(len(text))
    if whole is None:
        text += "]" + ("}" if is_object else "") + random.choice(("", "\n```", "\nThat is all."))
    elif len(values) > whole:
        rest = as_json(random, values[whole])
        text += (", " if kept else "") + rest[: random.randrange(1, len(rest))]
    return WrittenTests(text, tuple(kept), tuple(ends))


def _text(random: Random) -> str:
    return "".join(random.choice(_TEXTS) for _ in range(random.randrange(4)))


PROGRAM = '''\
"""Says how numbers from standard input compare with a bound."""
import sys

if len(sys.argv) != 2:
    sys.exit(2)
for line in sys.stdin:
    print("less" if int(line) < int(sys.argv[1]) else "more")
'''


def suite_of(tests: Sequence[TestCase], tested: ExportedSubject | None = None, **parts: Any) -> ExportedSuite:
    """A run of some tests."""
    context = {
        SubjectKind.SCENARIO: TaskContext.SCENARIO,
        SubjectKind.POLICY: TaskContext.POLICY,
        SubjectKind.COMMAND: TaskContext.BENCHMARK,
        None: TaskContext.PROMPT,
    }[tested.kind if tested else None]
    order = TestGenOrder("what is to be tested", context=context, categories=categories_of(context))
    return ExportedSuite("run_1", order, tested, tuple(tests), **parts)


def outcome(status: TestStatus = TestStatus.PASSED, *, counts: bool = True, **parts: Any) -> ExportedOutcome:
    """Return the outcome of running a test."""
    return ExportedOutcome(status, 5, counts, **parts)


def policy_case(test_id: str, expected: str, size: int = 4, **parts: Any) -> TestCase:
    """A call of the tool of `policy_suite`."""
    body = {
        "server_name": "s",
        "tool_name": "write",
        "arguments": {"size": size},
        "roles": [],
        "expected": expected,
    }
    return TestCase(test_id, "allowed", f"size {size}", body=body, **parts)


def policy_suite(*tests: TestCase, bound: int = 5, **parts: Any) -> ExportedSuite:
    """Tests of a policy that allows sizes below a bound."""
    small = rule("small", "allow", tools=["write"], logic={"<": [{"var": "arguments.size"}, bound]})
    policy = engine.compile_policy(policy_document(tools=[tool("write")], rules=[small]))
    return suite_of(tests, ExportedSubject(SubjectKind.POLICY, dict(policy.spec)), **parts)


def scenario_case(test_id: str, expect: Any, accepted: bool | None = True, **parts: Any) -> TestCase:
    """One turn of the scenario of `scenario_suite`."""
    step = {"actions": [{"action_id": "act", "params": {}}], "accepted": accepted, "expect": expect}
    return TestCase(test_id, "actions", "one turn", body={"seed": None, "steps": [step]}, **parts)


def scenario_suite(*tests: TestCase, by: int = 1, **parts: Any) -> ExportedSuite:
    """Tests of a scenario with one action, which adds something."""
    acts = action(effects=[{"op": "inc", "path": "state.a", "value": by}])
    program = engine.compile(document(state={"a": 0}, actions=[acts]))
    return suite_of(tests, ExportedSubject(SubjectKind.SCENARIO, dict(program.spec)), **parts)


def command_case(
    test_id: str,
    arguments: list[str],
    expected: str | None,
    exit_code: int | None = 0,
    stdin: str = "",
) -> TestCase:
    """One run of a command."""
    body: Mapping[str, Any] = {"arguments": arguments, "stdin": stdin, "exit_code": exit_code}
    return TestCase(test_id, "correctness", stdin, expected, body=body)


def command_suite(
    directory: Path,
    *tests: TestCase,
    environment: tuple[str, ...] = (),
    **parts: Any,
) -> ExportedSuite:
    """Tests of `PROGRAM` in a directory."""
    command = ExportedCommand((sys.executable, "compare.py"), str(directory), environment)
    return suite_of(tests, ExportedSubject(SubjectKind.COMMAND, command=command), **parts)


def run_pytest(module: Path, **environment: str) -> dict[str, str]:
    """Run a module with pytest, without this project's settings, and return the outcomes by name."""
    paths = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, "-p", "no:cacheprovider", "-rA", str(module)],
        capture_output=True,
        text=True,
        cwd=module.parent,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": paths, **environment},
        timeout=110,
        check=False,
    )
    found = re.findall(r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (.*)$", done.stdout, re.MULTILINE)
    assert found, done.stdout + done.stderr
    return {re.sub(r"^.*?::| - .*$", "", rest): word.lower() for word, rest in found}
