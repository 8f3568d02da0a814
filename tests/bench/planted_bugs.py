"""Benchmark of generated tests on packages from PyPI and npm with planted bugs.

`make bench-testgen-programs`. The packages are installed into `build`, each behind a small program. Bugs are
changes of one place of a package. Some are made by hand, and stand in `programs/*.toml`. The others are
mutants, drawn by a seed from those that a suite written by hand notices (`commands` in the same file). There
are three measurements:

- *found*: tests are generated for the package as it is. A bug is found if a test fails that passes without
  it.
- *from the start*: tests are generated for the package with the bug. It is shown if a test with a source
  fails that passes without the bug. It is pinned if a test that expects the wrong behaviour has a source.
- *lines*: the reported coverage beside the one of coverage.py for the same tests in processes of their own.

Programs from npm are measured by the tests without a model only, in a column of their own.
Scripted authors of graded quality know the suite written by hand. Tests run in forked processes, as in a
survey. Each result is a line of `build/planted-bugs/results.jsonl`, and is not measured again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from bench import planted_bugs_peers as peers
from bench.planted_programs import (
    BUILD,
    PROGRAMS,
    Bug,
    PassingTests,
    Program,
    Script,
    copy_programs,
    open_program,
    program_of,
)
from peripety.testgen.subjects.command.baseline.tests import ProgramTests
from peripety.testgen.subjects.subject import RunResult
from peripety.testgen.types import TestCase, TestStatus
from support.testgen.fake_run import ran
from support.testgen.graded_tests.models import MODELS, GradedModel
from support.testgen.graded_tests.orders import order_of
from support.testgen.graded_tests.remembering import Remembering, key_of
from support.testgen.graded_tests.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from bench.planted_programs import AnyTest
    from peripety.testgen.subjects.command.subject import CommandSubject
    from peripety.testgen.types import DraftTest


Json = dict[str, Any]

RESULTS = BUILD / "results.jsonl"
AUTHORS = {"perfect": 0.95, "hallucinating 30 %": 0.88}
"""Models, each with the wanted share of the bugs."""

WANTED_FOUND = 0.6
WANTED_SHOWN = 0.3
WANTED_AHEAD = 2.0
WANTED_GAP = 2.0
TOOLS = ("floor", "start", "authors", "pynguin", "ghostwriter")
FLOOR_OF_SCRIPTS = "floor, npm"
_FLOOR_SHARE = 2.0
"""Trying calls takes at most half of the time; the rest is for running the tests."""

_COMPARED = 40
"""Number of tests whose lines are compared with those of coverage.py."""

_SETTLED = 3
_START_BY_HAND, _START_MUTANTS = 5, 3


# tools: each returns the figures of a program, as JSON


def measure_floor(program: Program, bugs: Sequence[Bug], seconds: float) -> Json:
    """Return the figures of the tests without a model, for the package as it is."""
    began = _used_seconds()
    drafts = _floor(program.original, seconds)
    used = _used_seconds() - began
    suite = PassingTests(program, drafts)
    found = [bool(suite.first_failing(bug, 1)) for bug in bugs]
    sourced = [draft for draft in drafts if draft.source]
    wrong = [draft for draft in sourced if draft not in suite.tests]
    return {
        "tests": len(drafts),
        "sourced": len(sourced),
        "wrong": len(wrong),
        "seconds": round(used, 1),
        "found": found,
    }


def _floor(subject: CommandSubject, seconds: float) -> list[DraftTest]:
    if subject._script is not None:
        return [*subject.baseline_tests()]
    drafts: list[DraftTest] = []
    until = _used_seconds() + seconds
    for draft in ProgramTests(program_of(subject), subject._list_files(), seconds / _FLOOR_SHARE):
        drafts += [draft] if draft.source else subject._described(draft)
        if _used_seconds() > until:
            break
    return drafts


def measure_start(program: Program, bugs: Sequence[Bug], seconds: float) -> Json:
    """Return which bugs from the start the tests without a model show, and which they pin."""
    by_hand = [bug for bug in bugs if bug.by_hand][:_START_BY_HAND]
    some = [*by_hand, *[bug for bug in bugs if not bug.by_hand][:_START_MUTANTS]]
    shown, pinned = [], []
    for bug in some:
        buggy = program.buggy(bug)
        sourced = ProgramTests(program_of(buggy), (), seconds / _FLOOR_SHARE).sourced
        failing = [draft for draft, is_met in sourced if not is_met]
        passing = [draft for draft, is_met in sourced if is_met]
        shown.append(any(program.met(program.original, failing)))
        pinned.append(not all(program.met(program.original, passing)))
    return {"shown": shown, "pinned": pinned}


class _ForkedSubject(Remembering):
    """A program whose known tests run in forked processes, as for planted bugs; others run as usual.

    Args:
        program: the program.
        floor: the tests without a model.
        hidden: the tests written by hand.
    """

    def __init__(self, program: Program, floor: Sequence[AnyTest], hidden: Sequence[AnyTest]) -> None:
        super().__init__(program.original)
        self._program = program_of(program.original)
        self._suites = PassingTests(program, floor), PassingTests(program, hidden)
        self._known = {key_of(test): (test, suite) for suite in self._suites for test in suite.tests}
        self._failing: dict[tuple[str, PassingTests], set[str]] = {}

    def run(self, test: TestCase) -> RunResult:
        if key_of(test) not in self._known:
            return super().run(test)
        known, suite = self._known[key_of(test)]
        modules = self._program.modules
        covered = {
            f"line:/{modules[key].name}/{line}"
            for key, lines in suite.lines_of(known).items()
            for line in modules[key].statement_lines(lines)
        }
        return RunResult(TestStatus.PASSED, "", key_of(test), (), frozenset(covered))

    def kills(self, test: TestCase, among: Collection[str]) -> frozenset[str]:
        if key_of(test) not in self._known:
            return super().kills(test, among)
        _, suite = self._known[key_of(test)]
        return frozenset(one for one in among if key_of(test) in self._failing_with(one, suite))

    def _failing_with(self, mutant_id: str, suite: PassingTests) -> set[str]:
        if (mutant_id, suite) not in self._failing:
            key, inner = self._program._mutants[mutant_id]
            module = self._program.modules[key]
            bug = Bug(module.name, module.source_of(inner).decode(), mutant_id, by_hand=False)
            # A run measures a mutant until three tests kill it.
            is_floor = suite is self._suites[0]
            failing = suite.first_failing(bug, _SETTLED) if is_floor else suite.failing(bug)
            self._failing[mutant_id, suite] = {*map(key_of, failing)}
        return self._failing[mutant_id, suite]


def measure_authors(program: Program, bugs: Sequence[Bug], seconds: float) -> Json:
    """Return the figures of runs with scripted authors, each with the tests without a model."""
    subject = program.original
    floor = _floor(subject, seconds)
    subject.baseline_tests = lambda: iter(floor)  # type: ignore[method-assign] # of the same seconds
    task = Task(program.name, program.task, subject, program.hidden)
    task.subject = _ForkedSubject(program, floor, [test.case for test in task.hidden])
    figures = {}
    for author in AUTHORS:
        model = GradedModel(task, MODELS[author]).author
        book = asyncio.run(ran(model, order_of(task), task.subject))
        suite = book.suite
        kept_ids = {test.test_id for test in suite}
        dropped = [test for test in book.made if test.test_id not in kept_ids]
        verdicts = book.state.verdicts
        counting = {one for one in kept_ids if one in verdicts and verdicts[one].counts}
        every = [test for test in (*suite, *dropped) if _is_runnable(task, test)]
        passing = PassingTests(program, every)
        found, only_dropped, only_not_counting = [], 0, 0
        for bug in bugs:
            failing = {test.test_id for test in passing.failing(bug) if isinstance(test, TestCase)}
            found.append(bool(failing & kept_ids))
            only_dropped += bool(failing) and not failing & kept_ids
            only_not_counting += bool(failing & kept_ids) and not failing & counting
        usage = book.account.spent.usage
        quality = book.stats.quality
        assert quality is not None
        figures[author] = {
            "tests": len(suite),
            "counting": len(counting),
            "tokens": usage.input_tokens + usage.output_tokens,
            "ended": book.stopped_by,
            "mutants": [quality.mutation.killed, quality.mutation.survived] if quality.mutation else [],
            "found": found,
            "alone in dropped": only_dropped,
            "alone in not counting": only_not_counting,
        }
        if author == next(iter(AUTHORS)):
            counted = [test for test in suite if test.test_id in counting][:_COMPARED]
            lines = frozenset[str]().union(*(subject.run(test).covered for test in counted))
            figures[author]["lines reported"] = 100 * len(lines) / len(subject.targets)
            figures[author]["lines by coverage.py"] = _coverage_of(program, counted)
    return figures


def _is_runnable(task: Task, test: TestCase) -> bool:
    return test.body is not None and not task.subject.problems(test.body)


_CALL_PROGRAM = """
import ast, importlib
name, code = {module!r}, {code!r}
top = name.partition(".")[0]
names = {{top: importlib.import_module(top), **vars(importlib.import_module(name)), "__name__": name}}
for statement in ast.parse(code).body:
    exec(compile(ast.Interactive([statement]), "<call>", "single"), names)
