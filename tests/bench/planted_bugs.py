"""Benchmark of baseline tests on packages from PyPI with planted bugs.

`make bench-testgen-programs`. The packages are installed into `build`, each behind a small program. A bug is
a change of one place of the package, made by hand. There are two measurements:

- *found*: tests are generated for the package as it is. A bug is found if a test fails that passes without
  it.
- *from the start*: tests are generated for the package with the bug. It is shown if a test with a source
  fails that passes without the bug. It is pinned if a test that expects the wrong behaviour has a source.

Tests run in forked processes, as in a survey. `--quality` also measures lines and mutants, which takes
longer.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety.testgen.evaluation.suite import MeasuredSuite, evaluate_test
from peripety.testgen.subjects.command.baseline.tests import ProgramTests
from peripety.testgen.subjects.command.subject import CommandSubject, input_of
from peripety.testgen.types import TestCase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from peripety.testgen.subjects.command.python_program import SurveyedCall
    from peripety.testgen.types import DraftTest

PROGRAMS = Path(__file__).parent / "programs"
BUILD = Path("build/planted-bugs")
WANTED_FOUND = 0.6
WANTED_SHOWN = 0.3
_SURVEY_SECONDS = 60.0
_BATCH = 40


@dataclass(frozen=True)
class Program:
    """A program with bugs.

    Attributes:
        requirement: the pinned package.
        argv: the command, without the interpreter.
        task: the description, which names the package.
        bugs: the changes: file, text, replacement.
    """

    requirement: str
    argv: tuple[str, ...]
    task: str
    bugs: tuple[tuple[str, str, str], ...]


_FILESIZE, _NUMBER = "humanize/filesize.py", "humanize/number.py"
_VERSION, _CLI, _WORDS = "semver/version.py", "semver/cli.py", "inflection/__init__.py"
ALL = {
    "figures": Program(
        "humanize==4.9.0",
        ("figures.py",),
        "Test figures.py, which uses the package humanize.",
        (
            (_FILESIZE, "abs_bytes < base and not gnu", "abs_bytes <= base and not gnu"),
            (_FILESIZE, "base = 1024 if (gnu or binary) else 1000", "base = 1024 if gnu else 1000"),
            (_FILESIZE, "if abs_bytes < unit:", "if abs_bytes <= unit:"),
            (_FILESIZE, "abs_bytes = abs(bytes_)", "abs_bytes = bytes_"),
            (_NUMBER, "value % 100 in (11, 12, 13)", "value % 100 in (11, 12)"),
            (_NUMBER, "value % 100 in (11, 12, 13)", "value in (11, 12, 13)"),
            (_NUMBER, "if not 0 <= value < 10:", "if not 0 < value < 10:"),
            (_NUMBER, "value *= -1\n        negative_prefix", "negative_prefix"),
            (_NUMBER, "if value < powers[0]:", "if value <= powers[0]:"),
            (_NUMBER, r'r"^(-?\d+)(\d{3})"', r'r"^(\d+)(\d{3})"'),
        ),
    ),
    "versions": Program(
        "semver==3.0.2",
        ("-m", "semver"),
        "Test the command of semver.",
        (
            (_VERSION, "return cls(self._major + 1)", "return cls(self._major + 1, self._minor)"),
            (_VERSION, "self._patch + 1)", "self._patch + 2)"),
            (
                _VERSION,
                "elif isinstance(a, int):\n                return -1",
                "elif isinstance(a, int):\n                return 1",
            ),
            (_VERSION, "return _cmp(len(a), len(b))", "return 0"),
            (
                _VERSION,
                "        if not rc1:\n            return 1",
                "        if not rc1:\n            return -1",
            ),
            (_VERSION, 'prerelease = str(token) + ".0"', 'prerelease = str(token) + ".1"'),
            (_VERSION, "(?P<patch>0|[1-9]\\d*)", "(?P<patch>\\d+)"),
            (_VERSION, "max(end - len(next_), start)", "start + 1"),
            (_VERSION, "self._prerelease, build)", "None, build)"),
            (_CLI, '"minor": "bump_minor"', '"minor": "bump_patch"'),
        ),
    ),
    "words": Program(
        "inflection==0.5.1",
        ("words.py",),
        "Test words.py, which uses the package inflection.",
        (
            (_WORDS, "if number % 100 in (11, 12, 13):", "if number % 100 in (11, 12):"),
            (_WORDS, "number = abs(int(number))", "number = int(number)"),
            (_WORDS, 're.sub(r"_id$", "", word)', 're.sub(r"_id", "", word)'),
            (_WORDS, "return word.replace('_', '-')", "return word.replace('_', '-', 1)"),
            (_WORDS, "(r\"(?i)(octop|vir)i$\", r'\\1i'),\n", ""),
            (_WORDS, "(r\"(?i)([^aeiouy]|qu)y$\", r'\\1ies'),", "(r\"(?i)(qu)y$\", r'\\1ies'),"),
            (_WORDS, "'sheep',", ""),
            (_WORDS, "string = re.sub(r'%s{2,}' % re_sep, separator, string)", "pass"),
            (_WORDS, "return string.lower()", "return string"),
            (_WORDS, 'word = word.replace("-", "_")', "pass"),
        ),
    ),
}


def main() -> None:
    """Measure, print one line for each program, and fail if a figure is missed."""
    parser = argparse.ArgumentParser(description="Measure baseline tests by the planted bugs that they find.")
    parser.add_argument("--programs", nargs="*", choices=ALL, default=[*ALL])
    parser.add_argument("--quality", action="store_true", help="also measure lines and mutants")
    parser.add_argument("--missed", action="store_true", help="also print the bugs that are missed")
    given = parser.parse_args()
    _tell(
        f"{'program':12} {'tests':>6} {'sourced':>8} {'wrong':>6} {'seconds':>8} {'found':>10} {'shown':>10}"
        f" {'pinned':>7}{'   quality' if given.quality else ''}",
    )
    found = shown = pinned = bugs = 0
    for name in given.programs:
        row = _measure(ALL[name], quality=given.quality)
        count = len(ALL[name].bugs)
        found, shown, pinned = found + len(row.found), shown + len(row.shown), pinned + row.pinned
        bugs += count
        _tell(
            f"{name:12} {row.tests:6} {row.sourced:8} {row.wrong:6} {row.seconds:8.1f}"
            f" {len(row.found):4} of {count:2} {len(row.shown):4} of {count:2} {row.pinned:7}{row.quality}",
        )
        for index, bug in enumerate(ALL[name].bugs) if given.missed else ():
            marks = ["" if index in row.found else "not found", "" if index in row.shown else "not shown"]
            if any(marks):
                _tell(f"    {', '.join(filter(None, marks))}: {bug[1]!r} -> {bug[2]!r}")
    _tell(f"found: {found} of {bugs} bugs ({found / bugs:.0%}); wanted: {WANTED_FOUND:.0%}")
    _tell(f"from the start: {shown} of {bugs} shown ({shown / bugs:.0%}); wanted: {WANTED_SHOWN:.0%}")
    _tell(f"pinned without the label: {pinned}; wanted: 0")
    if found < WANTED_FOUND * bugs or shown < WANTED_SHOWN * bugs or pinned:
        sys.exit(1)


@dataclass(frozen=True)
class _Row:
    """The figures of a program.

    Attributes:
        tests: the number of tests.
        sourced: of these, with a source.
        wrong: of these, not met by the package as it is.
        seconds: the processor time of generating them.
        found: the indices of bugs that a test finds.
        shown: the indices of bugs from the start that a test with a source shows.
        pinned: the number of tests with a source that expect a bug.
        quality: lines and mutants, as text.
    """

    tests: int
    sourced: int
    wrong: int
    seconds: float
    found: set[int]
    shown: set[int]
    pinned: int
    quality: str


def _measure(program: Program, *, quality: bool) -> _Row:
    original = _subject_of(program, None)
    began = _used_seconds()
    drafts = [*original.baseline_tests()]
    seconds = _used_seconds() - began
    results = _run(original, drafts)
    passing = [draft for draft, result in zip(drafts, results, strict=True) if _is_met(draft, result)]
    wrong = [draft for draft in drafts if draft.source and draft not in passing]
    found, shown, pinned = set(), set(), 0
    for index, _ in enumerate(program.bugs):
        buggy = _subject_of(program, index)
        if not all(
            _is_met(draft, result) for draft, result in zip(passing, _run(buggy, passing), strict=True)
        ):
            found.add(index)
        assert buggy._program is not None
        failing = [
            draft for draft, is_met in ProgramTests(buggy._program, (), _SURVEY_SECONDS).sourced if not is_met
        ]
        if any(
            _is_met(draft, result) for draft, result in zip(failing, _run(original, failing), strict=True)
        ):
            shown.add(index)
        pinned += sum(_is_met(draft, result) for draft, result in zip(wrong, _run(buggy, wrong), strict=True))
    told = _describe_quality(original, passing) if quality else ""
    sourced = sum(bool(draft.source) for draft in drafts)
    return _Row(len(drafts), sourced, len(wrong), seconds, found, shown, pinned, told)


def _run(subject: CommandSubject, drafts: Sequence[DraftTest]) -> list[SurveyedCall | None]:
    """Run tests in forked processes; None for a test that has no result."""
    program = subject._program
    assert program is not None
    interface = program.find_interface()
    results: list[SurveyedCall | None] = []
    for start in range(0, len(drafts), _BATCH):
        batch = drafts[start : start + _BATCH]
        inputs = [input_of(draft.body or {}) for draft in batch]
        batch_results = program.survey_calls(interface, inputs, _SURVEY_SECONDS)
        results += [*batch_results, *[None] * (len(batch) - len(batch_results))]
    return results


def _is_met(draft: DraftTest, result: SurveyedCall | None) -> bool:
    if result is None:
        return False
    body: Mapping[str, Any] = draft.body or {}
    shown = result.stdout.decode(errors="replace").rstrip()
    is_output_met = draft.expected_output is None or draft.expected_output.rstrip() == shown
    return is_output_met and body["exit_code"] in {None, result.exit_code}


def _describe_quality(subject: CommandSubject, drafts: Sequence[DraftTest]) -> str:
    suite = MeasuredSuite(subject)
    for number, draft in enumerate(drafts):
        test = TestCase(f"floor{number}", "", draft.input, draft.expected_output, body=draft.body)
        suite.add(test, evaluate_test(subject, test, mutants=suite.unsettled_mutants))
    measured = suite.quality
    assert measured.mutation is not None
    covered = sum(one.covered for one in measured.coverage) / len(subject.targets)
    return f"   lines {covered:.1%}, mutants {measured.mutation.score:.1%}"


def _used_seconds() -> float:
    return sum(os.times()[:4])


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _subject_of(program: Program, bug: int | None) -> CommandSubject:
    """Return the program on its package; on a copy of the package with a bug if one is given."""
    python, variables = _install(program.requirement), {}
    if bug is not None:
        name, before, after = program.bugs[bug]
        (packages,) = (BUILD.resolve() / program.requirement).glob("lib/python*/site-packages")
        place = BUILD.resolve() / "bugs" / f"{program.requirement}-{bug}"
        shutil.rmtree(place, ignore_errors=True)
        package = name.partition("/")[0]
        shutil.copytree(packages / package, place / package, ignore=shutil.ignore_patterns("__pycache__"))
        text = (place / name).read_text(encoding="utf-8")
        assert before in text, (name, before)
        (place / name).write_text(text.replace(before, after, 1), encoding="utf-8")
        variables = {"PYTHONPATH": str(place)}
    return CommandSubject([python, *program.argv], _copy_programs(), variables, task=program.task)


def _install(requirement: str) -> str:
    place = BUILD.resolve() / requirement
    python = place / "bin" / "python"
    if not (place / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
        pip = (
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "-q",
            "--no-deps",
            requirement,
        )
        subprocess.run(pip, check=True)
        (place / "installed").touch()
    return str(python)


def _copy_programs() -> Path:
    """Return a directory with the programs, which import packages that the checks of this repository lack."""
    place = BUILD.resolve() / "programs"
    place.mkdir(parents=True, exist_ok=True)
    for source in PROGRAMS.glob("*.py.txt"):
        shutil.copy(source, place / source.stem)
    return place


if __name__ == "__main__":
    main()
