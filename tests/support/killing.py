"""Processes in which many tasks write to a database at once, killed at it.

They are forked from one process that has loaded everything: starting Python takes longer than their lives.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from peripety.core.storage.database import Database
from peripety.errors import ConflictError
from support.writer import add_half, add_next_pair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


WRITERS = 8
"""So many tasks of a process write at once."""


@contextmanager
def killing() -> Iterator[Callable[[str, int, float], list[int]]]:
    """A function that starts a process and kills it.

    It takes the URL of the database, how many pairs the process is to report before it is killed, and how
    many seconds after that; it returns the number of each pair that was reported.
    """
    tests = Path(__file__).parent.parent
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tests), *sys.path])}
    command = [sys.executable, "-m", "support.killing"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        requests, answers = process.stdin, process.stdout

        def kill(url: str, after: int, seconds: float) -> list[int]:
            requests.write(json.dumps([url, after, seconds]) + "\n")
            requests.flush()
            reported: list[int] = json.loads(answers.readline())
            return reported

        yield kill
        requests.close()


def _kill(url: str, after: int, seconds: float) -> list[int]:
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            asyncio.run(_write(url, writing))
        finally:
            os._exit(1)
    os.close(writing)
    with os.fdopen(reading, encoding="ascii") as reports:
        reported = [reports.readline() for _ in range(after)]
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        return [int(number) for number in [*reported, *reports]]


async def _write(url: str, reports: int) -> None:
    database = await Database.open(url)

    async def write_for_ever() -> None:
        while True:
            os.write(reports, b"%d\n" % await add_next_pair(database))

    async def fail_for_ever() -> None:
        while True:
            with suppress(ConflictError):
                await add_half(database, -1)

    await asyncio.gather(fail_for_ever(), *(write_for_ever() for _ in range(WRITERS)))


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(_kill(*json.loads(line))) + "\n")
        sys.stdout.flush()
