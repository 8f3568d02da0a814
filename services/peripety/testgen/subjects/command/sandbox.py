"""Sandbox for one run of a program: a fenced process in a fresh copy of its directory.

The fence is a program of its own, see `fence`. A level of it is used only if a probe shows that it works:
the probe tries to read a file, to reach a socket and to signal a process outside. The program can read its
interpreter, the system's programs and libraries, the paths that the command names, and its copy; it can
change the copy only.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peripety.core.concurrency import raise_if_cancelled
from peripety.errors import FailedPreconditionError, InvalidArgumentError
from peripety.testgen.subjects.command import fence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


MAX_DIRECTORY_BYTES = 16 * 1024 * 1024
MAX_DIRECTORY_FILES = 1_000
FENCE_LEVELS = ("namespaces", "landlock")
UNFENCED = "none"
MAX_ATTEMPTS = 10
"""Limit of the runs of a program that other processes kill."""

_MAX_OUTPUT_BYTES = 1024 * 1024
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_GRACE_SECONDS = 20.0
"""Time for the fence itself, beyond the time limit of the program."""

# Programs, libraries and public settings of the system; none of them is private.
_SYSTEM_PATHS = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"),
    *("/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime", "/etc/mime.types"),
    *("/etc/ssl/openssl.cnf", "/etc/ssl/certs", "/etc/pki/tls/openssl.cnf", "/etc/java"),
)


@dataclass(frozen=True, slots=True)
class ProcessOutput:
    """The result of a program.

    Attributes:
        exit_code: the exit code; the negative signal number after a signal; None after the time limit.
        stdout: standard output, at most 1 MiB.
        stderr: standard error, at most 1 MiB, with `.` for its working directory.
        files: contents of the requested files; None for a missing file.
        start_error: the reason if the program cannot be started, else empty.
    """

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    start_error: str = ""


class Sandbox:
    """Runner of a program, each time in a fresh copy of its directory.

    Args:
        argv: the program and its first arguments; absolute paths among them become readable.
        directory: the content of the working directory; None for an empty one.
        environment: its environment variables; only `PATH`, `HOME` and `TMPDIR` are added.
        timeout_seconds: time limit of a run.
        memory_bytes: memory limit of each process.
        readable: more paths that the program may read.
        level: the level of the fence; None for the best one that works.
        unfenced: True to run the program without a fence if none works.
        is_serving: True if the program accepts connections of its own processes. Only namespaces allow it.

    Raises:
        FailedPreconditionError: the machine supports no fence.
        InvalidArgumentError: the directory is missing, or too large to be copied for each run.
        OSError: the directory contains files that cannot be copied.
    """

    def __init__(
        self,
        argv: Sequence[str],
        directory: Path | None,
        environment: Mapping[str, str],
        timeout_seconds: float,
        memory_bytes: int,
        *,
        readable: Sequence[Path] = (),
        level: str | None = None,
        unfenced: bool = False,
        is_serving: bool = False,
    ) -> None:
        self._level = level or (_serving_fence() if is_serving else find_fence()) or UNFENCED
        self._is_serving = is_serving
        if self._level == UNFENCED and not unfenced:
            raise FailedPreconditionError(
                "fence unavailable: this machine cannot isolate a program (it needs Linux with namespaces, or"
                " with Landlock version 6, which is not enough for a service); use another machine, or accept"
                " programs without a fence with --unfenced or PERIPETY_TESTGEN_UNFENCED=true",
                code="SANDBOX_UNAVAILABLE",
            )
        if directory is not None:
            _require_copyable(directory)
        self._directory = directory
        self._environment = {"PATH": DEFAULT_PATH, **environment}
        self._timeout = timeout_seconds
        self._memory = memory_bytes
        self._readable = [
            *_SYSTEM_PATHS,
            *_named_paths(argv, self._environment),
            *map(os.fspath, readable),
        ]

    @property
    def is_fenced(self) -> bool:
        """True if a fence isolates the program."""
        return self._level != UNFENCED

    def run(
        self,
        argv: Sequence[str],
        stdin: bytes = b"",
        files: Mapping[str, bytes] | None = None,
        read_back: Sequence[str] = (),
        *,
        descriptors: Sequence[int] = (),
        timeout_seconds: float | None = None,
        attempts: int = MAX_ATTEMPTS,
    ) -> ProcessOutput:
        """Run a program to its end, or until the time limit.

        Args:
            argv: the program and its arguments.
            stdin: the standard input.
            files: contents of further files in the directory, by relative path; they replace existing ones.
            read_back: paths of files in the directory to return after the end.
            descriptors: open file descriptors that the program inherits.
            timeout_seconds: a time limit in place of the usual one.
            attempts: the number of runs until one is not ended by a process outside of the fence. With
                descriptors, there is one run, because their files may be used up.

        Raises:
            FailedPreconditionError: the fence cannot be set up.
            WorkCancelledError: the work was cancelled.
        """
        raise_if_cancelled()
        with tempfile.TemporaryDirectory(prefix="peripety-") as outer:
            place, out, err = Path(outer, "place").resolve(), Path(outer, "out"), Path(outer, "err")
            place.mkdir()
            with out.open("wb") as stdout, err.open("wb") as stderr, tempfile.TemporaryFile() as report:
                rules = fence.Rules(
                    level=self._level,
                    place=os.fspath(place),
                    source=None if self._directory is None else os.fspath(self._directory.resolve()),
                    files={name: base64.b64encode(data).decode() for name, data in (files or {}).items()},
                    readable=[path for path in self._readable if Path(path).exists()],
                    read_back=[*read_back],
                    seconds=timeout_seconds or self._timeout,
                    memory_bytes=self._memory,
                    is_serving=self._is_serving,
                    report=report.fileno(),
                )
                outputs = stdout.fileno(), stderr.fileno()
                status = self._run_fence(rules, argv, stdin, outputs, descriptors)
                written = report.read()
                told = _read_report(written if written or status >= 0 else b'{"interrupted": %d}' % status)
            if "interrupted" in told and attempts > 1 and not descriptors:
                # Usually for want of memory, or by a person.
                limit = timeout_seconds
                return self.run(argv, stdin, files, read_back, timeout_seconds=limit, attempts=attempts - 1)
            # Error messages often contain the path of a file, which differs in each run.
            complaints = _read_beginning(err).replace(os.fsencode(place / "work"), b".")
            return ProcessOutput(
                told.get("status", told.get("interrupted")),
                _read_beginning(out),
                complaints,
                {name: data and base64.b64decode(data) for name, data in told.get("files", {}).items()},
                told.get("not_started", ""),
            )

    def _run_fence(
        self,
        rules: fence.Rules,
        argv: Sequence[str],
        stdin: bytes,
        outputs: tuple[int, int],
        descriptors: Sequence[int],
    ) -> int:
        """Run the fence; return its exit code, which is negative if another process ended it."""
        process = subprocess.Popen(  # noqa: S603 - the program is the one that the caller named
            [sys.executable, "-I", "-S", fence.__file__, json.dumps(rules), *argv],
            stdin=subprocess.PIPE,
            stdout=outputs[0],
            stderr=outputs[1],
            cwd="/",
            env=self._environment,
            start_new_session=True,
            pass_fds=[rules["report"], *descriptors],
        )
        try:
            process.communicate(stdin, rules["seconds"] + _GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return 0
        return process.returncode


MAX_PROGRAM_MUTANTS = 300
"""Limit of mutants; each costs a run per test that covers its line, so a long program is sampled."""

_MUTANTS_PER_PROCESS = 24
_MAX_MUTANT_SECONDS = 10.0
"""Limit of the processor time for the mutants of one test."""

_MAX_MUTANT_WAIT = 20.0
"""Limit of the time for them, of programs that wait."""

_TIMED_OUT = ProcessOutput(None, b"", b"")


def order_mutants(places: Mapping[str, tuple[str, int, int]]) -> list[str]:
    """Return the mutants of a program, the ones to measure first at the beginning; always the same order.

    One of each function comes first, then one of each further line, then a second one of each line. A changed
    text comes after the other mutants of its line, because most tests of the line detect it.

    Args:
        places: the file, the first line of the function, and the line of each mutant by its id.
    """
    by_chance = sorted(places, key=lambda one: ("change_text" in one, sha256(one.encode()).digest()))
    in_function, in_line = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    ranks: dict[str, tuple[bool, int, bytes]] = {}
    for mutant_id in by_chance:
        file, function, line = places[mutant_id]
        is_first = not in_function[file, function]
        ranks[mutant_id] = (not is_first, in_line[file, line], sha256(mutant_id.encode()).digest())
        in_function[file, function] += 1
        in_line[file, line] += 1
    return sorted(ranks, key=ranks.__getitem__)


class MutantRuns:
    """Runs of the mutants of a program, in batches, within limits.

    A mutant that exceeds its time limit, which follows from the time of the program, is not run again.
    Mutants that were run least come first. If the time for one test is over, or a batch ends early, the
    rest is missing.

    Args:
        timeout_seconds: the time limit of a run of the program.
    """

    def __init__(self, timeout_seconds: float) -> None:
        self._timeout = timeout_seconds
        self._hanging: set[str] = set()
        self._runs = Counter[str]()

    def run(
        self,
        mutant_ids: Sequence[str],
        run_batch: Callable[[Sequence[str], float], Sequence[Mapping[str, Any]]],
    ) -> Iterator[tuple[str | None, ProcessOutput]]:
        """Run the program and then mutants of it; yield each with its output, first the program as None.

        Args:
            mutant_ids: the mutants.
            run_batch: runs the program and some mutants within a time limit in seconds, and returns the
                results of a probe, possibly of the first ones only.
        """
        yield from ((one, _TIMED_OUT) for one in mutant_ids if one in self._hanging)
        left = [one for one in mutant_ids if one not in self._hanging]
        left.sort(key=lambda one: self._runs[one])
        began, used = time.monotonic(), _used_seconds()
        for start in range(0, len(left), _MUTANTS_PER_PROCESS):
            batch = left[start : start + _MUTANTS_PER_PROCESS]
            waited = time.monotonic() - began
            if waited > _MAX_MUTANT_WAIT or _used_seconds() - used > _MAX_MUTANT_SECONDS:
                return
            self._runs.update(batch)
            limit = min(self._timeout * (len(batch) + 2), self._timeout + _MAX_MUTANT_WAIT - waited)
            for mutant_id, result in zip((None, *batch), run_batch(batch, limit), strict=False):
                if mutant_id is not None and result["exit_code"] is None:
                    self._hanging.add(mutant_id)
                yield mutant_id, _output_of(result)


def _output_of(result: Mapping[str, Any]) -> ProcessOutput:
    """Return the output of a run from a result of a probe."""
    files = {name: None if data is None else base64.b64decode(data) for name, data in result["files"].items()}
    stdout, stderr = (base64.b64decode(result[name] or "") for name in ("stdout", "stderr"))
    return ProcessOutput(result["exit_code"], stdout, stderr, files)


def _used_seconds() -> float:
    """Return the processor time of this process and of the programs that it has run, in seconds."""
    return sum(os.times()[:4])


def _read_report(written: bytes) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(written or b'{"status": null}')
    if "error" in told:
        raise FailedPreconditionError(
            f"fence failed: {told['error']}; use another machine, or see docs/how-to/generate-tests.md",
            code="SANDBOX_UNAVAILABLE",
        )
    return told


def _read_beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MAX_OUTPUT_BYTES)


_PROBE = """
import os, socket, sys
outside, name, process = sys.argv[1:]
open("own", "w").close()
def is_denied(act):
    try:
        act()
    except OSError:
        return True
