"""Additions to existing modules: what they have already, and what stays as it is."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import InvalidArgumentError
from peripety.testgen.export.existing_module import ExistingModule
from peripety.testgen.export.suite import ExportedSuite, TestFormat, render
from peripety.testgen.types import TestCase
from support.testgen.suites import PROGRAM, command_case, command_suite, policy_case, policy_suite, run_pytest

if TYPE_CHECKING:
    from pathlib import Path


def call_case(code: str, expected: str) -> TestCase:
    body: dict[str, Any] = {"arguments": [], "stdin": "", "exit_code": None}
    return TestCase(
        "c", "correctness", code, expected, body={**body, "call": {"module": "pkg.m", "code": code}}
    )


def appended(suite: ExportedSuite, existing: str | bytes, directory: Path) -> tuple[bytes, int, int]:
    source = existing.encode() if isinstance(existing, str) else existing
    file = render(suite, TestFormat.PYTEST, directory=str(directory), append_to=source)
    return b"".join(file.parts), file.written, file.known


PARAMETRIZED = """
@pytest.mark.parametrize(("number", "word"), [(0, "none"), (1, "one")])
def test_a(number, word):
    assert f(number) == word
"""
PERSONAL = [
    ("def test_a():\n    assert f(1) == 'one'\n", True),
    ("def test_a():\n    assert 'one' == m.f(1)\n", True),
    ("async def test_a():\n    assert pkg.m.f(1) == 'one' and f(2)\n", True),
    ("class TestA:\n    def test_a(self):\n        assert f(1) == 'one'\n", True),
    (PARAMETRIZED, True),
    ("@pytest.mark.parametrize('n', [0, 1])\ndef test_a(n):\n    assert f(n) == 'one'\n", True),
    ("def test_a():\n    assert f(1) == 'two'\n", False),
    ("def test_a():\n    assert f(2) == 'one'\n", False),
    ("def helper():\n    assert f(1) == 'one'\n", False),
    ("# assert f(1) == 'one'\n", False),
]


@pytest.mark.parametrize(("source", "known"), PERSONAL)
def test_a_call_that_a_person_asserts_is_known(source: str, known: bool) -> None:
    assert ExistingModule(source.encode()).knows(call_case("f(1)", "'one'"), ()) is known


@pytest.mark.parametrize(
    ("code", "expected", "known"),
    [
        ("g()", "ValueError: too small", True),
        ("g()", "TypeError: too small", False),
        ("h()", "", True),
        ("k()", "True", True),
        ("l()", "False", True),
        ("l()", "True", False),
    ],
)
def test_exceptions_and_truth_are_expectations_too(code: str, expected: str, known: bool) -> None:
    source = (
        "def test_a():\n    with pytest.raises(ValueError):\n        g()\n"
        "def test_b():\n    assert h() is None\n    assert k()\n    assert not l()\n"
    )
    assert ExistingModule(source.encode()).knows(call_case(code, expected), ()) is known


RUNS = """
def test_a():
    done = subprocess.run([sys.executable, "compare.py", "5"], capture_output=True, text=True)
    assert done.returncode == 3
    assert done.stdout == "less\\n"

def test_b():
    assert run(["compare.py"]).returncode == 2
