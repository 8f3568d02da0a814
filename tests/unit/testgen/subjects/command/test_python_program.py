from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from peripety.testgen.subjects.command import sandbox
from peripety.testgen.subjects.command.python_program import ProgramInput, PythonProgram
from peripety.testgen.subjects.command.sandbox import ProcessOutput, Sandbox, find_fence
from peripety.testgen.subjects.command.subject import CommandSubject
from peripety.testgen.types import TestCase, TestStatus

if TYPE_CHECKING:
    from pathlib import Path

WRAPPER = "import sys\nfrom measures.main import main\n\nsys.exit(main(sys.argv[1:]))\n"
PACKAGE = {
    "__init__.py": '"""Measures."""\n\nfrom .lengths import in_feet\n',
    "lengths.py": """\
def in_feet(
    metres: float,
) -> float:
    \"\"\"Return a length in feet.\"\"\"
    if metres < 0:
        raise ValueError("negative")
    return round(
        metres / 0.3048,
        2,
    )


def unused(value):  # pragma: no cover
    return value
""",
    "main.py": """\
from measures import in_feet


def main(arguments):
    total = 0
    while arguments:
        total += 1
        print(in_feet(total))
        arguments = arguments[1:]
    return 0
""",
    "never.py": "def never():\n    return 1\n",
}


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A directory of packages outside of the working directory."""
    package = tmp_path / "lib" / "measures"
    package.mkdir(parents=True)
    for name, source in PACKAGE.items():
        (package / name).write_text(source)
    return package.parent


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    (made / "tool.py").write_text(WRAPPER)
    return made


def command(installed: Path, directory: Path, *argv: str, **settings: Any) -> CommandSubject:
    environment = {"PYTHONPATH": str(installed)}
    return CommandSubject([sys.executable, *argv], directory, environment, **settings)


def case(*arguments: str, expected: str | None = None) -> TestCase:
    body = {"arguments": [*arguments], "stdin": "", "exit_code": 0}
    return TestCase("t", "boundary", "i", expected, body=body)


def files_of(subject: CommandSubject) -> set[str]:
    return {target.path.rpartition("/")[0] for target in subject.targets}


@pytest.mark.slow(reason="starts many processes")
def test_the_package_behind_a_wrapper_is_measured(installed: Path, directory: Path) -> None:
    subject = command(installed, directory, "tool.py")
    modules = {f"/measures/{name}" for name in PACKAGE}
    assert files_of(subject) == {"/tool.py"} | modules
    assert subject.unmeasured_lines == {}
    test = case("a", expected="3.28")
    assert subject.run(test).status is TestStatus.PASSED
    killed = subject.kills(test, [mutant.mutant_id for mutant in subject.mutants])
    assert {one.split(":")[0] for one in killed if ".py:" in one} == {
        "measures/lengths.py",
        "measures/main.py",
    }
    assert (installed / "measures" / "lengths.py").read_text() == PACKAGE["lengths.py"]


def test_the_coverage_is_the_one_that_coverage_py_reports(
    installed: Path, directory: Path, tmp_path: Path
) -> None:
    subject = command(installed, directory, "tool.py")
    covered = frozenset[str]().union(*(subject.run(case(*given)).covered for given in ((), ("a",))))
    data = {"PYTHONPATH": str(installed), "COVERAGE_FILE": str(tmp_path / "data"), "PATH": os.environ["PATH"]}
    measure = [sys.executable, "-m", "coverage"]
    for given in ((), ("a",)):
        source = f"--source={installed},{directory}"
        subprocess.run(
            [*measure, "run", "-a", source, "tool.py", *given], cwd=directory, env=data, check=True
        )
    told = subprocess.run(
        [*measure, "json", "-o", "-"], cwd=directory, env=data, check=True, capture_output=True
    )
    totals = json.loads(told.stdout)["totals"]
    assert (len(covered), len(subject.targets)) == (totals["covered_lines"], totals["num_statements"])


@pytest.mark.parametrize(
    ("argv", "task", "is_measured"),
    [
        (("-m", "measures.main"), "", True),
        (("tool.py",), "Test tool.py.", False),
        (("tool.py",), "Test tool.py, which prints what the package `measures` returns.", True),
    ],
    ids=["started", "not_named", "named"],
)
def test_an_installed_package_is_measured_if_it_is_started_or_named(
    installed: Path,
    directory: Path,
    argv: tuple[str, ...],
    task: str,
    *,
    is_measured: bool,
) -> None:
    program = "import sys\nimport measures\n\n\ndef run():\n    print(measures.in_feet(1))\n\n\nrun()\n"
    (directory / "tool.py").write_text(program)
    subject = command(installed, directory, *argv, task=task)
    assert ("/measures/lengths.py" in files_of(subject)) is is_measured
    assert [*subject.unmeasured_lines] == ([] if is_measured else ["measures"])


def test_a_script_that_names_its_interpreter_is_a_program(installed: Path, directory: Path) -> None:
    script = directory / "tool"
    script.write_text(f"#!{sys.executable}\n{WRAPPER}")
    script.chmod(0o700)
    subject = CommandSubject(["./tool"], directory, {"PYTHONPATH": str(installed)})
    assert files_of(subject) >= {"/./tool", "/measures/main.py"}
    assert subject.run(case("a", expected="3.28")).covered


@pytest.mark.slow(reason="waits for a time-out")
def test_a_mutant_that_does_not_end_is_run_once(
    installed: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subject = command(installed, directory, "tool.py")
    (endless,) = (
        one.mutant_id for one in subject.mutants if one.mutant_id.startswith("measures/main.py:drop_bound")
    )
    jobs = []
    probe = PythonProgram._probe

    def counted(program: PythonProgram, command: str, job: Any, *rest: Any) -> Any:
        jobs.extend(job.get("mutants", ()))
        return probe(program, command, job, *rest)

    monkeypatch.setattr(PythonProgram, "_probe", counted)
    for given in ("a", "b"):
        assert subject.kills(case(given, expected="3.28"), [endless]) == {endless}
    assert len(jobs) == 1


def test_mutants_of_one_test_have_a_limit_and_those_that_were_run_least_come_first(
    installed: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "_MAX_MUTANT_SECONDS", 0.0)
    monkeypatch.setattr(sandbox, "_MUTANTS_PER_PROCESS", 2)
    subject = command(installed, directory, "tool.py")
    assert subject._program is not None
    ids = [one.mutant_id for one in subject.mutants if one.mutant_id.startswith("measures/lengths.py")][:4]
    given = ProgramInput(("a",))
    first, second = ([one for one, _ in subject._program.run_mutants(given, ids)] for _ in range(2))
    assert (first, second) == ([None, *ids[:2]], [None, *ids[2:]])


def test_the_author_is_shown_the_sources_whole_the_most_executed_first(
    installed: Path, directory: Path
) -> None:
    (installed / "measures" / "long.py").write_text(f"text = '''{'x' * 61_440}'''\n")
    material = command(installed, directory, "tool.py").material
    assert [source["file"] for source in material["sources"]][-1] == "measures/never.py"
    assert {"file": "measures/main.py", "text": PACKAGE["main.py"]} in material["sources"]
    assert material["omitted_sources"] == ["measures/long.py"]


TYPER = """\
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()


