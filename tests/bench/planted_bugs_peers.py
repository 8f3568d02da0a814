"""Other generators of tests for the benchmark of planted bugs: Pynguin, and the ghostwriter of Hypothesis.

They are installed into an environment of their own, whose packages this repository does not need. Their tests
are pytest modules. A bug is found if a test fails that passes twice on the package as it is.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Protocol
from xml.etree import ElementTree as ET

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


REQUIREMENTS = ("pynguin==0.48.0", "hypothesis==6.170.17", "pytest==8.4.2", "coverage==7.17.5")
_RUN_SECONDS = 120
"""Limit of the processor time of a suite on a package with a bug; a bug that hangs is found."""

_PYNGUIN = (
    # Search time is processor time, as for all tools: on a busy machine, other time is shorter.
    "import sys, time; time.time_ns = time.process_time_ns; from pynguin.cli import main; sys.exit(main())"
)
_MAX_SETUP_SECONDS = 60
_SEED = "1"


class PeerProgram(Protocol):
    """Program around a package, as the other generators need it."""

    name: str
    modules: list[str]

    @property
    def packages(self) -> Path:
        """The directory of the installed package."""

    def copy_with(self, bug: Any) -> Path:
        """Return a directory with a copy of the package with a bug."""


def install(place: Path, *requirements: str) -> Path:
    """Install packages into an environment of their own, once, and return its interpreter."""
    python = place / "bin" / "python"
    if not (place / "installed").exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
        pip = (sys.executable, "-m", "pip", "--python", str(python), "install", "-q")
        subprocess.run([*pip, *requirements], check=True)
        (place / "installed").touch()
    return python


def environment(build: Path) -> Path:
    """Return the interpreter of the environment with the other generators."""
    return install(build / "generators", *REQUIREMENTS)


def measure_pynguin(build: Path, program: PeerProgram, bugs: Sequence[Any], seconds: float) -> dict[str, Any]:
    """Return the figures of tests by Pynguin, with an equal share of the time for each module."""
    share = max(1, round(seconds / len(program.modules)))

    def generate(python: Path, module: str, place: Path) -> list[str]:
        options = {
            "project-path": str(program.packages),
            "module-name": module,
            "output-path": str(place),
            "report-dir": str(place / "report"),
            "maximum-search-time": str(share),
            "maximum-mutation-time": str(share),
            "use_master_worker": "False",
            "no_xfail": "True",
            "seed": _SEED,
        }
        argv = [str(python), "-c", _PYNGUIN]
        return [*argv, *(part for name, value in options.items() for part in (f"--{name}", value))]

    return _measure(build, program, bugs, "pynguin", generate, 3 * share + _MAX_SETUP_SECONDS)


def measure_ghostwriter(
    build: Path, program: PeerProgram, bugs: Sequence[Any], seconds: float
) -> dict[str, Any]:
    """Return the figures of tests by the ghostwriter, which takes a second; running them takes the rest."""

    def generate(python: Path, module: str, place: Path) -> list[str]:
        target = place / f"test_{module.replace('.', '_')}.py"
        code = (
            "import sys, importlib; from hypothesis.extra import ghostwriter as g;"
            "open(sys.argv[2], 'w').write(g.magic(importlib.import_module(sys.argv[1])))"
        )
        return [str(python), "-c", code, module, str(target)]

    return _measure(build, program, bugs, "ghostwriter", generate, int(seconds))


def _measure(
    build: Path,
    program: PeerProgram,
    bugs: Sequence[Any],
    tool: str,
    generate: Callable[[Path, str, Path], list[str]],
    limit: int,
) -> dict[str, Any]:
    python = environment(build)
    place = build / tool / program.name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    began, used = time.monotonic(), _used_seconds()
    failed = []
    for module in program.modules:
        argv = generate(python, module, place)
        if _run(argv, place, [program.packages], limit, place / f"{module}.log"):
            failed.append(module)
    seconds, waited = _used_seconds() - used, time.monotonic() - began
    first = _run_tests(python, place, [program.packages])
    again = _run_tests(python, place, [program.packages])
    stable = {name for name, passed in first.items() if passed and again.get(name)}
    found = []
    for bug in bugs:
        results = _run_tests(python, place, [program.copy_with(bug), program.packages])
        found.append(any(not results.get(name) for name in stable))
    return {
        "tests": len(first),
        "passing": len(stable),
        "failed modules": failed,
        "seconds": round(seconds, 1),
        "waited": round(waited, 1),
        "found": found,
    }


def _run_tests(python: Path, place: Path, path: Sequence[Path]) -> dict[str, bool]:
    """Return True for each test that passes, by its name; nothing if the run does not end."""
    report = place / "report.xml"
    report.unlink(missing_ok=True)
    argv = [str(python), "-m", "pytest", "-q", "-c", os.devnull, f"--rootdir={place}"]
    argv += ["-p", "no:cacheprovider", f"--hypothesis-seed={_SEED}", f"--junitxml={report}", str(place)]
    _run(argv, place, path, _RUN_SECONDS, place / "tests.log")
    try:
        cases = ET.parse(report).iter("testcase")  # noqa: S314 - of pytest
    except (OSError, ET.ParseError):
        return {}
    return {
        f"{case.get('classname')}.{case.get('name')}": not any(
            case.find(kind) is not None for kind in ("failure", "error", "skipped")
        )
        for case in cases
    }


def _run(argv: Sequence[str], place: Path, path: Sequence[Path], seconds: int, log: Path) -> int:
    """Run a command with a limit of its processor time, and return its exit code."""
    variables: Mapping[str, str] = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, path)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYNGUIN_DANGER_AWARE": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(place / "hypothesis"),
    }

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    with log.open("ab") as file:
        ended = subprocess.run(
            argv,
            cwd=place,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            preexec_fn=limit,
            check=False,
        )
    return ended.returncode


def _used_seconds() -> float:
    return sum(os.times()[2:4])