def reach():
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(name)
if all(map(is_denied, (
    lambda: open(os.path.join(outside, "read")).close(),
    lambda: open(os.path.join(outside, "write"), "w").close(),
    reach,
    lambda: os.kill(int(process), 0),
))):
    print("fenced")
"""


@cache
def find_fence() -> str | None:
    """Return the best level of the fence that works on this machine; None without one.

    The first call runs a probe for each level until one succeeds.
    """
    return next((level for level in FENCE_LEVELS if works(level)), None)


def _serving_fence() -> str | None:
    """Return the level of the fence inside which a service is reached; None without it."""
    return "namespaces" if find_fence() == "namespaces" else None


def works(level: str) -> bool:
    """Return True if a level of the fence denies what it must: a probe tries it."""
    with tempfile.TemporaryDirectory(prefix="peripety-") as outside:
        Path(outside).chmod(0o777)  # permissions must not be the reason of a refusal
        Path(outside, "read").write_text("outside")
        Path(outside, "read").chmod(0o666)
        with socket.socket(socket.AF_UNIX) as outer:
            outer.bind(os.path.join(outside, "socket"))  # noqa: PTH118 - it takes no path
            Path(outside, "socket").chmod(0o777)
            outer.listen()
            argv = [sys.executable, "-I", "-S", "-c", _PROBE, outside, f"{outside}/socket", str(os.getpid())]
            try:
                sandbox = Sandbox(argv[:1], None, {}, 30.0, 1 << 30, level=level)
                for _ in range(MAX_ATTEMPTS):
                    output = sandbox.run(argv)
                    # A probe that another process kills shows nothing.
                    if output.exit_code != -signal.SIGKILL:
                        return output.stdout.strip() == b"fenced"
            except (FailedPreconditionError, OSError):
                pass
    return False


def _named_paths(argv: Sequence[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the paths of the interpreter, and those that a command and its variables name."""
    for name in ("PATH", "PYTHONPATH"):
        yield from filter(os.path.isabs, environment.get(name, "").split(os.pathsep))
    for argument in argv[1:]:
        path = argument.partition("=")[2] or argument
        if Path(path).is_absolute() and not _holds_home(Path(path)):
            yield path
    program = shutil.which(argv[0], path=environment.get("PATH"))
    if program is not None and (Path(argv[0]).is_absolute() or os.sep not in argv[0]):
        yield from installation_paths(Path(program))


