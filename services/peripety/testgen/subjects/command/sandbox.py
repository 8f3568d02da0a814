"""Sandbox for one run of a program: a separate process with time and memory limits, without network.

Limits are set by `prlimit`, namespaces for network and processes by `unshare`, both from util-linux. The
sandbox protects against accidents, not against attacks: a program can read the files that the server can
read.
"""

from __future__ import annotations

import errno
import math
import os
import shutil
import signal
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from peripety.core.concurrency import raise_if_cancelled
from peripety.errors import FailedPreconditionError, InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


MAX_DIRECTORY_BYTES = 16 * 1024 * 1024
MAX_DIRECTORY_FILES = 1_000
_MAX_OUTPUT_BYTES = 1024 * 1024
_MAX_FILE_BYTES = 64 * 1024 * 1024
_MAX_OPEN_FILES = 256
_MAX_PROCESSES = 256
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
# If a process is killed, the end of its process namespace kills its children.
_NAMESPACE_COMMAND = (
    "unshare",
    "--user",
    "--map-current-user",
    "--net",
    "--pid",
    "--fork",
    "--kill-child",
    "--",
)


@dataclass(frozen=True, slots=True)
class ProcessOutput:
    """The result of a program.

    Attributes:
        exit_code: the exit code; the negative signal number after a signal; None after the time limit.
        stdout: standard output, at most 1 MiB.
        stderr: standard error, at most 1 MiB, with `.` for its working directory.
    """

    exit_code: int | None
    stdout: bytes
    stderr: bytes


class Sandbox:
    """Runner of a program, each time in a fresh copy of its directory.

    Args:
        directory: the content of the working directory; None for an empty one.
        environment: its environment variables; only a `PATH` is added.
        timeout_seconds: time limit of a run.
        memory_bytes: memory limit of each process. There are at most 256 processes and threads, unless the
            server runs as root.

    Raises:
        FailedPreconditionError: the machine does not support network namespaces.
        InvalidArgumentError: the directory is missing, or too large to be copied for each run.
        OSError: the directory contains files that cannot be copied.
    """

    def __init__(
        self,
        directory: Path | None,
        environment: Mapping[str, str],
        timeout_seconds: float,
        memory_bytes: int,
    ) -> None:
        _require_namespaces()
        if directory is not None:
            _require_copyable(directory)
        self._directory = directory
        self._environment = {"PATH": DEFAULT_PATH, **environment}
        self._timeout = timeout_seconds
        self._limits = (
            "prlimit",
            f"--as={memory_bytes}",
            f"--cpu={math.ceil(timeout_seconds)}",
            f"--fsize={_MAX_FILE_BYTES}",
            f"--nofile={_MAX_OPEN_FILES}",
            f"--nproc={_MAX_PROCESSES}",
            "--core=0",
            "--",
        )

    def run(
        self,
        argv: Sequence[str],
        stdin: bytes = b"",
        descriptors: Sequence[int] = (),
        timeout_seconds: float | None = None,
    ) -> ProcessOutput:
        """Run a program to its end, or until the time limit.

        Args:
            argv: the program and its arguments.
            stdin: the standard input.
            descriptors: open file descriptors that the program inherits.
            timeout_seconds: a time limit in place of the usual one.

        Raises:
            FailedPreconditionError: the program cannot be started.
            WorkCancelledError: the work was cancelled.
        """
        raise_if_cancelled()
        with tempfile.TemporaryDirectory(prefix="peripety-") as place:
            work, out, err = Path(place, "work"), Path(place, "out"), Path(place, "err")
            if self._directory is None:
                work.mkdir()
            else:
                shutil.copytree(self._directory, work, symlinks=True)
            with out.open("wb") as stdout, err.open("wb") as stderr:
                exit_code = self._run_process(
                    argv,
                    stdin,
                    work,
                    (stdout.fileno(), stderr.fileno()),
                    descriptors,
                    timeout_seconds or self._timeout,
                )
            # Error messages often contain the path of a file, which differs in each run.
            complaints = _read_beginning(err).replace(os.fsencode(work.resolve()), b".")
            return ProcessOutput(exit_code, _read_beginning(out), complaints)

    def _run_process(
        self,
        argv: Sequence[str],
        stdin: bytes,
        work: Path,
        outputs: tuple[int, int],
        descriptors: Sequence[int],
        timeout_seconds: float,
    ) -> int | None:
        process = subprocess.Popen(  # noqa: S603 - the program is the one that the caller named
            # The limits apply inside of the namespace, where only its own processes are counted.
            [*_NAMESPACE_COMMAND, *self._limits, *argv],
            stdin=subprocess.PIPE,
            stdout=outputs[0],
            stderr=outputs[1],
            cwd=work,
            env=self._environment,
            start_new_session=True,
            pass_fds=descriptors,
        )
        try:
            process.communicate(stdin, timeout_seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None
        return process.returncode


def _read_beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MAX_OUTPUT_BYTES)


@cache
def _require_namespaces() -> None:
    tried = [*_NAMESPACE_COMMAND, "true"]
    try:
        done = subprocess.run(tried, capture_output=True, check=False, timeout=10)  # noqa: S603 - fixed
        reason = done.stderr.decode(errors="replace").strip() if done.returncode else ""
        found = shutil.which("prlimit") is not None
    except (OSError, subprocess.TimeoutExpired) as error:
        reason, found = str(error), True
    if reason or not found:
        raise FailedPreconditionError(
            "sandbox unavailable: the machine does not support network namespaces"
            f" ({reason or 'prlimit is missing'}); install util-linux, and allow user namespaces",
            code="SANDBOX_UNAVAILABLE",
        )


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
