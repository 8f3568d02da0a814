"""Baseline tests of programs, in their own interpreter."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from peripety.testgen.subjects.command.baseline.tests import ProgramTests, to_name
from peripety.testgen.subjects.command.subject import CommandSubject
from peripety.testgen.types import TestCase, TestStatus

if TYPE_CHECKING:
    from pathlib import Path

    from peripety.testgen.types import DraftTest

PROGRAM = '''\
"""Print a grade."""

import argparse

import grading

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("value", type=int)
    parser.add_argument("--short", action="store_true")
    given = parser.parse_args()
    print(grading.grade(given.value)[: 1 if given.short else None])
'''
GRADING = '''\
def grade(value: int) -> str:
    """Return a grade.

    >>> grade(50)
    'high'
    >>> grade(3)
    'low'
    """
    return "low" if value <= 50 else "high"
'''


def make_subject(directory: Path) -> CommandSubject:
    (directory / "p.py").write_text(PROGRAM)
    (directory / "grading.py").write_text(GRADING)
    return CommandSubject([sys.executable, "-S", "p.py"], directory)


def run(subject: CommandSubject, draft: DraftTest) -> TestStatus:
    test = TestCase("t", "", draft.input, draft.expected_output, body=draft.body, source=draft.source)
    return subject.run(test).status


@pytest.mark.slow(reason="runs a program some hundred times")
def test_a_bug_that_is_there_is_shown_first_with_its_source(tmp_path: Path) -> None:
    subject = make_subject(tmp_path)
    assert subject._program is not None
    first, *others = ProgramTests(subject._program, (), 20)
    assert (first.input, first.expected_output) == ("grading: grade(50)", "'high'")
    assert first.source == "grading.py, line 4: >>> grade(50) 'high'"
    assert run(subject, first) is TestStatus.FAILED
    inputs = {draft.input for draft in others}
    assert {'["50"]', '["51"]'} <= inputs
    assert any("--short" in text for text in inputs)
    assert {draft.source for draft in others if draft.source} == {
        "grading.py, line 6: >>> grade(3) 'low'",
        "type: grading.grade returns str",
    } & {draft.source for draft in others}
    assert all(draft.source == "" for draft in others if not (draft.body or {}).get("call"))


def test_a_call_of_a_function_is_run_measured_and_killed_like_the_command(tmp_path: Path) -> None:
    subject = make_subject(tmp_path)
    body: dict[str, Any] = {"arguments": [], "stdin": "", "exit_code": None}
    call = {"module": "grading", "code": "grade(50)"}
    test = TestCase("t", "", "i", "'low'", body={**body, "call": call})
    result = subject.run(test)
    assert result.status is TestStatus.PASSED
    assert "line:/grading.py/9" in result.covered
    assert subject.kills(
        test, [one.mutant_id for one in subject.mutants if "change_comparison" in one.mutant_id]
    )
    wrong = TestCase(
        "t", "", "i", "TypeError", body={**body, "call": {"module": "grading", "code": "grade()"}}
    )
    assert "TypeError" in subject.run(wrong).observed
    assert subject.same_input(test.body or {}) != subject.same_input(wrong.body or {})


STREAM = '''\
"""Write texts to streams."""


def put(stream, text):
    """Write a text.

    >>> import io
    >>> stream = io.StringIO()
    >>> put(stream, "ab")
    >>> stream.getvalue()
    'ab'
    >>> stream.truncate(0)
    0
    >>> stream.getvalue()
    ''
    >>> open("no_such_file.txt").read()
    'ab'
    """
    stream.write(text)
'''


@pytest.mark.slow(reason="surveys a program")
def test_examples_that_need_a_call_before_them_or_a_missing_file_are_no_findings(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("import sys\n\nimport streams\n\nstreams.put(sys.stdout, 'x')\n")
    (tmp_path / "streams.py").write_text(STREAM)
    (tmp_path / "README.md").write_text("    $ p.py no_such_file.txt\n    ab\n")
    subject = CommandSubject([sys.executable, "-S", "p.py"], tmp_path)
    assert subject._program is not None
    tests = ProgramTests(subject._program, (), 8)
    examples = [draft for draft, is_met in tests.sourced if is_met]
    assert [draft.expected_output for draft in examples if draft.source.startswith("streams")] == [
        "'ab'",
        "0",
        "''",
    ]
    assert all(is_met for _, is_met in tests.sourced)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("grade(-1)", "grade_minus_1"),
        ("join([], '')", "join_empty_list_empty_text"),
        ("2001-02-03", "2001_02_03"),
        ("--wrap 3-4", "wrap_3_4"),
        ("f('x[]')", "f_x"),
        ("", "empty"),
        ("word " * 20, "word_" * 11 + "word"),
        ("x" * 80, "x" * 60),
    ],
)
def test_names_have_words_for_signs_and_empty_values_and_end_with_a_word(text: str, name: str) -> None:
    assert to_name(text) == name
