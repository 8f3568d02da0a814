"""The data of the benchmark of planted bugs."""

from __future__ import annotations

import pytest

from bench.planted_programs import PROGRAMS, Program


@pytest.mark.parametrize("name", sorted(path.stem for path in PROGRAMS.glob("*.toml")))
def test_a_program_has_a_suite_and_bugs(name: str) -> None:
    program = Program(name)
    assert "==" in program.requirement
    assert len(program.changes) >= 5
    assert all(change["old"] != change["new"] for change in program.changes)
    assert len({(tuple(words), given) for words, given in program.rows}) == len(program.rows) > 50
    if program.argv[0].endswith(".py"):
        assert (PROGRAMS / f"{program.argv[0]}.txt").is_file()
