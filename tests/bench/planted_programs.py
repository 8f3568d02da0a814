"""Programs around packages from PyPI and npm, and copies of them with planted bugs.

The packages are installed into `build`. `programs/*.toml` has the suite written by hand and the bugs made by
hand of each; mutants are drawn by a seed from those that this suite notices.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from bench import planted_bugs_peers as peers
from peripety.testgen.subjects.command.python_program import ProgramInput, SurveyedCall
from peripety.testgen.subjects.command.subject import CommandSubject, input_of
from support.testgen.graded_tests.tasks import HiddenTest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.testgen.subjects.command.javascript_program import JavaScriptProgram
    from peripety.testgen.subjects.command.python_program import ProgramInterface, PythonProgram
    from peripety.testgen.types import DraftTest, TestCase


PROGRAMS = Path(__file__).parent / "programs"
BUILD = Path("build/planted-bugs")
INSTRUMENTER = "@stryker-mutator/instrumenter@9.6.1"
_CALL_SECONDS = 60.0
_BATCH = 200
_PART = 16
"""Number of tests that are run at a time until one fails."""

_LARGE_PART = 64
"""Number of tests that are run at a time until several fail."""

AnyTest: TypeAlias = "DraftTest | TestCase"


@dataclass(frozen=True)
class Bug:
    """A change of one file of a package.

    Attributes:
        file: the file.
        text: the whole file with the bug.
        shown: the change, for display.
        by_hand: True if it was made by hand.
    """

    file: str
    text: str
    shown: str
    by_hand: bool


class Program:
    """A program around a package.

    Args:
        name: the name of its file in `programs`.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        found = tomllib.loads((PROGRAMS / f"{name}.toml").read_text(encoding="utf-8"))
        self.requirement: str = found["requirement"]
        self.argv: list[str] = found["argv"]
        self.task: str = found["task"]
        self.modules: list[str] = found["modules"]
        self.rows = [_row(line) for line in found["commands"].strip("\n").split("\n")]
        self.changes: list[Mapping[str, str]] = found["bugs"]
        self.files: Mapping[str, str] = found.get("files", {})

    @cached_property
    def python(self) -> Path:
        """The interpreter of the environment in which the package is installed."""
        return peers.install(BUILD.resolve() / self.requirement, "--no-deps", self.requirement)

    @cached_property
    def packages(self) -> Path:
        """The directory of the installed package."""
        (found,) = self.python.parent.parent.glob("lib/python*/site-packages")
        return found

    @cached_property
    def original(self) -> CommandSubject:
        """The program on its package as it is."""
        return self._subject({})

    @cached_property
    def by_hand(self) -> list[Bug]:
        """The bugs made by hand."""
        bugs = []
        for bug in self.changes:
            text = (self.packages / bug["file"]).read_text(encoding="utf-8")
            assert bug["old"] in text, (self.name, bug)
            changed = text.replace(bug["old"], bug["new"], 1)
            bugs.append(Bug(bug["file"], changed, f"{bug['old']!r} -> {bug['new']!r}", by_hand=True))
        return bugs

    def mutants(self, count: int) -> list[Bug]:
        """Return mutants of the package, of different lines, that the suite written by hand notices."""
        places = [
            (module, inner)
            for module in program_of(self.original).modules.values()
            if module.name not in self.argv
            for inner in module.mutant_ids
            # Changes of regular expressions are made by hand: the drawn bugs stay those of earlier runs.
            if not inner.startswith("change_pattern")
        ]
        places.sort(key=lambda place: sha256(f"{place[0].name} {place[1]}".encode()).digest())
        suite = PassingTests(self, [test.case for test in self.hidden])
        kept: list[Bug] = []
        seen: set[tuple[str, int]] = set()
        for module, inner in places:
            if len(kept) >= count:
                break
            line = module.name, module.lines_of(inner)[0]
            if line in seen or module.is_equivalent(inner):
                continue
            bug = Bug(module.name, module.source_of(inner).decode(), f"{module.name} {inner}", by_hand=False)
            if suite.has_failing(bug):
                seen.add(line)
                kept.append(bug)
        return kept

    @cached_property
    def interface(self) -> ProgramInterface:
        """The interface of the program on its package as it is."""
        return program_of(self.original).find_interface()

    @cached_property
    def hidden(self) -> list[HiddenTest]:
        """The suite written by hand, with the results of the package as it is."""
        hidden = []
        given = [ProgramInput(tuple(words), text.encode()) for words, text in self.rows]
        for (words, text), result in zip(self.rows, self.survey(self.original, given), strict=True):
            # The address of an object differs in each process.
            is_stable = result is not None and b" at 0x" not in result.stdout
            if is_stable and result is not None and result.exit_code is not None:
                body = {"arguments": words, "stdin": text, "exit_code": result.exit_code}
                shown = " ".join([*map(repr, words), *([f"with {text!r}"] if text else [])])
                category = "boundary" if result.exit_code else "correctness"
                output = result.stdout.decode(errors="replace").rstrip()
                hidden.append(HiddenTest(category, shown, body, output))
        # A program that cannot be started gives all calls the same result, and no bug is ever noticed.
        assert len({(test.expected_output, test.body["exit_code"]) for test in hidden}) > 1, self.name
        return hidden

    def survey(self, subject: CommandSubject, given: Sequence[ProgramInput]) -> list[SurveyedCall | None]:
        """Run calls; None for a call that has no result."""
        results: list[SurveyedCall | None] = []
        for start in range(0, len(given), _BATCH):
            batch = given[start : start + _BATCH]
            found = self.survey_batch(subject, batch)
            results += [*found, *[None] * (len(batch) - len(found))]
        return results

    def survey_batch(self, subject: CommandSubject, given: Sequence[ProgramInput]) -> list[SurveyedCall]:
        """Run calls in forked processes, until a time limit."""
        return program_of(subject).survey_calls(self.interface, given, _CALL_SECONDS)

    def met(self, subject: CommandSubject, tests: Sequence[AnyTest]) -> list[bool]:
        """Return True for each test that the program passes, on its package as it is or with a bug."""
        results = self.survey(subject, [input_of(test.body or {}) for test in tests])
        return [_is_met(test, result) for test, result in zip(tests, results, strict=True)]

    def place_of(self, bug: Bug) -> tuple[str, range] | None:
        """Return the key of a file and the lines of the function that a bug changes; None outside of one."""
        modules = program_of(self.original).modules.items()
        key, text = next((key, module.text) for key, module in modules if module.name == bug.file)
        lines = find_changed_function(text, bug.text)
        return None if lines is None else (key, lines)

    def buggy(self, bug: Bug) -> CommandSubject:
        """Return the program on a copy of the package with a bug, or a copy of the program with a bug."""
        if bug.file not in self.argv:
            return self._subject({"PYTHONPATH": str(self.copy_with(bug))})
        place = BUILD.resolve() / "bugs" / f"{self.name}-{sha256(bug.text.encode()).hexdigest()[:12]}"
        shutil.copytree(copy_programs(), place, dirs_exist_ok=True)
        (place / bug.file).write_text(bug.text, encoding="utf-8")
        return CommandSubject([str(self.python), *self.argv], place, {}, task=self.task)

    def copy_with(self, bug: Bug) -> Path:
        """Return a directory with a copy of the package with a bug."""
        number = sha256(bug.text.encode()).hexdigest()[:12]
        place = BUILD.resolve() / "bugs" / f"{self.name}-{number}"
        package = bug.file.partition("/")[0]
        if not place.exists():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(self.packages / package, place / package, ignore=ignored)
        (place / bug.file).write_text(bug.text, encoding="utf-8")
        return place

    def _subject(self, variables: Mapping[str, str]) -> CommandSubject:
        return CommandSubject([str(self.python), *self.argv], copy_programs(), variables, task=self.task)


