"""Servers as processes, terminals, and a process that writes rows."""

from __future__ import annotations

import asyncio
import codecs
import os
import pty
import select
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

from sqlalchemy import Column, Integer, Table, func, insert
from sqlalchemy import select as sqlalchemy_select

from peripety.core.storage.database import METADATA, Database
from peripety.errors import ConflictError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType


PERIPETY = [sys.executable, "-m", "peripety"]


def environment(home: Path, **settings: str) -> dict[str, str]:
    """Return the environment of a server process, with all of its data under `home`."""
    inherited = {
        name: os.environ[name] for name in ("PATH", "PYTHONPATH", "PERIPETY_SIMCORE") if name in os.environ
    }
    database = f"sqlite:///{home / 'peripety.db'}"
    return {
        **inherited,
        "HOME": str(home),
        "PERIPETY_DATABASE_URL": database,
        "PERIPETY_EDGE_LISTEN": "127.0.0.1:0",
        **settings,
    }


@dataclass
class ServerProcess:
    """`peripety serve` on a free port, with its data under `home`; its log is a file there.

    Attributes:
        home: the folder of its data; a second process on the same home finds what the first one left.
        service: which service to run.
        settings: further environment variables.
        address: the address it listens on, once it was started.
    """

    home: Path
    service: str = "all"
    settings: dict[str, str] = field(default_factory=dict)
    address: str = ""

    def __enter__(self) -> Self:
        self.home.mkdir(exist_ok=True)
        with (self.home / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*PERIPETY, "serve", self.service, "--listen", "127.0.0.1:0"],
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(self.home, **self.settings),
                text=True,
            )
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        if not said.startswith("listening on "):
            self.__exit__(None, None, None)
            raise AssertionError(f"the server said {said!r} and logged:\n{self.log}")
        self.address = said.removeprefix("listening on ").strip()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.kill()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def kill(self) -> None:
        """End the process as a power cut would."""
        self.process.kill()
        self.process.wait(timeout=10)

    def stop(self) -> int:
        """Stop the process with a signal, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)

    @property
    def log(self) -> str:
        """Everything that servers on this home have logged."""
        return (self.home / "server.log").read_text(encoding="utf-8", errors="replace")


def descendants(pid: int) -> Iterator[int]:
    """Yield the processes that a process has started, and those of them."""
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                yield child
                yield from descendants(child)


class Terminal:
    """The contents of the screen so far, and the keys."""

    def __init__(self, keyboard: int, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.screen = ""
        self._keyboard = keyboard
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._read = 0

    def wait_for(self, text: str, seconds: float = 60) -> None:
        """Wait until a text appears after what was waited for before.

        Raises:
            AssertionError: it did not appear in time, or the program ended first; the message has the screen.
        """
        deadline = time.monotonic() + seconds
        while text not in self.screen[self._read :]:
            assert time.monotonic() < deadline, f"{text!r} did not appear in:\n{self.screen}"
            if select.select([self._keyboard], [], [], 0.1)[0]:
                # A read can end inside a character.
                self.screen += self._decoder.decode(self._read_keyboard(text))
        self._read = self.screen.index(text, self._read) + len(text)

    def _read_keyboard(self, text: str) -> bytes:
        try:
            shown = os.read(self._keyboard, 65536)
        except OSError:  # how Linux reports that the other side is closed
            shown = b""
        assert shown, f"the program ended before {text!r} appeared in:\n{self.screen}"
        return shown

    def type(self, text: str) -> None:
        """Type a line."""
        os.write(self._keyboard, f"{text}\n".encode())


@contextmanager
def terminal(command: list[str], environment: dict[str, str]) -> Iterator[Terminal]:
    """Start a program at a terminal."""
    keyboard, screen = pty.openpty()
    process = subprocess.Popen(
        command,
        stdin=screen,
        stdout=screen,
        stderr=screen,
        env={**environment, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(screen)
    try:
        yield Terminal(keyboard, process)
    finally:
        process.kill()
        process.wait(timeout=10)
        os.close(keyboard)


pairs = Table(
    "pairs",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("half", Integer, primary_key=True),
)


async def add_pair(database: Database, number: int) -> None:
    """Add a pair, and let others have their turn in between."""
    async with database.write() as connection:
        await connection.execute(insert(pairs).values(number=number, half=0))
        await asyncio.sleep(0)
        await connection.execute(insert(pairs).values(number=number, half=1))


async def add_next_pair(database: Database) -> int:
    """Add the pair after the last one, and return its number."""
    async with database.write() as connection:
        last = await connection.scalar(sqlalchemy_select(func.max(pairs.c.number)))
        number = 0 if last is None else last + 1
        await connection.execute(insert(pairs).values(number=number, half=0))
        await connection.execute(insert(pairs).values(number=number, half=1))
    return number


async def add_half(database: Database, number: int) -> None:
    """Add half of a pair, then fail with a `ConflictError`."""
    async with database.write() as connection:
        await connection.execute(insert(pairs).values(number=number, half=0))
        raise ConflictError("half is enough")


async def halves(database: Database) -> dict[int, int]:
    """Return the number of rows of each pair."""
    query = sqlalchemy_select(pairs.c.number, func.count()).group_by(pairs.c.number)
    async with database.read() as connection:
        return {row[0]: row[1] for row in await connection.execute(query)}


def found(path: Path) -> set[int]:
    """The pairs that a process finds in a SQLite file when it starts; they are whole, and so is the file."""
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        counted = dict(connection.execute("SELECT number, count(*) FROM pairs GROUP BY number").fetchall())
    finally:
        connection.close()
    assert set(counted.values()) <= {2}
    return set(counted)


@contextmanager
def writing(url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that adds pairs and prints the number of each when it is there; the block's end kills it."""
    tests = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tests), *sys.path])}
    command = [sys.executable, "-m", "support.servers.processes", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


async def _write_for_ever(url: str) -> None:
    database = await Database.open(url)
    while True:
        number = await add_next_pair(database)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_write_for_ever(sys.argv[1]))
