"""Questions to the user at the terminal."""

from __future__ import annotations

import asyncio
import select
import signal
import socket
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


_POLL_SECONDS = 0.05


class PromptAbandonedError(Exception):
    """The question is no longer of interest; the user has typed no answer."""


def prompt_line(question: str, abandon: Callable[[], bool] | None = None) -> str | None:
    """Read a line from the terminal; None at the end of input.

    Ctrl-C ends the process at once, also inside an event loop.

    Args:
        question: the text before the cursor.
        abandon: called some times per second; True ends the question.

    Raises:
        PromptAbandonedError: `abandon` returned True.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if _is_cancelled():
            raise KeyboardInterrupt
        return _read_line(question, abandon).strip()
    except EOFError:
        return None
    finally:
        signal.signal(signal.SIGINT, before)


def _is_cancelled() -> bool:
    """Return True if Ctrl-C came before the question, when the event loop still handled it.

    The loop cancels the current task, which would notice that only after the answer.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return False
    return task is not None and task.cancelling() > 0


def _read_line(question: str, abandon: Callable[[], bool] | None) -> str:
    """Read a line of standard input.

    `input` notices a signal between its question and its blocking read only with the next line. So a terminal
    is awaited with `select`, which any signal wakes through a socket.
    """
    if sys.platform == "win32" or not sys.stdin.isatty():
        return input(question)
    woken, waking = socket.socketpair()
    with woken, waking:
        waking.setblocking(False)
        before = signal.set_wakeup_fd(waking.fileno())
        try:
            sys.stdout.write(question)
            sys.stdout.flush()
            _await_line(woken, abandon)
        finally:
            signal.set_wakeup_fd(before)
    return input()


def _await_line(woken: socket.socket, abandon: Callable[[], bool] | None) -> None:
    while not select.select([sys.stdin, woken], [], [], None if abandon is None else _POLL_SECONDS)[0]:
        if abandon is not None and abandon():
            raise PromptAbandonedError