def _holds_home(path: Path) -> bool:
    """Return True for the home directory, and for the directories that it is in."""
    home = Path("~").expanduser().resolve()
    return path.resolve() in {home, *home.parents}


def installation_paths(program: Path) -> Iterator[str]:
    """Yield the paths of an installed program: its prefix, those of its links, and Python's packages."""
    step: Path | None = program
    seen: set[Path] = set()
    while step is not None and step not in seen:
        seen.add(step)
        prefix = step.parent.parent
        if (
            step.parent.name not in {"bin", "shims", "Scripts"}
            or prefix.name == ".local"
            or _holds_home(prefix)
        ):
            yield os.fspath(step)
        else:
            yield os.fspath(prefix)
            yield from _python_paths(prefix)
        step = Path(os.path.normpath(step.parent / step.readlink())) if step.is_symlink() else None


_HOME_PATTERN = re.compile(r"^home\s*=\s*(\S.*)$", re.MULTILINE)
_MAPPED_PATTERN = re.compile(r"""['"](/[^'"\n]+)['"]""")


def _python_paths(prefix: Path) -> Iterator[str]:
    """Yield the base of a virtual environment, and the directories that its packages are links to."""
    with suppress(OSError):
        home = _HOME_PATTERN.search((prefix / "pyvenv.cfg").read_text())
        if home is not None:
            yield os.fspath(Path(home[1].strip()).parent)
    for packages in prefix.glob("lib/python*/site-packages"):
        for file in packages.glob("*.pth"):
            lines = file.read_text(errors="replace").splitlines()
            yield from filter(os.path.isabs, map(str.strip, lines))
        for file in packages.glob("__editable__*.py"):
            yield from _MAPPED_PATTERN.findall(file.read_text(errors="replace"))


def _require_copyable(directory: Path) -> None:
    if not directory.is_dir():
        raise InvalidArgumentError(
            f"working_directory: directory '{directory.name}' does not exist",
            code="NO_SUCH_DIRECTORY",
        )
    size = 0
    for files, path in enumerate(_iter_directory_files(directory), start=1):
        status = path.lstat()
        if not (stat.S_ISLNK(status.st_mode) or (stat.S_ISREG(status.st_mode) and os.access(path, os.R_OK))):
            raise PermissionError(errno.EACCES, f"'{path.name}' cannot be read")
        size += status.st_size
        if files > MAX_DIRECTORY_FILES or size > MAX_DIRECTORY_BYTES:
            raise InvalidArgumentError(
                f"working_directory: has more than {MAX_DIRECTORY_FILES} files or {MAX_DIRECTORY_BYTES}"
                " bytes, and is copied for each run; use one with only the required files",
                code="DIRECTORY_TOO_LARGE",
            )


def _iter_directory_files(directory: Path) -> Iterator[Path]:
    for place, _, names in os.walk(directory):
        yield from (Path(place, name) for name in names)