class Script(Program):
    """A JavaScript program of a package from npm.

    Args:
        name: the name of its file in `programs`.
    """

    @cached_property
    def packages(self) -> Path:
        """The directory of the installed package, with the files of the program beside it."""
        place = _install_from_npm(self.requirement)
        for name, text in self.files.items():
            (place / name).write_text(text, encoding="utf-8")
        return place

    @cached_property
    def original(self) -> CommandSubject:
        """The program on its package as it is, with mutants."""
        os.environ["NODE_PATH"] = str(_install_from_npm(INSTRUMENTER) / "node_modules")
        return CommandSubject(self.argv, self.packages, task=self.task)

    def mutants(self, count: int) -> list[Bug]:
        """Return mutants of the package, of different lines, that the suite written by hand notices."""
        script = script_of(self.original)
        places = sorted(
            script._instrumented.mutants.items(), key=lambda one: sha256(one[0].encode()).digest()
        )
        suite = PassingTests(self, [test.case for test in self.hidden])
        kept: list[Bug] = []
        seen: set[tuple[str, int]] = set()
        for mutant_id, mutant in places:
            file = mutant["file"]
            line = file, mutant["line"]
            if len(kept) >= count:
                break
            if line in seen:
                continue
            text = script.modules[file].text.encode("utf-16-le")  # as the offsets of JavaScript
            begin, end = 2 * mutant["begin"], 2 * mutant["begin"] + len(mutant["before"].encode("utf-16-le"))
            changed = (text[:begin] + mutant["after"].encode("utf-16-le") + text[end:]).decode("utf-16-le")
            bug = Bug(file, changed, f"{mutant_id} {mutant['after']}", by_hand=False)
            if suite.has_failing(bug):
                seen.add(line)
                kept.append(bug)
        return kept

    def survey_batch(self, subject: CommandSubject, given: Sequence[ProgramInput]) -> list[SurveyedCall]:
        """Run calls in processes of their own, until a time limit."""
        return script_of(subject).survey_calls(given, _CALL_SECONDS)

    def place_of(self, bug: Bug) -> tuple[str, range] | None:
        """Return the file and the line of the innermost statement that a bug changes; None outside of one."""
        module = script_of(self.original).modules[bug.file]
        pairs = enumerate(zip(module.text, bug.text, strict=False))
        same = next((place for place, (one, other) in pairs if one != other), len(module.text))
        begin = len(module.text[:same].encode("utf-16-le")) // 2
        around = [line for start, line, end in module.statements if start <= begin < end]
        return (bug.file, range(around[-1], around[-1] + 1)) if around else None

    def copy_with(self, bug: Bug) -> Path:
        """Return a copy of the directory with a bug."""
        number = sha256(bug.text.encode()).hexdigest()[:12]
        place = BUILD.resolve() / "bugs" / f"{self.name}-{number}"
        if not place.exists():
            shutil.copytree(self.packages, place)
        (place / bug.file).write_text(bug.text, encoding="utf-8")
        return place

    def buggy(self, bug: Bug) -> CommandSubject:
        """Return the program on a copy of the package with a bug."""
        return CommandSubject(self.argv, self.copy_with(bug), task=self.task)


