"""A Redis server of the tests' own, which keeps nothing when it ends."""

from __future__ import annotations

import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

from redis import Redis
from redis.exceptions import ConnectionError as NotReadyError

from support.private_server import free_port, program

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["PASSWORD", "RedisProcess"]

PASSWORD = "pass/w@rd"  # noqa: S105 - of a server that lives as long as the tests
_START_SECONDS = 30.0


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
