"""A PostgreSQL server of the tests' own, with a database for whoever asks."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from support.private_server import free_port, program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

__all__ = ["PASSWORD", "PostgresqlProcess"]

PASSWORD = "pass/w@rd"  # noqa: S105 - of a server that lives as long as the tests
_USER = "tester"
_START_SECONDS = 30.0
_BECOME = """
import os, sys
user, group, *command = sys.argv[1:]
os.setgroups([])
os.setgid(int(group))
os.setuid(int(user))
os.execv(command[0], command)
"""


class PostgresqlProcess:
    """A running server, whose files are gone when the block ends.

    Attributes:
        port: where it listens, on 127.0.0.1.
    """

    def __enter__(self) -> Self:
        programs = {
            name: program(name, "postgresql") for name in ("initdb", "postgres", "psql", "pg_isready")
        }
        self._programs = programs
        self._numbers = itertools.count()
        self.port = free_port()
        with ExitStack() as stack:
            # Not pytest's directory: the user that the server runs as could not enter it.
            self._home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="peripety-postgresql-")))
            self._initialize()
            self.start()
            self._psql(f"CREATE ROLE {_USER} LOGIN PASSWORD '{PASSWORD}'")
            stack.callback(self.kill)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of what looks like an empty database, gone when the block ends.

        It is a schema of one database, which takes a hundredth of the time that a new database takes.
        """
        name = f"test_{next(self._numbers)}"
        self._psql(f"CREATE SCHEMA {name} AUTHORIZATION {_USER}")
        password = quote(PASSWORD, safe="")
        yield f"postgresql://{_USER}:{password}@127.0.0.1:{self.port}/postgres?search_path={name}"
        self._psql(f"DROP SCHEMA {name} CASCADE")

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *self._as_somebody(),
                    self._programs["postgres"],
                    *("-D", str(self._home / "data"), "-p", str(self.port), "-k", str(self._home)),
                    *("-c", "listen_addresses=127.0.0.1", "-c", "max_connections=50"),
                    # Nobody's power fails here, and a process that is killed loses nothing that it wrote.
                    *("-c", "fsync=off", "-c", "shared_buffers=16MB"),
                ],
                stdout=log,
                stderr=log,
                cwd=self._home,
            )
        ready = [self._programs["pg_isready"], "-q", "-h", str(self._home), "-p", str(self.port)]
        deadline = time.monotonic() + _START_SECONDS
        while subprocess.run(ready, check=False).returncode:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("PostgreSQL did not start:\n" + (self._home / "log").read_text())
            time.sleep(0.02)

    def kill(self) -> None:
        """End the server as a crash would: connections break, and what was not committed is lost."""
        # SIGQUIT and not SIGKILL: the main process would leave its children behind, at work.
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(timeout=30)

    def _initialize(self) -> None:
        if os.getuid() == 0:
            somebody = _somebody()
            shutil.chown(self._home, somebody.pw_uid, somebody.pw_gid)
        subprocess.run(
            [
                *self._as_somebody(),
                self._programs["initdb"],
                *("-D", str(self._home / "data"), "--username", "admin"),
                *("--auth-local", "trust", "--auth-host", "password"),
                *("--encoding", "UTF8", "--locale", "C", "--no-sync"),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self._home,
        )

    def _psql(self, statement: str) -> None:
        subprocess.run(
            [
                self._programs["psql"],
                *("-q", "-h", str(self._home), "-p", str(self.port), "-U", "admin", "-d", "postgres"),
                *("-c", statement),
            ],
            check=True,
        )

    def _as_somebody(self) -> list[str]:
        """What to put before a program that refuses to run as root.

        The arguments of `subprocess` for that would fork this process, and gRPC's threads with it.
        """
        if os.getuid() != 0:
            return []
        somebody = _somebody()
        return [sys.executable, "-c", _BECOME, str(somebody.pw_uid), str(somebody.pw_gid)]


def _somebody() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody")
