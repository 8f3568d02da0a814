"""The standard streams when they are not what a program may expect: closed, or without room."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["discard_output", "open_closed_streams"]


def open_closed_streams() -> None:
    """Give each standard stream that was closed at the start (`>&-`) the null device.

    Its number is free otherwise: the next file that is opened, a database perhaps, would take it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - open until the end


def discard_output() -> None:
    """Let what standard output still holds go nowhere; the interpreter would fail on it again at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)
