"""PostgreSQL and Redis servers, and a database and disk that fail.

The faulty disk is a SQLite VFS: a layer between the library and the files that passes all calls through to
the usual one, and counts those that change a file.
"""

from __future__ import annotations

import _sqlite3
import asyncio
import ctypes
import itertools
import os
import pwd
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, asynccontextmanager, contextmanager
from ctypes import CFUNCTYPE, POINTER, Structure, addressof, c_char_p, c_int, c_int64, c_void_p, memmove
from ctypes import cast as ctypes_cast
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, cast
from urllib.parse import quote

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as NotReadyError

from peripety.errors import UnavailableError
from peripety.session.store.session_store import SessionStore
from support.engine.specs import document
from support.gateway.fake_gateway import FakeGateway
from support.session.sessions import OneScenario, outcome, sessions_over

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator
    from types import TracebackType

    from peripety.core.storage.database import Database
    from peripety.session.session_manager import SessionManager
    from support.session.sessions import Table


class CrashError(BaseException):
    """The end of a process; no handler catches it."""


@dataclass
class Faults:
    """Counts operations, and does something bad at one of them."""

    at: int = 0
    kind: str = ""
    count: int = 0
    hangs: asyncio.Event = field(default_factory=asyncio.Event)

    async def point(self) -> None:
        self.count += 1
        if self.count != self.at:
            return
        if self.kind == "crash":
            raise CrashError
        if self.kind == "error":
            raise UnavailableError("the disk is gone")
        self.hangs.set()
        await asyncio.Event().wait()


class FaultyConnection:
    """A connection with a point before and after everything that it does."""

    def __init__(self, connection: Any, faults: Faults) -> None:
        self._connection = connection
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        async def run(*arguments: Any) -> Any:
            await self._faults.point()
            result = await getattr(self._connection, name)(*arguments)
            await self._faults.point()
            return result

        return run


class FaultyDatabase:
    """A database with points before a transaction, inside it, before its commit and after it."""

    def __init__(self, database: Database, faults: Faults) -> None:
        self._database = database
        self._faults = faults

    @asynccontextmanager
    async def read(self) -> AsyncIterator[FaultyConnection]:
        await self._faults.point()
        async with self._database.read() as connection:
            yield FaultyConnection(connection, self._faults)

    @asynccontextmanager
    async def write(self, about: str | None = None) -> AsyncIterator[FaultyConnection]:
        await self._faults.point()
        async with self._database.write(about) as connection:
            yield FaultyConnection(connection, self._faults)
            await self._faults.point()
        await self._faults.point()


def process(game: Table, faults: Faults) -> SessionManager:
    """A process of its own over the same database."""
    database = cast("Database", FaultyDatabase(game.database, faults))
    return sessions_over(SessionStore(database), OneScenario(document()), FakeGateway(outcome()))


async def attempted(work: Coroutine[Any, Any, Any], faults: Faults) -> None:
    """Do something in a process that may not survive it; one that hangs is cancelled."""
    doing = asyncio.ensure_future(work)
    hangs = asyncio.ensure_future(faults.hangs.wait())
    await asyncio.wait([doing, hangs], return_when=asyncio.FIRST_COMPLETED)
    doing.cancel()
    hangs.cancel()
    await asyncio.wait([doing, hangs])
    if not doing.cancelled():
        doing.exception()


Kind = Literal["error", "full", "torn"]

_Open = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)
_Write = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)
_Truncate = CFUNCTYPE(c_int, c_void_p, c_int64)
_Sync = CFUNCTYPE(c_int, c_void_p, c_int)


