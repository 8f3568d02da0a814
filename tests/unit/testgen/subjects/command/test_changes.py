"""Tests that are limited to changed lines: what is measured, and which tests depend on a change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from peripety.errors import FailedPreconditionError, InvalidArgumentError
from peripety.testgen.subjects.command.function import FunctionSubject
from peripety.testgen.subjects.command.python_mutants import PythonModule
from peripety.testgen.subjects.command.python_program import ProgramChanges
from peripety.testgen.subjects.command.subject import CommandSubject
from peripety.testgen.types import TestCase, TestStatus

if TYPE_CHECKING:
    from pathlib import Path

COMMAND = ("python3", "tool.py")
TOOL = """\
import sys
from marks import grade

LIMIT = 3


def count(words):
    return min(len(words), LIMIT)


def main():
    command, *words = sys.argv[1:] or ["none"]
    if command == "grade":
        print(grade(int(words[0])))
    elif command == "count":
        print(count(words))
    else:
        print("unknown")


main()
"""
MARKS = '''\
def grade(value: int) -> str:
    """Return a grade.

    >>> grade(51)
    'high'
    """
    if value > 50:
        return "high"
    return "low"


def double(value: int) -> int:
    """Return a number twice.

    >>> double(2)
    4
    """
    return 2 * value
'''


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "tool.py").write_text(TOOL)
    (tmp_path / "marks.py").write_text(MARKS)
    return tmp_path


def changes(**files: tuple[int, int]) -> ProgramChanges:
    return ProgramChanges("main", {f"{name}.py": (lines,) for name, lines in files.items()})


@pytest.mark.parametrize(
    ("line", "affected", "names"),
    [
        (8, {8}, set()),  # a statement
        (7, {8}, set()),  # a definition: the whole function
        (4, {8}, {"LIMIT"}),  # a value: the functions that use it
        (2, {12, 13, 14, 15, 16, 17, 18}, {"grade"}),
        (6, {6}, set()),  # an empty line
        (21, {21}, set()),
    ],
)
def test_a_change_affects_the_lines_that_depend_on_it(line: int, affected: set[int], names: set[str]) -> None:
    module = PythonModule("tool.py", TOOL.encode(), changed=frozenset({line}))
    lines, changed_names = module.find_affected()
    assert changed_names == names
    assert lines | module.lines_using(changed_names) == affected
    assert module.lines == ((line,) if line != 6 else ())
    assert all(f":{line}:" in one for one in module.mutant_ids)


def test_only_changed_lines_are_measured_and_shown_first(directory: Path) -> None:
    subject = CommandSubject(COMMAND, directory, changes=changes(marks=(7, 7)))
    assert subject.changed_since == "main"
    assert [target.path for target in subject.targets] == ["/marks.py/7"]
    assert {mutant.path for mutant in subject.mutants} == {"/marks.py/7"}
    assert subject.material["changed"] == ["marks.py:7: if value > 50:"]
    assert [source["file"] for source in subject.material["sources"]] == ["marks.py", "tool.py"]
    body = {"arguments": ["grade", "51"], "stdin": "", "exit_code": 0}
    test = TestCase("t", "correctness", "", "high", body=body)
    result = subject.run(test)
    assert result.status is TestStatus.PASSED
    assert result.covered == {"line:/marks.py/7"}
    comparisons = [one.mutant_id for one in subject.mutants if "change_comparison" in one.mutant_id]
    assert subject.kills(test, comparisons)
    assert not CommandSubject(COMMAND, directory).changed_since


def test_changes_that_are_not_measured_are_refused(directory: Path) -> None:
    with pytest.raises(FailedPreconditionError, match="since main") as nothing:
        CommandSubject(COMMAND, directory, changes=changes(marks=(2, 3), other=(1, 9)))
    assert nothing.value.code == "NOTHING_CHANGED"
    with pytest.raises(InvalidArgumentError, match="not measured") as unmeasured:
        CommandSubject(("cat",), directory, changes=changes(marks=(7, 7)))
    assert unmeasured.value.code == "LINES_NOT_MEASURED"


@pytest.mark.slow(reason="surveys a program")
def test_baseline_tests_depend_on_the_change(directory: Path) -> None:
    subject = CommandSubject(COMMAND, directory, changes=changes(tool=(4, 4)))
    arguments = [(draft.body or {})["arguments"] for draft in subject.baseline_tests()]
    assert arguments
    assert {one[0] for one in arguments} == {"count"}


@pytest.mark.slow(reason="surveys a module")
def test_baseline_tests_of_a_module_call_what_has_changed(directory: Path) -> None:
    subject = FunctionSubject("marks", working_directory=directory, changes=changes(marks=(7, 7)))
    drafts = [*subject.baseline_tests()]
    sources = [draft.source for draft in drafts if draft.source]
    assert "marks.py, line 4: >>> grade(51) 'high'" in sources
    assert all("grade(" in (draft.body or {})["call"]["code"] for draft in drafts)
