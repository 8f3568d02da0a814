from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from peripety.errors import Finding
from peripety.testgen.export.literals import to_json_literal, to_literal
from peripety.testgen.export.pytest_module import list_names
from peripety.testgen.export.suite import TestFormat, render
from peripety.testgen.subjects.command.subject import CommandSubject
from peripety.testgen.types import TestCase, TestStatus
from support.testgen.suites import (
    PROGRAM,
    command_case,
    command_suite,
    outcome,
    policy_case,
    policy_suite,
    run_pytest,
    scenario_case,
    scenario_suite,
    suite_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from peripety.testgen.export.suite import ExportedSuite


HOSTILE = (
    "\"\"\"; raise SystemExit # '''\n\r\f\0\x1b[2J \\ \\u0041 \N{RIGHT-TO-LEFT OVERRIDE}\N{LINE SEPARATOR}"
    "\N{GRINNING FACE}\ud800 {braces} %s -*- coding: latin-1 -*- \N{HANGUL SYLLABLE GA}'"
)
ONE_MORE = {"==": [{"var": "state.a"}, 1]}


def written(
    suite: ExportedSuite,
    folder: Path,
    name: str = "test_written.py",
    *,
    counting_only: bool = False,
    append_to: bytes = b"",
) -> Path:
    module = folder / name
    file = render(
        suite,
        TestFormat.PYTEST,
        counting_only=counting_only,
        directory=str(folder),
        append_to=append_to,
    )
    module.write_bytes(b"".join(file.parts))
    return module


@pytest.mark.slow(reason="starts test runs of its own")
def test_tests_of_a_policy_pass_on_it_and_fail_on_a_changed_one(tmp_path: Path) -> None:
    tests = [policy_case("below", "allow", 4), policy_case("at", "not_allow", 5)]
    assert run_pytest(written(policy_suite(*tests), tmp_path)) == {
        "test_allowed[below]": "passed",
        "test_allowed[at]": "passed",
    }
    changed = written(policy_suite(*tests, bound=6), tmp_path, "test_changed.py")
    assert run_pytest(changed) == {"test_allowed[below]": "passed", "test_allowed[at]": "failed"}


@pytest.mark.slow(reason="starts test runs of its own")
def test_tests_of_a_scenario_pass_on_it_and_fail_on_a_changed_one(tmp_path: Path) -> None:
    test = scenario_case("adds_one", ONE_MORE)
    assert run_pytest(written(scenario_suite(test), tmp_path)) == {"test_actions_adds_one": "passed"}
    changed = written(scenario_suite(test, by=2), tmp_path, "test_changed.py")
    assert run_pytest(changed) == {"test_actions_adds_one": "failed"}


@pytest.mark.slow(reason="runs a suite twice")
def test_tests_of_a_command_pass_on_it_and_fail_on_a_changed_one(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.mkdir()
    (program / "compare.py").write_text(PROGRAM)
    tests = [
        command_case("both", ["5"], "less\nmore\n", stdin="4\n5\n"),
        command_case("usage", [], None, exit_code=2),
    ]
    module = written(command_suite(program, *tests), tmp_path)
    assert set(run_pytest(module).values()) == {"passed"}
    (program / "compare.py").write_text(PROGRAM.replace("<", "<="))
    assert run_pytest(module) == {"test_correctness_both": "failed", "test_correctness_usage": "passed"}


def test_a_command_is_given_what_it_was_given_and_nothing_else(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.mkdir()
    told = "import os; print(os.environ.get('ALPHA'), os.environ.get('BETA'), os.listdir())"
    (program / "compare.py").write_text(told)
    test = command_case("environment", [], "first None ['compare.py']")
    module = written(command_suite(program, test, environment=("ALPHA",)), tmp_path)
    assert run_pytest(module, ALPHA="first", BETA="second") == {"test_correctness_environment": "passed"}
    assert "first" not in module.read_text().partition("def test_")[0]


@pytest.mark.slow(reason="starts test runs of its own")
def test_what_a_variable_holds_is_read_as_its_name_as_it_was_in_the_run(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.mkdir()
    (program / "compare.py").write_text("import os; print(os.environ['A_KEY'], os.environ['ALPHA'])")
    values = {"A_KEY": "canary", "ALPHA": "canary-and-more"}
    outputs = {"hidden": "$A_KEY $ALPHA", "short": "$A_KEY ab"}
    tests = [command_case(name, [], out) for name, out in outputs.items()]
    subject = CommandSubject([sys.executable, "compare.py"], program, values)
    assert subject.run(tests[0]).status is TestStatus.PASSED
    module = written(command_suite(program, *tests, environment=tuple(values)), tmp_path)
    assert run_pytest(module, **values) == {
        "test_correctness[hidden]": "passed",
        "test_correctness[short]": "failed",
    }
    assert run_pytest(module, A_KEY="x", ALPHA="ab")["test_correctness[short]"] == "passed"


@pytest.mark.slow(reason="starts a test run of its own")
def test_what_cannot_be_run_or_looks_at_nothing_is_skipped_with_its_words(tmp_path: Path) -> None:
    found = Finding("TAUTOLOGY", "/steps", "it holds whatever happens.")
    suite = scenario_suite(
        TestCase("words", "actions", "look at it twice", "the same both times"),
        scenario_case("same", True),
        scenario_case("shaky", ONE_MORE),
        scenario_case("good", ONE_MORE),
        outcomes={
            "same": outcome(counts=False, findings=(found,)),
            "shaky": outcome(TestStatus.UNSTABLE, findings=(Finding("UNSTABLE", "", "now and then."),)),
            "good": outcome(),
        },
    )
    module = written(suite, tmp_path)
    text = module.read_text()
    for said in ("look at it twice; expected: the same both times", "it holds whatever", "now and then"):
        assert said in text
    assert "assert True" not in text
    outcomes = run_pytest(module)
    assert outcomes["test_actions_good"] == "passed"
    assert [*outcomes.values()].count("skipped") == 3


@pytest.mark.slow(reason="runs a suite")
def test_a_command_of_which_nothing_is_expected_is_no_test(tmp_path: Path) -> None:
    module = written(command_suite(tmp_path, command_case("any", [], None, None)), tmp_path)
    assert "no expected output or exit code" in module.read_text()
    assert "import subprocess" not in module.read_text()
    assert set(run_pytest(module).values()) == {"skipped"}


@pytest.mark.slow(reason="starts a test run of its own")
def test_an_expectation_that_was_never_met_is_an_expected_failure_with_its_source(tmp_path: Path) -> None:
    failed = outcome(TestStatus.FAILED, counts=False, observed="deny by default")
    tests = [
        policy_case("wrong", "allow", 7, source='task: "Seven" is allowed.'),
        policy_case("guessed", "allow", 8),
        policy_case("right", "allow", 1),
    ]
    suite = policy_suite(*tests, outcomes={"wrong": failed, "guessed": failed, "right": outcome()})
    module = written(suite, tmp_path)
    assert "# It failed in the run: deny by default" in module.read_text()
    assert "the subject contradicts its source: task: " in module.read_text()
    assert "never met: the subject or the test is wrong" in module.read_text()
    assert run_pytest(module) == {
        "test_allowed[wrong]": "xfail",
        "test_allowed[guessed]": "xfail",
        "test_allowed[right]": "passed",
    }
    repaired = written(replace(suite, tests=tuple(tests[:1])), tmp_path, "test_repaired.py")
    text = repaired.read_text()
    repaired.write_text(text.replace("5]", "9]"))
    assert run_pytest(repaired) == {"test_allowed_wrong": "failed"}, "a repaired subject has to be noticed"


@pytest.mark.slow(reason="starts pytest three times")
def test_a_call_of_a_function_is_checked_in_the_named_directory(tmp_path: Path) -> None:
    for name, result in (("one", 1), ("other", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "compare.py").write_text(f"def f():\n    return {result}\n")
    call = {"module": "compare", "code": "f()"}
    body: dict[str, Any] = {"arguments": [], "stdin": "", "exit_code": None, "call": call}
    test = TestCase("call", "correctness", "f()", "1", body=body, source="compare.py, line 3: >>> f() 1")
    module = written(command_suite(tmp_path / "one", test), tmp_path)
    assert "# Source: compare.py, line 3: >>> f() 1" in module.read_text()
    assert run_pytest(module) == {"test_correctness_call": "passed"}
    assert run_pytest(module, SUBJECT=str(tmp_path / "other")) == {"test_correctness_call": "failed"}


def test_only_tests_that_count_are_written_where_that_is_asked_for(tmp_path: Path) -> None:
    tests = [policy_case("one", "allow", 1), policy_case("two", "allow", 2), policy_case("three", "allow", 3)]
    suite = policy_suite(*tests, outcomes={"one": outcome(), "two": outcome(counts=False)})
    text = written(suite, tmp_path, counting_only=True).read_text()
    assert [line for line in text.splitlines() if line.startswith("def")] == ["def test_allowed_one():"]


def test_baseline_tests_of_a_command_that_add_nothing_are_left_out(tmp_path: Path) -> None:
    tests = [
        replace(command_case(name, [name], "x"), is_combinatorial=name != "written", source=source)
        for name, source in {"new": "", "same": "", "cited": "README, line 1", "written": ""}.items()
    ]
    outcomes = {test.test_id: outcome(counts=test.test_id == "new") for test in tests}
    suite = command_suite(tmp_path, *tests, outcomes=outcomes)
    assert re.findall(r'id="(\w+)"', written(suite, tmp_path).read_text()) == ["new", "cited", "written"]
    assert len(json.loads(b"".join(render(suite, TestFormat.JSON).parts))["tests"]) == len(tests)
    whole = b"".join(render(suite, TestFormat.PYTEST, with_redundant=True).parts).decode()
    assert whole.count("pytest.param(") == len(tests)
    unmeasured = command_suite(tmp_path, *tests, outcomes={one: outcome(counts=False) for one in outcomes})
    assert written(unmeasured, tmp_path).read_text().count("pytest.param(") == len(tests)


def test_the_subject_is_found_beside_the_module(tmp_path: Path) -> None:
    program = tmp_path / "a" / "program"
    program.mkdir(parents=True)
    suite = command_suite(program, command_case("a", [], "b"))
    assert (
        'os.environ.get("SUBJECT", Path(__file__).parent / "a/program")'
        in written(suite, tmp_path).read_text()
    )
    assert 'os.environ.get("SUBJECT", Path(__file__).parent)' in written(suite, program).read_text()
    unknown = b"".join(render(suite, TestFormat.PYTEST).parts).decode()
    assert f'os.environ.get("SUBJECT", "{program}")' in unknown


def test_names_of_the_author_are_ids_and_equal_shapes_one_function(tmp_path: Path) -> None:
    tests = [
        replace(command_case("c1", ["a"], "x"), name="Plain Word"),
        replace(command_case("c2", ["b"], "y"), name="plain word"),
        replace(command_case("c3", ["c"], "z", stdin="in"), name="from input"),
        replace(command_case("c4", [], None, exit_code=2), name="usage"),
    ]
    text = written(command_suite(tmp_path, *tests), tmp_path).read_text()
    functions = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert functions == ["test_correctness", "test_correctness_from_input", "test_correctness_usage"]
    assert text.count("parametrize") == 1
    assert all(f'id="{name}"' in text for name in ("plain_word", "plain_word_2"))


@pytest.mark.slow(reason="starts a test run for each text")
def test_any_text_stays_text(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.mkdir()
    (program / "compare.py").write_text("import sys; sys.stdout.write(sys.argv[1])")
    echoed = re.sub("[\0\r\ud800]", "", HOSTILE)
    suites = [
        command_suite(program, command_case(HOSTILE, [echoed], echoed, stdin=echoed)),
        suite_of([TestCase(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)]),
        policy_suite(policy_case(HOSTILE, "allow", reasoning=HOSTILE)),
        scenario_suite(scenario_case(HOSTILE, {"!=": [HOSTILE, ""]}, reasoning=HOSTILE)),
    ]
    for number, suite in enumerate(suites):
        module = written(suite, tmp_path, f"test_{number}.py")
        module.read_bytes().decode("utf-8")
        assert "\x1b" not in module.read_text()
        assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in module.read_text()
        ast.parse(module.read_bytes())
    assert run_pytest(tmp_path / "test_0.py").popitem()[1] == "passed"
    assert run_pytest(tmp_path / "test_1.py").popitem()[1] == "skipped"
    assert run_pytest(tmp_path / "test_2.py").popitem()[1] == "passed"


@pytest.mark.parametrize(
    "value",
    [
        HOSTILE,
        {"texts": [HOSTILE, HOSTILE * 2]},
        {'""': ['""', ""]},
        [["'" * 4, '"' * 9], {"": "\\"}],
        1e300,
        None,
    ],
)
def test_a_literal_holds_the_value(value: object) -> None:
    literal = ast.literal_eval(to_json_literal(value, 8, 95))
    assert json.loads(literal) == value
    assert ast.literal_eval(to_literal(value, 8, 95)) == value


def test_a_value_stands_on_one_line_where_it_fits() -> None:
    value = {"first": ["x" * 30] * 4, "second": {"a": [1, 2]}}
    lines = to_json_literal(value, 4, 95).splitlines()
    assert '      "second": {"a": [1, 2]}' in lines
    assert len(lines) == 11
    assert max(map(len, lines)) < 100


def test_a_long_text_has_one_literal_for_each_line() -> None:
    text = "first line\nsecond 'line'\n\nlast"
    shown = to_literal(text, 4, 30)
    assert shown == (
        '(\n        "first line\\n"\n        "second \'line\'\\n"\n        "\\n"\n        "last"\n    )'
    )
    assert ast.literal_eval(shown) == text
    assert to_literal("a" * 50, 4, 30) == '"' + "a" * 50 + '"'
    assert to_literal(["a" * 20 + "\n" + "b" * 20, 1], 0, 30).count("\n") == 6


def test_names_are_valid_and_each_another_one() -> None:
    made = list_names(
        ["a", "a", "a_2", "", "\N{HANGUL SYLLABLE GA}", "A b-c", "class", "9", "x" * 500, "x" * 501],
    )
    assert len(made) == len(set(made))
    assert all(name.isidentifier() and name.isascii() and name.startswith("test_") for name in made)


@pytest.mark.parametrize("kind", ["policy", "scenario", "command", "variables", "words"])
def test_what_is_written_has_nothing_that_a_linter_objects_to(kind: str, tmp_path: Path) -> None:
    words = TestCase("words", "actions", "x")
    suite = {
        "policy": policy_suite(policy_case("a", "allow"), words),
        "scenario": scenario_suite(scenario_case("a", ONE_MORE)),
        "command": command_suite(tmp_path, command_case("a", [], "b"), command_case("c", [], None), words),
        "variables": command_suite(tmp_path, command_case("a", [], "b"), environment=("ALPHA", "A_KEY")),
        "words": suite_of([words]),
    }[kind]
    module = written(suite, tmp_path)
    ruff = shutil.which("ruff") or str(sys.executable).replace("python3", "ruff").replace("python", "ruff")
    command = [ruff, "check", "--isolated", "--extend-select=I,UP,B,SIM,C4,PT,N,RUF", str(module)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