class Color(Enum):
    RED = "red-ish"
    BLUE = "blue"


@app.command()
def paint(
    name: str,
    times: Annotated[int, typer.Option(min=1, max=9)] = 1,
    color: Color = Color.RED,
    loud: bool = False,
) -> None:
    print(name * times)


@app.command("wipe-out")
def wipe(path: Path) -> None:
    print(path)


if __name__ == "__main__":
    app()
"""


def test_commands_of_a_typer_application_are_read(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(TYPER)
    program = CommandSubject([sys.executable, "p.py"], tmp_path)._program
    assert program is not None
    commands = {tuple(one["path"]): one["parameters"] for one in program.find_interface().commands}
    assert set(commands) == {(), ("paint",), ("wipe-out",)}
    paint = {one["flags"][-1] if one["flags"] else one["name"]: one for one in commands["paint",]}
    assert paint["name"]["is_required"]
    assert paint["--times"]["limits"] == ["1", "9"]
    assert paint["--color"]["choices"] == ["red-ish", "blue"]
    assert paint["--loud"]["is_flag"]
    assert paint["--no-loud"]["is_flag"]
    (path,) = (one for one in commands["wipe-out",] if not one["flags"])
    assert path["type"] in {"path", "Path"}


def test_options_of_getopt_are_read(tmp_path: Path) -> None:
    call = "print(getopt.getopt(sys.argv[1:], 'ao:', ['all', 'out=']))"
    (tmp_path / "p.py").write_text(f"import getopt, sys\n\n{call}\n")
    program = CommandSubject([sys.executable, "p.py"], tmp_path)._program
    assert program is not None
    (command,) = program.find_interface().commands
    options = {tuple(one["flags"]): one for one in command["parameters"]}
    assert {*options} == {("-a",), ("-o",), ("--all",), ("--out",), ()}
    assert [one["is_flag"] for one in options.values()] == [True, False, True, False, False]
    assert options[()]["is_many"]


def test_a_probe_that_is_killed_before_it_reads_its_job_runs_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, killed = Sandbox.run, list[int]()
    find_fence()  # its own probe is not the one that is killed

    def run_or_kill(self: Sandbox, *arguments: Any, **options: Any) -> ProcessOutput:
        killed.append(1)
        return ProcessOutput(-9, b"", b"") if len(killed) % 2 else run(self, *arguments, **options)

    monkeypatch.setattr(Sandbox, "run", run_or_kill)
    (tmp_path / "p.py").write_text("print(1)\n")
    program = CommandSubject([sys.executable, "p.py"], tmp_path)._program
    assert program is not None
    assert program.executed_lines(ProgramInput()) == {"p.py": frozenset({1})}
    assert len(killed) == 4


def test_a_member_of_an_enumeration_is_its_number(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text("import levels\n")
    (tmp_path / "levels.py").write_text(
        "import enum\n\n\nclass Level(enum.IntFlag):\n    LOW = 7\n\n\nUSUAL = Level.LOW\n"
    )
    program = CommandSubject([sys.executable, "p.py"], tmp_path)._program
    assert program is not None
    values = {(name, kind, value) for _, name, kind, value in program.find_interface().values}
    assert {("LOW", "number", "7"), ("USUAL", "number", "7")} <= values


def test_a_function_with_the_name_of_its_module_is_the_one_that_a_call_uses(tmp_path: Path) -> None:
    (tmp_path / "same.py").write_text("def same():\n    return 1\n")
    (tmp_path / "tool.py").write_text("import same\n\nprint(same.same())\n")
    subject = CommandSubject([sys.executable, "tool.py"], tmp_path)
    body = {"arguments": [], "stdin": "", "exit_code": 0, "call": {"module": "same", "code": "same()"}}
    test = TestCase("t", "correctness", "i", "1", body=body)
    assert subject.run(test).status is TestStatus.PASSED
