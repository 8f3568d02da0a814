"""Servers as processes of their own, that a test may stop, kill and start again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

PERIPETY = [sys.executable, "-m", "peripety"]


def environment(home: Path, **settings: str) -> dict[str, str]:
    """What a process of ours needs to know, with everything it keeps under `home`."""
    inherited = {
        name: os.environ[name] for name in ("PATH", "PYTHONPATH", "PERIPETY_SIMCORE") if name in os.environ
    }
    database = f"sqlite:///{home / 'peripety.db'}"
    return {**inherited, "HOME": str(home), "PERIPETY_DATABASE_URL": database, **settings}


@dataclass
class ServerProcess:
    """`peripety serve` on a free port, with its data under `home`; what it logs is kept in a file there.

    Attributes:
        home: where it keeps its data; a second process on the same home finds what the first one left.
        service: which service to run.
        settings: further environment variables.
        address: where it listens, once it was started.
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
        """Ask the process to stop, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)

    @property
    def log(self) -> str:
        """Everything that servers on this home have logged."""
        return (self.home / "server.log").read_text(encoding="utf-8", errors="replace")