def open_program(name: str) -> Program:
    """Return the program of a file in `programs`."""
    found = tomllib.loads((PROGRAMS / f"{name}.toml").read_text(encoding="utf-8"))
    return Script(name) if found.get("registry") == "npm" else Program(name)


def _install_from_npm(requirement: str) -> Path:
    """Return a directory with an installed package."""
    place = BUILD.resolve() / "npm" / requirement.replace("/", "-")
    if not (place / "package-lock.json").exists():
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text('{"private": true}')
        options = ("--ignore-scripts", "--no-audit", "--no-fund")
        subprocess.run(
            ["npm", "install", *options, requirement], cwd=place, check=True, stdout=subprocess.DEVNULL
        )
    return place


def find_changed_function(text: str, changed: str) -> range | None:
    """Return the lines of the only function in which two sources differ; None if they differ elsewhere."""
    trees = ast.parse(text), ast.parse(changed)
    shown = ast.dump(trees[0])
    functions = [[node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)] for tree in trees]
    # Outer functions come before those within them.
    differing = [pair for pair in zip(*functions, strict=False) if len({*map(ast.dump, pair)}) > 1]
    for own, other in reversed(differing):
        other.body = own.body
        if ast.dump(trees[1]) == shown:
            return range(own.body[0].lineno, (own.end_lineno or 0) + 1)
    return None