"""


def _coverage_of(program: Program, tests: Iterable[TestCase]) -> float:
    """Return the lines that tests execute in processes of their own, in percent, by coverage.py."""
    coverage = [str(peers.environment(BUILD.resolve())), "-m", "coverage"]
    files = {str((BUILD / "programs" / key).resolve()) for key in program_of(program.original).modules}
    with tempfile.TemporaryDirectory() as data:
        for test in tests:
            body = test.body or {}
            with tempfile.TemporaryDirectory() as place:
                shutil.copytree(copy_programs(), place, dirs_exist_ok=True)
                for file in body.get("files") or ():
                    Path(place, file["path"]).write_text(file["content"], encoding="utf-8")
                argv = [*program.argv, *body.get("arguments", ())]
                if body.get("call"):
                    Path(place, "call_program.py").write_text(_CALL_PROGRAM.format(**body["call"]), "utf-8")
                    argv = ["call_program.py"]
                if argv[0].endswith(".py") and not body.get("call"):
                    argv[0] = str(BUILD.resolve() / "programs" / argv[0])
                options = (
                    "--rcfile=/dev/null",
                    "-p",
                    f"--data-file={data}/data",
                    f"--include={','.join(files)}",
                )
                subprocess.run(
                    [*coverage, "run", *options, *argv],
                    cwd=place,
                    input=(body.get("stdin") or "").encode(),
                    env={**os.environ, "PYTHONPATH": str(program.packages)},
                    capture_output=True,
                    timeout=600,
                    check=False,
                )
        named = ("--rcfile=/dev/null", f"--data-file={data}/data")
        subprocess.run([*coverage, "combine", *named, data], check=True, capture_output=True)
        report = f"{data}/report.json"
        subprocess.run([*coverage, "json", *named, "-o", report], check=True, capture_output=True)
        found: dict[str, Json] = json.loads(Path(report).read_text("utf-8"))["files"]
    covered: int = sum(one["summary"]["covered_lines"] for one in found.values())
    own = program_of(program.original).modules
    # Files that no test imports are in no report.
    return 100 * covered / sum(len(module.lines) for module in own.values())


def measure_pynguin(program: Program, bugs: Sequence[Bug], seconds: float) -> Json:
    """Return the figures of tests by Pynguin."""
    return peers.measure_pynguin(BUILD.resolve(), program, bugs, seconds)


def measure_ghostwriter(program: Program, bugs: Sequence[Bug], seconds: float) -> Json:
    """Return the figures of tests by the ghostwriter of Hypothesis."""
    return peers.measure_ghostwriter(BUILD.resolve(), program, bugs, seconds)


_MEASURES: dict[str, Callable[[Program, Sequence[Bug], float], Json]] = {
    "floor": measure_floor,
    FLOOR_OF_SCRIPTS: measure_floor,
    "start": measure_start,
    "authors": measure_authors,
    "pynguin": measure_pynguin,
    "ghostwriter": measure_ghostwriter,
}


def main() -> None:
    """Measure what has no result yet, print the table, and fail if a figure is missed."""
    names = sorted(path.stem for path in PROGRAMS.glob("*.toml"))
    parser = argparse.ArgumentParser(description="Measure generated tests by planted bugs.")
    parser.add_argument("--programs", nargs="*", choices=names, default=names)
    parser.add_argument("--tools", nargs="*", choices=TOOLS, default=[*TOOLS])
    parser.add_argument("--count", type=int, default=10, help="the number of mutants of each package")
    parser.add_argument("--seconds", type=float, default=36.0, help="processor time of a tool for a package")
    parser.add_argument("--again", action="store_true", help="measure again what has been measured")
    parser.add_argument("--missed", action="store_true", help="also print the bugs that are missed")
    given = parser.parse_args()
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    measured: dict[str, dict[str, Json]] = {}
    for name in given.programs:
        program = open_program(name)
        bugs = [*program.by_hand, *_mutants(program, given.count)]
        measured[name] = {}
        tools = given.tools
        if isinstance(program, Script):
            tools = [FLOOR_OF_SCRIPTS] if "floor" in tools else []
        for tool in tools:
            key = {"program": name, "tool": tool, "count": given.count, "seconds": given.seconds}
            result = None if given.again else next(_recorded(key), None)
            if result is None:
                _tell(f"measuring {name}: {tool}", sys.stderr)
                result = _MEASURES[tool](open_program(name), bugs, given.seconds)
                _record(key, result)
            measured[name][tool] = result
        if given.missed:
            _tell_missed(name, bugs, measured[name])
    _tell("")
    if not _report(measured):
        sys.exit(1)


def _mutants(program: Program, count: int) -> list[Bug]:
    key = {"program": program.name, "tool": "mutants"}
    found = next((one["mutants"] for one in _recorded(key) if len(one["mutants"]) >= count), None)
    if found is None:
        _tell(f"choosing mutants of {program.name}", sys.stderr)
        found = [[bug.file, bug.text, bug.shown] for bug in program.mutants(count)]
        _record(key, {"mutants": found})
    return [Bug(file, text, shown, by_hand=False) for file, text, shown in found[:count]]


def _recorded(key: Json) -> Iterator[Json]:
    """Yield the results of a key, the latest first."""
    if RESULTS.exists():
        for line in reversed(RESULTS.read_text("utf-8").splitlines()):
            entry = json.loads(line)
            if entry["key"] == key:
                yield entry["result"]


def _record(key: Json, result: Json) -> None:
    load = [round(one, 1) for one in os.getloadavg()]
    line = {"key": key, "date": time.strftime("%Y-%m-%d %H:%M"), "load": load, "result": result}
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def _tell_missed(name: str, bugs: Sequence[Bug], results: Mapping[str, Json]) -> None:
    columns = dict(_found_columns(results))
    for number, bug in enumerate(bugs):
        missing = [column for column, found in columns.items() if not found[number]]
        if missing:
            _tell(f"{name}: not found by {', '.join(missing)}: {bug.shown}")


def _found_columns(results: Mapping[str, Json]) -> Iterable[tuple[str, list[bool]]]:
    for tool in ("floor", FLOOR_OF_SCRIPTS, "pynguin", "ghostwriter"):
        if tool in results:
            yield tool, results[tool]["found"]
    for author in AUTHORS:
        if "authors" in results:
            yield author, results["authors"][author]["found"]


def _report(measured: Mapping[str, Mapping[str, Json]]) -> bool:
    """Print the table, compare it with the targets, and return True if all are met."""
    columns: dict[str, list[list[bool]]] = {}
    for name, results in measured.items():
        cells = []
        for column, found in _found_columns(results):
            columns.setdefault(column, []).append(found)
            cells.append(f"{column} {sum(found)} of {len(found)}")
        floor = results.get("floor") or results.get(FLOOR_OF_SCRIPTS)
        if floor is not None:
            counts = floor["tests"], floor["sourced"], floor["wrong"]
            cells.append("{} tests, {} with a source, {} not met".format(*counts))
        if "start" in results:
            start = results["start"]
            counts = sum(start["shown"]), len(start["shown"]), sum(start["pinned"])
            cells.append("shown {} of {}, pinned {}".format(*counts))
        if "authors" in results:
            perfect = results["authors"]["perfect"]
            reported, own = perfect["lines reported"], perfect["lines by coverage.py"]
            cells.append(f"lines {reported:.1f} %, by coverage.py {own:.1f} %")
        _tell(f"{name:10} {'; '.join(cells)}")
    shares = {column: fmean(sum(row) / len(row) for row in rows) for column, rows in columns.items()}
    held = [*_compare_found(columns, shares)]
    starts = [results["start"] for results in measured.values() if "start" in results]
    if starts:
        shown = [one for start in starts for one in start["shown"]]
        pinned = sum(sum(start["pinned"]) for start in starts)
        share = sum(shown) / len(shown)
        _tell(f"from the start: {sum(shown)} of {len(shown)} shown ({share:.0%}); wanted: {WANTED_SHOWN:.0%}")
        _tell(f"pinned without the label: {pinned}; wanted: 0")
        held += [share >= WANTED_SHOWN, not pinned]
    authors = [results["authors"] for results in measured.values() if "authors" in results]
    if authors:
        best = [one["perfect"] for one in authors]
        gaps = [abs(one["lines reported"] - one["lines by coverage.py"]) for one in best]
        alone = sum(figures["alone in dropped"] for one in authors for figures in one.values())
        idle = sum(figures["alone in not counting"] for one in authors for figures in one.values())
        _tell(f"lines: at most {max(gaps):.1f} points from coverage.py; wanted: {WANTED_GAP:g}")
        _tell(f"bugs that only a dropped test finds: {alone}; wanted: 0")
        _tell(f"bugs that only a test finds that does not count: {idle}")
        held += [max(gaps) <= WANTED_GAP, not alone]
    return all(held)


def _compare_found(columns: Mapping[str, list[list[bool]]], shares: Mapping[str, float]) -> Iterable[bool]:
    wanted = {"floor": WANTED_FOUND, FLOOR_OF_SCRIPTS: WANTED_FOUND, **AUTHORS}
    for column, rows in columns.items():
        found, bugs = sum(map(sum, rows)), sum(map(len, rows))
        goal = wanted.get(column, 0.0)
        told = f"; wanted: {goal:.0%}" if goal else ""
        _tell(f"{column}: {found} of {bugs} bugs ({found / bugs:.0%}), mean {shares[column]:.0%}{told}")
        yield found >= goal * bugs
    if "floor" in shares and "pynguin" in shares:
        goal = WANTED_AHEAD * shares["pynguin"]
        _tell(f"floor: mean {shares['floor']:.0%}; wanted: {WANTED_AHEAD:g} times Pynguin's, {goal:.0%}")
        yield shares["floor"] >= goal


def _used_seconds() -> float:
    return sum(os.times()[:4])


def _tell(line: str, file: Any = None) -> None:
    print(line, file=file or sys.stdout, flush=True)


if __name__ == "__main__":
    main()
