"""A Python function as a subject: where it is found, what is measured, and its baseline tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import InvalidArgumentError
from peripety.testgen.export.suite import ExportedCommand, ExportedSubject, TestFormat, render
from peripety.testgen.subjects.command.baseline.function_tests import _simpler_codes
from peripety.testgen.subjects.command.function import FunctionSubject
from peripety.testgen.subjects.command.python_mutants import PythonModule
from peripety.testgen.subjects.subject import SubjectKind
from peripety.testgen.types import TestCase, TestStatus
from support.testgen.suites import run_pytest, suite_of

if TYPE_CHECKING:
    from pathlib import Path

MODULE = '''\
def grade(value: int) -> str:
    """Return a grade.

    >>> grade(50)
    'high'
    """
    return _level(value)


def _level(value):
    return "low" if value <= 50 else "high"


def normalize(text: str) -> str:
    return text.replace("  ", " ").lower()


def unused(value: int) -> int:
    return value + 1
'''

BOX = """\
class Box:
    def __init__(self, width: int):
        self.width = width

    @property
    def area(self):
        return self.width * self.width

    def fits(self, other: int) -> bool:
        if other < 0:
            raise ValueError("is negative")
        return other <= self.area


class BoxError(Exception):
    pass


def _hidden(value: int) -> int:
    return value
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    package = tmp_path / "lib" / "marks"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("from .levels import grade as mark\n")
    (package / "levels.py").write_text(MODULE)
    (package / "empty.py").write_text("from .levels import grade\nLIMIT = 1\n")
    (package / "box.py").write_text(BOX)
    return tmp_path / "lib"


def call(code: str, expected: str | None = None, **body: Any) -> TestCase:
    given = {"call": {"module": "marks.levels", "code": code}, **body}
    return TestCase("t", "correctness", code, expected, body=given)


def test_a_function_is_run_and_measured_in_the_module_that_defines_it(directory: Path) -> None:
    subject = FunctionSubject("marks:mark", working_directory=directory)
    assert subject.body_schema["properties"]["call"]["properties"]["module"]["enum"] == ["marks.levels"]
    assert [target.path for target in subject.targets] == ["/marks/levels.py/7", "/marks/levels.py/11"]
    test = call("grade(50)", "'low'")
    result = subject.run(test)
    assert result.status is TestStatus.PASSED
    assert result.covered == {"line:/marks/levels.py/7", "line:/marks/levels.py/11"}
    comparisons = [one.mutant_id for one in subject.mutants if "change_comparison" in one.mutant_id]
    assert subject.kills(test, comparisons)
    assert "def grade" in subject.material["sources"][0]["text"]


def test_only_what_the_function_uses_is_measured() -> None:
    whole = PythonModule("m.py", MODULE.encode())
    part = PythonModule("m.py", MODULE.encode(), "normalize")
    assert part.lines == (15,)
    assert {one.split(":")[1] for one in part.mutant_ids} == {"15"}
    assert len(whole.mutant_ids) > len(part.mutant_ids)
    assert part.statement_lines([1, 7, 15]) == {15}


@pytest.mark.parametrize(
    "function", ["marks.levels:absent", "absent:grade", "absent", "marks.empty", "marks levels:grade"]
)
def test_a_function_that_does_not_exist_is_refused(function: str, directory: Path) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        FunctionSubject(function, working_directory=directory)
    assert refused.value.code == "NO_SUCH_FUNCTION"
    assert function in refused.value.message


@pytest.mark.parametrize(
    "body", [{}, {"call": None}, {"call": {"module": "marks.levels", "code": ""}}, {"call": 1}]
)
def test_a_body_needs_a_call(body: dict[str, Any], directory: Path) -> None:
    subject = FunctionSubject("marks:mark", working_directory=directory, measured=False)
    assert [found.code for found in subject.problems(body)] == ["BODY_INVALID"]
    assert [found.code for found in subject.soundness(call("grade(1)"))] == ["STUB"]


def test_a_module_is_all_its_public_functions_in_the_files_that_define_them(directory: Path) -> None:
    package = directory / "marks"
    (package / "__init__.py").write_text(
        "from .levels import grade as mark\nfrom .box import Box, BoxError\n"
    )
    subject = FunctionSubject("marks", working_directory=directory)
    material = subject.material
    assert material["module"] == "marks"
    assert material["functions"] == ["marks.levels:grade", "marks.box:Box"]
    files = ["marks/__init__.py", "marks/levels.py", "marks/box.py"]
    assert [source["file"] for source in material["sources"]] == files
    enum = subject.body_schema["properties"]["call"]["properties"]["module"]["enum"]
    assert enum == ["marks.levels", "marks.box"]
    whole = PythonModule("m.py", MODULE.encode())
    levels = [target.path for target in subject.targets if "levels" in target.path]
    assert levels == [f"/marks/levels.py/{line}" for line in whole.lines]
    result = subject.run(call("grade(51)", "'high'"))
    assert result.status is TestStatus.PASSED
    assert "line:/marks/levels.py/11" in result.covered
    assert "line:/marks/levels.py/15" not in result.covered
    (package / "__init__.py").write_text("from .levels import *\n__all__ = ['normalize']\n")
    (package / "levels.py").write_text(f"{MODULE}\n__all__ = ['unused']\n")
    named = FunctionSubject("marks.levels", working_directory=directory)
    assert named.material["functions"] == ["marks.levels:unused"]


