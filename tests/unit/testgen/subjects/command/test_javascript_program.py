"""A JavaScript program as a subject: its files, its executed lines, and its baseline tests."""

from __future__ import annotations

import json
import shutil
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

from peripety.testgen.subjects.command import javascript_program
from peripety.testgen.subjects.command.baseline.script_tests import (
    ScriptFunctions,
    ScriptTests,
    find_script_commands,
    find_script_values,
)
from peripety.testgen.subjects.command.javascript_program import (
    JavaScriptCommand,
    JavaScriptProgram,
    find_instrumenter,
    parse_javascript_command,
)
from peripety.testgen.subjects.command.python_program import ProgramChanges, ProgramInput
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
# As the instrumenter of Stryker: each comparison has a mutant that includes the limit, and an endless one.
INSTRUMENTER = """\
export class Instrumenter {
  async instrument([{ content }], options) {
    const mutants = [];
    const isActive = (id) => `process.env.__STRYKER_ACTIVE_MUTANT__ === '${id}'`;
    const lines = content.split('\\n').map((text, line) =>
      text.replace(/\\w+ > \\w+/, (before, column) => {
        const id = mutants.length;
        const location = { start: { line, column }, end: { line, column: column + before.length } };
        const after = before.replace('>', '>=');
        mutants.push({ id: `${id}`, location, mutatorName: 'EqualityOperator', replacement: after });
        mutants.push({ id: `${id + 1}`, location, mutatorName: 'BlockStatement', replacement: 'endless()' });
        mutants.push({ id: `${id + 2}`, location, status: 'Ignored' });
        const endless = `${isActive(id + 1)} ? (() => { for (;;); })() : ${before}`;
        return `${isActive(id)} ? ${after} : ${endless}`;
      }),
    );
    return { files: [{ content: lines.join('\\n') }], mutants };
  }
}
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
        (("node", "bin/tool", "b"), ("node", (), "bin/tool", ("b",))),
        (("node", "-e", "1"), None),
        (("node", "--version"), None),
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
    result = subject.run(case("grade", "51", expected="high"))
    assert result.status is TestStatus.PASSED
    assert result.covered == {
        *(f"line:/tool.js/{line}" for line in (3, 7, 8, 9, 17)),
        *(f"line:/lib/text.js/{line}" for line in (1, 2, 3, 8, 17)),
    }
    assert subject.material["sources"][0]["file"] == "tool.js"


@pytest.fixture
def instrumenter(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path_factory.mktemp("packages")
    packages.chmod(0o755)  # the program may run as another user
    place = packages / "@stryker-mutator" / "instrumenter"
    place.mkdir(parents=True)
    (place / "package.json").write_text(
        json.dumps({"name": "@stryker-mutator/instrumenter", "type": "module", "exports": "./index.js"})
    )
    (place / "index.js").write_text(INSTRUMENTER)
    monkeypatch.setenv("NODE_PATH", f"/no-such-directory:{packages}")


@pytest.mark.slow(reason="runs a program several times")
@pytest.mark.usefixtures("instrumenter")
def test_mutants_come_from_the_instrumenter(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = CommandSubject(("node", "tool.js"), directory)
    assert not subject.unmutated
    shown = [(one.mutant_id, one.operator, one.path, one.before, one.after) for one in subject.mutants]
    place = "lib/text.js:2:7"
    limit, endless = f"{place}:equality_operator", f"{place}:block_statement"
    assert shown == [
        (limit, "equality_operator", "/lib/text.js/2", b'"value > 50"', b'"value >= 50"'),
        (endless, "block_statement", "/lib/text.js/2", b'"value > 50"', b'"endless()"'),
    ]
    assert {one.target for one in subject.mutants} == {"/lib/text.js/2"}
    assert not subject.kills(case("join", "a", expected="a"), [limit, endless])
    jobs: list[str] = []
    probe = JavaScriptProgram._probe

    def counted(program: JavaScriptProgram, command: str, job: Any, *rest: Any) -> Any:
        jobs.extend(one["id"] for one in job.get("mutants", ()))
        return probe(program, command, job, *rest)

    monkeypatch.setattr(JavaScriptProgram, "_probe", counted)
    assert subject.kills(case("grade", "50", expected="low"), [limit, endless]) == {limit, endless}
    assert subject.kills(case("grade", "51", expected="high"), [limit, endless]) == {endless}
    assert jobs == ["0", "1", "0"]  # the endless one is run once
    assert not subject.kills(case("grade", "50", expected="high"), [limit])  # the program itself fails


@pytest.mark.slow(reason="runs a program several times")
@pytest.mark.usefixtures("instrumenter")
def test_a_mutant_has_its_own_input_and_files(tmp_path: Path) -> None:
    (tmp_path / "tool.js").write_text(
        "const fs = require('fs');\n"
        "const words = fs.readFileSync(0, 'utf8').split(' ').map(Number);\n"
        "const limit = Number(fs.readFileSync('limit.txt', 'utf8'));\n"
        "fs.writeFileSync('limit.txt', 'used');\n"
        "fs.writeFileSync('out.txt', words.filter((word) => word > limit).join());\n"
        "console.error(process.cwd());\n"
    )
    subject = CommandSubject(("node", "tool.js"), tmp_path)
    body = {
        "arguments": [],
        "stdin": "5 7 9",
        "exit_code": 0,
        "stderr": ".",
        "files": [{"path": "limit.txt", "content": "7"}],
        "expected_files": [{"path": "out.txt", "content": "9"}],
    }
    test = TestCase("t", "correctness", "", None, body=body)
    assert subject.run(test).status is TestStatus.PASSED
    ids = {one.mutant_id for one in subject.mutants}
    assert len(ids) == 2
    assert subject.kills(test, ids) == ids


def test_a_program_without_mutants_tells_what_to_install(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NODE_PATH", raising=False)
    monkeypatch.setattr(javascript_program, "_find_global_instrumenter", lambda: None)
    subject = CommandSubject(("node", "tool.js"), directory)
    assert "npm install --global @stryker-mutator/instrumenter" in subject.unmutated
    assert not subject.mutants
    (directory / "tool.sh").write_text("echo a\n")
    assert not CommandSubject(("sh", "tool.sh"), directory).unmutated


def test_the_instrumenter_is_found_beside_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NODE_PATH", raising=False)
    monkeypatch.setattr(javascript_program, "_find_global_instrumenter", lambda: None)
    directory = tmp_path / "tools" / "one"
    directory.mkdir(parents=True)
    assert find_instrumenter(directory) is None
    assert find_instrumenter(None) is None
    place = tmp_path / "node_modules" / "@stryker-mutator" / "instrumenter"
    place.mkdir(parents=True)
    (place / "package.json").write_text("{}")
    assert find_instrumenter(directory) == tmp_path / "node_modules"


@pytest.mark.slow(reason="runs a program several times")
@pytest.mark.skipif(find_instrumenter(None) is None, reason="the instrumenter of Stryker is not installed")
def test_mutants_of_stryker_are_killed_and_those_of_messages_are_left_out(directory: Path) -> None:
    (directory / "tool.js").write_text(TOOL.replace("process.exit(2)", "console.error('Bad' + 'input')"))
    subject = CommandSubject(("node", "tool.js"), directory)
    ids = [one.mutant_id for one in subject.mutants]
    assert "tool.js:12:10:block_statement" in ids
    assert not [
        one for one in subject.mutants if "Bad" in str(one.before) and "console" not in str(one.before)
    ]
    killed = subject.kills(case("join", "a ", "b", expected="a-b"), ids)
    assert {"lib/text.js:10:20:method_expression", "lib/text.js:11:11:string_literal"} <= killed
    assert not [one for one in killed if one.startswith("lib/text.js:2:")]
    (directory / "lib" / "text.js").write_text(
        f"exports.a = 'b' + 'c';\nexports.d = /[{'a-b' * 400}]/;\n1 + 2;\n"
    )
    shown = CommandSubject(("node", "tool.js"), directory).mutants
    assert {one.path for one in shown if "text" in one.path} == {"/lib/text.js/1", "/lib/text.js/3"}


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
    found = {draft.source: draft for draft in islice(subject.baseline_tests(), 5) if draft.source}
    assert [*found] == ["README, line 4: $ tool grade 51 high", "README, line 6: $ tool join a b a_b"]
    statuses = [
        subject.run(TestCase("t", "correctness", "", draft.expected_output, body=draft.body)).status
        for draft in found.values()
    ]
    assert statuses == [TestStatus.PASSED, TestStatus.FAILED]


@pytest.mark.slow(reason="calls a program some hundred times")
def test_baseline_tests_reach_what_no_documentation_shows(directory: Path) -> None:
    (directory / "README.md").unlink()
    subject = CommandSubject(("node", "tool.js"), directory)
    assert subject._script is not None
    tests = [*ScriptTests(subject._script, subject._list_files(), "", 12.0)]
    given = [draft.body["arguments"] for draft in tests if draft.body]
    shown = {
        subject.run(TestCase("t", "correctness", "", None, body={"arguments": one})).observed for one in given
    }
    assert "exit code 0\nstdout: low" in shown  # of a command that only a comparison names
    assert any(one[0] == "join" for one in given if one)


def test_calls_are_run_in_copies_until_a_limit(directory: Path) -> None:
    subject = CommandSubject(("node", "tool.js"), directory)
    assert subject._script is not None
    (directory / "tool.js").write_text(
        TOOL.replace("main(process", "require('fs').appendFileSync('a.txt', 'x');\nmain(process")
    )
    calls = [ProgramInput(("grade", "51")), ProgramInput(("grade", "50")), ProgramInput(("x",))] * 2
    results = subject._script.survey_calls(calls, 60.0)
    shown = [(one.exit_code, one.stdout) for one in results]
    assert shown == [(0, b"high\n"), (0, b"low\n"), (2, b"")] * 2
    high, low, other = results[:3]
    assert 3 in high.lines["lib/text.js"]
    assert 3 not in low.lines["lib/text.js"]
    assert len({high.features, low.features, other.features}) == 3
    assert results[3].features == high.features
    assert not subject._script.survey_calls(calls, 0.0)


def test_options_come_from_the_help_and_from_the_sources(directory: Path) -> None:
    text = LIBRARY + "if (/^(?:-s|--short)$/.test(a)) b(['fast'], a === '--loose');\n"
    (directory / "lib" / "text.js").write_text(text)
    script = CommandSubject(("node", "tool.js"), directory)._script
    assert script is not None
    shown = "Usage: tool [options]\n  -n, --number <count>  how many\n  -q  quiet, not half-way\n"
    files = ["a.json", "b.txt", "c.txt"]
    one, many, reading, with_options = find_script_commands(
        script.modules.values(), shown, files, [("join", "-q", "word")]
    )
    flags = {option.flag for option in with_options.options if option.is_flag}
    valued = {option.flag: option.values for option in with_options.options if not option.is_flag}
    assert flags == {"-q", "-s", "--short", "--loose"}
    assert {*valued} == {"-n", "--number", *flags}
    assert {"grade", "join", "fast"} <= {*valued["--number"]}
    assert reading.options == with_options.options
    assert one.arguments[0].values[:5] == ("a.json", "b.txt", "c.txt", "join", "word")
    assert len(many.arguments) == 2


def test_the_only_file_of_its_kind_is_not_left_out() -> None:
    files = [f"{number}.txt" for number in range(40)] + ["view.json"]
    one, many, *_ = find_script_commands([], "", files, [])
    assert one.arguments[0].values[:2] == many.arguments[1].values[:2] == ("view.json", "0.txt")


def test_values_come_from_the_literals_of_a_function(directory: Path) -> None:
    text = (
        LIBRARY
        + "function check(a) {\n  return a.length > 6 && /^[xy]$/.test(a) && a !== '--flag';\n}\ncheck('');\n"
    )
    (directory / "lib" / "text.js").write_text(text)
    script = CommandSubject(("node", "tool.js"), directory)._script
    assert script is not None
    by_place: dict[tuple[str, int], set[str]] = {}
    for value in find_script_values(script.modules):
        (place,) = value.functions
        by_place.setdefault(place, set()).add(value.text)
    assert {"49", "50", "51", "-50"} <= by_place["lib/text.js", 1]
    assert {"123456", "1234567", "x", "y"} <= by_place["lib/text.js", 18]
    assert {"grade", "join"} <= by_place["tool.js", 6]
    assert not [value for own in by_place.values() for value in own if value == "--flag"]
    functions = ScriptFunctions(script.modules)
    assert functions.reached({"lib/text.js": frozenset({1})}) == {("lib/text.js", 0)}
    assert ("lib/text.js", 18) in functions.reached({"lib/text.js": frozenset({19})})
    assert functions.at_lines([("lib/text.js", 19)]) == {("lib/text.js", 0), ("lib/text.js", 18)}


@pytest.mark.slow(reason="runs a program several times")
def test_only_changed_lines_are_measured(directory: Path) -> None:
    changes = ProgramChanges("main", {"lib/text.js": ((2, 4),)})
    subject = CommandSubject(("node", "tool.js"), directory, changes=changes)
    assert [one.path for one in subject.targets] == ["/lib/text.js/2", "/lib/text.js/3"]
    drafts = islice(subject.baseline_tests(), 1)
    assert [draft.source for draft in drafts] == ["README, line 4: $ tool grade 51 high"]


def test_a_program_imports_the_main_file_of_its_own_package(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "tool").write_text("function main() {\n  require('..')();\n}\nmain();\n")
    (tmp_path / "package.json").write_text('{"main": "main.js"}')
    (tmp_path / "main.js").write_text("module.exports = () => {\n  console.log('a');\n};\n")
    subject = CommandSubject(("node", "bin/tool"), tmp_path)
    assert {one.path for one in subject.targets} == {"/bin/tool/2", "/bin/tool/4", "/main.js/1", "/main.js/2"}
    assert len(subject.run(case(expected="a")).covered) == 4


def test_a_program_that_is_not_valid_is_run_and_not_measured(tmp_path: Path) -> None:
    (tmp_path / "bad.js").write_text("const = 1;\n")
    subject = CommandSubject(("node", "bad.js"), tmp_path)
    assert not subject.targets
    assert "SyntaxError" in subject.run(case()).observed
