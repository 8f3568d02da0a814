"""Benchmark of baseline tests on packages from PyPI with planted bugs.

`make bench-testgen-programs`. The packages are installed into `build`, each behind a small program. Baseline
tests are generated for the package as it is. A bug is a change of one place of the package, made by hand. It
is found if a test fails that passes without it.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from peripety.testgen.evaluation.suite import MeasuredSuite, evaluate_test
from peripety.testgen.subjects.command.subject import CommandSubject
from peripety.testgen.types import TestCase, TestStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS = Path(__file__).parent / "programs"
BUILD = Path("build/planted-bugs")
WANTED = 0.6


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
    """Measure, and print one line for each program."""
    parser = argparse.ArgumentParser(description="Measure baseline tests by the planted bugs that they find.")
    parser.add_argument("--programs", nargs="*", choices=ALL, default=[*ALL])
    found = bugs = 0
    heads = f"{'program':10} {'lines':>6} {'covered':>8} {'mutants':>8} {'killed':>7} {'tests':>6}"
    _tell(f"{heads} {'bugs found':>11}")
    for name in parser.parse_args().programs:
        program = ALL[name]
        python = _install(program.requirement)
        subject = CommandSubject([python, *program.argv], _copy_programs(), task=program.task)
        suite, passing = MeasuredSuite(subject), []
        for number, draft in enumerate(subject.baseline_tests()):
            test = TestCase(f"floor{number}", "", draft.input, draft.expected_output, body=draft.body)
            verdict = suite.add(test, evaluate_test(subject, test, mutants=suite.unsettled_mutants))
            passing += [test] if verdict.examined.status is TestStatus.PASSED else []
        quality = suite.quality
        assert quality.mutation is not None
        covered = sum(one.covered for one in quality.coverage) / len(subject.targets)
        seen = _found_bugs(subject, passing, program.bugs)
        found, bugs = found + len(seen), bugs + len(program.bugs)
        _tell(
            f"{name:10} {len(subject.targets):6} {covered:8.1%} {len(subject.mutants):8}"
            f" {quality.mutation.score:7.1%} {len(passing):6} {len(seen):4} of {len(program.bugs):3}",
        )
    _tell(f"found: {found} of {bugs} bugs ({found / bugs:.0%}); wanted: {WANTED:.0%}")


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _install(requirement: str) -> str:
    place = BUILD.resolve() / requirement
    python = place / "bin" / "python"
    if not (place / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", requirement], check=True)
        (place / "installed").touch()
    return str(python)


def _copy_programs() -> Path:
    """Return a directory with the programs, which import packages that the checks of this repository lack."""
    place = BUILD.resolve() / "programs"
    place.mkdir(exist_ok=True)
    for source in PROGRAMS.glob("*.py.txt"):
        shutil.copy(source, place / source.stem)
    return place


def _found_bugs(
    subject: CommandSubject,
    tests: Sequence[TestCase],
    bugs: Sequence[tuple[str, str, str]],
) -> set[int]:
    """Return the indices of the bugs for which a test fails."""
    program = subject._program
    assert program is not None
    keys = {module.name: key for key, module in program.modules.items()}
    mutants = []
    for name, before, after in bugs:
        text = program.modules[keys[name]].text
        assert before in text, (name, before)
        mutants.append((keys[name], text.replace(before, after, 1)))
    found: set[int] = set()
    for test in tests:
        body = test.body or {}
        job = {"modules": (), "mutants": mutants}
        original, *changed = program._probe(
            "mutants", job, body["arguments"], body["stdin"].encode(), 60
        ) or [{}]
        found.update(index for index, result in enumerate(changed) if result != original)
    return found


if __name__ == "__main__":
    main()
