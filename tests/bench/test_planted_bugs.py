"""The data of the benchmark of planted bugs."""

from __future__ import annotations

import ast

import pytest

from bench.planted_programs import PROGRAMS, Script, find_changed_function, open_program


@pytest.mark.parametrize("name", sorted(path.stem for path in PROGRAMS.glob("*.toml")))
def test_a_program_has_a_suite_and_bugs(name: str) -> None:
    program = open_program(name)
    sign, least = ("@", 30) if isinstance(program, Script) else ("==", 50)
    assert sign in program.requirement
    assert len(program.changes) >= 5
    assert all(change["old"] != change["new"] for change in program.changes)
    assert len({(tuple(words), given) for words, given in program.rows}) == len(program.rows) > least
    if program.argv[0].endswith(".py"):
        assert (PROGRAMS / f"{program.argv[0]}.txt").is_file()


OUTER = """def outer(one=1):
    # a comment, which the source of a mutant does not have
    def inner():
        return 2

    return inner() + one


LAST = 3
"""


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("return 2", "return 4", range(4, 5)),
        ("+ one", "- one", range(3, 7)),
        ("one=1", "one=2", None),
        ("LAST = 3", "LAST = 4", None),
    ],
)
def test_the_changed_function_is_the_innermost_one(old: str, new: str, lines: range | None) -> None:
    changed = ast.unparse(ast.parse(OUTER.replace(old, new)))
    assert find_changed_function(OUTER, changed) == lines
