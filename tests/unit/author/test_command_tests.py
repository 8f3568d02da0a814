"""Tests of a command without running it: only what is stated, or sure, is expected."""

from __future__ import annotations

from typing import Any

import pytest

from peripety.author.test_author.rounds import write_tests

NAMES = ("anti_cheat", "existence", "correctness", "boundary", "integration")
TASK = """\
Test `calc.py`. `calc.py add 2 3` prints 5, and `sub 7 4` -> 3.
With missing arguments it exits with 2, and without arguments it exits with 2.
An unknown operation exits with code 2.
`div 1 0` exits with status 4.
"""


def runs(task: str, source: str = "", **question: Any) -> dict[tuple[str, ...], dict[str, Any]]:
    material = {
        "task": task,
        "categories": [{"name": name} for name in NAMES],
        "subject": {
            "kind": "command",
            "command": ["python3", "-S", "calc.py"],
            "source": {"file": "calc.py", "text": source},
        },
    }
    tests = write_tests(material, {"round": 1, "at_most": 30, **question})
    return {tuple(test["body"]["arguments"]): test for test in tests}


def test_stated_examples_are_run_as_they_are_stated() -> None:
    found = runs(TASK)
    assert found["add", "2", "3"]["expected_output"] == "5"
    assert found["sub", "7", "4"]["expected_output"] == "3"
    assert found["div", "1", "0"]["body"]["exit_code"] == 4
    assert found["div", "1", "0"]["expected_output"] is None
    assert found["div", "1", "0"]["category"] == "boundary"


def test_wrong_calls_end_as_it_is_said_and_are_less_sure() -> None:
    found = runs(TASK)
    assert found[()]["body"]["exit_code"] == 2
    assert found["no-such-command", "2", "3"]["body"]["exit_code"] == 2
    assert found["add", "2"]["body"]["exit_code"] == 2
    assert found["add", "2"]["confidence"] < found["add", "2", "3"]["confidence"]


def test_words_before_a_result_are_a_call_only_where_that_is_likely() -> None:
    found = runs("add 2 3 prints 5. The program prints 7. It exits with 0.")
    assert {*found} == {("add", "2", "3")}
    assert found["add", "2", "3"]["confidence"] < 0.9


@pytest.mark.parametrize(
    ("task", "arguments", "stdin", "expected"),
    [
        ('`echo "a b" | calc.py count` prints 2', ("count",), "a b\n", "2"),
        ("`a b` on standard input prints `2`", (), "a b\n", "2"),
        ("Example:\n\n$ calc.py list\none\ntwo\n", ("list",), "", "one\ntwo"),
        ("`calc.py quiet` prints nothing.", ("quiet",), "", ""),
    ],
)
def test_input_and_sessions_are_read(
    task: str,
    arguments: tuple[str, ...],
    stdin: str,
    expected: str,
) -> None:
    test = runs(task)[arguments]
    assert test["body"]["stdin"] == stdin
    assert test["expected_output"] == expected


def test_what_is_only_described_is_not_expected() -> None:
    assert runs("`calc.py sum` prints the sum of two numbers. Bad input is refused.") == {}


def test_a_library_that_reads_arguments_says_how_that_ends() -> None:
    source = "import argparse\np = argparse.ArgumentParser()\np.add_argument('name')\np.parse_args()"
    found = runs("Greets.", source)
    assert {arguments: test["body"]["exit_code"] for arguments, test in found.items()} == {
        ("--help",): 0,
        ("--no-such-option",): 2,
        (): 2,
    }


def test_nothing_is_written_twice() -> None:
    lines = [f"[a] correctness: {test['input']} -> 1" for test in runs(TASK).values()]
    assert runs(TASK, existing_tests=lines) == {}


def test_a_subject_without_its_command_is_told_in_words() -> None:
    material = {"task": TASK, "categories": [{"name": "existence"}], "subject": {"kind": "command"}}
    assert all("body" not in test for test in write_tests(material, {"round": 1, "at_least": 1}))


@pytest.mark.slow(reason="compares long inputs")
@pytest.mark.timeout(20)
def test_a_long_line_of_blanks_takes_no_longer_than_another() -> None:
    assert [*runs(f"$ echo{' ' * 20_000}x\nout\n")] == [("echo", "x")]