def _row(line: str) -> tuple[list[str], str]:
    """Return the arguments and the standard input of a line of `commands`."""
    words = shlex.split(line)
    if "<<" not in words:
        return words, ""
    place = words.index("<<")
    signs = {"n": "\n", "t": "\t"}
    return words[:place], re.sub(r"\\([nt\\])", lambda found: signs.get(found[1], "\\"), words[place + 1])


def copy_programs() -> Path:
    """Return a directory with the programs, which import packages that the checks of this repository lack."""
    place = BUILD.resolve() / "programs"
    place.mkdir(parents=True, exist_ok=True)
    for source in PROGRAMS.glob("*.py.txt"):
        shutil.copy(source, place / source.stem)
    return place


def program_of(subject: CommandSubject) -> PythonProgram:
    """Return the Python program of a command."""
    assert subject._program is not None
    return subject._program


def script_of(subject: CommandSubject) -> JavaScriptProgram:
    """Return the JavaScript program of a command."""
    assert subject._script is not None
    return subject._script


class PassingTests:
    """Those of some tests that a program passes on its package as it is.

    Args:
        program: the program.
        tests: the tests.

    Attributes:
        program: the program.
        tests: those that pass.
    """

    def __init__(self, program: Program, tests: Sequence[AnyTest]) -> None:
        self.program = program
        results = program.survey(program.original, [input_of(test.body or {}) for test in tests])
        self._lines = {
            id(test): result.lines
            for test, result in zip(tests, results, strict=True)
            if result is not None and _is_met(test, result)
        }
        self.tests = [test for test in tests if id(test) in self._lines]

    def lines_of(self, test: AnyTest) -> Mapping[str, frozenset[int]]:
        """Return the lines that a passing test executes, by the key of the file."""
        return self._lines.get(id(test), {})

    def failing(self, bug: Bug) -> list[AnyTest]:
        """Return the tests that fail with a bug; only those are run that execute the changed function."""
        reaching = self._reaching(bug)
        met = self.program.met(self.program.buggy(bug), reaching) if reaching else ()
        return [test for test, is_met in zip(reaching, met, strict=True) if not is_met]

    def first_failing(self, bug: Bug, count: int) -> list[AnyTest]:
        """Return at least a number of tests that fail with a bug; the rest of the tests is then not run."""
        reaching, failing = self._reaching(bug), list[AnyTest]()
        subject = self.program.buggy(bug) if reaching else self.program.original
        for start in range(0, len(reaching), _LARGE_PART):
            part = reaching[start : start + _LARGE_PART]
            met = self.program.met(subject, part)
            failing += [test for test, is_met in zip(part, met, strict=True) if not is_met]
            if len(failing) >= count:
                break
        return failing

    def has_failing(self, bug: Bug) -> bool:
        """Return True if a test fails with a bug; the rest of the tests is then not run."""
        reaching = self._reaching(bug)
        subject = self.program.buggy(bug) if reaching else None
        parts = (reaching[start : start + _PART] for start in range(0, len(reaching), _PART))
        return any(subject is not None and not all(self.program.met(subject, part)) for part in parts)

    def _reaching(self, bug: Bug) -> list[AnyTest]:
        place = self.program.place_of(bug)
        if place is None:
            return self.tests
        key, lines = place
        return [
            test for test in self.tests if not self._lines[id(test)].get(key, frozenset()).isdisjoint(lines)
        ]


def _is_met(test: AnyTest, result: SurveyedCall | None) -> bool:
    if result is None:
        return False
    body: Mapping[str, Any] = test.body or {}
    shown = result.stdout.decode(errors="replace").rstrip()
    is_output_met = test.expected_output is None or test.expected_output.rstrip() == shown
    return is_output_met and body.get("exit_code") in {None, result.exit_code}
