"""A program at a terminal, with somebody at the keyboard."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Terminal:
    """What is on the screen so far, and the keys."""

    def __init__(self, keyboard: int, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.screen = ""
        self._keyboard = keyboard
        self._read = 0

    def wait_for(self, text: str, seconds: float = 30) -> None:
        """Wait until a text appears after what was waited for before."""
        deadline = time.monotonic() + seconds
        while text not in self.screen[self._read :]:
            assert time.monotonic() < deadline, f"{text!r} did not appear in:\n{self.screen}"
            if select.select([self._keyboard], [], [], 0.1)[0]:
                self.screen += os.read(self._keyboard, 65536).decode()
        self._read = self.screen.index(text, self._read) + len(text)

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