"""


@pytest.mark.parametrize(
    ("arguments", "expected", "exit_code", "known"),
    [
        (["5"], "less", None, True),
        (["5"], "less", 0, True),
        (["5"], "more", None, False),
        (["5"], None, 3, True),
        (["5"], None, 2, False),
        (["6"], "less", None, False),
        ([], None, 2, True),
        ([], None, 3, False),
    ],
)
def test_a_command_that_a_person_runs_is_known(
    arguments: list[str],
    expected: str | None,
    exit_code: int | None,
    known: bool,
) -> None:
    test = command_case("t", arguments, expected, exit_code)
    assert ExistingModule(RUNS.encode()).knows(test, ("python3", "compare.py")) is known
    assert not ExistingModule(RUNS.encode()).knows(
        command_case("t", arguments, expected, exit_code, "in"), ()
    )


def test_tests_of_an_earlier_run_are_not_written_again(tmp_path: Path) -> None:
    old = [command_case("a", ["1"], "x"), command_case("b", ["2"], "y"), command_case("c", [], None, 2)]
    first, *_ = appended(command_suite(tmp_path, *old), "", tmp_path)
    again, written, known = appended(command_suite(tmp_path, *old), first, tmp_path)
    assert (again, written, known) == (first, 0, 3)
    more = command_suite(tmp_path, *old, command_case("d", ["3"], "z"), command_case("a", ["1"], "other"))
    extended, written, known = appended(more, first, tmp_path)
    assert extended.startswith(first)
    assert (written, known) == (2, 3)
    text = extended.decode()
    assert text.count("SUBJECT = ") == text.count("import pytest") == text.count("import os") == 1
    assert "def test_correctness_2(" in text


def test_another_subject_has_another_name(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    first, *_ = appended(command_suite(tmp_path, command_case("a", ["1"], "x")), "", tmp_path)
    text = appended(command_suite(tmp_path / "a", command_case("b", ["2"], "y")), first, tmp_path)[0].decode()
    assert "SUBJECT_2 = checking.command(" in text
    assert "    SUBJECT_2.check(" in text


OWN = (
    '"""Tests by a person."""\n\nfrom __future__ import annotations\n\nimport  sys\n\n\n'
    'SUBJECT = "mine"\n\n\n'
    "def test_own( ):  # as it is\n    assert sys.path  ;  assert SUBJECT"
)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_a_person_wrote_stays_byte_for_byte(newline: str, tmp_path: Path) -> None:
    existing = OWN.replace("\n", newline).encode()
    content, *_ = appended(command_suite(tmp_path, command_case("a", ["1"], "x")), existing, tmp_path)
    head, imports, tail = existing.partition(b"import  sys")
    assert content.startswith(head + imports)
    assert tail in content
    assert (b"\r\n" in content) is (newline == "\r\n")
    assert content.count(b"\n") == content.count(newline.encode())
    names = [node.name for node in ast.parse(content).body if isinstance(node, ast.FunctionDef)]
    assert names == ["test_own", "test_correctness_a"]


def test_a_module_without_imports_gets_them_below_its_docstring(tmp_path: Path) -> None:
    suite = policy_suite(policy_case("a", "allow"), policy_case("b", "allow", 3))
    for existing in ('"""Mine."""\n\nX = 1\n', "X = 1\n", "# mine\n"):
        text = appended(suite, existing, tmp_path)[0].decode()
        tree = ast.parse(text)
        assert ast.get_docstring(tree) == ("Mine." if existing.startswith('"') else None)
        assert "from peripety.testgen import checking" in text.partition("def test_")[0]
        assert existing.rpartition("\n\n")[2] in text


@pytest.mark.parametrize(
    ("existing", "told"),
    [
        (b"def f(:\n", "not a Python module, line 1"),
        (b"\xff", "not UTF-8"),
        (b"# " + b"x" * 2**20, "1048578 bytes"),
        (b"checking = 1\n", "gives the name checking another meaning"),
    ],
)
def test_a_module_that_cannot_be_extended_is_refused(existing: bytes, told: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        appended(command_suite(tmp_path, command_case("a", [], "b")), existing, tmp_path)
    assert told in refused.value.message
    assert refused.value.message.startswith("append_to ")


@pytest.mark.slow(reason="starts a test run of its own")
def test_an_extended_module_runs(tmp_path: Path) -> None:
    (tmp_path / "compare.py").write_text(PROGRAM)
    module = tmp_path / "test_own.py"
    module.write_text(OWN)
    suite = command_suite(
        tmp_path, command_case("a", ["5"], "less", stdin="4\n"), command_case("u", [], None, 2)
    )
    module.write_bytes(appended(suite, OWN, tmp_path)[0])
    assert run_pytest(module, PYTHONPATH=":".join(sys.path)) == {
        "test_own": "passed",
        "test_correctness_a": "passed",
        "test_correctness_u": "passed",
    }