@pytest.mark.slow(reason="surveys a module")
def test_tests_of_a_module_call_each_function(directory: Path) -> None:
    levels = FunctionSubject("marks.levels", working_directory=directory)
    drafts = [*levels.baseline_tests()]
    assert drafts[0].source.startswith(("law: normalize", "marks/levels.py, line 4"))
    assert drafts[1].source.startswith(("law: normalize", "marks/levels.py, line 4"))
    called = {(draft.body or {})["call"]["code"].partition("(")[0] for draft in drafts if not draft.source}
    assert called == {"grade", "normalize", "unused"}


@pytest.mark.slow(reason="surveys a module")
def test_tests_of_a_class_call_its_methods_on_a_new_object(directory: Path) -> None:
    box = FunctionSubject("marks.box", working_directory=directory)
    observed = {draft.input: (draft.expected_output or "").strip() for draft in box.baseline_tests()}
    assert "ValueError: is negative" in observed.values()
    assert {"True", "False"} <= {*observed.values()}
    assert any(shown.endswith(").area") for shown in observed)


@pytest.mark.slow(reason="surveys a function")
def test_values_are_the_simplest_that_show_the_same_and_no_text_of_the_interpreter_is_expected(
    directory: Path,
) -> None:
    (directory / "marks" / "limits.py").write_text(
        "def level(value: int, text: str) -> str:\n"
        "    if value > 4321:\n"
        "        raise ValueError('too much')\n"
        "    return f'{int(text)}' if text.startswith('n') else 'none'\n"
    )
    drafts = [*FunctionSubject("marks.limits:level", working_directory=directory).baseline_tests()]
    observed = {draft.name: draft for draft in drafts if not draft.source}
    assert "level_4321_empty_text" in observed  # a limit stays
    raised = [draft for name, draft in observed.items() if name.endswith("_raises_value_error")]
    assert {draft.expected_output for draft in raised} == {"ValueError: too much\n"}
    assert all((draft.body or {})["exit_code"] is None for draft in observed.values())
    assert all("''" in draft.input for draft in raised)


def test_simpler_calls_have_one_simpler_constant_or_one_argument_less() -> None:
    codes = [*_simpler_codes("import datetime\nf(-50, 'word', None)")]
    assert codes[0] == "import datetime\nf(-50, 'word')"
    assert "import datetime\nf(-1, 'word', None)" in codes
    assert "import datetime\nf(-50, '', None)" in codes
    assert all(code.startswith("import datetime\nf(") for code in codes)
    assert not any("f(0" in code or "f(-0" in code for code in codes)
    assert [*_simpler_codes("f(0).value")] == []


@pytest.mark.slow(reason="surveys a function")
def test_examples_and_laws_that_are_broken_come_first(directory: Path) -> None:
    (first, *_) = FunctionSubject("marks:mark", working_directory=directory).baseline_tests()
    assert (first.input, first.expected_output) == ("marks.levels: grade(50)", "'high'")
    assert first.source == "marks/levels.py, line 4: >>> grade(50) 'high'"
    subject = FunctionSubject("marks.levels:normalize", working_directory=directory)
    drafts = [*subject.baseline_tests()]
    law = drafts[0]
    assert law.source == "law: normalize changes nothing the second time"
    assert law.body is not None
    assert law.body["call"]["code"] == "normalize(normalize('   ')) == normalize('   ')"
    assert subject.run(TestCase("t", "", "", law.expected_output, body=law.body)).status is TestStatus.FAILED
    observed = [draft for draft in drafts if not draft.source]
    assert observed
    assert all((draft.body or {})["call"]["code"].startswith("normalize(") for draft in observed)
    again = [*FunctionSubject("marks.levels:normalize", working_directory=directory).baseline_tests()]
    assert again == drafts


@pytest.mark.slow(reason="surveys a function, and runs pytest")
def test_values_follow_the_type_hints_and_exported_tests_run(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "days.py").write_text(
        "import datetime as dt\n"
        "from decimal import Decimal\n\n\n"
        "def due(day: dt.date, amounts: list[Decimal]) -> int | None:\n"
        "    if not amounts:\n"
        "        return None\n"
        "    return day.year + len(amounts)\n"
    )
    subject = FunctionSubject("days:due", working_directory=tmp_path / "lib")
    drafts = [*subject.baseline_tests()]
    codes = [(draft.body or {})["call"]["code"] for draft in drafts]
    assert any(code.startswith("import datetime\ndue(datetime.date(") for code in codes)
    tests = [
        TestCase(
            f"t{number}", "correctness", draft.input, draft.expected_output, body=draft.body, name=draft.name
        )
        for number, draft in enumerate(drafts)
    ]
    command = ExportedCommand((), str(tmp_path / "lib"), function="days:due")
    suite = suite_of(tests, ExportedSubject(SubjectKind.COMMAND, command=command))
    module = tmp_path / "test_due.py"
    module.write_bytes(b"".join(render(suite, TestFormat.PYTEST, directory=str(tmp_path)).parts))
    assert 'checking.function(\n    "days:due",' in module.read_text()
    assert set(run_pytest(module).values()) == {"passed"}
