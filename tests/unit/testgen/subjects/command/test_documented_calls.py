from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from peripety.testgen.subjects.command.documented_calls import iterate_documented_calls
from peripety.testgen.subjects.command.python_mutants import PythonModule
from peripety.testgen.subjects.command.subject import CommandSubject

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = '''\
import sys


def round_up(value, step=1):
    """Round up.

    >>> round_up(7, 5)
    10
    >>> round_up("x" * 100)
    >>> round_up(True, -3)
    """
    return -(-int(value) // int(step)) * int(step)


def round_down(value):
    """>>> round_down(7.5)"""


def unrelated():
    """>>> unrelated("other")"""


if __name__ == "__main__":
    operations = {"up": 1, "round": round_up, "down": round_down}
    print(operations[sys.argv[1]](*sys.argv[2:]))
'''


def calls_of(source: str) -> list[tuple[str, ...]]:
    return [*iterate_documented_calls([PythonModule("p.py", source.encode())])]


def test_examples_are_given_to_the_commands_that_their_function_names() -> None:
    assert calls_of(PROGRAM)[:3] == [("round", "7", "5"), ("round", "down", "7.5"), ("round", "x", "100")]


def test_numbers_are_tried_with_their_neighbours_and_signs() -> None:
    calls = calls_of(PROGRAM)
    assert {("round", "-3"), ("round", "8", "5"), ("round", "7", "4"), ("round", "-7", "5")} <= {*calls}


def test_a_program_without_examples_or_commands_has_no_documented_calls() -> None:
    assert calls_of("print(1)\n") == []
    assert calls_of('def f():\n    """>>> f(1)"""\n') == []
    assert calls_of('"""\n>>> f(\n\n  >>> g(1)\n>>> g(1)\n"""\nd = {"go": 1}\n') == []


def test_the_number_of_calls_is_bounded() -> None:
    examples = "\n".join(f"    >>> go{name}({number})" for name in range(20) for number in range(20))
    source = f'def go():\n    """Examples.\n\n{examples}\n    """\n\n\nd = {{"go0": 1, "go1": 2}}\n'
    assert 0 < len(calls_of(source)) <= 64


@pytest.mark.slow(reason="starts many processes")
def test_documented_calls_expect_what_the_program_does(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(PROGRAM)
    tests = [*CommandSubject([sys.executable, "p.py"], tmp_path).baseline_tests()]
    (test,) = [test for test in tests if test.input == '["round", "7", "5"]']
    assert (test.expected_output, test.category, (test.body or {})["exit_code"]) == ("10\n", "correctness", 0)