class _Layer(Structure):
    """The part of `sqlite3_vfs` that is changed."""

    _fields_ = (
        ("version", c_int),
        ("size_of_file", c_int),
        ("longest_path", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", _Open),
        ("others", c_void_p * 15),
    )


class _Methods(Structure):
    """`sqlite3_io_methods`: what can be done with an open file."""

    _fields_ = (
        ("version", c_int),
        ("close", c_void_p),
        ("read", c_void_p),
        ("write", _Write),
        ("truncate", _Truncate),
        ("sync", _Sync),
        ("others", c_void_p * 13),
    )


_in_use: list[object] = []
"""All of it, for ever: SQLite closes a file when the last statement on it is gone, perhaps much later."""


class FaultyDisk:
    """A faulty layer under every SQLite file that is opened inside of this block.

    Attributes:
        failed: how many operations have failed since `fail` was called.
    """

    def __enter__(self) -> Self:
        self._library = _library()
        usual = ctypes_cast(self._library.sqlite3_vfs_find(None), POINTER(_Layer)).contents
        self._usual = usual
        self._layer = _Layer()
        memmove(addressof(self._layer), addressof(usual), ctypes.sizeof(_Layer))
        self._layer.name = b"faulty"
        self._layer.open = _Open(self._open)
        self._methods: dict[int, tuple[_Methods, _Methods]] = {}
        self.mend()
        _in_use.append(self)
        self._library.sqlite3_vfs_register(addressof(self._layer), 1)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.mend()
        self._library.sqlite3_vfs_register(addressof(self._usual), 1)
        self._library.sqlite3_vfs_unregister(addressof(self._layer))

    def fail(self, at: int, kind: Kind, *, for_good: bool) -> None:
        """Fail from now on.

        Args:
            at: the operation to fail: 1 for the next one.
            kind: `error` of the device, `full`, or `torn`: an error when half of it was written.
            for_good: whether all that follow fail, too.
        """
        self._left, self._kind, self._for_good, self.failed = at, kind, for_good, 0

    def mend(self) -> None:
        """Fail no more."""
        self._left = self.failed = 0

    def _fails(self) -> bool:
        if self._left == 0:
            return False
        self._left -= 1
        if self._left:
            return False
        self._left = int(self._for_good)
        self.failed += 1
        return True

    def _open(self, _layer: int, name: int | None, file: int, flags: int, flags_out: int | None) -> int:
        result: int = self._usual.open(addressof(self._usual), name, file, flags, flags_out)
        pointer = ctypes_cast(file, POINTER(c_void_p))
        if pointer.contents.value is not None:
            pointer[0] = addressof(self._wrapped(pointer.contents.value))
        return result

    def _wrapped(self, address: int) -> _Methods:
        if address not in self._methods:
            usual, ours = ctypes_cast(address, POINTER(_Methods)).contents, _Methods()
            memmove(addressof(ours), address, ctypes.sizeof(_Methods))

            def write(file: int, data: int, size: int, offset: int) -> int:
                if not self._fails():
                    return int(usual.write(file, data, size, offset))
                if self._kind == "torn":
                    usual.write(file, data, size // 2, offset)
                return sqlite3.SQLITE_FULL if self._kind == "full" else sqlite3.SQLITE_IOERR_WRITE

            def truncate(file: int, size: int) -> int:
                return sqlite3.SQLITE_IOERR_TRUNCATE if self._fails() else int(usual.truncate(file, size))

            def sync(_file: int, _flags: int) -> int:
                # Tests do not simulate power failures, so a successful sync does nothing.
                return sqlite3.SQLITE_IOERR_FSYNC if self._fails() else sqlite3.SQLITE_OK

            ours.write, ours.truncate, ours.sync = _Write(write), _Truncate(truncate), _Sync(sync)
            self._methods[address] = (usual, ours)
        return self._methods[address][1]


def _library() -> Any:
    """The SQLite library that Python itself uses."""
    library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
    if not hasattr(library, "sqlite3_vfs_find"):
        pytest.skip("this Python hides its SQLite library, so that no disk can be made to fail under it")
    library.sqlite3_vfs_find.restype = c_void_p
    library.sqlite3_vfs_find.argtypes = [c_char_p]
    library.sqlite3_vfs_register.argtypes = [c_void_p, c_int]
    library.sqlite3_vfs_unregister.argtypes = [c_void_p]
    return library


def program(name: str, package: str) -> str:
    """Return the path of a server program.

    Without it a test is skipped, or fails if `PERIPETY_REQUIRE_SERVERS=1` requires all of them.

    Args:
        name: the program.
        package: the package of Debian and Ubuntu that has it.
    """
    # Debian installs the programs of each version of PostgreSQL in a directory that is not on the path.
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name))
    path = os.pathsep.join([*map(str, reversed(versions)), os.environ.get("PATH", os.defpath)])
    return shutil.which(name, path=path) or _missing(name, package)


def _missing(name: str, package: str) -> NoReturn:
    reason = f"{name} is not installed: apt-get install {package}"
    if os.environ.get("PERIPETY_REQUIRE_SERVERS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


def free_port() -> int:
    """Return a free port of the loopback address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


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
                    # Tests do not simulate power failures, and a killed process does not lose its writes.
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
        """Return the prefix of a command line for a program that refuses to run as root.

        The arguments of `subprocess` for that would fork this process, and gRPC's threads with it.
        """
        if os.getuid() != 0:
            return []
        somebody = _somebody()
        return [sys.executable, "-c", _BECOME, str(somebody.pw_uid), str(somebody.pw_gid)]


def _somebody() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody")


class RedisProcess:
    """A running server, which is gone when the block ends.

    Attributes:
        url: where it is.
    """

    def __enter__(self) -> Self:
        self._program = program("redis-server", "redis-server")
        self._port = free_port()
        self.url = f"redis://:{quote(PASSWORD, safe='')}@127.0.0.1:{self._port}/0"
        with ExitStack() as stack:
            self._home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="peripety-redis-")))
            self.start()
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

    def start(self) -> None:
        """Start the server, empty, and wait until it answers."""
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    self._program,
                    *("--bind", "127.0.0.1", "--port", str(self._port), "--requirepass", PASSWORD),
                    *("--dir", str(self._home), "--save", "", "--appendonly", "no"),
                ],
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("Redis did not start:\n" + (self._home / "log").read_text())
            time.sleep(0.01)

    def kill(self) -> None:
        """End the server as a crash would."""
        self._process.kill()
        self._process.wait(timeout=30)

    def clear(self) -> None:
        """Forget everything."""
        with Redis.from_url(self.url) as client:
            client.flushall()

    def _answers(self) -> bool:
        with Redis.from_url(self.url, retry=None) as client:
            try:
                return bool(client.ping())
            except NotReadyError:
                return False
