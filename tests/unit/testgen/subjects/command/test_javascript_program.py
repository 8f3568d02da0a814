"""A JavaScript program as a subject: its files, its executed lines, and its baseline tests."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from peripety.testgen.subjects.command.javascript_program import JavaScriptCommand, parse_javascript_command
from peripety.testgen.subjects.command.python_program import ProgramChanges
from peripety.testgen.subjects.command.subject import CommandSubject
from peripety.testgen.types import TestCase, TestStatus

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")

TOOL = """\
#!/usr/bin/env node
'use strict';
const { grade, joined } = require('./lib/text');

// A comment
function main(args) {
  const [command, ...words] = args;
  if (command === 'grade') {
    console.log(grade(Number(words[0])));
  } else if (command === 'join') {
    console.log(joined(words));
  } else {
    process.exit(2);
  }
}

main(process.argv.slice(2));
"""
LIBRARY = """\
exports.grade = (value) => {
  if (value > 50) {
    return 'high';
  }
  return 'low';
};

exports.joined = function (words) {
  return words
    .map((word) => word.trim())
    .join('-');
};

function unused() {
  return 1;
}
exports.unused = unused;
"""
README = "# Tool\n\n```\n$ tool grade 51\nhigh\n$ tool join a b\na_b\n```\n"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "tool.js").write_text(TOOL)
    (tmp_path / "tool.js").chmod(0o755)
    (tmp_path / "lib" / "text.js").write_text(LIBRARY)
    (tmp_path / "lib" / "other.js").write_text("exports.other = 1;\n")
    (tmp_path / "README.md").write_text(README)
    (tmp_path / "package.json").write_text(json.dumps({"name": "tool", "bin": {"tool": "tool.js"}}))
    return tmp_path


def case(*arguments: str, expected: str | None = None) -> TestCase:
    body = {"arguments": [*arguments], "stdin": "", "exit_code": 0}
    return TestCase("t", "correctness", "", expected, body=body)


@pytest.mark.parametrize(
    ("argv", "parts"),
    [
        (("node", "a.js", "b"), ("node", (), "a.js", ("b",))),
        (("/b/node", "-r", "x", "--a", "a.mjs"), ("/b/node", ("-r", "x", "--a"), "a.mjs", ())),
        (("./tool.js", "b"), ("node", (), "./tool.js", ("b",))),
        (("node", "-e", "1"), None),
        (("node", "a.txt"), None),
        (("cat", "a.js"), None),
    ],
)  # fmt: skip
def test_commands_that_start_a_program_are_known(
    argv: tuple[str, ...], parts: tuple[str, tuple[str, ...], str, tuple[str, ...]] | None, directory: Path
) -> None:
    expected = None if parts is None else JavaScriptCommand(*parts)
    assert parse_javascript_command(argv, directory, {}) == expected


def test_lines_of_the_program_and_of_what_it_imports_are_measured(directory: Path) -> None:
    subject = CommandSubject(("node", "tool.js"), directory)
    assert [one.path for one in subject.targets] == [
        *(f"/tool.js/{line}" for line in (3, 7, 8, 9, 10, 11, 13, 17)),
        *(f"/lib/text.js/{line}" for line in (1, 2, 3, 5, 8, 9, 10, 15, 17)),
    ]
    assert not subject.mutants
    result = subject.run(case("grade", "51", expected="high"))
    assert result.status is TestStatus.PASSED
    assert result.covered == {
        *(f"line:/tool.js/{line}" for line in (3, 7, 8, 9, 17)),
        *(f"line:/lib/text.js/{line}" for line in (1, 2, 3, 8, 17)),
    }
    assert subject.material["sources"][0]["file"] == "tool.js"


def test_a_wrapper_measures_the_package_and_another_program_tells_what_is_not_measured(
    tmp_path: Path,
) -> None:
    package = tmp_path / "node_modules" / "shapes"
    package.mkdir(parents=True)
    (package / "package.json").write_text('{"name": "shapes", "main": "main.js"}')
    (package / "main.js").write_text("exports.area = (side) => {\n  return side * side;\n};\n")
    (tmp_path / "wrapper.mjs").write_text("import shapes from 'shapes';\nconsole.log(shapes.area(3));\n")
    wrapper = CommandSubject(("node", "wrapper.mjs"), tmp_path)
    assert [one.path for one in wrapper.targets] == [
        "/wrapper.mjs/2",
        "/node_modules/shapes/main.js/1",
        "/node_modules/shapes/main.js/2",
    ]
    assert len(wrapper.run(case(expected="9")).covered) == 3
    (tmp_path / "own.mjs").write_text(
        "import shapes from 'shapes';\nfunction main() {\n  console.log(shapes.area(3));\n}\nmain();\n"
    )
    own = CommandSubject(("node", "own.mjs"), tmp_path)
    assert own.unmeasured_lines == {"shapes": 2}
    assert [one.path for one in own.targets] == ["/own.mjs/3", "/own.mjs/5"]


@pytest.mark.slow(reason="runs a program several times")
def test_baseline_tests_run_the_commands_of_the_readme(directory: Path) -> None:
    subject = CommandSubject(("node", "tool.js"), directory)
    found = {draft.source: draft for draft in subject.baseline_tests() if draft.source}
    assert [*found] == ["README, line 4: $ tool grade 51 high", "README, line 6: $ tool join a b a_b"]
    statuses = [
        subject.run(TestCase("t", "correctness", "", draft.expected_output, body=draft.body)).status
        for draft in found.values()
    ]
    assert statuses == [TestStatus.PASSED, TestStatus.FAILED]


@pytest.mark.slow(reason="runs a program several times")
def test_only_changed_lines_are_measured(directory: Path) -> None:
    changes = ProgramChanges("main", {"lib/text.js": ((2, 4),)})
    subject = CommandSubject(("node", "tool.js"), directory, changes=changes)
    assert [one.path for one in subject.targets] == ["/lib/text.js/2", "/lib/text.js/3"]
    assert [draft.source for draft in subject.baseline_tests()] == ["README, line 4: $ tool grade 51 high"]


def test_a_program_that_is_not_valid_is_run_and_not_measured(tmp_path: Path) -> None:
    (tmp_path / "bad.js").write_text("const = 1;\n")
    subject = CommandSubject(("node", "bad.js"), tmp_path)
    assert not subject.targets
    assert "SyntaxError" in subject.run(case()).observed
